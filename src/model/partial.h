// The mergeable summary of some samples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/exact_sum.h"
#include "model/series.h"
#include "model/sketches.h"
#include "model/time.h"

namespace orla::model {

// A value. count == 0 means empty, and then nothing else is meaningful. Merging is commutative and associative:
// the same samples give equal Partials whatever their order and split. -0.0 counts as 0.0 everywhere.
struct Partial {
  std::uint64_t count = 0;
  Sketches sketches;  // of the kinds that the rollup asks for
  ExactSum sums;
  double min = 0;
  double max = 0;
  Time first_time{};  // the least (time, value)
  double first = 0;
  Time last_time{};  // the greatest (time, value)
  double last = 0;

  // value finite. A distinct count is of series, and not of samples: that sketch is left as it is.
  void add(Time time, double value, int decimals);
  // A contribution of an across-series rollup: exact as binary64; first and last stay meaningless.
  void add_contribution(double value);
  void merge(const Partial& other);
  // All but the sketches, which stay as they are.
  void merge_sums(const Partial& other);
  friend bool operator==(const Partial& a, const Partial& b);
};

// What is shown of a Partial, each rounded once.
struct Statistics {
  std::uint64_t count = 0;
  double sum = 0, min = 0, max = 0, mean = 0, stddev = 0, first = 0, last = 0;
  std::optional<double> p50 = {}, p90 = {}, p99 = {}, p999 = {};  // with a quantile sketch
  std::optional<std::uint64_t> distinct = {};                     // with a distinct sketch
};
// partial.count > 0.
Statistics statistics(const Partial& partial, int decimals);

enum class Statistic : std::uint8_t { kSum, kMin, kMax, kMean, kLast };
// partial.count > 0. The value an across-series rollup takes from one series.
double pick(const Partial& partial, int decimals, Statistic what);

// One cell of a rollup. `slice` is the slice's start.
struct PartialRow {
  GroupId group{};
  Time slice{};
  Partial partial;
  friend bool operator==(const PartialRow&, const PartialRow&) = default;
};

// Ordered by (group, slice), each pair once: the canonical form of a chunk's or frame's content.
using PartialRows = std::vector<PartialRow>;

// Sorts, and merges rows of one (group, slice).
void canonicalize(PartialRows& rows);

}  // namespace orla::model
