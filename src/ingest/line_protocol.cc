#include "ingest/line_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/absl_view.h"
#include "base/utf8.h"
#include "ingest/number.h"

namespace orla::ingest {

namespace {

// What a parser remembers of keys; beyond it, it starts afresh.
constexpr std::size_t kMaxKeyBytes = std::size_t{32} << 20;
// About what a map's entry takes beside its text.
constexpr std::size_t kEntryBytes = 128;

bool is_special(char c) { return c == ',' || c == '=' || c == ' '; }

// The first of `stops` from `at` on that no backslash escapes; `end` when there is none.
template <typename Stops>
const char* find_unescaped(const char* at, const char* end, Stops stops) {
  for (; at < end; ++at) {
    if (*at == '\\') {
      if (at + 1 < end && is_special(at[1])) ++at;
    } else if (stops(*at)) {
      return at;
    }
  }
  return end;
}

// `equals`: whether a backslash escapes '=' here too.
enum class Escapes : std::uint8_t { kMeasurement, kKey };
std::string unescape(std::string_view written, Escapes escapes) {
  std::string out;
  out.reserve(written.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] == '\\' && i + 1 < written.size() && is_special(written[i + 1]) &&
        (escapes == Escapes::kKey || written[i + 1] != '=')) {
      ++i;
    }
    out += written[i];
  }
  return out;
}

std::string_view between(const char* from, const char* to) { return {from, static_cast<std::size_t>(to - from)}; }

const char* skip_blanks(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == '\t')) ++at;
  return at;
}

std::string found_at(const char* at, const char* end, std::string_view expected) {
  if (at == end) return fmt::format("found the end of the line, expected {}", expected);
  return fmt::format("found {}, expected {}", shown(between(at, end)), expected);
}

enum class Value : std::uint8_t { kNumber, kNotFinite, kNone };

template <typename Integer>
Value parse_integer(std::string_view digits, double& out) {
  Integer n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (error != std::errc() || end != digits.data() + digits.size()) return Value::kNone;
  out = static_cast<double>(n);
  return Value::kNumber;
}

Value parse_value(std::string_view text, double& out) {
  if (text.empty()) return Value::kNone;
  if (text.back() == 'i') return parse_integer<std::int64_t>(text.substr(0, text.size() - 1), out);
  if (text.back() == 'u') return parse_integer<std::uint64_t>(text.substr(0, text.size() - 1), out);
  switch (text.front()) {
    case 't':
    case 'T':
    case 'f':
    case 'F':
      for (const std::string_view yes : {"t", "T", "true", "True", "TRUE"}) {
        if (text == yes) return out = 1, Value::kNumber;
      }
      for (const std::string_view no : {"f", "F", "false", "False", "FALSE"}) {
        if (text == no) return out = 0, Value::kNumber;
      }
      return Value::kNone;
    default:
      break;
  }
  switch (parse_number(text, out)) {
    case Parsed::kNumber:
      return Value::kNumber;
    case Parsed::kNotFinite:
      return Value::kNotFinite;
    case Parsed::kNone:
      break;
  }
  return Value::kNone;
}

}  // namespace

std::optional<Precision> parse_precision(std::string_view name) {
  if (name.empty() || name == "ns" || name == "n") return Precision::kNs;
  if (name == "us" || name == "u" || name == "\xc2\xb5") return Precision::kUs;
  if (name == "ms") return Precision::kMs;
  if (name == "s") return Precision::kS;
  if (name == "m") return Precision::kM;
  if (name == "h") return Precision::kH;
  return std::nullopt;
}

std::optional<model::SeriesId> SeriesTable::number(model::Series series) {
  std::string identity = model::identity(series);
  const std::lock_guard lock(mutex_);
  if (const auto known = numbers_.find(identity); known != numbers_.end()) return known->second;
  const std::size_t bytes = 2 * identity.size() + kEntryBytes;
  if (series_.size() >= max_series_ || bytes_ + bytes > max_bytes_) return std::nullopt;
  bytes_ += bytes;
  const model::SeriesId number{static_cast<std::uint32_t>(series_.size())};
  numbers_.emplace(std::move(identity), number);
  series_.push_back(std::move(series));
  return number;
}

