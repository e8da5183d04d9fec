// The bytes of one HTTP/1.1 request, read as they come: its head, then its body. No sockets, no time.
//
// Stricter than RFC 9112 allows a server to be, so that no proxy in front can read a request differently: both
// Content-Length and Transfer-Encoding, either of them twice, another coding than chunked, folded headers, a line end
// without CR, a CR within a line, and whitespace before a colon are refused. Trailers are read and thrown away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "function/call.h"

namespace orla::node {

struct RequestLimits {
  std::size_t line_bytes = 8 * 1024;     // of the request line; beyond it 414
  std::size_t header_bytes = 32 * 1024;  // request line and headers; beyond it 431
  std::size_t headers = 200;             // beyond it 431
};

struct RequestHead {
  std::string method;
  std::string path;  // as it was sent, from the first '/' on; "*" of OPTIONS
  std::string query;
  bool has_query = false;
  std::string host;
  function::Headers headers;  // without Host, Content-Length and Expect, and without those that concern one connection
  std::optional<std::uint64_t> content_length;  // as it was sent
  bool chunked = false;
  bool keep_alive = true;
  bool http11 = true;  // else 1.0
  bool expects_continue = false;
  std::string upgrade;  // "websocket" as it was sent, where that is offered and there is no body; else empty

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// What is wrong with a request, as it is answered; the connection ends with it.
struct RequestFault {
  int status = 400;
  std::string text;
};

// One request after another; one owner.
class RequestParser {
 public:
  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  enum class Progress : std::uint8_t { kMore, kDone, kFault };

  // `bytes` is all that has come since the last request's end. `used`: how much of it the head is (kDone).
  Progress head(std::string_view bytes, std::size_t& used);
  // After head(), while there is a body: takes what it can from the front of `bytes` (`used`), and appends what the
  // body is to `out`. More than `limit` bytes of body in all: a fault, 413.
  Progress body(std::string_view bytes, std::uint64_t limit, std::string& out, std::size_t& used);

  RequestHead& request();             // after head() was kDone
  const RequestFault& fault() const;  // after kFault
  void next();                        // begins the next request

  // Bytes that a chunk's line or the trailers may take.
  static constexpr std::size_t kMaxChunkLineBytes = 4 * 1024;
  static constexpr std::size_t kMaxTrailerBytes = 16 * 1024;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orla::node
