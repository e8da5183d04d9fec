#include "verify/exact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace orla::verify {
namespace {

constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(DecimalOf, TakesWhatLooksLikeADecimal) {
  EXPECT_EQ(decimal_of(0.1, 1), 1);
  EXPECT_EQ(decimal_of(0.1, 3), 100);
  EXPECT_EQ(decimal_of(-12.345, 3), -12345);
  EXPECT_EQ(decimal_of(0, 3), 0);
  EXPECT_EQ(decimal_of(-0.0, 3), 0);
  EXPECT_EQ(decimal_of(0.0005, 3), std::nullopt);
  EXPECT_EQ(decimal_of(1.0 / 3, 15), std::nullopt);
  EXPECT_EQ(decimal_of(0x1p53, 0), std::int64_t{1} << 53);
  EXPECT_EQ(decimal_of(0x1p53 + 2, 0), std::nullopt);
  EXPECT_EQ(decimal_of(1e300, 3), std::nullopt);
  EXPECT_EQ(decimal_of(kMost, 15), std::nullopt);
  EXPECT_EQ(decimal_of(kLeast, 15), std::nullopt);
}

Total decimals(const std::vector<std::int64_t>& scaled) {
  Total total;
  for (const std::int64_t s : scaled) total.add_decimal(s);
  return total;
}

Total doubles(const std::vector<double>& values) {
  Total total;
  for (const double v : values) total.add_double(v);
  return total;
}

TEST(Total, DecimalsAreExact) {
  // 0.1 + 0.2 = 0.3, which binary sums miss; mean 0.15; deviation 0.05.
  const Total total = decimals({1, 2});
  EXPECT_EQ(total.sum(1), 0.3);
  EXPECT_EQ(total.mean(1, 2), 0.15);
  EXPECT_EQ(total.stddev(1, 2), 0.05);
}

TEST(Total, ATextbookDeviation) {
  // 2 4 4 4 5 5 7 9: mean 5, population deviation 2.
  const std::vector<std::int64_t> values = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_EQ(decimals(values).mean(0, 8), 5);
  EXPECT_EQ(decimals(values).stddev(0, 8), 2);
  const Total same = doubles({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(same.sum(0), 40);
  EXPECT_EQ(same.mean(0, 8), 5);
  EXPECT_EQ(same.stddev(0, 8), 2);
}

TEST(Total, CancellationLeavesTheSmallNumber) {
  EXPECT_EQ(doubles({1e300, 1, -1e300}).sum(0), 1);
  EXPECT_EQ(doubles({kMost, kLeast, -kMost}).sum(0), kLeast);
  EXPECT_EQ(doubles({kMost, kMost, -kMost}).sum(0), kMost);
  EXPECT_EQ(doubles({kMost, kMost, -kMost, -kMost}).sum(0), 0);
}

TEST(Total, OverflowIsInfinite) {
  EXPECT_EQ(doubles({kMost, kMost}).sum(0), kInfinity);
  EXPECT_EQ(doubles({-kMost, -kMost}).sum(0), -kInfinity);
  EXPECT_EQ(doubles({kMost, kMost}).mean(0, 2), kMost);
  EXPECT_EQ(doubles({kMost, -kMost}).stddev(0, 2), kInfinity);  // the variance is not a double
}

TEST(Total, RoundsOnceToEven) {
  EXPECT_EQ(doubles({0x1p53, 1}).sum(0), 0x1p53);              // a tie, to even
  EXPECT_EQ(doubles({0x1p53 + 2, 1}).sum(0), 0x1p53 + 4);      // a tie, to even
  EXPECT_EQ(doubles({0x1p53, 1, kLeast}).sum(0), 0x1p53 + 2);  // just above the tie
  EXPECT_EQ(doubles({-0x1p53, -1, -kLeast}).sum(0), -(0x1p53 + 2));
  EXPECT_EQ(decimals({(std::int64_t{1} << 53), 1}).sum(0), 0x1p53);
  EXPECT_EQ(decimals({(std::int64_t{1} << 53), 3}).sum(0), 0x1p53 + 4);
}

TEST(Total, SubnormalResults) {
  EXPECT_EQ(doubles({kLeast, kLeast}).mean(0, 2), kLeast);
  EXPECT_EQ(doubles({kLeast, 0}).mean(0, 2), 0);  // half of the least: a tie, to even
  EXPECT_EQ(doubles({kLeast, kLeast, kLeast}).mean(0, 4), kLeast);
  EXPECT_EQ(doubles({3 * kLeast, 0}).mean(0, 2), 2 * kLeast);  // 1.5: a tie, to even
  EXPECT_EQ(doubles({kLeast}).mean(0, 3), 0);
  EXPECT_EQ(doubles({0x1p-1022, -kLeast}).sum(0), 0x1p-1022 - kLeast);
}

TEST(Total, DecimalsAndDoublesMix) {
  // 0.5 as a decimal of one place and 0.25 as a double, exactly 0.75.
  Total total = decimals({5});
  total.add_double(0.25);
  EXPECT_EQ(total.sum(1), 0.75);
  EXPECT_EQ(total.mean(1, 2), 0.375);
  EXPECT_EQ(total.stddev(1, 2), 0.125);
  // 1/10 is no double: what is left of 0.1 (decimal) minus the double 0.1 is its error, -0x1.999999999999ap-4 + 1/10.
  Total error = decimals({1});
  error.add_double(-0.1);
  EXPECT_EQ(error.sum(1), -0x1.999999999999ap-58);
}

TEST(Total, ThirdsAreRoundedOnce) {
  EXPECT_EQ(decimals({1, 0, 0}).mean(0, 3), 1.0 / 3);
  EXPECT_EQ(doubles({1, 0, 0}).mean(0, 3), 1.0 / 3);
  EXPECT_EQ(decimals({1, 0, 0}).stddev(0, 3), std::sqrt(2.0 / 9));
  // A denominator beyond 2^53: 1 / (10^15 * 3 * 10^6).
  EXPECT_EQ(decimals({1}).mean(15, 3'000'000), 1 / 3e21);
}

TEST(Total, ManyLargeDecimalsGoBeyond128Bits) {
  Total total;
  const std::int64_t most = std::int64_t{1} << 53;
  const std::uint64_t n = 3'000'000;  // the squares add up to 3e6 * 2^106 > 2^127
  for (std::uint64_t i = 0; i < n; ++i) total.add_decimal(most);
  EXPECT_EQ(total.mean(0, n), 0x1p53);
  EXPECT_EQ(total.stddev(0, n), 0);
  EXPECT_EQ(total.sum(0), 0x1p53 * static_cast<double>(n));
}

}  // namespace
}  // namespace orla::verify
