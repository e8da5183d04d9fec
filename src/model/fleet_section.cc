#include "model/fleet_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "base/absl_view.h"

namespace orla::model {
namespace {

using Kind = TreeValue::Kind;

template <typename T>
struct Range {
  T lowest;
  T highest;
};

std::pair<std::string_view, std::string_view> split_bounds(std::string_view bounds) {
  const std::size_t dots = bounds.find("..");
  return {bounds.substr(0, dots), bounds.substr(dots + 2)};
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(base::absl_view(text), &value)) return std::nullopt;
  return value;
}

bool is_name_byte(char c, std::size_t index) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') return true;
  return index > 0 && (c == '.' || c == '-');
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_name_byte(text[i], i)) return false;
  }
  return true;
}

std::string listed(const std::vector<std::string>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + in_quotes(choices[i]);
  }
  return text;
}

// Status messages of parse_duration and parse_window end in what was expected.
std::pair<std::string, std::string> found_and_expected(const absl::Status& status) {
  const std::string message(status.message());
  constexpr std::string_view kBetween = "; expected ";
  const std::size_t at = message.find(kBetween);
  if (at == std::string::npos) return {message, ""};
  return {message.substr(0, at), message.substr(at + kBetween.size())};
}

}  // namespace

Place place_of(const TreeValue& table, std::string_view key) {
  const TreeValue* value = table.find(key);
  return value == nullptr ? table.place : value->place;
}

Place place_of(const TreeValue& table, std::string_view key, std::size_t item) {
  const TreeValue* value = table.find(key);
  if (value == nullptr) return table.place;
  return item < value->items.size() ? value->items[item].place : value->place;
}

void check_keys(std::string_view section, const TreeValue& table, FleetErrors& errors) {
  const std::string header(find_section(section)->header);
  for (const TreeEntry& entry : table.entries) {
    if (find_setting(section, entry.key) != nullptr) continue;
    errors.add(entry.place, fmt::format("unknown key {} in {}", in_quotes(entry.key), header), "",
               did_you_mean(entry.key, setting_keys(section)));
  }
  for (const Setting& setting : settings()) {
    if (setting.section != section || setting.presence != Presence::kRequired || table.find(setting.key)) continue;
    errors.add_missing(table.place, fmt::format("{} has no \"{}\"", header, setting.key), "",
                       fmt::format("add it, for example {}", setting.example));
  }
}

SectionReader::SectionReader(std::string_view section, const TreeValue& table, FleetErrors& errors)
    : section_(section), header_(find_section(section)->header), table_(table), errors_(errors) {
  check_keys(section, table, errors);
}

const Setting& SectionReader::setting(std::string_view key) const { return *find_setting(section_, key); }

void SectionReader::wrong(std::string_view key, const TreeValue& value, std::string expected, std::string hint) {
  errors_.add(value.place, fmt::format("{} is {}", key, describe(value)), std::move(expected), std::move(hint));
}

std::optional<std::string> SectionReader::text_of(std::string_view key, const TreeValue& value) {
  if (value.kind == Kind::kText) return value.text;
  wrong(key, value, "a text in quotes");
  return std::nullopt;
}

std::optional<std::string> SectionReader::name_of(std::string_view key, const TreeValue& value) {
  std::optional<std::string> text = text_of(key, value);
  if (text && !is_name(*text)) {
    wrong(key, value,
          fmt::format("a name: 1 to {} letters, digits and _ . - , not beginning with . or -", kMaxNameBytes));
  }
  return text;
}

std::string SectionReader::text(std::string_view key) {
  const Setting& declared = setting(key);
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return std::string(declared.fallback);
  if (declared.type == SettingType::kName) return name_of(key, *value).value_or("");
  const std::optional<std::string> text = text_of(key, *value);
  if (!text) return std::string(declared.fallback);
  if (declared.type == SettingType::kText && !declared.bounds.empty()) {
    const auto [lowest, highest] = split_bounds(declared.bounds);
    const auto size = static_cast<std::int64_t>(text->size());
    if (size < *to_integer(lowest) || size > *to_integer(highest)) {
      wrong(key, *value, fmt::format("a text of {} to {} bytes", lowest, highest));
    }
  }
  return *text;
}

