#include "verify/text_values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/absl_view.h"

namespace orla::verify {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t count_digits(std::string_view text, std::size_t at) {
  std::size_t n = 0;
  while (at + n < text.size() && is_digit(text[at + n])) ++n;
  return n;
}

bool looks_like_a_number(std::string_view text) {
  std::size_t at = 0;
  const std::size_t whole = count_digits(text, at);
  at += whole;
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = count_digits(text, ++at);
    at += fraction;
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = count_digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

std::optional<model::Time> in_years(__int128 ns) {
  static const std::int64_t kFrom = absl::ToUnixNanos(absl::FromCivil(absl::CivilYear(1900), absl::UTCTimeZone()));
  static const std::int64_t kTo = absl::ToUnixNanos(absl::FromCivil(absl::CivilYear(2190), absl::UTCTimeZone()));
  if (ns < kFrom || ns >= kTo) return std::nullopt;
  return model::from_ns(static_cast<std::int64_t>(ns));
}

// "123.456" in units of `unit_ns`, whole nanoseconds, further digits dropped.
std::optional<model::Time> read_unix(std::string_view text, std::int64_t unit_ns) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t whole = count_digits(text, 0);
  if (whole == 0) return std::nullopt;
  __int128 ns = 0;
  for (const char c : text.substr(0, whole)) {
    ns = ns * 10 + (c - '0');
    if (ns > INT64_MAX) return std::nullopt;
  }
  ns *= unit_ns;
  text.remove_prefix(whole);
  if (!text.empty()) {
    if (text[0] != '.') return std::nullopt;
    text.remove_prefix(1);
    if (text.empty() || count_digits(text, 0) != text.size()) return std::nullopt;
    std::int64_t worth = unit_ns;
    for (const char c : text) {
      worth /= 10;
      ns += worth * (c - '0');
    }
  }
  return in_years(negative ? -ns : ns);
}

// The `n` digits at `at`, or -1.
int digits_at(std::string_view text, std::size_t at, std::size_t n) {
  if (at > text.size() || text.size() - at < n || count_digits(text.substr(at, n), 0) != n) return -1;
  int value = 0;
  for (const char c : text.substr(at, n)) value = value * 10 + (c - '0');
  return value;
}

// 2013-09-01T00:00:00.5+02:00
std::optional<model::Time> read_rfc3339(std::string_view text, const absl::TimeZone& zone) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = text[i];
    const bool fits = kForm[i] == 'd'   ? is_digit(c)
                      : kForm[i] == 'T' ? (c == 'T' || c == 't' || c == ' ')
                                        : c == kForm[i];
    if (!fits) return std::nullopt;
  }
  const int year = digits_at(text, 0, 4), month = digits_at(text, 5, 2), day = digits_at(text, 8, 2);
  const int hour = digits_at(text, 11, 2), minute = digits_at(text, 14, 2), second = digits_at(text, 17, 2);
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const absl::CivilMonth this_month(year, month);
  if (day > absl::CivilDay(this_month + 1) - absl::CivilDay(this_month)) return std::nullopt;
  const absl::CivilSecond civil(year, month, day, hour, minute, second);  // a 60th second is the next minute's first

  text.remove_prefix(kForm.size());
  __int128 fraction_ns = 0;
  if (text.starts_with('.')) {
    const std::size_t n = count_digits(text, 1);
    if (n == 0) return std::nullopt;
    int worth = 1'000'000'000;
    for (const char c : text.substr(1, n)) fraction_ns += (worth /= 10) * (c - '0');
    if (second == 60) fraction_ns = 0;
    text.remove_prefix(1 + n);
  }
  absl::Time time;
  if (text.empty()) {
    time = zone.At(civil).pre;
  } else if (text == "Z" || text == "z") {
    time = absl::FromCivil(civil, absl::UTCTimeZone());
  } else {
    const int hours = digits_at(text, 1, 2), minutes = digits_at(text, 4, 2);
    const bool fits = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':' && hours >= 0 &&
                      hours <= 23 && minutes >= 0 && minutes <= 59;
    if (!fits) return std::nullopt;
    const absl::Duration offset = absl::Hours(hours) + absl::Minutes(minutes);
    time = absl::FromCivil(civil, absl::UTCTimeZone());
    time += text[0] == '+' ? -offset : offset;
  }
  return in_years(static_cast<__int128>(absl::ToUnixSeconds(time)) * 1'000'000'000 + fraction_ns);
}

}  // namespace

Number read_number(std::string_view text, double& value) {
  std::string_view size = text;
  if (size.starts_with('+') || size.starts_with('-')) size.remove_prefix(1);
  std::string lower(size);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "nan" || lower == "inf" || lower == "infinity") return Number::kNotFinite;
  if (!looks_like_a_number(size)) return Number::kNone;
  value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? Number::kFinite : Number::kNotFinite;
}

std::optional<std::uint64_t> read_digits(std::string_view text, std::uint64_t max) {
  if (text.empty() || count_digits(text, 0) != text.size()) return std::nullopt;
  unsigned __int128 value = 0;
  for (const char c : text) {
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > max) return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

std::optional<model::Time> read_time(std::string_view text, const std::string& format, const absl::TimeZone& zone) {
  if (format == "unix") return read_unix(text, 1'000'000'000);
  if (format == "unix_ms") return read_unix(text, 1'000'000);
  if (format == "unix_us") return read_unix(text, 1'000);
  if (format == "unix_ns") return read_unix(text, 1);
  if (format == "rfc3339") return read_rfc3339(text, zone);
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(format, base::absl_view(text), zone, &time, &error)) return std::nullopt;
  if (time == absl::InfiniteFuture() || time == absl::InfinitePast()) return std::nullopt;
  return in_years(absl::ToUnixNanos(time));
}

std::optional<std::vector<std::string>> read_cells(std::string_view line, char delimiter) {
  std::vector<std::string> cells;
  std::size_t at = 0;
  for (;;) {
    std::string cell;
    if (at < line.size() && line[at] == '"') {
      ++at;
      for (;;) {
        if (at == line.size()) return std::nullopt;  // no closing quote
        if (line[at] != '"') {
          cell += line[at++];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          cell += '"';
          at += 2;
        } else {
          ++at;
          break;
        }
      }
      if (at < line.size() && line[at] != delimiter) return std::nullopt;  // text after the closing quote
    } else {
      while (at < line.size() && line[at] != delimiter) cell += line[at++];
      const std::size_t first = cell.find_first_not_of(" \t");
      const std::size_t last = cell.find_last_not_of(" \t");
      cell = first == std::string::npos ? "" : cell.substr(first, last - first + 1);
    }
    cells.push_back(std::move(cell));
    if (at == line.size()) return cells;
    ++at;  // the delimiter
  }
}

}  // namespace orla::verify