std::size_t SeriesTable::size() const {
  const std::lock_guard lock(mutex_);
  return series_.size();
}

std::vector<model::Series> SeriesTable::since(std::size_t first) const {
  const std::lock_guard lock(mutex_);
  if (first >= series_.size()) return {};
  return {series_.begin() + static_cast<std::ptrdiff_t>(first), series_.end()};
}

LineParser::LineParser(std::string input_key, SeriesTable& series)
    : series_(series), builder_(std::move(input_key), BatchLimits()) {}

void LineParser::forget_keys() {
  keys_.clear();
  key_bytes_ = 0;
}

absl::Status LineParser::parse(std::string_view body, const LineOptions& options, model::InputBatch& out) {
  if (key_bytes_ > kMaxKeyBytes) forget_keys();
  builder_.begin(out);
  const char* at = body.data();
  const char* const end = at + body.size();
  std::uint64_t number = 0;
  while (at < end) {
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    Line line{at, at, nullptr, newline == nullptr ? end : newline, end};
    line.trim();
    const char* const first_newline = line.newline;
    ++number;
    if (Trouble trouble = read_line(line, options)) {
      builder_.reject(number, *std::move(trouble));
    } else {
      if (builder_.samples() > options.max_samples) {
        return absl::ResourceExhaustedError(
            fmt::format("line {}: found more than {} field values, expected at most so many in one push ([limits] "
                        "push_samples): send it in parts",
                        number, options.max_samples));
      }
      for (Fault& fault : faults_) builder_.reject(number, std::move(fault));
    }
    // Line ends within a text.
    if (line.newline != first_newline)
      number += static_cast<std::uint64_t>(std::count(first_newline, line.newline, '\n'));
    at = line.newline == end ? end : line.newline + 1;
  }
  builder_.know_series(series_.size());
  builder_.finish({body.size(), number});
  return absl::OkStatus();
}

LineParser::Trouble LineParser::read_line(Line& line, const LineOptions& options) {
  values_.clear();
  faults_.clear();
  line.at = skip_blanks(line.at, line.end);
  if (line.at == line.end || *line.at == '#') return std::nullopt;
  if (static_cast<std::size_t>(line.end - line.begin) > kMaxLineBytes) {
    return Fault{kTooLong, 0,
                 fmt::format("found a line of {} bytes, expected at most {}", line.end - line.begin, kMaxLineBytes)};
  }
  Key* key = nullptr;
  if (Trouble trouble = read_key(line, key)) return trouble;
  line.at = skip_blanks(line.at, line.end);
  for (std::size_t place = 0;; ++place) {
    if (place == kMaxFields) {
      return Fault{kMalformed, line.column(), fmt::format("found more than {} fields, expected fewer", kMaxFields)};
    }
    if (Trouble trouble = read_field(line, *key, place)) return trouble;
    if (line.at == line.end || *line.at != ',') break;
    ++line.at;
  }
  model::Time time = options.now;
  if (Trouble trouble = read_time(line, options, time)) return trouble;
  for (const auto& [series, value] : values_) builder_.add(series, time, value);
  return std::nullopt;
}

LineParser::Trouble LineParser::read_key(Line& line, Key*& key) {
  const char* end = find_unescaped(line.at, line.end, [](char c) { return c == ' '; });
  if (end == line.end) {
    return Fault{kMalformed, line.column(end),
                 found_at(end, end, "a blank and a field after the measurement and its tags")};
  }
  const std::string_view written = between(line.at, end);
  const auto known = keys_.find(base::absl_view(written));
  if (known != keys_.end()) {
    key = known->second.get();
  } else {
    auto made = std::make_unique<Key>();
    if (Trouble trouble = make_key(line, written, *made)) return trouble;
    key_bytes_ += 3 * written.size() + kEntryBytes;
    key = keys_.emplace(std::string(written), std::move(made)).first->second.get();
  }
  line.at = end;
  return std::nullopt;
}

