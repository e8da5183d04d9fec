// What the edge's engine does to the samples of a run, many at a time. Of each kernel there is a version for every
// instruction set that Highway knows, chosen when the program runs; all give the same results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/batch.h"
#include "model/time.h"

namespace orla::stream {

// Stands in a column of decimals for a value that is none, or whose integer does not fit.
inline constexpr std::int32_t kNoDecimal = INT32_MIN;

// out[i] = round(values[i] * 10^decimals) where values[i] counts as that decimal (see model/exact_sum.h) and it fits
// above kNoDecimal; else kNoDecimal. out.size() >= values.size(); decimals in 0..model::kMaxDecimals.
void to_decimals(std::span<const double> values, int decimals, std::span<std::int32_t> out);

// keys[i] = model::quantile_key(scaled[i] / 10^decimals). keys.size() >= scaled.size().
void quantile_keys(std::span<const std::int32_t> scaled, int decimals, std::span<std::int32_t> keys);

struct RunSummary {
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
  std::int32_t min = 0;
  std::int32_t max = 0;
};

// Magnitudes below it and so many of them have sums of squares below 2^64.
inline constexpr std::int64_t kSummableMagnitude = std::int64_t{1} << 26;
inline constexpr std::size_t kMaxSummable = 2048;

// 0 < values.size() <= kMaxSummable. `squares` means something when min and max lie within +-kSummableMagnitude.
RunSummary summarize(std::span<const std::int32_t> values);

struct RunsSummary {
  bool in_place = true;       // each begins where the one before ends, the first at 0, and none ends before it begins
  std::uint32_t largest = 0;  // number of a series; 0: there is no run
};
RunsSummary look_over(std::span<const model::Batch::Run> runs);

// Whether every time is later than the one before, by at most max_gap.
bool rises(std::span<const model::Time> times, model::Duration max_gap);

}  // namespace orla::stream
