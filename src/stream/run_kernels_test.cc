#include "stream/run_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hwy/targets.h"
#include "model/exact_sum.h"
#include "model/power_of_ten.h"
#include "model/quantile_sketch.h"

namespace orla::stream {
namespace {

using model::Duration;
using model::from_ns;
using model::Time;

// Each test runs with every instruction set that this machine has.
class RunKernels : public testing::TestWithParam<std::int64_t> {
 protected:
  RunKernels() { hwy::GetChosenTarget().Update(GetParam()); }
  ~RunKernels() override { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
  std::mt19937_64 random_{7};
};

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> all;
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) all.push_back(left & -left);
  return all;
}

std::int32_t expected(double value, int decimals) {
  const auto decimal = model::as_decimal(value, decimals);
  if (!decimal || *decimal <= INT32_MIN || *decimal > INT32_MAX) return kNoDecimal;
  return static_cast<std::int32_t>(*decimal);
}

TEST_P(RunKernels, RunsAreLookedOver) {
  using model::Batch;
  EXPECT_TRUE(look_over({}).in_place);
  for (std::size_t count = 1; count < 60; ++count) {
    std::vector<Batch::Run> runs;
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto series = static_cast<std::uint32_t>(random_());
      const std::uint32_t begin = runs.empty() ? 0 : runs.back().end;
      runs.push_back({model::SeriesId{series}, begin, begin + static_cast<std::uint32_t>(random_() % 3)});
      largest = std::max(largest, series);
    }
    EXPECT_TRUE(look_over(runs).in_place);
    EXPECT_EQ(look_over(runs).largest, largest);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Batch::Run> other = runs;
      ++other[i].begin;
      EXPECT_FALSE(look_over(other).in_place) << i << " of " << count;
      other = runs;
      other[i].end = other[i].begin - 1;
      EXPECT_EQ(look_over(other).in_place, i + 1 == count && other[i].begin == 0) << i << " of " << count;
    }
  }
}

TEST_P(RunKernels, DecimalsAreThoseOfTheExactSum) {
  std::vector<double> odd = {0.0,
                             -0.0,
                             0.5,
                             -0.5,
                             2.5,
                             1e300,
                             -1e300,
                             5e-324,
                             2147483647,
                             2147483648,
                             -2147483647,
                             -2147483648.,
                             1e15,
                             0.1,
                             0.3,
                             -12.345,
                             2147483.647,
                             2147483.648,
                             -2147483.648,
                             1.0005,
                             std::nextafter(0.1, 1),
                             1.0 / 3,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  for (int decimals = 0; decimals <= model::kMaxDecimals; ++decimals) {
    std::vector<double> values = odd;
    for (int i = 0; i < 3000; ++i) {
      const auto whole = static_cast<double>(static_cast<std::int32_t>(random_()) >> (random_() % 32));
      double value = whole / std::pow(10, decimals);
      if (random_() % 4 == 0) value = std::nextafter(value, random_() % 2 == 0 ? 1e9 : -1e9);
      if (random_() % 8 == 0) value = (whole + 0.5) / std::pow(10, decimals);
      values.push_back(value);
    }
    std::vector<std::int32_t> out(values.size());
    to_decimals(values, decimals, out);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(out[i], expected(values[i], decimals)) << values[i] << " with decimals " << decimals;
  }
}

TEST_P(RunKernels, QuantileKeysAreThoseOfTheValues) {
  for (int decimals = 0; decimals <= model::kMaxDecimals; ++decimals) {
    std::vector<std::int32_t> scaled = {0, 1, -1, INT32_MAX, -INT32_MAX, 64, -64, 1 << 20};
    for (int i = 0; i < 1000 + decimals; ++i)
      scaled.push_back(static_cast<std::int32_t>(random_()) >> (random_() % 32));
    std::vector<std::int32_t> keys(scaled.size());
    quantile_keys(scaled, decimals, keys);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      ASSERT_EQ(keys[i], model::quantile_key(scaled[i] / model::power_of_ten(decimals)))
          << scaled[i] << " " << decimals;
  }
}

TEST_P(RunKernels, SummariesOfEveryLength) {
  for (std::size_t count = 1; count <= 300; ++count) {
    std::vector<std::int32_t> values(count);
    const auto range = static_cast<std::int64_t>(random_() % kSummableMagnitude) + 1;
    RunSummary right;
    right.min = INT32_MAX;
    right.max = INT32_MIN;
    for (std::int32_t& v : values) {
      v = static_cast<std::int32_t>(static_cast<std::int64_t>(random_() % (2 * range)) - range);
      right.sum += v;
      right.squares += static_cast<std::uint64_t>(std::int64_t{v} * v);
      right.min = std::min(right.min, v);
      right.max = std::max(right.max, v);
    }
    const RunSummary got = summarize(values);
    ASSERT_EQ(got.sum, right.sum);
    ASSERT_EQ(got.squares, right.squares);
    ASSERT_EQ(got.min, right.min);
    ASSERT_EQ(got.max, right.max);
  }
}

TEST_P(RunKernels, TheLargestSumsFit) {
  const std::vector<std::int32_t> low(kMaxSummable, -kSummableMagnitude);
  EXPECT_EQ(summarize(low).sum, -kSummableMagnitude * static_cast<std::int64_t>(kMaxSummable));
  EXPECT_EQ(summarize(low).squares, std::uint64_t{1} << (26 + 26 + 11));
  const std::vector<std::int32_t> widest(kMaxSummable, INT32_MAX);
  EXPECT_EQ(summarize(widest).sum, std::int64_t{INT32_MAX} * static_cast<std::int64_t>(kMaxSummable));
  EXPECT_EQ(summarize(widest).max, INT32_MAX);
  std::vector<std::int32_t> hole(100, 5);
  hole[57] = kNoDecimal;
  EXPECT_EQ(summarize(hole).min, kNoDecimal);
}

TEST_P(RunKernels, TimesRiseWithoutALargeGap) {
  for (std::size_t count = 0; count <= 40; ++count) {
    std::vector<Time> times;
    for (std::size_t i = 0; i < count; ++i) times.push_back(from_ns(static_cast<std::int64_t>(i) * 10 - 100));
    EXPECT_TRUE(rises(times, Duration(10))) << count;
    EXPECT_TRUE(rises(times, Duration::max()));
    EXPECT_EQ(rises(times, Duration(9)), count < 2);
    for (std::size_t wrong = 1; wrong < count; ++wrong) {
      std::vector<Time> other = times;
      other[wrong] = other[wrong - 1];
      EXPECT_FALSE(rises(other, Duration::max())) << wrong << " of " << count;
      other[wrong] += Duration(1);
      EXPECT_EQ(rises(other, Duration(18)), wrong + 1 == count) << wrong << " of " << count;
      EXPECT_TRUE(rises(other, Duration(19)));
    }
  }
}

TEST_P(RunKernels, TimesThatFallDoNotRiseByWrapping) {
  for (std::size_t at = 0; at < 9; ++at) {
    std::vector<Time> times;
    for (std::size_t i = 0; i < 10; ++i) times.push_back(from_ns(static_cast<std::int64_t>(i)));
    times[at] = from_ns(INT64_MAX - 5);
    times[at + 1] = from_ns(INT64_MIN + 5);
    EXPECT_FALSE(rises(times, Duration::max())) << at;
    EXPECT_FALSE(rises(std::vector<Time>{from_ns(INT64_MIN + 5), from_ns(INT64_MAX - 5)}, Duration::max()));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, RunKernels, testing::ValuesIn(targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace orla::stream
