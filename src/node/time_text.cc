#include "node/time_text.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/absl_view.h"

namespace orla::node {

std::string rfc3339(model::Time time) {
  if (time == model::kMinTime) return "-inf";
  if (time == model::kMaxTime) return "+inf";
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", absl::FromUnixNanos(model::to_ns(time)), absl::UTCTimeZone());
}

absl::StatusOr<model::Time> parse_time(std::string_view text) {
  std::int64_t ns = 0;
  if (absl::SimpleAtoi(base::absl_view(text), &ns)) return model::from_ns(ns);
  absl::Time parsed;
  std::string error;
  const bool ok = absl::ParseTime(absl::RFC3339_full, base::absl_view(text), &parsed, &error) ||
                  absl::ParseTime("%Y-%m-%d", base::absl_view(text), absl::UTCTimeZone(), &parsed, &error);
  if (!ok || parsed < absl::FromUnixNanos(INT64_MIN) || parsed > absl::FromUnixNanos(INT64_MAX)) {
    return absl::InvalidArgumentError(
        absl::StrCat("time \"", base::absl_view(text),
                     "\": expected RFC 3339 (2013-09-01T00:00:00Z), a date (2013-09-01) or nanoseconds since 1970"));
  }
  return model::from_ns(absl::ToUnixNanos(parsed));
}

}  // namespace orla::node
