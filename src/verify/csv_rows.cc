#include "verify/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/utf8.h"
#include "verify/lines.h"
#include "verify/text_values.h"

namespace orla::verify {
namespace {

using Labels = std::vector<model::Label>;
using Select = std::map<std::string, std::vector<std::string>>;

constexpr std::size_t kMaxLabelBytes = 1024;

// A label that is missing has the value "".
bool selected(const Select& select, const Labels& labels) {
  return std::all_of(select.begin(), select.end(), [&](const auto& wanted) {
    std::string value;
    for (const model::Label& label : labels) {
      if (label.first == wanted.first) value = label.second;
    }
    return std::find(wanted.second.begin(), wanted.second.end(), value) != wanted.second.end();
  });
}

// Reads lines; a schema makes rows of them.
class CsvRows : public RowSource {
 public:
  explicit CsvRows(std::unique_ptr<base::ByteSource> bytes) : lines_(std::move(bytes)) {}

  absl::StatusOr<bool> next(Row& row) final {
    std::string_view line;
    const absl::StatusOr<bool> more = lines_.next(line);
    if (!more.ok() || !*more) return more;
    row.number = ++number_;
    row.samples.clear();
    row.rejected = nullptr;
    if (line.empty() && !lines_.too_long()) return true;
    if (wants_header_) {
      wants_header_ = false;
      if (lines_.too_long()) return absl::InvalidArgumentError("the header is too long");
      if (absl::Status s = read_header(line); !s.ok()) return s;
      return true;
    }
    if (lines_.too_long()) {
      row.rejected = "too_long";
    } else {
      read_row(line, row);
      if (row.rejected != nullptr) row.samples.clear();
    }
    return true;
  }

  const std::vector<model::Series>& series() const final { return series_; }

 protected:
  virtual absl::Status read_header(std::string_view) { return absl::OkStatus(); }
  virtual void read_row(std::string_view line, Row& row) = 0;

  std::uint32_t add_series(std::string metric, Labels labels) {
    series_.push_back({std::move(metric), std::move(labels)});
    return static_cast<std::uint32_t>(series_.size() - 1);
  }

  bool wants_header_ = false;

 private:
  Lines lines_;
  std::uint64_t number_ = 0;
  std::vector<model::Series> series_;
};

// id,timestamp,value,property,plug_id,household_id,house_id
class Debs2014Rows final : public CsvRows {
 public:
  Debs2014Rows(const model::InputSpec& spec, std::unique_ptr<base::ByteSource> bytes)
      : CsvRows(std::move(bytes)), select_(spec.select) {}

 private:
  static constexpr std::uint32_t kNotSelected = UINT32_MAX;

  void read_row(std::string_view line, Row& row) override {
    std::array<std::string_view, 7> cells;
    std::size_t count = 0;
    for (std::size_t at = 0;;) {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      if (count < cells.size()) cells[count] = line.substr(at, comma - at);
      ++count;
      if (comma == line.size()) break;
      at = comma + 1;
    }
    if (count != cells.size()) {
      row.rejected = "malformed";
      return;
    }
    // The first fault from the left is the row's; but a row of a series that is not selected is none of this input's.
    constexpr std::uint64_t kMaxId = UINT32_MAX;
    double value = 0;
    const auto id = read_digits(cells[0], UINT64_MAX);
    const auto second = read_digits(cells[1], UINT64_MAX);
    const auto time = second ? read_time(cells[1], "unix", absl::UTCTimeZone()) : std::nullopt;
    const Number number = read_number(cells[2], value);
    const auto property = read_digits(cells[3], 1);
    const auto plug = read_digits(cells[4], kMaxId);
    const auto household = read_digits(cells[5], kMaxId);
    const auto house = read_digits(cells[6], kMaxId);
    const bool labelled = property && plug && household && house;
    std::uint32_t series = kNotSelected;
    if (labelled) {
      series = series_of({static_cast<std::uint32_t>(*property), static_cast<std::uint32_t>(*plug),
                          static_cast<std::uint32_t>(*household), static_cast<std::uint32_t>(*house)});
      if (series == kNotSelected) return;
    }
    if (!id) {
      row.rejected = "malformed";
    } else if (!time) {
      row.rejected = "bad_time";
    } else if (number != Number::kFinite) {
      row.rejected = number == Number::kNotFinite ? "not_finite" : "malformed";
    } else if (!labelled) {
      row.rejected = "malformed";
    } else {
      row.samples.push_back({series, *time, value});
    }
  }

  std::uint32_t series_of(const std::array<std::uint32_t, 4>& key) {
    const auto known = numbers_.find(key);
    if (known != numbers_.end()) return known->second;
    Labels labels = {
        {"house", std::to_string(key[3])}, {"household", std::to_string(key[2])}, {"plug", std::to_string(key[1])}};
    std::uint32_t number = kNotSelected;
    if (selected(select_, labels)) number = add_series(key[0] == 0 ? "work" : "load", std::move(labels));
    numbers_.emplace(key, number);
    return number;
  }

  const Select select_;
  absl::flat_hash_map<std::array<std::uint32_t, 4>, std::uint32_t> numbers_;
};

class MappedRows final : public CsvRows {
 public:
  MappedRows(const model::InputSpec& spec, absl::TimeZone zone, std::unique_ptr<base::ByteSource> bytes)
      : CsvRows(std::move(bytes)), mapping_(spec.mapping), select_(spec.select), zone_(zone) {
    wants_header_ = mapping_.header;
    for (const std::string& marker : mapping_.missing) {
      double number = 0;
      if (read_value(marker, number) == Number::kFinite) missing_numbers_.push_back(number);
    }
  }

