// The cells of a CSV line, after RFC 4180 with any delimiter, and the columns that a mapping names.
//
// A cell in double quotes may hold the delimiter, and a doubled quote for a quote. It ends on its line: a line break
// inside quotes is refused, since else one stray quote would take the rows after it along. Spaces and tabs around a
// cell without quotes do not belong to it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ingest/batch_builder.h"
#include "model/fleet.h"

namespace orla::ingest {

// The cell without spaces and tabs around it.
inline std::string_view trimmed(std::string_view cell) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  if (cell.empty() || (cell.front() > ' ' && cell.back() > ' ')) return cell;  // as nearly always
  while (!cell.empty() && blank(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && blank(cell.back())) cell.remove_suffix(1);
  return cell;
}

// Reused from line to line. Not thread-safe.
class Cells {
 public:
  // Splits `line` (without its end), which must live as long as the cells are looked at. On a fault the cells mean
  // nothing.
  std::optional<Fault> split(std::string_view line, char delimiter);
  std::size_t size() const { return cells_.size(); }
  std::string_view operator[](std::size_t i) const { return cells_[i]; }
  const std::vector<std::string_view>& all() const { return cells_; }

 private:
  std::vector<std::string_view> cells_;
  std::string unquoted_;  // contents of cells with doubled quotes
};

// Where a mapping's columns are, counted from 0.
struct CsvColumns {
  std::vector<std::size_t> time;  // several are joined by one space
  std::vector<std::size_t> labels;
  std::vector<std::size_t> values;
  std::size_t count = 0;  // with a header: of every row; without: at least, of every row
};

// A column is named by its text in the header, else by its number, from 1. The time may be in several columns,
// "Date+Time". All that are missing are reported at once.
absl::StatusOr<CsvColumns> find_columns(const model::CsvMapping& mapping, const std::vector<std::string_view>& header);
absl::StatusOr<CsvColumns> find_columns_without_header(const model::CsvMapping& mapping);

}  // namespace orla::ingest
