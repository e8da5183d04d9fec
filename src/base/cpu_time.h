// How much processor time a process has used.
#pragma once

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace orla::base {

// Of all its threads, in user and kernel mode. Thread-safe.
std::chrono::nanoseconds process_cpu_time();

// Of another process of this user; nothing when there is none. (POSIX clock_getcpuclockid.)
std::optional<std::chrono::nanoseconds> process_cpu_time(std::int64_t pid);

// Of a thread of this process that has not ended.
std::chrono::nanoseconds thread_cpu_time(pthread_t thread);

}  // namespace orla::base
