#include "function/call_gate.h"

namespace orla::function {

std::optional<CallEnd> CallGate::enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) return CallEnd::kUnreachable;
  if (most_ > 0 && inside_ >= most_) return CallEnd::kBusy;
  ++inside_;
  return std::nullopt;
}

void CallGate::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) empty_.notify_all();
}

void CallGate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool CallGate::wait_empty(std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, timeout, [this] { return inside_ == 0; });
}

}  // namespace orla::function
