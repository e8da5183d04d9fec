// A replica's own door: how many calls are inside.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "function/call.h"

namespace orla::function {

// Counts calls in progress: max_inflight, and waiting for their end. Thread-safe.
class CallGate {
 public:
  explicit CallGate(std::uint32_t most) : most_(most) {}
  // Fails with kBusy or, once closed, kUnreachable; none: leave() has to follow.
  std::optional<CallEnd> enter();
  void leave();
  void close();
  // Until no call is in progress, at most `timeout`; whether there is none.
  bool wait_empty(std::chrono::nanoseconds timeout);
  bool closed() const { return closed_.load(); }

 private:
  const std::uint32_t most_;  // 0: any
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::condition_variable empty_;
  std::uint32_t inside_ = 0;
};

}  // namespace orla::function
