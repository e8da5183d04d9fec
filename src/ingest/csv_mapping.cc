#include "ingest/csv_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/absl_view.h"
#include "base/utf8.h"
#include "ingest/csv_cells.h"
#include "ingest/csv_time.h"
#include "ingest/number.h"

namespace orla::ingest {

namespace {

class MappingParser final : public RowParser {
 public:
  MappingParser(const model::CsvMapping& mapping, TimeReader time, Selection selection)
      : mapping_(mapping), time_(std::move(time)), selection_(std::move(selection)) {
    for (const auto& value : mapping_.values) {
      const auto known = std::find(metrics_.begin(), metrics_.end(), value.metric);
      metric_of_.push_back(static_cast<std::size_t>(known - metrics_.begin()));
      if (known == metrics_.end()) metrics_.push_back(value.metric);
    }
    for (const std::string& marker : mapping_.missing) {
      double number = 0;
      if (read_value(marker, number) == Parsed::kNumber) missing_numbers_.push_back(number);
    }
  }

  bool wants_header() const override { return mapping_.header; }

  absl::Status read_header(std::string_view line) override {
    if (std::optional<Fault> fault = cells_.split(line, mapping_.delimiter)) {
      return absl::InvalidArgumentError(fmt::format("in the header: {}", fault->message));
    }
    absl::StatusOr<CsvColumns> columns = find_columns(mapping_, cells_.all());
    if (columns.ok()) columns_ = *std::move(columns);
    return columns.status();
  }

  absl::Status use_numbers() {
    absl::StatusOr<CsvColumns> columns = find_columns_without_header(mapping_);
    if (columns.ok()) columns_ = *std::move(columns);
    return columns.status();
  }

  Used parse(std::string_view lines, std::uint64_t rows_before, BatchBuilder& batch) override {
    Used used;
    const std::uint64_t max_rows = batch.lines_left();
    while (used.bytes < lines.size() && used.rows < max_rows && batch.rows_left() > 0) {
      const std::size_t size = lines.find('\n', used.bytes) + 1 - used.bytes;
      const std::string_view line = without_line_end(lines.substr(used.bytes, size));
      if (!line.empty() && !take(line, rows_before + used.rows + 1, batch)) break;
      used.bytes += size;
      ++used.rows;
    }
    return used;
  }

 private:
  // What is known of one combination of labels: the series of each metric, once used.
  static constexpr std::uint32_t kUnused = UINT32_MAX;
  struct Thing {
    bool wanted = false;
    std::vector<std::uint32_t> series;
  };

  // False when the row belongs into another batch.
  bool take(std::string_view line, std::uint64_t number, BatchBuilder& batch) {
    Thing* thing = nullptr;
    std::optional<Fault> fault = split(line);
    if (!fault) fault = find_thing(batch, thing);
    if (thing == nullptr && !fault) return true;  // not wanted
    model::Time time{};
    if (!fault) fault = read_time(time);
    if (!fault) fault = read_values();
    if (!fault) {
      if (samples_.empty()) return true;
      if (!batch.fits(time)) return false;
      fault = add(*thing, time, batch);
    }
    if (fault) batch.reject(number, std::move(*fault));
    return true;
  }

  std::optional<Fault> split(std::string_view line) {
    if (line.size() > kMaxLineBytes) return too_long(line.size());
    if (std::memchr(line.data(), '\0', line.size()) != nullptr) {
      return Fault{kMalformed, 0, fmt::format("found a NUL byte in {}, expected text", shown(line))};
    }
    if (std::optional<Fault> fault = cells_.split(line, mapping_.delimiter)) return fault;
    const bool right = mapping_.header ? cells_.size() == columns_.count : cells_.size() >= columns_.count;
    if (right) return std::nullopt;
    return Fault{kMalformed, 0,
                 fmt::format("found {} column{}: {}, expected {}{}", cells_.size(), cells_.size() == 1 ? "" : "s",
                             shown(line), mapping_.header ? "" : "at least ", columns_.count)};
  }

  // `thing` stays null when the row is not wanted.
  std::optional<Fault> find_thing(const BatchBuilder& batch, Thing*& thing) {
    key_.clear();
    for (const std::size_t column : columns_.labels) {
      const std::string_view cell = cells_[column];
      const auto size = static_cast<std::uint32_t>(cell.size());
      key_.append(reinterpret_cast<const char*>(&size), sizeof size);
      key_.append(cell);
    }
    const auto known = things_.find(base::absl_view(key_));
    if (known != things_.end()) {
      thing = known->second.wanted ? &known->second : nullptr;
      return std::nullopt;
    }
    for (const std::size_t column : columns_.labels) {
      const std::string_view cell = cells_[column];
      if (cell.size() <= kMaxLabelBytes && base::is_utf8(cell)) continue;
      return Fault{kBadLabel, static_cast<std::uint32_t>(column + 1),
                   fmt::format("found {}, expected a label in UTF-8 of at most {} bytes", shown(cell), kMaxLabelBytes)};
    }
    const bool wanted = selection_.wants(labels());
    if (things_.size() >= kMaxSeries || batch.series_count() >= kMaxSeries) {
      if (wanted) return too_many_series();
      return std::nullopt;
    }
    Thing& fresh = things_[key_];
    fresh.wanted = wanted;
    if (wanted) {
      fresh.series.assign(metrics_.size(), kUnused);
      thing = &fresh;
    }
    return std::nullopt;
  }

