#include "stream/run_kernels.h"

#include <algorithm>
#include <cstddef>

#include "model/exact_sum.h"
#include "model/power_of_ten.h"
#include "model/quantile_sketch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stream/run_kernels.cc"
#include "hwy/foreach_target.h"  // compiles what is between HWY_BEFORE_NAMESPACE and HWY_ONCE for each instruction set
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace orla::stream::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

std::int32_t to_decimal(double value, int decimals) {
  const auto decimal = model::as_decimal(value, decimals);
  return decimal && *decimal > INT32_MIN && *decimal <= INT32_MAX ? static_cast<std::int32_t>(*decimal) : kNoDecimal;
}

// Halves go away from zero, as in as_decimal(); which way an inexact product goes does not matter: at most one integer
// so small divides back to the value.
void ToDecimals(const double* values, std::size_t count, int decimals, std::int32_t* out) {
  std::size_t i = 0;
#if HWY_HAVE_FLOAT64
  const hn::ScalableTag<double> d;
  const hn::Rebind<std::int32_t, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  const auto power = hn::Set(d, model::power_of_ten(decimals));
  const auto half = hn::Set(d, 0.5);
  const auto bound = hn::Set(d, 2147483647.5);
  const auto none = hn::Set(d, -2147483648.0);
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, values + i);
    const auto scaled = hn::Mul(value, power);
    const auto whole = hn::Trunc(hn::Add(scaled, hn::CopySign(half, scaled)));
    const auto fits = hn::Lt(hn::Abs(scaled), bound);  // false for NaN
    const auto same = hn::And(fits, hn::Eq(hn::Div(whole, power), value));
    hn::StoreU(hn::DemoteTo(narrow, hn::IfThenElse(same, whole, none)), narrow, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = to_decimal(values[i], decimals);
}

void QuantileKeys(const std::int32_t* scaled, std::size_t count, double unit, std::int32_t* keys) {
  std::size_t i = 0;
#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<double> d;
  const hn::Rebind<std::int32_t, decltype(d)> narrow;
  const hn::Rebind<std::uint32_t, decltype(d)> narrow_bits;
  const hn::RebindToUnsigned<decltype(d)> wide_bits;
  const std::size_t lanes = hn::Lanes(d);
  const auto units = hn::Set(d, unit);
  for (; i + lanes <= count; i += lanes) {
    const auto whole = hn::LoadU(narrow, scaled + i);
    const auto value = hn::Abs(hn::Div(hn::PromoteTo(d, whole), units));
    const auto top = hn::ShiftRight<45>(hn::BitCast(wide_bits, value));
    const auto key = hn::BitCast(narrow, hn::TruncateTo(narrow_bits, top));
    const auto sign = hn::ShiftRight<31>(whole);
    hn::StoreU(hn::Sub(hn::Xor(key, sign), sign), narrow, keys + i);
  }
#endif
  for (; i < count; ++i) keys[i] = model::quantile_key(scaled[i] / unit);
}

RunSummary Summarize(const std::int32_t* values, std::size_t count) {
  RunSummary out;
  out.min = out.max = values[0];
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::int32_t> d;
  const hn::Repartition<std::int64_t, decltype(d)> wide;
  const hn::Repartition<std::uint64_t, decltype(d)> wide_bits;
  const std::size_t lanes = hn::Lanes(d);
  if (count >= lanes) {
    auto min = hn::LoadU(d, values);
    auto max = min;
    // Sums of the values with the sign turned over: 2^31 more than each, and never below 0.
    auto sums = hn::Zero(wide_bits);
    auto squares = hn::Zero(wide);
    const auto sign = hn::Set(d, INT32_MIN);
    const auto low = hn::Set(wide_bits, 0xffffffff);
    for (; i + lanes <= count; i += lanes) {
      const auto v = hn::LoadU(d, values + i);
      min = hn::Min(min, v);
      max = hn::Max(max, v);
      const auto bits = hn::BitCast(wide_bits, hn::Xor(v, sign));
      sums = hn::Add(sums, hn::Add(hn::And(bits, low), hn::ShiftRight<32>(bits)));
      const auto odd = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide_bits, v)));
      squares = hn::Add(squares, hn::Add(hn::MulEven(v, v), hn::MulEven(odd, odd)));
    }
    out.min = hn::GetLane(hn::MinOfLanes(d, min));
    out.max = hn::GetLane(hn::MaxOfLanes(d, max));
    out.sum = static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(wide_bits, sums))) -
              static_cast<std::int64_t>(i) * (std::int64_t{1} << 31);
    // Modulo 2^64, as unsigned numbers: the sum of signed lanes must not overflow.
    HWY_ALIGN std::uint64_t parts[hn::MaxLanes(wide_bits)];
    hn::Store(hn::BitCast(wide_bits, squares), wide_bits, parts);
    for (std::size_t lane = 0; lane < hn::Lanes(wide_bits); ++lane) out.squares += parts[lane];
  }
