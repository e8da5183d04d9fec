// The windows of one table and one kind, as the oracle fills them.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "model/partial.h"
#include "model/series.h"
#include "model/time.h"
#include "verify/calendar.h"
#include "verify/exact.h"

namespace orla::verify {

// What one window of one group holds.
struct Cell {
  std::uint32_t group = 0;
  Interval window;
  std::uint64_t count = 0;
  Total total;
  double min = 0, max = 0;
  model::Time first_time{}, last_time{};  // of samples; contributions have no order
  double first = 0, last = 0;
  // Of rollups with sketches only: all values, and what is counted once.
  std::vector<double> values;
  std::set<std::string> things;

  // `decimal` is decimal_of(value); value is not -0.0.
  void add_sample(model::Time time, double value, std::optional<std::int64_t> decimal);
  void add_contribution(double value);
  // count > 0.
  model::Statistics statistics(int decimals) const;
  // The value an across-series rollup reads.
  double pick(int decimals, model::Statistic what) const;

 private:
  void widen(double value);
};

// Groups are numbered; a group is the values of its labels.
class Groups {
 public:
  std::uint32_t number(const std::vector<model::Label>& labels);
  const std::uint32_t* find(const std::vector<model::Label>& labels) const;
  const std::vector<model::Label>& labels(std::uint32_t group) const { return labels_[group]; }
  std::size_t size() const { return labels_.size(); }

 private:
  static std::string key(const std::vector<model::Label>& labels);
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  std::vector<std::vector<model::Label>> labels_;
};

// Not thread-safe. Cells stay where they are.
class Sheet {
 public:
  // The cell of the group for this window, made if need be.
  Cell& cell(std::uint32_t group, const Interval& window);
  // Its number in order of creation, or -1.
  std::ptrdiff_t find(std::uint32_t group, model::Time start) const;
  const std::deque<Cell>& cells() const { return cells_; }

 private:
  absl::flat_hash_map<std::pair<std::uint32_t, std::int64_t>, std::size_t> places_;
  std::deque<Cell> cells_;
};

}  // namespace orla::verify
