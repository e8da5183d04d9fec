// How much processor time this process has used.
#pragma once

#include <chrono>

namespace orla::base {

// Of all its threads, in user and kernel mode. Thread-safe.
std::chrono::nanoseconds process_cpu_time();

}  // namespace orla::base
