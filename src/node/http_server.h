// A small HTTP/1.1 server for a node's status page, API and metrics.
//
// Threads: the server runs on its own; handlers run there too, one per worker, and may block for a while (they read
// SQLite, or ask the node's loop and wait). An answer that may be long in coming is given `later`, and holds no worker.
// Limits: HttpLimits; a request over one is answered with the matching 4xx/503 and closed. `Expect: 100-continue` is
// answered before the body is read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace orla::node {

struct HttpLimits {
  std::size_t connections = 64;  // more are answered 503 and closed
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 8 * 1024 * 1024;
  std::size_t all_bodies_bytes = 128 * 1024 * 1024;  // being received, or with a handler; beyond it: 503
  std::chrono::seconds read_timeout{15};   // for a whole request, and for the next one on a kept-alive connection
  std::chrono::seconds write_timeout{60};  // for each written piece
  std::size_t workers = 4;
};

struct HttpRequest {
  std::string method;
  std::string path;                                        // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  std::map<std::string, std::string> headers;              // names in lower case; the last value wins
  std::string body;

  std::optional<std::string> parameter(std::string_view name) const;  // the first of that name
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // When set, the body comes from here instead, piece by piece, chunked: returns false when there is nothing more.
  std::function<absl::StatusOr<bool>(std::string& piece)> stream;
  // When set, all of the above is void, and this is called once with what takes the answer. That may be called on any
  // thread, once, also after the server has gone (then it does nothing). Until then the connection waits, however long.
  std::function<void(std::function<void(HttpResponse)> answer)> later;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// Starts on construction by start(); stops, joining its threads, on destruction: answers that are there already are
// written, as far as that takes no longer than kLastAnswers.
class HttpServer {
 public:
  static constexpr std::chrono::milliseconds kLastAnswers{1000};
  virtual ~HttpServer() = default;
  // "127.0.0.1:8411", with the real port.
  virtual std::string address() const = 0;

  // `address` is HOST:PORT, loopback only (there is no TLS yet); port 0 takes a free one. An address in use is an error
  // that names it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const std::string& address, HttpLimits limits,
                                                           HttpHandler handler);
};

}  // namespace orla::node