std::optional<std::size_t> SectionReader::choice(std::string_view key) {
  const Setting& declared = setting(key);
  const std::vector<std::string> choices = choices_of(declared);
  const auto index_of = [&](std::string_view word) -> std::optional<std::size_t> {
    const auto found = std::find(choices.begin(), choices.end(), word);
    if (found == choices.end()) return std::nullopt;
    return static_cast<std::size_t>(found - choices.begin());
  };
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return index_of(declared.fallback);
  const auto chosen = value->kind == Kind::kText ? index_of(value->text) : std::nullopt;
  if (chosen) return chosen;
  const std::string near = value->kind == Kind::kText ? nearest(value->text, choices) : "";
  wrong(key, *value, listed(choices), near.empty() ? "" : fmt::format("did you mean {}?", in_quotes(near)));
  return index_of(declared.fallback);
}

bool SectionReader::boolean(std::string_view key) {
  const bool fallback = setting(key).fallback == "true";
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return fallback;
  if (value->kind == Kind::kBoolean) return value->boolean;
  if (value->substituted && (value->text == "true" || value->text == "false")) return value->text == "true";
  wrong(key, *value, "true or false");
  return fallback;
}

std::int64_t SectionReader::integer(std::string_view key) {
  const Setting& declared = setting(key);
  const auto [lowest, highest] = split_bounds(declared.bounds);
  const std::int64_t fallback = to_integer(declared.fallback).value_or(0);
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return fallback;
  std::optional<std::int64_t> number;
  if (value->kind == Kind::kInteger) number = value->integer;
  if (value->substituted) number = to_integer(value->text);
  if (number && *number >= *to_integer(lowest) && *number <= *to_integer(highest)) return *number;
  wrong(key, *value,
        fmt::format("a whole number of {} to {}{}{}", lowest, highest, declared.unit.empty() ? "" : " ", declared.unit),
        value->kind == Kind::kText && !value->substituted ? "write it without quotes" : "");
  return fallback;
}

double SectionReader::number(std::string_view key) {
  const Setting& declared = setting(key);
  const auto [lowest, highest] = split_bounds(declared.bounds);
  const double fallback = to_number(declared.fallback).value_or(0);
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return fallback;
  std::optional<double> number;
  if (value->kind == Kind::kInteger || value->kind == Kind::kNumber) number = value->number;
  if (value->substituted) number = to_number(value->text);
  if (number && *number >= *to_number(lowest) && *number <= *to_number(highest)) return *number;
  wrong(key, *value,
        fmt::format("a number of {} to {}{}{}", lowest, highest, declared.unit.empty() ? "" : " ", declared.unit),
        value->kind == Kind::kText && !value->substituted ? "write it without quotes" : "");
  return fallback;
}

std::optional<Duration> SectionReader::duration_of(std::string_view key, const TreeValue& value) {
  if (value.kind != Kind::kText) {
    const bool number = value.kind == Kind::kInteger;
    wrong(key, value, "a duration in quotes, such as \"90s\"",
          number ? fmt::format("\"{}s\" is {} seconds", value.integer, value.integer) : "");
    return std::nullopt;
  }
  const absl::StatusOr<Duration> parsed = parse_duration(value.text);
  if (parsed.ok()) return *parsed;
  auto [found, expected] = found_and_expected(parsed.status());
  errors_.add(value.place, fmt::format("{}: {}", key, found), expected);
  return std::nullopt;
}

Duration SectionReader::duration(std::string_view key) {
  const Setting& declared = setting(key);
  const Duration fallback = declared.fallback.empty() ? Duration::zero() : parse_duration(declared.fallback).value();
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return fallback;
  const std::optional<Duration> parsed = duration_of(key, *value);
  if (!parsed) return fallback;
  const auto [lowest, highest] = split_bounds(declared.bounds);
  if (*parsed >= parse_duration(lowest).value() && *parsed <= parse_duration(highest).value()) return *parsed;
  wrong(key, *value, fmt::format("a duration of {} to {}", lowest, highest));
  return fallback;
}

