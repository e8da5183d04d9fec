#include "verify/text_values.h"

#include <gtest/gtest.h>

#include <limits>

namespace orla::verify {
namespace {

std::optional<double> finite(std::string_view text) {
  double value = 0;
  return read_number(text, value) == Number::kFinite ? std::optional(value) : std::nullopt;
}

TEST(ReadNumber, Decimals) {
  EXPECT_EQ(finite("0"), 0.0);
  EXPECT_EQ(finite("-12.5"), -12.5);
  EXPECT_EQ(finite("+.5e1"), 5.0);
  EXPECT_EQ(finite("5."), 5.0);
  EXPECT_EQ(finite("1E-2"), 0.01);
  EXPECT_EQ(finite("1e-999"), 0.0);
  EXPECT_EQ(finite("2.2250738585072011e-308"), 2.2250738585072011e-308);  // rounds to a subnormal, PHP bug 53632
  EXPECT_EQ(finite("9007199254740993"), 9007199254740992.0);              // a tie, to even
}

TEST(ReadNumber, RefusesTheRest) {
  for (const char* text :
       {"", " 1", "1 ", "1,5", "0x10", "--1", "+-1", "1e", "1e+", ".", "e5", "1.2.3", "one", "nano"}) {
    double value = 0;
    EXPECT_EQ(read_number(text, value), Number::kNone) << text;
  }
  EXPECT_EQ(finite(std::string_view("1\0", 2)), std::nullopt);
  for (const char* text : {"nan", "NaN", "-nan", "inf", "+Inf", "-INFINITY", "1e999", "-1e400"}) {
    double value = 0;
    EXPECT_EQ(read_number(text, value), Number::kNotFinite) << text;
  }
}

TEST(ReadDigits, WithinABound) {
  EXPECT_EQ(read_digits("0", 1), 0u);
  EXPECT_EQ(read_digits("007", 7), 7u);
  EXPECT_EQ(read_digits("18446744073709551615", UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(read_digits("18446744073709551616", UINT64_MAX), std::nullopt);
  EXPECT_EQ(read_digits("8", 7), std::nullopt);
  EXPECT_EQ(read_digits("", 7), std::nullopt);
  EXPECT_EQ(read_digits("+1", 7), std::nullopt);
  EXPECT_EQ(read_digits("1 ", 7), std::nullopt);
}

std::optional<std::int64_t> ns(std::string_view text, const std::string& format, const char* zone_name = "UTC") {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(zone_name, &zone));
  const auto time = read_time(text, format, zone);
  return time ? std::optional(model::to_ns(*time)) : std::nullopt;
}

TEST(ReadTime, Unix) {
  EXPECT_EQ(ns("1377986401", "unix"), 1'377'986'401'000'000'000);
  EXPECT_EQ(ns("1.5", "unix"), 1'500'000'000);
  EXPECT_EQ(ns("-1.5", "unix"), -1'500'000'000);
  EXPECT_EQ(ns("0.1234567899", "unix"), 123'456'789);
  EXPECT_EQ(ns("1377986401123.25", "unix_ms"), 1'377'986'401'123'250'000);
  EXPECT_EQ(ns("7.0019", "unix_us"), 7'001);
  EXPECT_EQ(ns("-7.9", "unix_ns"), -7);
  for (const char* text : {"", "-", "1.", ".5", "+1", "1e3", "99999999999999999999", "6942585600", "-2208988801"}) {
    EXPECT_EQ(ns(text, "unix"), std::nullopt) << text;
  }
  EXPECT_EQ(ns("6942585599", "unix"), 6'942'585'599'000'000'000);
  EXPECT_EQ(ns("-2208988800", "unix"), -2'208'988'800'000'000'000);
}

TEST(ReadTime, Rfc3339) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(ns("2013-09-01T00:00:01Z", "rfc3339"), 1'377'993'601 * kSecond);
  EXPECT_EQ(ns("2013-09-01t02:00:01.25+02:00", "rfc3339"), 1'377'993'601 * kSecond + 250'000'000);
  EXPECT_EQ(ns("2013-08-31 18:30:01-05:30", "rfc3339"), 1'377'993'601 * kSecond);
  EXPECT_EQ(ns("2013-09-01T02:00:01", "rfc3339", "Europe/Berlin"), 1'377'993'601 * kSecond);
  EXPECT_EQ(ns("2012-06-30T23:59:60.5Z", "rfc3339"), 1'341'100'800 * kSecond);  // a leap second
  EXPECT_EQ(ns("2012-02-29T00:00:00Z", "rfc3339"), 1'330'473'600 * kSecond);
  for (const char* text : {"2013-02-29T00:00:00Z", "2013-13-01T00:00:00Z", "2013-09-01T24:00:00Z", "2013-9-1T00:00:00Z",
                           "2013-09-01", "2013-09-01T00:00:00.Z", "2013-09-01T00:00:00+2:00", "2013-09-01T00:00:00 Z",
                           "2190-01-01T00:00:00Z", "1899-12-31T23:59:59Z", "2013-00-01T00:00:00Z"}) {
    EXPECT_EQ(ns(text, "rfc3339"), std::nullopt) << text;
  }
}

TEST(ReadTime, LocalTimesWhereTheClockChanges) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const char* format = "%Y-%m-%d %H:%M:%S";
  // 02:30 on 2013-10-27 is there twice; the first is 00:30 UTC.
  EXPECT_EQ(ns("2013-10-27 02:30:00", format, "Europe/Berlin"), 1'382'833'800 * kSecond);
  EXPECT_EQ(ns("2013-10-27T02:30:00", "rfc3339", "Europe/Berlin"), 1'382'833'800 * kSecond);
  // 02:30 on 2013-03-31 is not there; with the offset before (+01:00) it is 01:30 UTC.
  EXPECT_EQ(ns("2013-03-31 02:30:00", format, "Europe/Berlin"), 1'364'693'400 * kSecond);
  EXPECT_EQ(ns("2013-03-31T02:30:00", "rfc3339", "Europe/Berlin"), 1'364'693'400 * kSecond);
}

TEST(ReadTime, OtherFormats) {
  EXPECT_EQ(ns("01/06/2012 00:00:30", "%d/%m/%Y %H:%M:%S"), 1'338'508'830'000'000'000);
  EXPECT_EQ(ns("10/03/2004 18.00.00", "%d/%m/%Y %H.%M.%S"), 1'078'941'600'000'000'000);
  EXPECT_EQ(ns("infinite-future", "%Y"), std::nullopt);
  EXPECT_EQ(ns("1800", "%Y"), std::nullopt);
  EXPECT_EQ(ns("", "%Y"), std::nullopt);
}

using Cells = std::vector<std::string>;

TEST(ReadCells, QuotesAndBlanks) {
  EXPECT_EQ(read_cells("a,b,,c", ','), (Cells{"a", "b", "", "c"}));
  EXPECT_EQ(read_cells("", ','), (Cells{""}));
  EXPECT_EQ(read_cells(",", ','), (Cells{"", ""}));
  EXPECT_EQ(read_cells(" a ;\tb c\t; ", ';'), (Cells{"a", "b c", ""}));
  EXPECT_EQ(read_cells("\" a, \"\"b\"\"\",c", ','), (Cells{" a, \"b\"", "c"}));
  EXPECT_EQ(read_cells("\"\",x\"y\"", ','), (Cells{"", "x\"y\""}));
  EXPECT_EQ(read_cells("a\t\tb", '\t'), (Cells{"a", "", "b"}));
  EXPECT_EQ(read_cells("\"a", ','), std::nullopt);
  EXPECT_EQ(read_cells("\"a\"b,c", ','), std::nullopt);
  EXPECT_EQ(read_cells("\"a\" ,c", ','), std::nullopt);
}

}  // namespace
}  // namespace orla::verify
