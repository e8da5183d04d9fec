#include "ingest/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/random.h"
#include "model/batch.h"

namespace orla::ingest {
namespace {

TEST(ParseNumber, Numbers) {
  struct Case {
    const char* text;
    double value;
  };
  const Case cases[] = {{"0", 0},
                        {"-12.5", -12.5},
                        {"+3", 3},
                        {"+.5", 0.5},
                        {"5.", 5},
                        {"007", 7},
                        {"1e3", 1000},
                        {"2.5E-1", 0.25},
                        {"0.1", 0.1},
                        {"173.86", 173.86},
                        {"9007199254740993", 9007199254740992.0},  // a tie, to even
                        {"123456789012345678", 123456789012345680.0},
                        {"1.7976931348623157e308", std::numeric_limits<double>::max()},
                        {"4.9406564584124654e-324", std::numeric_limits<double>::denorm_min()},
                        {"1e-400", 0}};
  for (const Case& c : cases) {
    double value = -1;
    EXPECT_EQ(parse_number(c.text, value), Parsed::kNumber) << c.text;
    EXPECT_EQ(value, c.value) << c.text;
  }
  double zero = 1;
  EXPECT_EQ(parse_number("-0", zero), Parsed::kNumber);
  EXPECT_TRUE(std::signbit(zero));
}

TEST(ParseNumber, WhatIsNotFinite) {
  for (const char* text : {"nan", "NaN", "-nan", "inf", "-INF", "+inf", "Infinity", "1e309", "-1e999"}) {
    double value = 0;
    EXPECT_EQ(parse_number(text, value), Parsed::kNotFinite) << text;
  }
}

TEST(ParseNumber, WhatIsNoNumber) {
  for (const char* text : {"", "+", "-", ".", "+-1", "--1", " 1", "1 ", "1,5", "1_000", "0x10", "1e", "1e+", "e5",
                           "abc", "1.2.3", "12W", "nano", "++1"}) {
    double value = 0;
    EXPECT_EQ(parse_number(text, value), Parsed::kNone) << text;
  }
}

TEST(ParseUnsigned, DigitsAloneWithinTheBound) {
  std::uint64_t value = 0;
  EXPECT_TRUE(parse_unsigned("18446744073709551615", UINT64_MAX, value));
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_FALSE(parse_unsigned("18446744073709551616", UINT64_MAX, value));
  EXPECT_TRUE(parse_unsigned("0007", 7, value));
  EXPECT_EQ(value, 7U);
  EXPECT_FALSE(parse_unsigned("8", 7, value));
  for (const char* text : {"", "-1", "+1", "1.0", " 1", "1 ", "a", "1e3"}) {
    EXPECT_FALSE(parse_unsigned(text, UINT64_MAX, value)) << text;
  }
}

TEST(PowersOfTen, AreExact) {
  for (std::size_t i = 0; i < kPowersOfTen.size(); ++i) {
    EXPECT_EQ(kPowersOfTen[i], std::strtod(("1e" + std::to_string(i)).c_str(), nullptr));
  }
}

TEST(Decimal, IsTheSameDoubleAsTheGeneralParserGives) {
  base::SeededRandom random(11);
  const auto one_digit = [&] { return static_cast<char>('0' + random.below(10)); };
  int decimals_seen = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random.below(3) == 0 ? "-" : "";
    const std::uint64_t digits = 1 + random.below(Decimal::kMaxDigits);
    const std::uint64_t point = random.below(digits + 4);  // often none
    for (std::uint64_t d = 0; d < digits; ++d) {
      if (d == point) text += '.';
      text += random.below(5) == 0 ? '0' : one_digit();
    }
    if (point == digits) text += '.';
    const std::string line = text + ",";
    Decimal decimal;
    ASSERT_EQ(read_decimal(line.c_str(), decimal), text.size()) << text;
    double expected = 0;
    ASSERT_EQ(parse_number(text, expected), Parsed::kNumber) << text;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(decimal.nearest()), std::bit_cast<std::uint64_t>(expected)) << text;
    decimals_seen += decimal.decimals > 0 ? 1 : 0;
    // With any number of places, the integer stands for the same double.
    for (int places = decimal.decimals; places <= model::kMaxScaledDecimals; ++places) {
      const std::optional<std::int32_t> scaled = decimal.scaled(places);
      if (!scaled) break;
      ASSERT_EQ(*scaled / kPowersOfTen[static_cast<std::size_t>(places)], expected) << text << " " << places;
    }
  }
  EXPECT_GT(decimals_seen, 50'000);
}

TEST(Decimal, TellsWhatItIsNot) {
  Decimal decimal;
  for (const char* text : {",", "-,", ".,", "-.,", "+1,", "x", "1234567890123456,", "0.1234567890123456,",
                           "99999999999999999999999999999999,"}) {
    EXPECT_EQ(read_decimal(text, decimal), 0U) << text;
  }
  // The front alone: that something else follows is for the caller to see.
  EXPECT_EQ(read_decimal("12.5e3,", decimal), 4U);
  EXPECT_EQ(decimal.digits, 125);
  EXPECT_EQ(decimal.decimals, 1);
  EXPECT_EQ(read_decimal("-0.00,", decimal), 5U);
  EXPECT_TRUE(decimal.is_negative_zero());
  EXPECT_TRUE(std::signbit(decimal.nearest()));
}

TEST(Decimal, ScaledStopsAtThirtyOneBits) {
  EXPECT_EQ((Decimal{2147483647, 0}).scaled(0), 2147483647);
  EXPECT_EQ((Decimal{-2147483647, 0, true}).scaled(0), -2147483647);
  EXPECT_EQ((Decimal{2147483648, 0}).scaled(0), std::nullopt);
  EXPECT_EQ((Decimal{-2147483648, 0, true}).scaled(0), std::nullopt);
  EXPECT_EQ((Decimal{2147483, 0}).scaled(3), 2147483000);
  EXPECT_EQ((Decimal{2147484, 0}).scaled(3), std::nullopt);
  EXPECT_EQ((Decimal{999999999999999, 0}).scaled(15), std::nullopt);
}

}  // namespace
}  // namespace orla::ingest
