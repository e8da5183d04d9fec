#include "node/csv_table.h"

#include <algorithm>

namespace orla::node {

namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        cells.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// Code points, so that columns line up.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void CsvTable::add(std::string_view piece) {
  rest_ += piece;
  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    line(std::string_view(rest_).substr(begin, end - begin));
    begin = end + 1;
  }
  rest_.erase(0, begin);
}

void CsvTable::line(std::string_view text) {
  Cells cells = split(text);
  if (!sampling_) return print(cells);
  sample_.push_back(std::move(cells));
  if (sample_.size() > kSample) flush_sample();
}

void CsvTable::flush_sample() {
  sampling_ = false;
  for (const Cells& cells : sample_) {
    if (widths_.size() < cells.size()) widths_.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], width_of(cells[i]));
  }
  for (const Cells& cells : sample_) print(cells);
  sample_.clear();
}

void CsvTable::print(const Cells& cells) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += "  ";
    const std::size_t width = width_of(cells[i]);
    if (i < widths_.size() && width < widths_[i]) out.append(widths_[i] - width, ' ');
    out += cells[i];
  }
  out += '\n';
  write_(out);
}

void CsvTable::finish() {
  if (!rest_.empty()) line(rest_);
  rest_.clear();
  if (sampling_ && !sample_.empty()) flush_sample();
}

}  // namespace orla::node
