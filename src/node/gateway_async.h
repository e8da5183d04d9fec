// The seam between the gateway and the queue of calls that are made later (POST and DELETE /async-function).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "function/call.h"
#include "function/spec.h"
#include "store/call_queue.h"

namespace orla::node {

// A call to be made later, as the gateway took it.
struct AsyncCall {
  function::FunctionKey key;
  function::CallHead head;  // its deadline means nothing; call_id is set
  std::string body;
  std::string callback_url;  // empty: none. It looks like a URL of http or https; where it leads is not checked
};

// Thread-safe. Outlives the gateway.
class AsyncCalls {
 public:
  virtual ~AsyncCalls() = default;
  // Does not block. `done` runs once, on some thread: OK means that the call is on disk and will be made.
  // INVALID_ARGUMENT: the callback's address is not allowed (400); NOT_FOUND: no such function (404);
  // RESOURCE_EXHAUSTED: the queue is full (429); anything else: 500.
  virtual void accept(AsyncCall call, std::function<void(const absl::Status&)> done) = 0;
  // Takes a queued call back, or ends a running one. NOT_FOUND: there is none of that id. May block for a while.
  virtual absl::Status cancel(std::string_view call_id) = 0;

  // Calls whose attempts were all in vain, the oldest first; of all functions when `key` is null. May block.
  virtual absl::StatusOr<std::vector<store::DeadCall>> dead(const function::FunctionKey* key) = 0;
  // It is queued again, or forgotten. NOT_FOUND. May block.
  virtual absl::Status replay(std::string_view call_id) = 0;
  virtual absl::Status forget(std::string_view call_id) = 0;
};

}  // namespace orla::node