LineParser::Trouble LineParser::make_key(const Line& line, std::string_view written, Key& key) const {
  const char* const end = written.data() + written.size();
  const auto checked = [&](const char* from, const char* to, const std::string& text, const char* what) -> Trouble {
    if (text.empty()) return Fault{kMalformed, line.column(from), found_at(from, end, what)};
    if (text.size() > kMaxLabelBytes) {
      return Fault{kBadLabel, line.column(from),
                   fmt::format("found {}, expected {} of at most {} bytes", shown(text), what, kMaxLabelBytes)};
    }
    if (!base::is_utf8(text)) {
      return Fault{kBadLabel, line.column(from),
                   fmt::format("found {}, expected {} in UTF-8", shown(between(from, to)), what)};
    }
    return std::nullopt;
  };
  const char* at = find_unescaped(written.data(), end, [](char c) { return c == ','; });
  key.measurement = unescape(between(written.data(), at), Escapes::kMeasurement);
  if (Trouble trouble = checked(written.data(), at, key.measurement, "a measurement")) return trouble;
  while (at < end) {
    const char* const name = at + 1;
    if (key.labels.size() == kMaxTags) {
      return Fault{kBadLabel, line.column(name), fmt::format("found more than {} tags, expected fewer", kMaxTags)};
    }
    const char* const equals = find_unescaped(name, end, [](char c) { return c == '=' || c == ','; });
    model::Label label;
    label.first = unescape(between(name, equals), Escapes::kKey);
    if (Trouble trouble = checked(name, equals, label.first, "the name of a tag")) return trouble;
    if (equals == end || *equals != '=') {
      return Fault{kMalformed, line.column(equals), found_at(equals, end, "= and the value of the tag")};
    }
    const char* const value = equals + 1;
    at = find_unescaped(value, end, [](char c) { return c == ',' || c == '='; });
    label.second = unescape(between(value, at), Escapes::kKey);
    if (Trouble trouble = checked(value, at, label.second, "the value of a tag")) return trouble;
    if (at < end && *at == '=') {
      return Fault{kMalformed, line.column(at), found_at(at, end, "a comma or a blank after the value of a tag")};
    }
    key.labels.push_back(std::move(label));
  }
  std::sort(key.labels.begin(), key.labels.end());
  const auto twice =
      std::adjacent_find(key.labels.begin(), key.labels.end(),
                         [](const model::Label& a, const model::Label& b) { return a.first == b.first; });
  if (twice != key.labels.end()) {
    return Fault{kBadLabel, line.column(written.data()),
                 fmt::format("found the tag {} twice, expected each tag once", shown(twice->first))};
  }
  return std::nullopt;
}

LineParser::Trouble LineParser::read_field(Line& line, Key& key, std::size_t place) {
  const char* const name = line.at;
  const char* const equals = find_unescaped(name, line.end, [](char c) { return c == '=' || c == ',' || c == ' '; });
  if (equals == name) {
    return Fault{kMalformed, line.column(name), found_at(name, line.end, "the name of a field")};
  }
  if (equals == line.end || *equals != '=') {
    return Fault{kMalformed, line.column(equals), found_at(equals, line.end, "= and the value of the field")};
  }
  const std::string_view written = between(name, equals);
  line.at = equals + 1;
  if (line.at < line.end && *line.at == '"') {
    if (Trouble trouble = read_text(line)) return trouble;
    faults_.push_back({kNotNumeric, line.column(equals + 1),
                       fmt::format("field {} is a text, expected a number or true or false", shown(written))});
    return std::nullopt;
  }
  const char* const begin = line.at;
  while (line.at < line.end && *line.at != ',' && *line.at != ' ') ++line.at;
  double value = 0;
  switch (parse_value(between(begin, line.at), value)) {
    case Value::kNumber:
      break;
    case Value::kNotFinite:
      faults_.push_back(
          {kNotFinite, line.column(begin),
           fmt::format("field {} is {}, expected a finite number", shown(written), shown(between(begin, line.at)))});
      return std::nullopt;
    case Value::kNone:
      return Fault{kMalformed, line.column(begin),
                   found_at(begin, line.at, "a number (1, 1.5e3, 1i, 1u), true, false or a text in double quotes")};
  }
  std::optional<model::SeriesId> series;
  if (Trouble trouble = find_series(line, key, place, written, series)) return trouble;
  if (!series) {
    faults_.push_back({kTooManySeries, line.column(name),
                       fmt::format("field {} begins one more series than are known here at most", shown(written))});
    return std::nullopt;
  }
  values_.emplace_back(*series, value);
  return std::nullopt;
}

