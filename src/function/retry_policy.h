// Whether and when a queued call is made again. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"

namespace orla::function {

// The wait after attempt n, before chance: min_wait * 2^(n-1), at most max_wait.
enum class Backoff : std::uint8_t {
  kExponential,  // that
  kFull,         // anything from none to that
  kEqual,        // anything from half of that to that
};

struct RetryOptions {
  std::uint32_t attempts = 10;                                   // com.openfaas.retry.attempts, the first one included
  std::vector<int> codes = {408, 429, 500, 502, 504};            // com.openfaas.retry.codes
  std::chrono::nanoseconds min_wait{std::chrono::seconds(10)};   // com.openfaas.retry.min_wait
  std::chrono::nanoseconds max_wait{std::chrono::seconds(120)};  // com.openfaas.retry.max_wait
  Backoff backoff = Backoff::kFull;                              // com.openfaas.retry.backoff
};
inline constexpr std::uint32_t kMaxAttempts = 1000;
// No wait is longer, whatever a Retry-After says.
inline constexpr std::chrono::nanoseconds kLongestWait{std::chrono::hours(24)};

// From a function's annotations. INVALID_ARGUMENT names the annotation, what was found and what was expected; an
// unknown com.openfaas.retry.* is refused.
absl::StatusOr<RetryOptions> read_retry_options(const std::map<std::string, std::string>& annotations);

struct Attempt {
  std::uint32_t number = 1;  // from 1
  int status = 0;
  bool internal = false;                   // said by the gateway or a watchdog, not by the function
  std::optional<std::string> retry_after;  // the header
};

// Whether an attempt that ended so calls for another one, as long as there are attempts left.
bool is_retried(const RetryOptions& options, const Attempt& attempt);
// How long to wait for it. Retry-After of a 429 or 503, seconds or a date, takes the place of the backoff, but is at
// least min_wait.
std::chrono::nanoseconds wait_after(const RetryOptions& options, const Attempt& attempt, base::WallTime now,
                                    base::Random& random);

}  // namespace orla::function
