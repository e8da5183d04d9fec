#include "function/time_limit.h"

#include <algorithm>

namespace orla::function {

std::chrono::nanoseconds time_limit(const CallHead& head, const FunctionOptions& options) {
  const std::chrono::nanoseconds own = options.exec_timeout;
  const std::optional<std::string_view> asked = find_header(head.headers, "X-Timeout");
  if (!asked.has_value()) return own;
  const absl::StatusOr<std::chrono::nanoseconds> wanted = parse_duration(*asked);
  if (!wanted.ok() || *wanted <= std::chrono::nanoseconds(0)) return own;
  return own == std::chrono::nanoseconds(0) ? *wanted : std::min(own, *wanted);
}

}  // namespace orla::function
