// A call on its way through the host, and how it ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "function/call.h"

namespace orla::function {

// Kept alive by its caller and by the host until `done` has run.
class Invocation {
 public:
  Invocation(CallHead head, RequestBody& body, Response& response)
      : head(std::move(head)), body(body), response(response) {}
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  CallHead head;
  RequestBody& body;
  Response& response;
  Cancellation cancellation;
};

enum class InvokeEnd : std::uint8_t {
  kAnswered,  // the function's response was written whole
  kBroken,    // its response was begun and did not come to its end: the connection is to be broken off
  // Nothing of a response was written; the caller answers:
  kNotFound,     // 404
  kNoEndpoints,  // 503, Retry-After: at zero and not to be started, or no replica became ready in time
  kOverloaded,   // 429, Retry-After: a named limit (message says which), or every replica at its max_inflight
  kDraining,     // 503, Retry-After: the node is going down
  kCantReach,    // 500: the replicas that were tried died before they took the request
  kFailed,       // 500: the function broke
  kTimedOut,     // 504
  kCancelled,    // nobody waits
};

struct InvokeResult {
  InvokeEnd end = InvokeEnd::kAnswered;
  std::string message;  // for people
  std::chrono::seconds retry_after{1};
  double seconds = 0;         // inside the function
  bool from_runtime = false;  // kFailed and kTimedOut were said by the watchdog's part, not by the gateway's
};
using InvokeDone = std::function<void(const InvokeResult&)>;

}  // namespace orla::function
