#include "ingest/csv_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/absl_view.h"
#include "base/utf8.h"
#include "ingest/csv_cells.h"
#include "ingest/csv_label_texts.h"
#include "ingest/csv_marks.h"
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
      missing_first_[marker.empty() ? 0 : static_cast<unsigned char>(marker.front())] = true;
      Sample number;
      if (read_value(marker, number) == Parsed::kNumber) missing_numbers_.push_back(number.value());
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

  std::unique_ptr<RowParser> another() const override {
    auto parser = std::make_unique<MappingParser>(mapping_, time_, selection_);
    parser->columns_ = columns_;
    return parser;
  }

  Used parse(std::string_view lines, std::uint64_t rows_before, BatchBuilder& batch) override {
    if (texts_ == nullptr) texts_ = std::make_unique<LabelTexts>(columns_.labels.size());
    Used used;
    while (used.bytes < lines.size() && batch.rows_left() > 0) {
      // Some lines, or one long one.
      std::string_view some = lines.substr(used.bytes, kBytesAtOnce);
      const std::size_t end = some.rfind('\n');
      if (end == std::string_view::npos) {
        some = lines.substr(used.bytes, lines.find('\n', used.bytes) + 1 - used.bytes);
      } else {
        some = some.substr(0, end + 1);
      }
      const Used here = parse_some(some, rows_before + used.rows, batch);
      used.bytes += here.bytes;
      used.rows += here.rows;
      if (here.bytes < some.size()) break;
    }
    return used;
  }

 private:
  // What is known of one combination of labels: the series of each metric, once used. One that is not wanted has none.
  static constexpr std::uint32_t kUnused = UINT32_MAX;
  struct Thing {
    std::vector<std::uint32_t> series;
  };
  // Numbers of things, beside those in things_.
  static constexpr std::uint32_t kUnwanted = UINT32_MAX - 1;
  static constexpr std::uint32_t kFresh = UINT32_MAX - 2;  // wanted, and not kept before it has a series
  static constexpr std::size_t kBytesAtOnce = 8192;

  struct Sample {
    std::size_t metric = 0;
    bool is_decimal = false;
    Decimal decimal;
    double number = 0;
    double value() const { return is_decimal ? decimal.nearest() : number; }
  };

  Used parse_some(std::string_view lines, std::uint64_t rows_before, BatchBuilder& batch) {
    CsvMarks marks{0, false};
    if (lines.size() <= kBytesAtOnce) {
      marks_.resize(kBytesAtOnce + 1);
      marks = find_csv_marks(lines, mapping_.delimiter, marks_.data());
    }
    Used used;
    std::size_t mark = 0;
    while (used.bytes < lines.size() && batch.rows_left() > 0) {
      const std::size_t marks_of_row = marks.plain ? find_cells(lines, used.bytes, mark, marks.count) : 0;
      const Taken taken = marks_of_row > 0 ? take_plain(batch) : Taken::kNot;
      if (taken == Taken::kOtherBatch) break;
      if (taken == Taken::kDone) {
        mark += marks_of_row;
        used.bytes = marks_[mark - 1] + 1;
        ++used.rows;
        continue;
      }
      const std::size_t size = lines.find('\n', used.bytes) + 1 - used.bytes;
      const std::string_view line = without_line_end(lines.substr(used.bytes, size));
      if (!line.empty() && !take(line, rows_before + used.rows + 1, batch)) break;
      used.bytes += size;
      ++used.rows;
      while (mark < marks.count && marks_[mark] < used.bytes) ++mark;
    }
    return used;
  }

  // The first columns_.count cells of a row without quotes, into plain_cells_. Returns how many marks the row has, 0
  // when it has not the right number of cells.
  std::size_t find_cells(std::string_view lines, std::size_t begin, std::size_t mark, std::size_t marks) {
    const std::size_t count = columns_.count;
    if (mark + count > marks) return 0;
    plain_cells_.resize(count);
    bool ended = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (ended) return 0;
      std::size_t end = marks_[mark + i];
      ended = lines[end] == '\n';
      if (ended && end > begin && lines[end - 1] == '\r') --end;
      plain_cells_[i] = trimmed(lines.substr(begin, end - begin));
      begin = marks_[mark + i] + 1;
    }
    if (ended) return count;
    if (mapping_.header) return 0;
    std::size_t last = mark + count;  // more columns than the mapping names
    while (lines[marks_[last]] != '\n') ++last;
    return last + 1 - mark;
  }

  enum class Taken : std::uint8_t { kDone, kOtherBatch, kNot };
  // A row whose labels are known and that has no fault; any other is not taken.
  Taken take_plain(BatchBuilder& batch) {
    for (std::size_t i = 0; i < columns_.labels.size(); ++i) {
      if (!texts_->set(i, plain_cells_[columns_.labels[i]])) return Taken::kNot;
    }
    const std::uint32_t number = texts_->find();
    if (number == LabelTexts::kUnknown) {
      learn_labels_ = true;  // from the careful way, which this row goes now
      return Taken::kNot;
    }
    if (number == kUnwanted) return Taken::kDone;
    const std::optional<model::Time> time = time_.read(time_text(plain_cells_));
    if (!time || read_values(plain_cells_)) return Taken::kNot;
    const Thing& thing = things_[number];
    for (const Sample& sample : samples_) {
      if (thing.series[sample.metric] == kUnused) return Taken::kNot;
    }
    if (samples_.empty()) return Taken::kDone;
    if (!batch.fits(*time)) return Taken::kOtherBatch;
    for (const Sample& sample : samples_) add_sample(thing.series[sample.metric], *time, sample, batch);
    return Taken::kDone;
  }

  // False when the row belongs into another batch.
  bool take(std::string_view line, std::uint64_t number, BatchBuilder& batch) {
    const bool learn = std::exchange(learn_labels_, false);
    std::uint32_t thing = kUnwanted;
    std::optional<Fault> fault = split(line);
    if (!fault) fault = find_thing(thing);
    if (thing == kUnwanted && !fault) {
      if (learn) texts_->insert(kUnwanted);
      return true;
    }
    model::Time time{};
    if (!fault) fault = read_time(time);
    if (!fault) fault = read_values(cells_.all());
    if (!fault) {
      if (samples_.empty()) return true;
      if (!batch.fits(time)) return false;
      fault = add(thing, time, batch);
      if (!fault && learn) texts_->insert(thing);
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

  std::optional<Fault> find_thing(std::uint32_t& thing) {
    key_.clear();
    for (const std::size_t column : columns_.labels) {
      const std::string_view cell = cells_[column];
      const auto size = static_cast<std::uint32_t>(cell.size());
      key_.append(reinterpret_cast<const char*>(&size), sizeof size);
      key_.append(cell);
    }
    const auto known = thing_numbers_.find(base::absl_view(key_));
    if (known != thing_numbers_.end()) {
      thing = known->second;
      return std::nullopt;
    }
    for (const std::size_t column : columns_.labels) {
      const std::string_view cell = cells_[column];
      if (cell.size() <= kMaxLabelBytes && base::is_utf8(cell)) continue;
      return Fault{kBadLabel, static_cast<std::uint32_t>(column + 1),
                   fmt::format("found {}, expected a label in UTF-8 of at most {} bytes", shown(cell), kMaxLabelBytes)};
    }
    if (selection_.wants(labels())) {
      thing = kFresh;
    } else if (thing_numbers_.size() < 2 * kMaxSeries) {
      thing_numbers_.emplace(key_, kUnwanted);
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

  template <typename CellsOfRow>
  std::string_view time_text(const CellsOfRow& cells) {
    if (columns_.time.size() == 1) return cells[columns_.time.front()];
    joined_ = cells[columns_.time.front()];
    for (std::size_t i = 1; i < columns_.time.size(); ++i) {
      joined_ += ' ';
      joined_ += cells[columns_.time[i]];
    }
    return joined_;
  }

  std::optional<Fault> read_time(model::Time& time) {
    const std::string_view text = time_text(cells_);
    const std::optional<model::Time> read = time_.read(text);
    if (!read) {
      return Fault{kBadTime, static_cast<std::uint32_t>(columns_.time.front() + 1),
                   fmt::format("found {}, expected {}", shown(text), time_.expected())};
    }
    time = *read;
    return std::nullopt;
  }

  // Sets samples_.
  std::optional<Fault> read_values(const std::vector<std::string_view>& cells) {
    samples_.clear();
    for (std::size_t i = 0; i < columns_.values.size(); ++i) {
      const std::string_view cell = cells[columns_.values[i]];
      Sample sample;
      sample.metric = metric_of_[i];
      if (is_missing(cell)) continue;
      const Parsed parsed = read_value(cell, sample);
      if (parsed == Parsed::kNumber) {
        const auto none = missing_numbers_.end();
        if (missing_numbers_.empty() || std::find(missing_numbers_.begin(), none, sample.value()) == none) {
          samples_.push_back(sample);
        }
        continue;
      }
      return Fault{
          parsed == Parsed::kNotFinite ? kNotFinite : kMalformed, static_cast<std::uint32_t>(columns_.values[i] + 1),
          fmt::format("found {}, expected a {}number{}", shown(cell), parsed == Parsed::kNotFinite ? "finite " : "",
                      mapping_.decimal_mark == '.' ? "" : " with a decimal comma")};
    }
    return std::nullopt;
  }

  bool is_missing(std::string_view cell) const {
    if (!missing_first_[cell.empty() ? 0 : static_cast<unsigned char>(cell.front())]) return false;
    return std::find(mapping_.missing.begin(), mapping_.missing.end(), cell) != mapping_.missing.end();
  }

  // A byte can be read behind the cell.
  Parsed read_value(std::string_view cell, Sample& sample) {
    const char mark = mapping_.decimal_mark;
    sample.is_decimal = !cell.empty() && read_decimal(cell.data(), sample.decimal, mark) == cell.size();
    if (sample.is_decimal) return Parsed::kNumber;
    if (mark == '.') return parse_number(cell, sample.number);
    if (cell.find('.') != std::string_view::npos) return Parsed::kNone;
    number_ = cell;
    std::replace(number_.begin(), number_.end(), mark, '.');
    return parse_number(number_, sample.number);
  }

  static void add_sample(std::uint32_t series, model::Time time, const Sample& sample, BatchBuilder& batch) {
    if (sample.is_decimal) {
      batch.add(model::SeriesId{series}, time, sample.decimal);
    } else {
      batch.add(model::SeriesId{series}, time, sample.number);
    }
  }

  // Adds samples_, and keeps a thing that is fresh.
  std::optional<Fault> add(std::uint32_t& thing, model::Time time, BatchBuilder& batch) {
    if (thing == kFresh) fresh_.series.assign(metrics_.size(), kUnused);
    std::vector<std::uint32_t>& series = thing == kFresh ? fresh_.series : things_[thing].series;
    std::vector<std::size_t> new_metrics;
    std::vector<model::Series> new_series;
    for (const Sample& sample : samples_) {
      if (series[sample.metric] != kUnused ||
          std::find(new_metrics.begin(), new_metrics.end(), sample.metric) != new_metrics.end()) {
        continue;
      }
      new_metrics.push_back(sample.metric);
      new_series.push_back({metrics_[sample.metric], labels()});
    }
    if (!new_series.empty() && !batch.can_define(new_series)) return too_many_series();
    for (std::size_t i = 0; i < new_series.size(); ++i) {
      series[new_metrics[i]] = model::index(*batch.define(std::move(new_series[i])));
    }
    for (const Sample& sample : samples_) add_sample(series[sample.metric], time, sample, batch);
    if (thing == kFresh) {
      thing = static_cast<std::uint32_t>(things_.size());
      things_.push_back(fresh_);
      thing_numbers_.emplace(key_, thing);
    }
    return std::nullopt;
  }

  static Fault too_many_series() {
    return {kTooManySeries, 0, fmt::format("found a series more than the {} of one input", kMaxSeries)};
  }

  model::CsvMapping mapping_;
  TimeReader time_;
  Selection selection_;
  std::vector<std::string> metrics_;       // distinct
  std::vector<std::size_t> metric_of_;     // by value column
  std::array<bool, 256> missing_first_{};  // by first byte of the markers
  std::vector<double> missing_numbers_;
  CsvColumns columns_;
  std::vector<Thing> things_;
  absl::flat_hash_map<std::string, std::uint32_t> thing_numbers_;  // by key_
  std::unique_ptr<LabelTexts> texts_;  // of rows without quotes: what thing_numbers_ says of their labels
  bool learn_labels_ = false;          // the present row's labels are set in texts_ and not known there
  // Of the present lines.
  std::vector<std::uint32_t> marks_;
  // Of the present row.
  Cells cells_;
  std::string key_;
  std::string joined_;
  std::string number_;
  std::vector<std::string_view> plain_cells_;
  std::vector<Sample> samples_;
  Thing fresh_;
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