  std::vector<model::Label> labels() const {
    std::vector<model::Label> all = mapping_.constant_labels;
    for (std::size_t i = 0; i < mapping_.labels.size(); ++i) {
      all.emplace_back(mapping_.labels[i].label, cells_[columns_.labels[i]]);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::optional<Fault> read_time(model::Time& time) {
    std::string_view text = cells_[columns_.time.front()];
    if (columns_.time.size() > 1) {
      joined_ = text;
      for (std::size_t i = 1; i < columns_.time.size(); ++i) {
        joined_ += ' ';
        joined_ += cells_[columns_.time[i]];
      }
      text = joined_;
    }
    const std::optional<model::Time> read = time_.read(text);
    if (!read) {
      return Fault{kBadTime, static_cast<std::uint32_t>(columns_.time.front() + 1),
                   fmt::format("found {}, expected {}", shown(text), time_.expected())};
    }
    time = *read;
    return std::nullopt;
  }

  std::optional<Fault> read_values() {
    samples_.clear();
    for (std::size_t i = 0; i < columns_.values.size(); ++i) {
      const std::string_view cell = cells_[columns_.values[i]];
      if (std::find(mapping_.missing.begin(), mapping_.missing.end(), cell) != mapping_.missing.end()) continue;
      double value = 0;
      const Parsed parsed = read_value(cell, value);
      if (parsed == Parsed::kNumber) {
        if (std::find(missing_numbers_.begin(), missing_numbers_.end(), value) != missing_numbers_.end()) continue;
        samples_.emplace_back(metric_of_[i], value);
        continue;
      }
      return Fault{
          parsed == Parsed::kNotFinite ? kNotFinite : kMalformed, static_cast<std::uint32_t>(columns_.values[i] + 1),
          fmt::format("found {}, expected a {}number{}", shown(cell), parsed == Parsed::kNotFinite ? "finite " : "",
                      mapping_.decimal_mark == '.' ? "" : " with a decimal comma")};
    }
    return std::nullopt;
  }

  Parsed read_value(std::string_view cell, double& value) {
    if (mapping_.decimal_mark == '.') return parse_number(cell, value);
    if (cell.find('.') != std::string_view::npos) return Parsed::kNone;
    number_ = cell;
    std::replace(number_.begin(), number_.end(), mapping_.decimal_mark, '.');
    return parse_number(number_, value);
  }

  std::optional<Fault> add(Thing& thing, model::Time time, BatchBuilder& batch) {
    std::size_t fresh = 0;
    for (const auto& [metric, value] : samples_) fresh += thing.series[metric] == kUnused ? 1 : 0;
    if (!batch.has_room_for_series(fresh)) return too_many_series();
    for (const auto& [metric, value] : samples_) {
      std::uint32_t& series = thing.series[metric];
      if (series == kUnused) {
        const std::optional<model::SeriesId> id = batch.define({metrics_[metric], labels()});
        if (!id) return too_many_series();
        series = model::index(*id);
      }
      batch.add(model::SeriesId{series}, time, value);
    }
    return std::nullopt;
  }

  static Fault too_many_series() {
    return {kTooManySeries, 0, fmt::format("found a series more than the {} of one input", kMaxSeries)};
  }

  model::CsvMapping mapping_;
  TimeReader time_;
  Selection selection_;
  std::vector<std::string> metrics_;    // distinct
  std::vector<std::size_t> metric_of_;  // by value column
  std::vector<double> missing_numbers_;
  CsvColumns columns_;
  absl::flat_hash_map<std::string, Thing> things_;
  // Of the present row.
  Cells cells_;
  std::string key_;
  std::string joined_;
  std::string number_;
  std::vector<std::pair<std::size_t, double>> samples_;  // metric, value
};

absl::Status check(const model::CsvMapping& mapping) {
  const auto refuse = [](const std::string& text) { return absl::InvalidArgumentError(text); };
  if (std::strchr("\"\r\n", mapping.delimiter) != nullptr) {
    return refuse("found a quote, a line end or NUL as the delimiter, expected another character");
  }
  if (mapping.decimal_mark != '.' && mapping.decimal_mark != ',') {
    return refuse(fmt::format("found the decimal mark \"{}\", expected . or ,", mapping.decimal_mark));
  }
  if (mapping.time_column.empty()) return refuse("found no time column, expected its name or number");
  if (mapping.values.empty()) return refuse("found no value column, expected at least one");
  std::set<std::string> names;
  for (const auto& label : mapping.labels) {
    if (label.label.empty() || !names.insert(label.label).second) {
      return refuse(fmt::format("found the label \"{}\" twice or without a name", label.label));
    }
  }
  for (const auto& [name, value] : mapping.constant_labels) {
    if (name.empty() || !names.insert(name).second) {
      return refuse(fmt::format("found the label \"{}\" twice or without a name", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowParser>> make_mapping_parser(const model::CsvMapping& mapping, Selection selection) {
  if (absl::Status s = check(mapping); !s.ok()) return s;
  absl::StatusOr<TimeReader> time = TimeReader::make(mapping.time_format, mapping.time_zone);
  if (!time.ok()) return time.status();
  auto parser = std::make_unique<MappingParser>(mapping, *std::move(time), std::move(selection));
  if (!mapping.header) {
    if (absl::Status s = parser->use_numbers(); !s.ok()) return s;
  }
  return parser;
}

}  // namespace orla::ingest
