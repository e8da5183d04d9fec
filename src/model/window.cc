#include "model/window.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>

namespace orla::model {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ns;
};

// Largest first: the order in which units follow each other in a text.
constexpr std::array<Unit, 7> kUnits = {{{"d", 86'400'000'000'000},
                                         {"h", 3'600'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};

constexpr Duration kDayLength = std::chrono::hours(24);
constexpr std::string_view kStepsPrefix = "steps:";
constexpr std::string_view kDurationForm = "a number and a unit of ns us ms s m h d, such as \"90s\" or \"1h30m\"";

absl::Status not_a_duration(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" is not a duration: {}; expected {}", text, why, kDurationForm));
}

absl::Status not_a_window(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is not a window: {}; expected a duration below a day such as \"15m\", \"1d\", \"1w\", \"1mo\", or "
      "size/hop such as \"1h/5m\"",
      text, why));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

absl::StatusOr<WindowSpec> parse_hopping(std::string_view text, std::size_t slash) {
  absl::StatusOr<Duration> size = parse_duration(text.substr(0, slash));
  if (!size.ok()) return size.status();
  absl::StatusOr<Duration> hop = parse_duration(text.substr(slash + 1));
  if (!hop.ok()) return hop.status();
  if (size->count() == 0 || hop->count() == 0) return not_a_window(text, "size and hop must be longer than 0");
  if (*hop > *size) return not_a_window(text, "the hop is longer than the size, so samples would be in no window");
  if (*hop > kDayLength) return not_a_window(text, "hops start from local midnight, so a hop is at most 24 h");
  return WindowSpec{WindowSpec::Kind::kHopping, *size, *hop};
}

}  // namespace

absl::StatusOr<Duration> parse_duration(std::string_view text) {
  if (text.empty()) return not_a_duration(text, "it is empty");
  std::int64_t total = 0;
  std::size_t at = 0;
  std::size_t next_unit = 0;  // units before it are used up
  while (at < text.size()) {
    std::int64_t number = 0;
    const std::size_t digits = at;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, text[at] - '0', &number)) {
        return not_a_duration(text, "the number is too large");
      }
    }
    if (at == digits) {
      if (text[at] == '-' || text[at] == '+') return not_a_duration(text, "a duration has no sign");
      return not_a_duration(text, fmt::format("a number is missing at character {}", at + 1));
    }
    const std::size_t letters = at;
    while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0) ++at;
    const std::string_view name = text.substr(letters, at - letters);
    if (name.empty()) {
      if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
        return not_a_duration(text, "only whole numbers, with a smaller unit");
      }
      if (at < text.size()) return not_a_duration(text, fmt::format("unexpected character {}", at + 1));
      return not_a_duration(text, "the unit is missing");
    }
    std::size_t unit = 0;
    while (unit < kUnits.size() && kUnits[unit].name != name) ++unit;
    if (unit == kUnits.size()) return not_a_duration(text, fmt::format("\"{}\" is no unit", name));
    if (unit < next_unit) return not_a_duration(text, "units go from the largest to the smallest, each once");
    next_unit = unit + 1;
    if (__builtin_mul_overflow(number, kUnits[unit].ns, &number) || __builtin_add_overflow(total, number, &total)) {
      return not_a_duration(text, "longer than 292 years");
    }
  }
  return Duration(total);
}

std::string to_string(Duration d) {
  const std::int64_t ns = d.count();
  if (ns == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (ns % unit.ns == 0) return fmt::format("{}{}", ns / unit.ns, unit.name);
  }
  return fmt::format("{}ns", ns);
}

std::string to_string(const WindowSpec& spec) {
  switch (spec.kind) {
    case WindowSpec::Kind::kElapsed:
      return to_string(spec.size);
    case WindowSpec::Kind::kDay:
      return "1d";
    case WindowSpec::Kind::kWeek:
      return "1w";
    case WindowSpec::Kind::kMonth:
      return "1mo";
    case WindowSpec::Kind::kHopping:
      return to_string(spec.size) + "/" + to_string(spec.hop);
    case WindowSpec::Kind::kSteps:
      return fmt::format("{}{}", kStepsPrefix, to_string(spec.size));
  }
  return "";
}

absl::StatusOr<WindowSpec> parse_window(std::string_view text) {
  if (text == "1w") return WindowSpec{WindowSpec::Kind::kWeek, {}, {}};
  if (text == "1mo") return WindowSpec{WindowSpec::Kind::kMonth, {}, {}};
  if (text.substr(0, kStepsPrefix.size()) == kStepsPrefix) {
    absl::StatusOr<Duration> length = parse_duration(text.substr(kStepsPrefix.size()));
    if (!length.ok()) return length.status();
    if (length->count() == 0) return not_a_window(text, "a step must be longer than 0");
    return WindowSpec{WindowSpec::Kind::kSteps, *length, {}};
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) return parse_hopping(text, slash);
  absl::StatusOr<Duration> size = parse_duration(text);
  if (!size.ok()) return size.status();
  if (size->count() == 0) return not_a_window(text, "a window must be longer than 0");
  if (*size == kDayLength) return WindowSpec{WindowSpec::Kind::kDay, {}, {}};
  if (*size == 7 * kDayLength) return WindowSpec{WindowSpec::Kind::kWeek, {}, {}};
  if (*size > kDayLength) return not_a_window(text, "above a day there are only the week and the month");
  return WindowSpec{WindowSpec::Kind::kElapsed, *size, {}};
}

}  // namespace orla::model
