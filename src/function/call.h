// One call of a function, as every runtime sees it: a request that is read, a response that is written, and a way to
// say that nobody waits for it any more.
//
// Calls block the thread they run on (an executor's), so a runtime is plain code; a call that waits for a replica holds
// no thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace orla::function {

// In order, names as they were written; a name may come more than once. Names are compared without case.
using Headers = std::vector<std::pair<std::string, std::string>>;
// The first value of that name.
std::optional<std::string_view> find_header(const Headers& headers, std::string_view name);

struct CallHead {
  std::string method = "POST";
  std::string path = "/";  // what follows the function's name, as it was sent (not decoded); begins with '/'
  std::string query;       // as it was sent, without '?'
  Headers headers;         // as the function sees them: hop-by-hop ones removed, X-Call-Id and the like added
  std::string host;        // of the client's request
  std::string call_id;
  std::optional<std::uint64_t> content_length;  // none: the length is not known before the end
  std::string upgrade;                          // the protocol that the client offers to go on with; empty: none
  base::SteadyTime deadline{};                  // the call is ended then
};

// Why a call is ended from outside.
enum class CancelReason : std::uint8_t { kNone, kClientGone, kTimeout, kCancelled, kDraining };

// Thread-safe.
class Cancellation {
 public:
  // The first reason stays. Runs the subscribers' functions on this thread.
  void cancel(CancelReason reason);
  bool cancelled() const { return reason() != CancelReason::kNone; }
  CancelReason reason() const { return reason_.load(std::memory_order_acquire); }

  // `what` runs once, when it is cancelled (at once when it is already), until the subscription ends: its destructor
  // waits for a run in progress. `what` is short and touches no subscription.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Cancellation& cancellation, std::function<void()> what);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    Cancellation* cancellation_ = nullptr;
    std::uint64_t number_ = 0;
  };

 private:
  std::atomic<CancelReason> reason_{CancelReason::kNone};
  std::mutex mutex_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::function<void()>> subscribers_;
};

// The request's body. One reader.
class RequestBody {
 public:
  virtual ~RequestBody() = default;
  // The whole of it, when it is in memory already; it then need not be read. Valid as long as the call.
  virtual std::optional<std::string_view> whole() const { return std::nullopt; }
  // Waits for some bytes; 0 is the end. kCancelled: the client has gone, or the call was cancelled.
  virtual absl::StatusOr<std::size_t> read(char* to, std::size_t room) = 0;
  // Nobody wants the rest: a read() in progress on another thread ends soon, with kCancelled. Thread-safe.
  virtual void discard() {}
};

// Where the response goes. One writer.
class Response {
 public:
  virtual ~Response() = default;
  // Once, before anything else. `length`: of the body, when it is known. Headers as the function set them.
  virtual absl::Status begin(int status, Headers headers, std::optional<std::uint64_t> length) = 0;
  // Waits while the client is slow; what was written is sent at once. kCancelled: nobody reads it any more.
  virtual absl::Status write(std::string_view piece) = 0;
  // All of it at once.
  virtual absl::Status respond(int status, Headers headers, std::string_view body) {
    if (absl::Status begun = begin(status, std::move(headers), body.size()); !begun.ok()) return begun;
    return body.empty() ? absl::OkStatus() : write(body);
  }
  // In the place of begin(), of a call that offers an upgrade: 101. From then on the request's body reads what the
  // client sends and write() sends to it, as it is. UNIMPLEMENTED: this caller cannot.
  virtual absl::Status switch_protocols(Headers headers, std::string_view protocol) {
    (void)headers, (void)protocol;
    return absl::UnimplementedError("this call cannot go on with another protocol");
  }
};

struct Call {
  const CallHead& head;
  RequestBody& body;
  Response& response;
  Cancellation& cancellation;
};

enum class CallEnd : std::uint8_t {
  kDone,         // the function answered, with whatever status
  kFailed,       // it broke: a trap, a non-zero exit, a bad answer, a connection that broke
  kTimedOut,     // at its exec_timeout or the call's deadline
  kOutOfMemory,  // at its memory limit
  kCancelled,    // its client has gone, or the call was cancelled
  kUnreachable,  // the instance is dead; nothing of the request reached it, so another may take it
  kBusy,         // the instance is at its own max_inflight: 429
};

struct CallResult {
  CallEnd end = CallEnd::kDone;
  std::string message;          // for people, when end is not kDone; shown to the caller
  bool response_begun = false;  // begin() or respond() was called: the status is out
  bool instance_usable = true;  // false: it is to be thrown away
  double seconds = 0;           // inside the function
};

}  // namespace orla::function
