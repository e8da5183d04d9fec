#include "model/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace orla::model {
namespace {

using base::Int128;
using Big = boost::multiprecision::cpp_int;
using Ratio = boost::multiprecision::cpp_rational;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Big ten_to(int decimals) { return pow(Big(10), static_cast<unsigned>(decimals)); }

// A double, exactly.
Ratio exactly(double v) {
  int exponent = 0;
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(v, &exponent), 53));
  exponent -= 53;
  if (exponent >= 0) return Ratio(Big(mantissa) << static_cast<unsigned>(exponent));
  return Ratio(Big(mantissa), Big(1) << static_cast<unsigned>(-exponent));
}

// What a value counts as, by the formula of the header in plain double arithmetic.
Ratio counted(double v, int decimals) {
  const double power = std::pow(10.0, decimals);
  const double whole = std::round(v * power);
  if (std::fabs(whole) <= 0x1p53 && whole / power == v) return Ratio(Big(whole), ten_to(decimals));
  return exactly(v);
}

// Whether `rounded` is the nearest double to `exact`, the even one of two. Overflow starts half a step past the
// largest.
bool is_nearest(const Ratio& exact, double rounded) {
  const double largest = std::numeric_limits<double>::max();
  const Ratio limit = exactly(largest) + (exactly(largest) - exactly(std::nextafter(largest, 0))) / 2;
  if (std::isinf(rounded)) return rounded > 0 ? exact >= limit : exact <= -limit;
  if (exact >= limit || exact <= -limit) return false;
  if (std::signbit(rounded) && rounded == 0) return false;  // there is no -0.0
  const Ratio off = exact - exactly(rounded);
  if (off == 0) return true;
  const double neighbour = std::nextafter(rounded, off > 0 ? kInfinity : -kInfinity);
  if (std::isinf(neighbour)) return true;
  const Ratio distance = abs(off);
  const Ratio other = abs(Ratio(exact - exactly(neighbour)));
  const bool even = (std::bit_cast<std::uint64_t>(rounded) & 1) == 0;
  return distance < other || (distance == other && even);
}

