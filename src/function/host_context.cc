#include "function/host_context.h"

#include <utility>

namespace orla::function {

HostContext::HostContext(HostSettings given, const std::vector<std::unique_ptr<Runtime>>& runtimes,
                         const base::Clock& clock, HostParts parts)
    : settings(std::move(given)),
      clock(clock),
      log(settings.log != nullptr ? *settings.log : silent_),
      runtimes(runtimes),
      parts(std::move(parts)),
      log_limits{.lines = limits.log_lines, .bytes = limits.log_bytes, .followers = limits.log_followers},
      timer(clock, this->parts.longest_timer_wait),
      job_threads({.name = "fn-job", .threads = kJobThreads, .idle_threads = 1, .stack_bytes = kCallStackBytes}),
      call_threads(
          {.name = "fn-call", .threads = limits.running_calls, .idle_threads = 4, .stack_bytes = kCallStackBytes}) {}

bool HostContext::take_running_place() {
  if (running.fetch_add(1) < limits.running_calls) return true;
  running.fetch_sub(1);
  return false;
}

void HostContext::give_running_place() { running.fetch_sub(1); }

void HostContext::starve(std::weak_ptr<HostedFunction> function) {
  const std::lock_guard lock(mutex_);
  starved_.push_back(std::move(function));
  starved_count_.fetch_add(1);
}

std::shared_ptr<HostedFunction> HostContext::next_starved() {
  if (starved_count_.load() == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  while (!starved_.empty()) {
    std::shared_ptr<HostedFunction> function = starved_.front().lock();
    starved_.pop_front();
    starved_count_.fetch_sub(1);
    if (function != nullptr) return function;
  }
  return nullptr;
}

void HostContext::count_down(std::atomic<std::size_t>& what) {
  if (what.fetch_sub(1) != 1 || !draining.load()) return;
  const std::lock_guard lock(mutex_);
  none_.notify_all();
}

bool HostContext::wait_for_none(std::atomic<std::size_t>& what, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, timeout, [&] { return what.load() == 0; });
}

}  // namespace orla::function
