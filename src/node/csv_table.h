// CSV as a table for people.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orla::node {

// Aligns columns by the first kSample lines; numbers to the right. Takes CSV in any pieces, writes lines as they come.
class CsvTable {
 public:
  static constexpr std::size_t kSample = 200;
  explicit CsvTable(std::function<void(std::string_view)> write) : write_(std::move(write)) {}
  void add(std::string_view piece);
  void finish();

 private:
  using Cells = std::vector<std::string>;
  void line(std::string_view text);
  void flush_sample();
  void print(const Cells& cells);

  std::function<void(std::string_view)> write_;
  std::string rest_;
  std::vector<Cells> sample_;
  std::vector<std::size_t> widths_;
  bool sampling_ = true;
};

}  // namespace orla::node