void expect_statistics(const std::vector<double>& values, int decimals, const ExactSum& got) {
  Ratio sum, squares;
  for (const double v : values) {
    const Ratio x = counted(v, decimals);
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<std::uint64_t>(values.size());
  EXPECT_TRUE(is_nearest(sum, got.sum(decimals))) << got.sum(decimals);
  EXPECT_TRUE(is_nearest(squares, got.sum_of_squares(decimals))) << got.sum_of_squares(decimals);
  EXPECT_TRUE(is_nearest(sum / n, got.mean(decimals, n))) << got.mean(decimals, n);
  EXPECT_TRUE(is_nearest((squares * n - sum * sum) / n / n, got.variance(decimals, n))) << got.variance(decimals, n);
}

// Values of every kind that matter, by turns.
double any_value(base::Random& random, int decimals) {
  const auto sign = [&] { return random.below(2) == 0 ? 1.0 : -1.0; };
  const double power = std::pow(10.0, decimals);
  switch (random.below(9)) {
    case 0:
      return sign() * static_cast<double>(random.below(1'000'000)) / power;
    case 1:
      return sign() * static_cast<double>(random.below(std::uint64_t{1} << 53)) / power;
    case 2:
      return sign() * random.unit();
    case 3:
      return sign() * std::ldexp(random.unit(), static_cast<int>(random.below(2040)) - 1060);
    case 4:
      return sign() * std::bit_cast<double>(random.below(std::uint64_t{1} << 52));  // denormal
    case 5:
      return sign() * 1e300 * (1 + random.unit());
    case 6:
      return sign() * 0.0;
    case 7:
      return sign() * (0x1p53 + 2.0 * static_cast<double>(random.below(3)));
    default:
      return sign() * std::ldexp(1.0, static_cast<int>(random.below(2098)) - 1074);
  }
}

ExactSum sum_of(const std::vector<double>& values, int decimals) {
  ExactSum sum;
  for (const double v : values) sum.add(v, decimals);
  return sum;
}

TEST(AsDecimal, FollowsTheFormula) {
  EXPECT_EQ(as_decimal(0.1, 1), 1);
  EXPECT_EQ(as_decimal(-12.345, 3), -12345);
  EXPECT_EQ(as_decimal(-0.0, 3), 0);
  EXPECT_EQ(as_decimal(0.0001, 3), std::nullopt);
  EXPECT_EQ(as_decimal(0.1 + 0.2, 1), std::nullopt);
  EXPECT_EQ(as_decimal(0x1p53, 0), std::int64_t{1} << 53);
  EXPECT_EQ(as_decimal(-0x1p53, 0), -(std::int64_t{1} << 53));
  EXPECT_EQ(as_decimal(0x1p53 + 2, 0), std::nullopt);
  EXPECT_EQ(as_decimal(0x1p52 + 1, 0), (std::int64_t{1} << 52) + 1);
  EXPECT_EQ(as_decimal(1e300, 15), std::nullopt);
  EXPECT_EQ(as_decimal(1.7e308, 15), std::nullopt);
  EXPECT_EQ(as_decimal(5e-324, 15), std::nullopt);
  EXPECT_EQ(as_decimal(0.49999999999999994, 0), std::nullopt);
  EXPECT_EQ(as_decimal(0.5, 0), std::nullopt);
}

TEST(AsDecimal, AgreesWithRoundOnAnyDouble) {
  base::SeededRandom random(11);
  for (int i = 0; i < 200'000; ++i) {
    const int decimals = static_cast<int>(random.below(kMaxDecimals + 1));
    double v = any_value(random, decimals);
    if (i % 3 == 0) v = std::nextafter(v, i % 2 == 0 ? kInfinity : -kInfinity);
    if (i % 5 == 0) v = (static_cast<double>(random.below(1u << 30)) + 0.5) / std::pow(10.0, decimals);
    const double power = std::pow(10.0, decimals);
    const double whole = std::round(v * power);
    std::optional<std::int64_t> expected;
    if (std::fabs(whole) <= 0x1p53 && whole / power == v) expected = static_cast<std::int64_t>(whole);
    ASSERT_EQ(as_decimal(v, decimals), expected) << v << " with " << decimals << " decimals";
  }
}

TEST(ExactSum, HasTheValuesOfExactFractions) {
  struct Golden {  // computed with Python's fractions.Fraction and its correctly rounded conversion
    const char* name;
    int decimals;
    std::vector<double> values;
    double sum, squares, mean, variance;
  };
  const std::vector<Golden> goldens = {
      {"tenths", 1, std::vector<double>(10, 0.1), 0x1p+0, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x0p+0},
      {"watts",
       3,
       {0x1.8b0a3d70a3d71p+3, 0x0.0p+0, 0x1.4d476c8b43958p+9, -0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10,
        0x1.e847fff7ced91p+19},
       0x1.e89cdcdd2f1aap+19,
       0x1.d1a957a0a7eedp+39,
       0x1.45bde89374bc7p+17,
       0x1.02a16d68d0dc5p+37},
      {"large and small", 0, {1e300, 1.0, -1e300, 0x1p-1074}, 1.0, kInfinity, 0.25, kInfinity},
      {"denormals", 3, {5e-324, 5e-324, -1.5e-323}, -0x1p-1074, 0, 0, 0},
      {"overflow",
       3,
       {0x1.fffffffffffffp+1023, 0x1.fffffffffffffp+1023, 0x1.fffffffffffffp+1023},
       kInfinity,
       kInfinity,
       0x1.fffffffffffffp+1023,
       0},
      {"mixed",
       3,
       {0x1.f9adbb8f8da72p-4, 0x1.8p+0, -0x1.2p+1, 0x1.800000d6bf94dp+1, 0x1.6345785d8a000p+56},
       0x1.6345785d8a000p+56,
       0x1.ed09bead87c03p+112,
       0x1.1c37937e08000p+54,
       0x1.3b8b5b5056e17p+110},
      {"thirds",
       2,
       {0x1.5555555555555p-2, 0x1.5555555555555p-1, 0x1.51eb851eb851fp-2, -0x1.570a3d70a3d71p-1, 1.0},
       0x1.a8f5c28f5c28fp+0,
       0x1.0e826f51f72bcp+1,
       0x1.53f7ced916872p-2,
       0x1.3ff222afcebf0p-2},
      {"tiny",
       15,
       {0x1.999999999999ap-4, 0x1.999999999999ap-3, 0x1.3333333333333p-2, 0x1.203af9ee75616p-50, 0x1p-60},
       0x1.333333333333cp-1,
       0x1.1eb851eb851ecp-3,
       0x1.eb851eb851ec7p-4,
       0x1.bda5119ce0744p-7},
      {"big decimals", 0, {0x1p+53, 0x1p+53, 0x1p+0}, 0x1p+54, 0x1p+107, 0x1.5555555555556p+52, 0x1.c71c71c71c71bp+103},
      {"near ties",
       0,
       {0x1.0000000000001p+53, 0x1.0000000000001p+52, 0x1p-1, 0x1p-60},
       0x1.8000000000002p+53,
       0x1.4000000000003p+106,
       0x1.8000000000002p+51,
       0x1.6000000000002p+103},
  };
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    const ExactSum sum = sum_of(golden.values, golden.decimals);
    EXPECT_EQ(sum.sum(golden.decimals), golden.sum);
    EXPECT_EQ(sum.sum_of_squares(golden.decimals), golden.squares);
    EXPECT_EQ(sum.mean(golden.decimals, golden.values.size()), golden.mean);
    EXPECT_EQ(sum.variance(golden.decimals, golden.values.size()), golden.variance);
  }
}

