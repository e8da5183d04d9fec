// How long one call of a function may run, the same for every runtime.
#pragma once

#include <chrono>

#include "function/call.h"
#include "function/options.h"

namespace orla::function {

// exec_timeout, which the request's header X-Timeout may lower and never raise; zero: as long as the call's deadline
// says. An X-Timeout that is no duration, or not more than 0, counts as none.
std::chrono::nanoseconds time_limit(const CallHead& head, const FunctionOptions& options);

}  // namespace orla::function