#endif
  for (; i < count; ++i) {
    const std::int64_t v = values[i];
    out.min = std::min(out.min, values[i]);
    out.max = std::max(out.max, values[i]);
    out.sum += v;
    out.squares += static_cast<std::uint64_t>(v * v);
  }
  return out;
}

// runs: of each its series, begin and end.
RunsSummary LookOver(const std::uint32_t* runs, std::size_t count) {
  RunsSummary out;
  if (count == 0) return out;
  std::uint32_t wrong = runs[1] | static_cast<std::uint32_t>(runs[2] < runs[1]);
  out.largest = runs[0];
  std::size_t i = 1;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  if (count > lanes) {
    auto largest = hn::Zero(d);
    auto gaps = hn::Zero(d);
    for (; i + lanes <= count; i += lanes) {
      auto series = hn::Undefined(d);
      auto begin = hn::Undefined(d);
      auto end = hn::Undefined(d);
      auto end_before = hn::Undefined(d);
      auto series_again = hn::Undefined(d);
      auto begin_again = hn::Undefined(d);
      hn::LoadInterleaved3(d, runs + 3 * i, series, begin, end);
      hn::LoadInterleaved3(d, runs + 3 * i - 1, end_before, series_again, begin_again);
      largest = hn::Max(largest, series);
      gaps = hn::Or(gaps, hn::Or(hn::Xor(begin, end_before), hn::Xor(hn::Max(begin, end), end)));
    }
    out.largest = std::max(out.largest, hn::GetLane(hn::MaxOfLanes(d, largest)));
    if (!hn::AllTrue(d, hn::Eq(gaps, hn::Zero(d)))) wrong = 1;
  }
#endif
  for (; i < count; ++i) {
    const std::uint32_t* const run = runs + 3 * i;
    wrong |= (run[1] ^ run[-1]) | static_cast<std::uint32_t>(run[2] < run[1]);
    out.largest = std::max(out.largest, run[0]);
  }
  out.in_place = wrong == 0;
  return out;
}

bool Rises(const std::int64_t* times, std::size_t count, std::int64_t max_gap) {
  const hn::ScalableTag<std::int64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if (count > lanes) {
    const auto zero = hn::Zero(d);
    const auto most = hn::Set(d, max_gap);
    auto right = hn::Eq(zero, zero);
    for (; i + lanes < count; i += lanes) {
      const auto before = hn::LoadU(d, times + i);
      const auto after = hn::LoadU(d, times + i + 1);
      const auto gap = hn::Sub(after, before);  // of 2^63 and more below 0
      right = hn::And(right, hn::And(hn::Gt(after, before), hn::Gt(gap, zero)));
      right = hn::And(right, hn::Not(hn::Gt(gap, most)));
    }
    if (!hn::AllTrue(d, right)) return false;
  }
  for (; i + 1 < count; ++i) {
    std::int64_t gap = 0;
    if (__builtin_sub_overflow(times[i + 1], times[i], &gap) || gap <= 0 || gap > max_gap) return false;
  }
  return true;
}

}  // namespace orla::stream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::stream {

HWY_EXPORT(ToDecimals);
HWY_EXPORT(QuantileKeys);
HWY_EXPORT(Summarize);
HWY_EXPORT(LookOver);
HWY_EXPORT(Rises);

void to_decimals(std::span<const double> values, int decimals, std::span<std::int32_t> out) {
  HWY_DYNAMIC_DISPATCH(ToDecimals)(values.data(), values.size(), decimals, out.data());
}

void quantile_keys(std::span<const std::int32_t> scaled, int decimals, std::span<std::int32_t> keys) {
  HWY_DYNAMIC_DISPATCH(QuantileKeys)(scaled.data(), scaled.size(), model::power_of_ten(decimals), keys.data());
}

RunSummary summarize(std::span<const std::int32_t> values) {
  return HWY_DYNAMIC_DISPATCH(Summarize)(values.data(), values.size());
}

RunsSummary look_over(std::span<const model::Batch::Run> runs) {
  using Run = model::Batch::Run;
  static_assert(sizeof(Run) == 12 && offsetof(Run, begin) == 4 && offsetof(Run, end) == 8 &&
                sizeof(model::SeriesId) == 4);
  return HWY_DYNAMIC_DISPATCH(LookOver)(reinterpret_cast<const std::uint32_t*>(runs.data()), runs.size());
}

bool rises(std::span<const model::Time> times, model::Duration max_gap) {
  static_assert(sizeof(model::Time) == sizeof(std::int64_t));
  return HWY_DYNAMIC_DISPATCH(Rises)(reinterpret_cast<const std::int64_t*>(times.data()), times.size(),
                                     max_gap.count());
}

}  // namespace orla::stream
#endif  // HWY_ONCE
