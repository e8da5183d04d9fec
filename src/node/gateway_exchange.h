// One request and its response on a connection: the body as a function reads it, the response as it writes it.
//
// The connection's thread feeds the body; one other thread at a time (the host's, a worker's) reads it and writes the
// response, straight to the socket, waiting where the client is slow. Once the response is whole the connection is
// given back at once, and this object no longer touches it.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "function/invocation.h"
#include "node/gateway_core.h"
#include "node/gateway_request.h"

namespace orla::node {

// The connection, as an exchange sees it. Thread-safe.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual int descriptor() const = 0;
  // The response is whole: the connection goes on with the next request, or ends (kClose).
  enum class After : std::uint8_t { kKeep, kClose };
  virtual void released(After after) = 0;
  // Nothing of a response was written: this is it.
  virtual void answer(Answer answer) = 0;
  // Ends the connection as it is, so that the client sees that its response is not whole.
  virtual void break_off() = 0;
  // There is room for more of the body.
  virtual void more_body() = 0;
  // 101 was written: what the client sends from now on is the exchange's body, as it comes, up to the connection's end.
  virtual void upgraded() = 0;
};

// What of the request the response depends on.
struct ExchangeFacts {
  bool http11 = true;
  bool keep_alive = true;
  bool is_head = false;
  bool of_function = false;  // the response gets the headers of an invocation
  std::string start_time;    // X-Start-Time
  std::string content_type;  // of the request
  base::SteadyTime began{};
};

class Exchange final : public function::RequestBody, public function::Response {
 public:
  Exchange(std::shared_ptr<GatewayCore> core, std::shared_ptr<Wire> wire, RequestHead request, function::CallHead head,
           ExchangeFacts facts);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  RequestHead request;  // of a function's, without what went into its call
  function::Invocation invocation;
  std::string body;  // of a request that was read whole

  // --- The connection's thread, of a body that is streamed:
  void stream_body();  // it is
  // Takes `piece`, which is empty then. How much waits to be read.
  std::size_t add_body(std::string& piece);
  void end_body();
  // It cannot be read to its end. When nothing of a response was written, `fault` is the answer.
  void fail_body(RequestFault fault);
  bool wants_body() const;

  // --- The thread that has the call:
  std::optional<std::string_view> whole() const override;
  absl::StatusOr<std::size_t> read(char* to, std::size_t room) override;
  void discard() override;
  absl::Status begin(int status, function::Headers headers, std::optional<std::uint64_t> length) override;
  absl::Status write(std::string_view piece) override;
  absl::Status respond(int status, function::Headers headers, std::string_view body) override;
  absl::Status switch_protocols(function::Headers headers, std::string_view protocol) override;

  // Once, at the end: what invoke() said. Says which status the client saw; 499: none, it had gone.
  int finish(const function::InvokeResult& result, std::string_view function_name);
  // The same where no host had the call: of a response that was written whole (it is ended), or the answer.
  void finish();
  void finish(Answer answer);

 private:
  absl::Status compose(int status, const function::Headers& headers, std::optional<std::uint64_t> length);
  // What stands between the headers and the body, by how the body is sent.
  void compose_framing(int status, std::optional<std::uint64_t> length);
  absl::Status send(iovec* pieces, int count);
  absl::Status wait_for_room(base::SteadyTime since);
  void complete();
  void end_response();
  void give(Answer answer);

  const std::shared_ptr<GatewayCore> core_;
  std::shared_ptr<Wire> wire_;  // until the response is whole; with the connection's owner
  const int descriptor_;
  const ExchangeFacts facts_;

  mutable std::mutex mutex_;  // guards the streamed body
  std::condition_variable arrived_;
  bool streamed_ = false;  // set before the call begins, or by the thread that has the call
  std::string waiting_;
  std::size_t waiting_begin_ = 0;
  bool paused_ = false;  // the connection reads no more until more_body()
  bool body_ended_ = false;
  bool discarded_ = false;  // nobody reads the rest
  std::optional<RequestFault> body_fault_;

  // Of the thread that has the call.
  std::string head_;  // composed and not sent
  int status_ = 0;
  bool begun_ = false;
  bool sent_ = false;      // some of it went out
  bool complete_ = false;  // all of it did
  bool failed_ = false;    // the client cannot be written to
  bool chunked_ = false;
  bool closes_ = false;                // the connection ends with the response
  bool no_body_ = false;               // HEAD, 204, 304
  std::string protocol_;               // that the connection goes on with; empty: HTTP
  std::optional<std::uint64_t> left_;  // of a body with a length
};

// The connection's thread stops reading when so much of a body waits to be read, and goes on when half is left.
inline constexpr std::size_t kBodyAheadBytes = 256 * 1024;

}  // namespace orla::node