// From the opening quote to behind the closing one. The line may end later than it looked.
LineParser::Trouble LineParser::read_text(Line& line) {
  const char* const open = line.at;
  const char* const limit = line.begin + std::min(static_cast<std::size_t>(line.body_end - line.begin), kMaxLineBytes);
  const char* at = open + 1;
  while (at < limit && *at != '"') at += *at == '\\' && at + 1 < limit ? 2 : 1;
  const bool closed = at < limit && *at == '"';
  const char* const after = closed ? at + 1 : limit;
  const bool ends = after == line.body_end || *after == ',' || *after == ' ' || *after == '\n' || *after == '\r';
  if (!closed || !ends) {
    const char* const place = closed && after <= line.end ? after : open;
    return Fault{kMalformed, line.column(place),
                 place == open ? "found a text without its closing double quote, expected one"
                               : found_at(after, line.end, "a comma, a blank or the end of the line after a text")};
  }
  line.at = after;
  if (after > line.end) {
    const auto* newline =
        static_cast<const char*>(std::memchr(after, '\n', static_cast<std::size_t>(line.body_end - after)));
    line.newline = newline == nullptr ? line.body_end : newline;
    line.trim();
  }
  return std::nullopt;
}

LineParser::Trouble LineParser::read_time(Line& line, const LineOptions& options, model::Time& time) {
  const char* const begin = skip_blanks(line.at, line.end);
  const char* end = begin;
  while (end < line.end && *end != ' ' && *end != '\t') ++end;
  line.at = skip_blanks(end, line.end);
  if (line.at != line.end) {
    return Fault{kMalformed, line.column(), found_at(line.at, line.end, "the end of the line after the timestamp")};
  }
  if (begin != end) {
    std::int64_t units = 0;
    const auto [stopped, error] = std::from_chars(begin, end, units);
    if (stopped != end || (error != std::errc() && error != std::errc::result_out_of_range)) {
      return Fault{kBadTime, line.column(begin), found_at(begin, end, "a timestamp: a whole number")};
    }
    std::int64_t ns = 0;
    if (error != std::errc() || __builtin_mul_overflow(units, static_cast<std::int64_t>(options.precision), &ns)) {
      ns = INT64_MAX;
    }
    time = model::from_ns(ns);
  }
  if (time < kEarliestTime || time >= kLatestTime) {
    return Fault{kBadTime, line.column(begin),
                 fmt::format("found time {}, expected one from 1900 to 2189: is the precision right?",
                             begin == end ? "of this node's clock" : shown(between(begin, end)))};
  }
  return std::nullopt;
}

// A sender writes the fields of a key in the same order every time, so the place is the first guess.
LineParser::Trouble LineParser::find_series(const Line& line, Key& key, std::size_t place, std::string_view written,
                                            std::optional<model::SeriesId>& series) {
  if (place < key.fields.size() && key.fields[place].written == written) {
    series = key.fields[place].series;
    return std::nullopt;
  }
  const auto known =
      std::find_if(key.fields.begin(), key.fields.end(), [&](const Field& field) { return field.written == written; });
  if (known != key.fields.end()) {
    series = known->series;
    return std::nullopt;
  }
  std::string metric = key.measurement + "_" + unescape(written, Escapes::kKey);
  if (metric.size() > kMaxLabelBytes || !base::is_utf8(metric)) {
    return Fault{kBadLabel, line.column(written.data()),
                 fmt::format("found {}, expected measurement and field in UTF-8 and at most {} bytes long",
                             shown(metric), kMaxLabelBytes)};
  }
  series = series_.number({std::move(metric), key.labels});
  if (!series || key.fields.size() >= kMaxFields) return std::nullopt;
  key_bytes_ += written.size() + kEntryBytes;
  key.fields.push_back({std::string(written), series});
  return std::nullopt;
}

}  // namespace orla::ingest
