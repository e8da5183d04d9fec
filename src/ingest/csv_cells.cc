#include "ingest/csv_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ingest/number.h"
#include "model/fleet_error.h"

namespace orla::ingest {

namespace {

constexpr std::size_t kMaxColumns = kMaxLineBytes + 1;
constexpr std::size_t kShownColumns = 40;

// Finds the columns by name or number and collects what is missing.
class Finder {
 public:
  explicit Finder(const std::vector<std::string_view>* header) : header_(header) {}

  std::optional<std::size_t> find(const std::string& column) {
    if (header_ != nullptr) {
      const auto first = std::find(header_->begin(), header_->end(), column);
      if (first != header_->end()) {
        if (std::find(first + 1, header_->end(), column) != header_->end()) {
          add(fmt::format("{} more than once (name it by its number)", shown(column)));
        }
        return static_cast<std::size_t>(first - header_->begin());
      }
    }
    std::uint64_t number = 0;
    if (parse_unsigned(column, kMaxColumns, number) && number > 0 &&
        (header_ == nullptr || number <= header_->size())) {
      return static_cast<std::size_t>(number - 1);
    }
    return std::nullopt;
  }

  std::size_t need(const std::string& column) {
    const std::optional<std::size_t> place = find(column);
    if (!place) missing(column);
    return place.value_or(0);
  }

  void missing(const std::string& column) {
    std::string problem = "no " + shown(column);
    if (header_ != nullptr) {
      const std::vector<std::string> names(header_->begin(), header_->end());
      const std::string near = model::nearest(column, names);
      if (!near.empty()) problem += fmt::format(" (did you mean {}?)", shown(near));
    }
    add(std::move(problem));
  }

  absl::Status status() const {
    if (problems_.empty()) return absl::OkStatus();
    const std::string found = fmt::format("{}", fmt::join(problems_, ", "));
    if (header_ == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("found {}, expected the numbers of columns, from 1: there is no header to name them by", found));
    }
    std::vector<std::string> names;
    for (const std::string_view name : *header_) {
      if (names.size() == kShownColumns) {
        names.push_back("...");
        break;
      }
      names.push_back(shown(name));
    }
    return absl::InvalidArgumentError(
        fmt::format("found {} in the header, expected every column that the mapping names; "
                    "the header's {} columns are {}",
                    found, header_->size(), fmt::join(names, ", ")));
  }

 private:
  void add(std::string problem) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
      problems_.push_back(std::move(problem));
    }
  }

  const std::vector<std::string_view>* header_;
  std::vector<std::string> problems_;
};

absl::StatusOr<CsvColumns> find_all(const model::CsvMapping& mapping, const std::vector<std::string_view>* header) {
  Finder finder(header);
  CsvColumns columns;
  if (const auto whole = finder.find(mapping.time_column)) {
    columns.time.push_back(*whole);
  } else {
    std::string_view rest = mapping.time_column;
    while (true) {
      const std::size_t plus = std::min(rest.find('+'), rest.size());
      columns.time.push_back(finder.need(std::string(rest.substr(0, plus))));
      if (plus == rest.size()) break;
      rest.remove_prefix(plus + 1);
    }
  }
  for (const auto& label : mapping.labels) columns.labels.push_back(finder.need(label.column));
  for (const auto& value : mapping.values) columns.values.push_back(finder.need(value.column));
  if (absl::Status s = finder.status(); !s.ok()) return s;
  if (header != nullptr) {
    columns.count = header->size();
  } else {
    for (const auto* list : {&columns.time, &columns.labels, &columns.values}) {
      for (const std::size_t column : *list) columns.count = std::max(columns.count, column + 1);
    }
  }
  return columns;
}

}  // namespace

std::optional<Fault> Cells::split(std::string_view line, char delimiter) {
  cells_.clear();
  unquoted_.clear();
  unquoted_.reserve(line.size());  // views into it stay good
  const char* p = line.data();
  const char* const end = p + line.size();
  for (;;) {
    if (p != end && *p == '"') {
      const auto column = static_cast<std::uint32_t>(cells_.size() + 1);
      const char* begin = ++p;
      const std::size_t copy_from = unquoted_.size();
      bool doubled = false;
      for (;;) {
        const auto* quote = static_cast<const char*>(std::memchr(p, '"', static_cast<std::size_t>(end - p)));
        if (quote == nullptr) {
          return Fault{kMalformed, column,
                       fmt::format("found {} without its closing quote, expected one on the same line",
                                   shown({begin - 1, static_cast<std::size_t>(end - begin + 1)}))};
        }
        p = quote + 1;
        if (p == end || *p != '"') break;
        unquoted_.append(begin, p);  // with one of the two quotes
        begin = ++p;
        doubled = true;
      }
      const auto size = static_cast<std::size_t>(p - 1 - begin);
      if (doubled) {
        unquoted_.append(begin, size);
        cells_.push_back(std::string_view(unquoted_).substr(copy_from));
      } else {
        cells_.emplace_back(begin, size);
      }
      if (p == end) return std::nullopt;
      if (*p != delimiter) {
        return Fault{kMalformed, column,
                     fmt::format("found {} after a closing quote, expected the delimiter or the end of the line",
                                 shown({p, static_cast<std::size_t>(end - p)}))};
      }
      ++p;
      continue;
    }
    const auto* stop =
        p == end ? nullptr : static_cast<const char*>(std::memchr(p, delimiter, static_cast<std::size_t>(end - p)));
    const char* cell_end = stop == nullptr ? end : stop;
    cells_.push_back(trimmed({p, static_cast<std::size_t>(cell_end - p)}));
    if (stop == nullptr) return std::nullopt;
    p = stop + 1;
  }
}

absl::StatusOr<CsvColumns> find_columns(const model::CsvMapping& mapping, const std::vector<std::string_view>& header) {
  return find_all(mapping, &header);
}

absl::StatusOr<CsvColumns> find_columns_without_header(const model::CsvMapping& mapping) {
  return find_all(mapping, nullptr);
}

}  // namespace orla::ingest