TEST(ExactSum, IsRoundedOnceWhateverTheValues) {
  base::SeededRandom random(12);
  for (int round = 0; round < 300; ++round) {
    const int decimals = static_cast<int>(random.below(kMaxDecimals + 1));
    std::vector<double> values(1 + random.below(12));
    // Rounds of decimals alone take the fast paths.
    for (double& v : values)
      v = round % 3 == 0
              ? static_cast<double>(random.below(std::uint64_t{1} << (1 + random.below(53)))) / std::pow(10.0, decimals)
              : any_value(random, decimals);
    expect_statistics(values, decimals, sum_of(values, decimals));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(ExactSum, MeetsTiesAndTheirNeighbours) {
  // Sums on, just below and just above the middle of two doubles, through each path.
  for (const double big : {0x1p60, 0x1p60 + 0x1p8, 0x1p900}) {
    const double half = std::ldexp(1.0, std::ilogb(big) - 53);
    for (const double little : {0.0, 0x1p-40, -0x1p-40, 0x1p-1074, -0x1p-1074}) {
      const std::vector<double> values = {big, half, little};
      expect_statistics(values, 0, sum_of(values, 0));
    }
  }
  // Ties of decimals: whole numbers past 2^53, and quotients by 2 * 10^d.
  for (const std::int64_t odd : {1, 2, 3}) {
    const double top = 0x1p53;
    std::vector<double> values = {top, static_cast<double>(odd)};
    expect_statistics(values, 0, sum_of(values, 0));
    values.push_back(top);
    values.push_back(top);
    expect_statistics(values, 0, sum_of(values, 0));
  }
}

TEST(ExactSum, EveryOrderAndSplitGivesTheSameBytes) {
  base::SeededRandom random(13);
  for (int round = 0; round < 60; ++round) {
    const int decimals = static_cast<int>(random.below(5));
    std::vector<double> values(20);
    for (double& v : values) v = any_value(random, decimals);
    const ExactSum straight = sum_of(values, decimals);
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
    std::vector<ExactSum> parts(1 + random.below(6));
    for (const double v : values) parts[random.below(parts.size())].add(v, decimals);
    while (parts.size() > 1) {
      const std::size_t a = random.below(parts.size());
      ExactSum taken = std::move(parts[a]);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(a));
      parts[random.below(parts.size())].merge(taken);
    }
    EXPECT_TRUE(parts[0] == straight);
    EXPECT_EQ(parts[0].encode(), straight.encode());
    const absl::StatusOr<ExactSum> back = ExactSum::decode(straight.encode());
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(*back == straight);
  }
}

TEST(ExactSum, OverflowOf128BitsIsCarriedExactly) {
  // 2^63 times (2^53, then -2^53): doubling by merge. The squares pass 2^127 on the way: 2^64 * 2^106 = 2^170.
  ExactSum up, down;
  up.add_decimal(std::int64_t{1} << 53);
  down.add_decimal(-(std::int64_t{1} << 53));
  for (int i = 0; i < 63; ++i) {
    up.merge(ExactSum(up));
    down.merge(ExactSum(down));
  }
  EXPECT_EQ(up.sum(0), 0x1p116);
  EXPECT_EQ(up.sum_of_squares(0), 0x1p169);
  EXPECT_EQ(up.sum_of_squares(15), static_cast<double>(Ratio(Big(1) << 169, ten_to(30))));
  EXPECT_EQ(up.mean(0, std::uint64_t{1} << 63), 0x1p53);
  EXPECT_EQ(up.variance(0, std::uint64_t{1} << 63), 0);
  ExactSum both = up;
  both.merge(down);
  EXPECT_EQ(both.sum(0), 0);
  EXPECT_EQ(both.sum_of_squares(0), 0x1p170);
  EXPECT_TRUE(both.has_wide());

  // The same contents, met without and with an overflow of the sum on the way, are equal.
  const Int128 top = static_cast<Int128>((base::UInt128{1} << 127) - 1);
  ExactSum over = ExactSum::from_decimals(top, 5);
  over.add_decimal(7);
  EXPECT_TRUE(over.has_wide());
  EXPECT_EQ(over.sum(0), 0x1p127);
  over.add_decimal(-8);
  EXPECT_FALSE(over.has_wide());
  ExactSum never = ExactSum::from_decimals(top, 5);
  never.add_decimal(-8);
  never.add_decimal(7);
  EXPECT_TRUE(over == never);
  EXPECT_EQ(over.encode(), never.encode());
  ExactSum under = ExactSum::from_decimals(-top, 0);
  under.add_decimal(-3);
  EXPECT_TRUE(under.has_wide());
  EXPECT_EQ(under.sum(0), -0x1p127);
  under.merge(ExactSum::from_decimals(top, 0));
  EXPECT_EQ(under.sum(0), -3);
}

TEST(ExactSum, HugeCountsOfTheLargestAndSmallestDoubles) {
  const double largest = std::numeric_limits<double>::max();
  ExactSum sum;
  sum.add(largest, 3);
  for (int i = 0; i < 63; ++i) sum.merge(ExactSum(sum));
  EXPECT_EQ(sum.sum(3), kInfinity);
  EXPECT_EQ(sum.mean(3, std::uint64_t{1} << 63), largest);
  ExactSum negative;
  negative.add(-largest, 3);
  for (int i = 0; i < 63; ++i) negative.merge(ExactSum(negative));
  negative.add(0x1p-1074, 3);
  sum.merge(negative);
  EXPECT_EQ(sum.sum(3), 0x1p-1074);
  EXPECT_EQ(sum.sum_of_squares(3), kInfinity);

  ExactSum smallest;
  smallest.add(0x1p-1074, 3);
  for (int i = 0; i < 60; ++i) smallest.merge(ExactSum(smallest));
  EXPECT_EQ(smallest.sum(3), 0x1p-1014);
  EXPECT_EQ(smallest.sum_of_squares(3), 0);  // 2^-2088
}

TEST(ExactSum, BinaryContributionsKeepTheirBits) {
  ExactSum sum;
  sum.add_binary(0.1);
  sum.add_binary(0.2);
  EXPECT_TRUE(sum.has_wide());
  EXPECT_TRUE(is_nearest(exactly(0.1) + exactly(0.2), sum.sum(3)));
  EXPECT_EQ(sum.sum(3), 0.1 + 0.2);
  ExactSum zero;
  zero.add_binary(0.0);
  zero.add_binary(-0.0);
  EXPECT_TRUE(zero == ExactSum());
  EXPECT_EQ(zero.mean(3, 2), 0.0);
}

TEST(ExactSum, DecodeTakesOnlyWhatEncodeWrites) {
  base::SeededRandom random(14);
  std::vector<std::string> good;
  for (int i = 0; i < 20; ++i) {
    ExactSum sum;
    for (int k = 0; k < i; ++k) sum.add(any_value(random, 2), 2);
    good.push_back(sum.encode());
  }
  for (const std::string& bytes : good) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(ExactSum::decode(std::string_view(bytes).substr(0, size)).ok());
    EXPECT_FALSE(ExactSum::decode(bytes + std::string(1, '\0')).ok());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      std::string bad = bytes;
      bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
      const absl::StatusOr<ExactSum> read = ExactSum::decode(bad);
      if (read.ok()) {
        EXPECT_EQ(read->encode(), bad);
      }
    }
  }
  EXPECT_FALSE(ExactSum::decode(std::string("\x01\x00\x00\x00\x00\x00\x00\x00\x00", 9)).ok());  // a wide part of zero
}

TEST(ExactSum, CopiesAreIndependent) {
  ExactSum a;
  a.add(0.123456789, 1);
  ExactSum b = a;
  b.add(0.123456789, 1);
  EXPECT_FALSE(a == b);
  a.merge(a);
  EXPECT_TRUE(a == b);
  b = b;
  EXPECT_TRUE(a == b);
  ExactSum c = std::move(b);
  EXPECT_TRUE(a == c);
}

}  // namespace
}  // namespace orla::model