Time SectionReader::time(std::string_view key, const std::string& zone) {
  const TreeValue* value = table_.find(key);
  const bool has_text = value != nullptr && (value->kind == Kind::kText || value->kind == Kind::kTime);
  if (value != nullptr && !has_text) wrong(key, *value, "a date and time such as 2013-09-01T00:00:00+02:00");
  std::string text = has_text ? value->text : std::string(setting(key).fallback);
  if (text.size() > 10 && text[10] == ' ') text[10] = 'T';
  absl::TimeZone local = absl::UTCTimeZone();
  absl::LoadTimeZone(zone, &local);
  absl::Time time;
  std::string error;
  constexpr const char* kForms[] = {"%Y-%m-%d%ET%H:%M:%E*S%Ez", "%Y-%m-%d%ET%H:%M:%E*S", "%Y-%m-%d"};
  for (const char* form : kForms) {
    if (!absl::ParseTime(form, text, local, &time, &error)) continue;
    const std::int64_t ns = absl::ToUnixNanos(time);
    if (absl::FromUnixNanos(ns) == time) return from_ns(ns);
  }
  wrong(key, *value, "a date and time between the years 1678 and 2262, such as 2013-09-01T00:00:00+02:00");
  return Time();
}

char SectionReader::character(std::string_view key) {
  const char fallback = setting(key).fallback.front();
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return fallback;
  if (value->kind == Kind::kText && value->text.size() == 1) return value->text.front();
  wrong(key, *value, "a text of one ASCII character");
  return fallback;
}

std::vector<const TreeValue*> SectionReader::items_of(std::string_view key) {
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return {};
  std::vector<const TreeValue*> items;
  if (value->kind == Kind::kList) {
    for (const TreeValue& item : value->items) items.push_back(&item);
  } else {
    items.push_back(value);
  }
  const std::string_view bounds = setting(key).bounds;
  const auto [lowest, highest] = split_bounds(bounds);
  const auto count = static_cast<std::int64_t>(items.size());
  if (count < *to_integer(lowest) || count > *to_integer(highest)) {
    errors_.add(value->place, fmt::format("{} has {} items", key, count), fmt::format("{} to {}", lowest, highest));
    items.clear();
  }
  return items;
}

std::vector<std::string> SectionReader::texts(std::string_view key) {
  const bool names = setting(key).type == SettingType::kNames;
  std::vector<std::string> texts;
  for (const TreeValue* item : items_of(key)) {
    texts.push_back((names ? name_of(key, *item) : text_of(key, *item)).value_or(""));
  }
  return texts;
}

std::vector<std::vector<std::string>> SectionReader::parents(std::string_view key) {
  std::vector<std::vector<std::string>> groups;
  for (const TreeValue* item : items_of(key)) {
    std::vector<std::string>& group = groups.emplace_back();
    if (item->kind != Kind::kList) {
      group.push_back(name_of(key, *item).value_or(""));
      continue;
    }
    for (const TreeValue& member : item->items) group.push_back(name_of(key, member).value_or(""));
    if (group.empty()) wrong(key, *item, "a group of at least one name");
  }
  return groups;
}

std::optional<std::pair<double, double>> SectionReader::location(std::string_view key) {
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return std::nullopt;
  const auto is_number = [](const TreeValue& item) {
    return item.kind == Kind::kInteger || item.kind == Kind::kNumber;
  };
  if (value->kind == Kind::kList && value->items.size() == 2 && is_number(value->items[0]) &&
      is_number(value->items[1])) {
    const double latitude = value->items[0].number;
    const double longitude = value->items[1].number;
    if (std::abs(latitude) <= 90 && std::abs(longitude) <= 180) return std::pair(latitude, longitude);
    errors_.add(value->place, fmt::format("{} is [{}, {}]", key, latitude, longitude),
                "a latitude of -90 to 90 and a longitude of -180 to 180");
    return std::nullopt;
  }
  wrong(key, *value, "[latitude, longitude] in degrees");
  return std::nullopt;
}

std::vector<Duration> SectionReader::durations(std::string_view key) {
  std::vector<Duration> durations;
  for (const TreeValue* item : items_of(key)) durations.push_back(duration_of(key, *item).value_or(Duration::zero()));
  return durations;
}

std::optional<WindowSpec> SectionReader::window_of(std::string_view key, const TreeValue& value) {
  std::string text;
  if (value.kind == Kind::kTable) {
    const TreeValue* size = value.find("size");
    const TreeValue* hop = value.find("hop");
    if (size == nullptr || hop == nullptr || value.entries.size() != 2) {
      wrong(key, value, "{ size = \"1h\", hop = \"5m\" }");
      return std::nullopt;
    }
    if (!duration_of("size", *size) || !duration_of("hop", *hop)) return std::nullopt;
    text = size->text + "/" + hop->text;
  } else if (value.kind == Kind::kText) {
    text = value.text;
  } else {
    wrong(key, value, "a window in quotes, such as \"15m\"");
    return std::nullopt;
  }
  const absl::StatusOr<WindowSpec> window = parse_window(text);
  if (!window.ok()) {
    auto [found, expected] = found_and_expected(window.status());
    errors_.add(value.place, fmt::format("{}: {}", key, found), expected);
    return std::nullopt;
  }
  if (window->kind == WindowSpec::Kind::kSteps) {
    wrong(key, value, "a window", "steps belong to a [[forecast]]");
    return std::nullopt;
  }
  return *window;
}

