#include "ingest/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

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

}  // namespace
}  // namespace orla::ingest