  absl::Status find_columns(const std::vector<std::string>& header) {
    // The time is one column, or several joined with '+'.
    if (const auto whole = column(mapping_.time_column, header)) {
      time_ = {*whole};
    } else {
      std::string name;
      for (const char c : mapping_.time_column + "+") {
        if (c != '+') {
          name += c;
          continue;
        }
        const auto part = column(name, header);
        if (!part) return no_column(name);
        time_.push_back(*part);
        name.clear();
      }
    }
    for (const auto& label : mapping_.labels) {
      const auto at = column(label.column, header);
      if (!at) return no_column(label.column);
      labels_.push_back(*at);
    }
    for (const auto& value : mapping_.values) {
      const auto at = column(value.column, header);
      if (!at) return no_column(value.column);
      values_.push_back(*at);
    }
    for (const auto* list : {&time_, &labels_, &values_}) {
      for (const std::size_t at : *list) least_columns_ = std::max(least_columns_, at + 1);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status read_header(std::string_view line) override {
    const auto cells = read_cells(line, mapping_.delimiter);
    if (!cells) return absl::InvalidArgumentError("the header's quotes do not close");
    header_columns_ = cells->size();
    return find_columns(*cells);
  }

  // By its name in the header, else by its number from 1.
  std::optional<std::size_t> column(const std::string& name, const std::vector<std::string>& header) const {
    const auto first = std::find(header.begin(), header.end(), name);
    if (first != header.end()) {
      if (std::count(first, header.end(), name) > 1) return std::nullopt;  // which one?
      return static_cast<std::size_t>(first - header.begin());
    }
    const auto number = read_digits(name, Lines::kMaxLineBytes + 1);
    if (!number || *number == 0 || (mapping_.header && *number > header.size())) return std::nullopt;
    return *number - 1;
  }

  static absl::Status no_column(const std::string& name) {
    return absl::InvalidArgumentError(fmt::format("there is not exactly one column \"{}\"", name));
  }

  void read_row(std::string_view line, Row& row) override {
    if (line.find('\0') != std::string_view::npos) {
      row.rejected = "malformed";
      return;
    }
    const auto cells = read_cells(line, mapping_.delimiter);
    if (!cells || (mapping_.header ? cells->size() != header_columns_ : cells->size() < least_columns_)) {
      row.rejected = "malformed";
      return;
    }
    Labels labels = mapping_.constant_labels;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::string& cell = (*cells)[labels_[i]];
      if (cell.size() > kMaxLabelBytes || !base::is_utf8(cell)) {
        row.rejected = "bad_label";
        return;
      }
      labels.emplace_back(mapping_.labels[i].label, cell);
    }
    std::sort(labels.begin(), labels.end());
    if (!selected(select_, labels)) return;

    std::string text = (*cells)[time_.front()];
    for (std::size_t i = 1; i < time_.size(); ++i) text += ' ' + (*cells)[time_[i]];
    const auto time = read_time(text, mapping_.time_format, zone_);
    if (!time) {
      row.rejected = "bad_time";
      return;
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::string& cell = (*cells)[values_[i]];
      if (std::find(mapping_.missing.begin(), mapping_.missing.end(), cell) != mapping_.missing.end()) continue;
      double value = 0;
      const Number number = read_value(cell, value);
      if (number != Number::kFinite) {
        row.rejected = number == Number::kNotFinite ? "not_finite" : "malformed";
        return;
      }
      // A number means "missing" however it is written.
      if (std::find(missing_numbers_.begin(), missing_numbers_.end(), value) != missing_numbers_.end()) continue;
      row.samples.push_back({series_of(mapping_.values[i].metric, labels), *time, value});
    }
  }

  Number read_value(std::string text, double& value) const {
    if (mapping_.decimal_mark != '.') {
      if (text.find('.') != std::string::npos) return Number::kNone;
      std::replace(text.begin(), text.end(), mapping_.decimal_mark, '.');
    }
    return read_number(text, value);
  }

  std::uint32_t series_of(const std::string& metric, const Labels& labels) {
    const auto [place, is_new] = numbers_.try_emplace(model::identity({metric, labels}), 0);
    if (is_new) place->second = add_series(metric, labels);
    return place->second;
  }

  const model::CsvMapping mapping_;
  const Select select_;
  const absl::TimeZone zone_;
  std::vector<double> missing_numbers_;
  std::vector<std::size_t> time_, labels_, values_;
  std::size_t header_columns_ = 0;
  std::size_t least_columns_ = 0;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowSource>> read_csv_rows(const model::InputSpec& spec,
                                                         std::unique_ptr<base::ByteSource> bytes) {
  if (spec.schema == model::InputSpec::Schema::kDebs2014) {
    return std::make_unique<Debs2014Rows>(spec, std::move(bytes));
  }
  absl::TimeZone zone = absl::UTCTimeZone();
  if (!spec.mapping.time_zone.empty() && !absl::LoadTimeZone(spec.mapping.time_zone, &zone)) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not a known time zone", spec.mapping.time_zone));
  }
  auto rows = std::make_unique<MappedRows>(spec, zone, std::move(bytes));
  if (!spec.mapping.header) {
    if (absl::Status s = rows->find_columns({}); !s.ok()) return s;
  }
  return rows;
}

absl::StatusOr<std::unique_ptr<RowSource>> open_csv_rows(const model::InputSpec& spec) {
  auto bytes = base::open_bytes(spec.path);
  if (!bytes.ok()) return bytes.status();
  return read_csv_rows(spec, *std::move(bytes));
}

}  // namespace orla::verify