std::vector<WindowSpec> SectionReader::windows(std::string_view key) {
  std::vector<WindowSpec> windows;
  for (const TreeValue* item : items_of(key)) windows.push_back(window_of(key, *item).value_or(WindowSpec{}));
  return windows;
}

const TreeValue* SectionReader::table_value(std::string_view key) {
  const TreeValue* value = table_.find(key);
  if (value == nullptr) return nullptr;
  if (value->kind != Kind::kTable) {
    wrong(key, *value, fmt::format("a table, such as {}", setting(key).example));
    return nullptr;
  }
  const auto [lowest, highest] = split_bounds(setting(key).bounds);
  if (static_cast<std::int64_t>(value->entries.size()) > *to_integer(highest)) {
    errors_.add(value->place, fmt::format("{} has {} entries", key, value->entries.size()),
                fmt::format("at most {}", highest));
    return nullptr;
  }
  for (const TreeEntry& entry : value->entries) {
    if (is_name(entry.key)) continue;
    errors_.add(entry.place, fmt::format("{} in {} is no name", in_quotes(entry.key), key),
                fmt::format("1 to {} letters, digits and _ . -", kMaxNameBytes));
  }
  return value;
}

std::optional<std::string> SectionReader::scalar_of(std::string_view key, const TreeValue& value) {
  if (value.kind == Kind::kText) return value.text;
  if (value.kind == Kind::kInteger) return fmt::format("{}", value.integer);
  wrong(key, value, "a text or a whole number");
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> SectionReader::pairs(std::string_view key) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const TreeValue* value = table_value(key);
  if (value == nullptr) return pairs;
  for (const TreeEntry& entry : value->entries) {
    pairs.emplace_back(entry.key, scalar_of(fmt::format("{}.{}", key, entry.key), entry.value).value_or(""));
  }
  return pairs;
}

void SectionReader::select_value(std::string_view key, const TreeValue& value, std::vector<std::string>& values) {
  const std::optional<std::string> text = scalar_of(key, value);
  if (!text) return;
  const std::size_t dots = text->find("..");
  if (dots == std::string::npos) {
    values.push_back(*text);
    return;
  }
  const auto first = to_integer(std::string_view(*text).substr(0, dots));
  const auto last = to_integer(std::string_view(*text).substr(dots + 2));
  if (!first || !last || *first < 0 || *last < *first ||
      static_cast<std::size_t>(*last - *first) >= kMaxSelectedValues) {
    wrong(key, value, fmt::format("a range of at most {} whole numbers, such as \"0..9\"", kMaxSelectedValues));
    return;
  }
  for (std::int64_t n = *first; n <= *last; ++n) values.push_back(fmt::format("{}", n));
}

std::vector<std::pair<std::string, std::vector<std::string>>> SectionReader::selection(std::string_view key) {
  std::vector<std::pair<std::string, std::vector<std::string>>> selection;
  const TreeValue* value = table_value(key);
  if (value == nullptr) return selection;
  for (const TreeEntry& entry : value->entries) {
    const std::string name = fmt::format("{}.{}", key, entry.key);
    std::vector<std::string> values;
    if (entry.value.kind == Kind::kList) {
      for (const TreeValue& item : entry.value.items) {
        if (values.size() <= kMaxSelectedValues) select_value(name, item, values);
      }
      if (entry.value.items.empty()) wrong(name, entry.value, "at least one value");
    } else {
      select_value(name, entry.value, values);
    }
    if (values.size() > kMaxSelectedValues) {
      errors_.add(entry.value.place, fmt::format("{} has more than {} values", name, kMaxSelectedValues),
                  fmt::format("at most {}", kMaxSelectedValues));
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    selection.emplace_back(entry.key, std::move(values));
  }
  return selection;
}

}  // namespace orla::model
