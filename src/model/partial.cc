#include "model/partial.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orla::model {

namespace {
// Whether (time, value) a comes before b.
bool before(Time a_time, double a, Time b_time, double b) { return a_time != b_time ? a_time < b_time : a < b; }
}  // namespace

void Partial::add(Time time, double value, int decimals) {
  value += 0.0;  // -0.0 becomes 0.0
  sums.add(value, decimals);
  if (QuantileSketch* quantiles = sketches.quantiles()) quantiles->add(value);
  if (count++ == 0) {
    min = max = first = last = value;
    first_time = last_time = time;
    return;
  }
  if (value < min) min = value;
  if (value > max) max = value;
  if (before(time, value, first_time, first)) {
    first_time = time;
    first = value;
  }
  if (before(last_time, last, time, value)) {
    last_time = time;
    last = value;
  }
}

void Partial::add_contribution(double value) {
  value += 0.0;
  sums.add_binary(value);
  if (QuantileSketch* quantiles = sketches.quantiles()) quantiles->add(value);
  if (count++ == 0) {
    min = max = value;
    return;
  }
  if (value < min) min = value;
  if (value > max) max = value;
}

void Partial::merge(const Partial& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  sketches.merge(other.sketches);
  merge_sums(other);
}

void Partial::merge_sums(const Partial& other) {
  if (other.count == 0) return;
  if (count == 0) {
    count = other.count;
    sums = other.sums;
    min = other.min;
    max = other.max;
    first_time = other.first_time;
    first = other.first;
    last_time = other.last_time;
    last = other.last;
    return;
  }
  count += other.count;
  sums.merge(other.sums);
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  if (before(other.first_time, other.first, first_time, first)) {
    first_time = other.first_time;
    first = other.first;
  }
  if (before(last_time, last, other.last_time, other.last)) {
    last_time = other.last_time;
    last = other.last;
  }
}

bool operator==(const Partial& a, const Partial& b) {
  if (a.count != b.count) return false;
  if (a.count == 0) return true;
  return a.sums == b.sums && a.min == b.min && a.max == b.max && a.first_time == b.first_time && a.first == b.first &&
         a.last_time == b.last_time && a.last == b.last && a.sketches == b.sketches;
}

Statistics statistics(const Partial& partial, int decimals) {
  Statistics s;
  s.count = partial.count;
  s.sum = partial.sums.sum(decimals);
  s.min = partial.min;
  s.max = partial.max;
  s.mean = partial.sums.mean(decimals, partial.count);
  s.stddev = std::sqrt(partial.sums.variance(decimals, partial.count));
  s.first = partial.first;
  s.last = partial.last;
  if (const QuantileSketch* sketch = partial.sketches.quantiles(); sketch != nullptr && sketch->count() > 0) {
    const auto quantile = [&](std::uint32_t numerator, std::uint32_t denominator) {
      return std::clamp(sketch->at_rank(nearest_rank(sketch->count(), numerator, denominator)), s.min, s.max);
    };
    s.p50 = quantile(1, 2);
    s.p90 = quantile(9, 10);
    s.p99 = quantile(99, 100);
    s.p999 = quantile(999, 1000);
  }
  if (const DistinctSketch* sketch = partial.sketches.distinct()) s.distinct = sketch->estimate();
  return s;
}

double pick(const Partial& partial, int decimals, Statistic what) {
  switch (what) {
    case Statistic::kSum:
      return partial.sums.sum(decimals);
    case Statistic::kMin:
      return partial.min;
    case Statistic::kMax:
      return partial.max;
    case Statistic::kMean:
      return partial.sums.mean(decimals, partial.count);
    case Statistic::kLast:
      return partial.last;
  }
  return 0;
}

void canonicalize(PartialRows& rows) {
  const auto key = [](const PartialRow& row) { return std::pair(row.group, row.slice); };
  const auto less = [&](const PartialRow& a, const PartialRow& b) { return key(a) < key(b); };
  if (!std::is_sorted(rows.begin(), rows.end(), less)) std::sort(rows.begin(), rows.end(), less);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (kept > 0 && key(rows[kept - 1]) == key(rows[i])) {
      rows[kept - 1].partial.merge(rows[i].partial);
    } else {
      if (kept != i) rows[kept] = std::move(rows[i]);
      ++kept;
    }
  }
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end());
}

}  // namespace orla::model
