#include "ingest/csv_time.h"

#include <fmt/format.h>

#include <utility>

#include "base/absl_view.h"
#include "ingest/input.h"

namespace orla::ingest {

namespace {

using model::Time;

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Time> in_range(std::int64_t ns) {
  const Time time = model::from_ns(ns);
  if (time < kEarliestTime || time >= kLatestTime) return std::nullopt;
  return time;
}

// Takes exactly `digits` digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (!is_digit(text[i])) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Takes digits off the front as a fraction with `decimals` digits; the rest of them is dropped. At least one digit.
std::optional<std::int64_t> take_fraction(std::string_view& text, int decimals) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::int64_t fraction = 0;
  int taken = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    if (taken == decimals) continue;
    fraction = fraction * 10 + (text.front() - '0');
    ++taken;
  }
  for (; taken < decimals; ++taken) fraction *= 10;
  return fraction;
}

std::int64_t power_of_ten(int n) { return n == 0 ? 1 : 10 * power_of_ten(n - 1); }

}  // namespace

absl::StatusOr<TimeReader> TimeReader::make(std::string format, const std::string& zone_name) {
  absl::TimeZone zone = absl::UTCTimeZone();
  if (!zone_name.empty() && !absl::LoadTimeZone(zone_name, &zone)) {
    return absl::InvalidArgumentError(
        fmt::format("found the time zone \"{}\", expected a name of the tz database as Europe/Berlin", zone_name));
  }
  for (const auto& [name, decimals] : {std::pair{"unix", 9}, {"unix_ms", 6}, {"unix_us", 3}, {"unix_ns", 0}}) {
    if (format != name) continue;
    TimeReader reader(Kind::kUnix, format, zone);
    reader.unix_decimals_ = decimals;
    return reader;
  }
  if (format == "rfc3339") return TimeReader(Kind::kIso, std::move(format), zone);
  if (format.find('%') == std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("found the time format \"{}\", expected unix, unix_ms, unix_us, unix_ns, rfc3339 or a format as "
                    "%Y-%m-%d %H:%M:%S",
                    format));
  }
  TimeReader reader(Kind::kStrptime, std::move(format), zone);
  // The two most common ones have a reader of their own, which leaves what it does not know to the general one.
  if (reader.format_ == "%Y-%m-%d %H:%M:%S") reader.iso_separator_ = ' ';
  if (reader.format_ == "%Y-%m-%dT%H:%M:%S") reader.iso_separator_ = 'T';
  return reader;
}

std::string TimeReader::expected() const {
  return fmt::format("a time as {}, from 1900 to 2189", kind_ == Kind::kIso ? "2013-09-01T00:00:00+02:00" : format_);
}

namespace {
// Of "2013-09-01 00:00:00" and what may follow: its hour, minute and second, and the rest begin there.
constexpr std::size_t kHourBytes = 14;
constexpr std::size_t kSecondBytes = 19;
}  // namespace

std::optional<Time> TimeReader::read(std::string_view text) {
  if (last_ && text == last_text_) return last_;
  std::optional<Time> time = read_in_hour(text);
  if (!time) {
    time = read_anew(text);
    // The second time of one hour in turn: more will follow.
    if (time && last_ && (kind_ == Kind::kIso || iso_separator_ != '\0') && text.size() >= kSecondBytes &&
        last_text_.size() >= kHourBytes && text.substr(0, kHourBytes) == last_text_.substr(0, kHourBytes)) {
      remember_hour(text);
    }
  }
  last_ = time;
  if (last_) last_text_ = text;
  return last_;
}

std::optional<Time> TimeReader::read_in_hour(std::string_view text) const {
  if (hour_text_.empty() || text.size() != kSecondBytes + hour_end_.size() || !text.starts_with(hour_text_) ||
      !text.ends_with(hour_end_) || text[kHourBytes + 2] != ':') {
    return std::nullopt;
  }
  const auto digit = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])) - '0'; };
  const unsigned m1 = digit(kHourBytes);
  const unsigned m0 = digit(kHourBytes + 1);
  const unsigned s1 = digit(kHourBytes + 3);
  const unsigned s0 = digit(kHourBytes + 4);
  if (m1 > 5 || m0 > 9 || s1 > 5 || s0 > 9) return std::nullopt;  // also a leap second
  return hour_ + std::chrono::seconds(60 * (10 * m1 + m0) + 10 * s1 + s0);
}

