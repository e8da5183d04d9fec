#include "base/cpu_time.h"

#include <sys/types.h>

#include <ctime>

namespace orla::base {

namespace {

std::optional<std::chrono::nanoseconds> read_clock(clockid_t clock) {
  struct timespec used {};
  if (::clock_gettime(clock, &used) != 0) return std::nullopt;
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds process_cpu_time() {
  return read_clock(CLOCK_PROCESS_CPUTIME_ID).value_or(std::chrono::nanoseconds(0));
}

std::optional<std::chrono::nanoseconds> process_cpu_time(std::int64_t pid) {
  // Linux has no process of a higher number, and none fits into a clock's.
  constexpr std::int64_t kMaxPid = 1 << 22;
  if (pid <= 0 || pid > kMaxPid) return std::nullopt;
  clockid_t clock{};
  if (::clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0) return std::nullopt;
  return read_clock(clock);
}

std::chrono::nanoseconds thread_cpu_time(pthread_t thread) {
  clockid_t clock{};
  if (::pthread_getcpuclockid(thread, &clock) != 0) return std::chrono::nanoseconds(0);
  return read_clock(clock).value_or(std::chrono::nanoseconds(0));
}

}  // namespace orla::base
