#include "function/retry_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/absl_view.h"
#include "function/options.h"

namespace orla::function {

namespace {

constexpr std::string_view kPrefix = "com.openfaas.retry.";

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::Status wrong(std::string_view name, std::string_view found, std::string_view expected) {
  return absl::InvalidArgumentError(
      fmt::format("annotation {}: found \"{}\", expected {}", name, found.substr(0, 100), expected));
}

std::optional<std::chrono::nanoseconds> read_retry_after(std::string_view text, base::WallTime now) {
  if (const std::optional<std::uint32_t> seconds = whole_number(text)) return std::chrono::seconds(*seconds);
  absl::Time date;
  if (!absl::ParseTime("%a, %d %b %E4Y %H:%M:%S GMT", base::absl_view(text), &date, nullptr)) return std::nullopt;
  const std::chrono::nanoseconds wait = std::chrono::nanoseconds(absl::ToUnixNanos(date)) - now.time_since_epoch();
  return std::max(wait, std::chrono::nanoseconds::zero());
}

}  // namespace

absl::StatusOr<RetryOptions> read_retry_options(const std::map<std::string, std::string>& annotations) {
  RetryOptions options;
  for (const auto& [name, value] : annotations) {
    if (!absl::StartsWith(base::absl_view(name), base::absl_view(kPrefix))) continue;
    const std::string_view what = std::string_view(name).substr(kPrefix.size());
    if (what == "attempts") {
      const std::optional<std::uint32_t> attempts = whole_number(value);
      if (!attempts || *attempts < 1 || *attempts > kMaxAttempts)
        return wrong(name, value, fmt::format("a number of 1 to {}", kMaxAttempts));
      options.attempts = *attempts;
    } else if (what == "codes") {
      options.codes.clear();
      for (const absl::string_view part : absl::StrSplit(base::absl_view(value), ',')) {
        const absl::string_view code = absl::StripAsciiWhitespace(part);
        const std::optional<std::uint32_t> status = whole_number({code.data(), code.size()});
        if (!status || *status < 100 || *status > 599)
          return wrong(name, value, "HTTP statuses with commas between them, such as \"429,502\"");
        options.codes.push_back(static_cast<int>(*status));
      }
    } else if (what == "min_wait" || what == "max_wait") {
      const absl::StatusOr<std::chrono::nanoseconds> wait = parse_duration(value);
      if (!wait.ok() || *wait > kLongestWait) return wrong(name, value, "a duration of up to 24h, such as \"10s\"");
      (what == "min_wait" ? options.min_wait : options.max_wait) = *wait;
    } else if (what == "backoff") {
      if (value == "exponential") {
        options.backoff = Backoff::kExponential;
      } else if (value == "full") {
        options.backoff = Backoff::kFull;
      } else if (value == "equal") {
        options.backoff = Backoff::kEqual;
      } else {
        return wrong(name, value, "exponential, full or equal");
      }
    } else {
      return wrong(name, value, "only attempts, codes, min_wait, max_wait and backoff after com.openfaas.retry.");
    }
  }
  if (options.min_wait > options.max_wait)
    return absl::InvalidArgumentError("annotation com.openfaas.retry.min_wait: it is longer than max_wait");
  return options;
}

bool is_retried(const RetryOptions& options, const Attempt& attempt) {
  if (attempt.number >= options.attempts || attempt.status < 300) return false;
  return attempt.internal ||
         std::find(options.codes.begin(), options.codes.end(), attempt.status) != options.codes.end();
}

std::chrono::nanoseconds wait_after(const RetryOptions& options, const Attempt& attempt, base::WallTime now,
                                    base::Random& random) {
  if (attempt.retry_after && (attempt.status == 429 || attempt.status == 503))
    if (const std::optional<std::chrono::nanoseconds> asked = read_retry_after(*attempt.retry_after, now))
      return std::clamp(*asked, options.min_wait, kLongestWait);
  std::chrono::nanoseconds wait = options.min_wait;
  for (std::uint32_t n = 1; n < attempt.number && wait < options.max_wait; ++n) wait *= 2;
  wait = std::min(wait, options.max_wait);
  const auto some_of = [&](std::chrono::nanoseconds whole) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(random.unit() * static_cast<double>(whole.count())));
  };
  switch (options.backoff) {
    case Backoff::kExponential:
      return wait;
    case Backoff::kFull:
      return some_of(wait);
    case Backoff::kEqual:
      return wait / 2 + some_of(wait - wait / 2);
  }
  return wait;
}

}  // namespace orla::function