// Unless the clock changes within the hour, or a part of it is out of range.
void TimeReader::remember_hour(std::string_view text) {
  hour_text_.clear();
  const std::string_view end = text.substr(kSecondBytes);
  if (end.starts_with('.')) return;
  const std::string hour(text.substr(0, kHourBytes));
  const std::optional<Time> first = read_iso(fmt::format("{}00:00{}", hour, end));
  const std::optional<Time> last = read_iso(fmt::format("{}59:59{}", hour, end));
  if (!first || !last || *last - *first != std::chrono::seconds(3599)) return;
  hour_text_ = hour;
  hour_end_ = end;
  hour_ = *first;
}

std::optional<Time> TimeReader::read_anew(std::string_view text) const {
  if (kind_ == Kind::kUnix) return read_unix(text);
  if (kind_ == Kind::kIso) return read_iso(text);
  if (iso_separator_ != '\0') {
    if (const std::optional<Time> time = read_iso(text)) return time;
  }
  return read_strptime(text);
}

std::optional<Time> TimeReader::read_unix(std::string_view text) const {
  const bool negative = take(text, '-');
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::int64_t whole = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    if (__builtin_mul_overflow(whole, 10, &whole)) return std::nullopt;
    if (__builtin_add_overflow(whole, text.front() - '0', &whole)) return std::nullopt;
  }
  std::int64_t fraction = 0;
  if (take(text, '.')) {
    const std::optional<std::int64_t> digits = take_fraction(text, unix_decimals_);
    if (!digits) return std::nullopt;
    fraction = *digits;
  }
  if (!text.empty()) return std::nullopt;
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(whole, power_of_ten(unix_decimals_), &ns)) return std::nullopt;
  if (__builtin_add_overflow(ns, fraction, &ns)) return std::nullopt;
  return in_range(negative ? -ns : ns);
}

std::optional<Time> TimeReader::read_iso(std::string_view text) const {
  const bool plain = iso_separator_ != '\0';
  const auto year = take_number(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day) return std::nullopt;
  if (plain) {
    if (!take(text, iso_separator_)) return std::nullopt;
  } else if (!take(text, 'T') && !take(text, 't') && !take(text, ' ')) {
    return std::nullopt;
  }
  const auto hour = take_number(text, 2);
  if (!hour || *hour > 23 || !take(text, ':')) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || *minute > 59 || !take(text, ':')) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second || *second > 60) return std::nullopt;

  // Civil times normalise, so a day that does not exist comes out as another one.
  const absl::CivilDay date(*year, *month, *day);
  if (date.year() != *year || date.month() != *month || date.day() != *day) return std::nullopt;
  const absl::CivilSecond civil = absl::CivilSecond(date) + (*hour * 3600 + *minute * 60 + *second);

  std::int64_t fraction = 0;
  if (!plain && take(text, '.')) {
    const std::optional<std::int64_t> digits = take_fraction(text, 9);
    if (!digits) return std::nullopt;
    fraction = *second == 60 ? 0 : *digits;
  }
  absl::Time time;
  if (!plain && !text.empty()) {
    int offset_s = 0;
    if (!take(text, 'Z') && !take(text, 'z')) {
      const int sign = text.front() == '-' ? -1 : 1;
      if (!take(text, '+') && !take(text, '-')) return std::nullopt;
      const auto hours = take_number(text, 2);
      if (!hours || *hours > 23 || !take(text, ':')) return std::nullopt;
      const auto minutes = take_number(text, 2);
      if (!minutes || *minutes > 59) return std::nullopt;
      offset_s = sign * (*hours * 3600 + *minutes * 60);
    }
    if (!text.empty()) return std::nullopt;
    time = absl::UTCTimeZone().At(civil - offset_s).pre;
  } else {
    if (!text.empty()) return std::nullopt;
    time = zone_.At(civil).pre;
  }
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(absl::ToUnixSeconds(time), kNsPerSecond, &ns)) return std::nullopt;
  if (__builtin_add_overflow(ns, fraction, &ns)) return std::nullopt;
  return in_range(ns);
}

std::optional<Time> TimeReader::read_strptime(std::string_view text) const {
  absl::Time time;
  if (!absl::ParseTime(base::absl_view(format_), base::absl_view(text), zone_, &time, nullptr)) return std::nullopt;
  return in_range(absl::ToUnixNanos(time));  // which stops at the ends of 64 bits
}

}  // namespace orla::ingest
