#include "ingest/csv_time.h"

#include <gtest/gtest.h>

#include "base/absl_view.h"
#include "ingest/input.h"

namespace orla::ingest {
namespace {

std::optional<std::int64_t> read(const char* format, const char* text, const char* zone = "") {
  absl::StatusOr<TimeReader> reader = TimeReader::make(format, zone);
  EXPECT_TRUE(reader.ok()) << reader.status();
  const std::optional<model::Time> time = reader->read(text);
  // The text that is remembered gives the same.
  EXPECT_EQ(reader->read(text), time);
  if (!time) return std::nullopt;
  return model::to_ns(*time);
}

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(TimeReader, UnixIsExactToTheNanosecond) {
  EXPECT_EQ(read("unix", "1377986401"), 1377986401 * kSecond);
  EXPECT_EQ(read("unix", "1377986401.123456789"), 1377986401123456789);
  EXPECT_EQ(read("unix", "1377986401.1"), 1377986401100000000);
  EXPECT_EQ(read("unix", "1377986401.1234567899"), 1377986401123456789);
  EXPECT_EQ(read("unix", "-1.5"), -1500000000);
  EXPECT_EQ(read("unix", "0"), 0);
  EXPECT_EQ(read("unix_ms", "1377986401123"), 1377986401123000000);
  EXPECT_EQ(read("unix_ms", "1377986401123.25"), 1377986401123250000);
  EXPECT_EQ(read("unix_us", "1377986401123456"), 1377986401123456000);
  EXPECT_EQ(read("unix_ns", "1377986401123456789"), 1377986401123456789);
  EXPECT_EQ(read("unix_ns", "5.9"), 5);
}

TEST(TimeReader, UnixRefusesTheRest) {
  for (const char* text : {"", "-", ".5", "1.", "1e9", "+1", " 1", "1 ", "1,5", "abc", "99999999999", "-99999999999",
                           "9223372036854775808", "99999999999999999999999"}) {
    EXPECT_EQ(read("unix", text), std::nullopt) << text;
  }
}

TEST(TimeReader, TheRangeIs1900To2189) {
  EXPECT_EQ(read("rfc3339", "1900-01-01T00:00:00Z"), model::to_ns(kEarliestTime));
  EXPECT_EQ(read("rfc3339", "1899-12-31T23:59:59.999999999Z"), std::nullopt);
  EXPECT_EQ(read("rfc3339", "2189-12-31T23:59:59.999999999Z"), model::to_ns(kLatestTime) - 1);
  EXPECT_EQ(read("rfc3339", "2190-01-01T00:00:00Z"), std::nullopt);
  EXPECT_EQ(read("rfc3339", "9999-12-31T23:59:59Z"), std::nullopt);
  EXPECT_EQ(read("rfc3339", "0000-01-01T00:00:00Z"), std::nullopt);
  for (const char* text : {"infinite-future", "infinite-past", "0001-01-01", "9999-12-31"}) {
    EXPECT_EQ(read("%Y-%m-%d", text), std::nullopt) << text;
  }
}

TEST(TimeReader, Rfc3339) {
  EXPECT_EQ(read("rfc3339", "2013-09-01T00:00:01+02:00"), 1377986401 * kSecond);
  EXPECT_EQ(read("rfc3339", "2013-08-31T22:00:01Z"), 1377986401 * kSecond);
  EXPECT_EQ(read("rfc3339", "2013-08-31t22:00:01z"), 1377986401 * kSecond);
  EXPECT_EQ(read("rfc3339", "2013-08-31 17:00:01.5-05:00"), 1377986401 * kSecond + kSecond / 2);
  EXPECT_EQ(read("rfc3339", "2012-02-22T16:46:28.9670320+00:00"), 1329929188967032000);
  EXPECT_EQ(read("rfc3339", "2013-08-31T22:00:01.12345678999Z"), 1377986401123456789);
  EXPECT_EQ(read("rfc3339", "1969-12-31T23:59:59.25Z"), -750000000);
  EXPECT_EQ(read("rfc3339", "2013-08-31T22:00:01"), 1377986401 * kSecond);  // local, and the zone is UTC
  EXPECT_EQ(read("rfc3339", "2013-09-01T00:00:01", "Europe/Berlin"), 1377986401 * kSecond);
  EXPECT_EQ(read("rfc3339", "2016-12-31T23:59:60Z"), 1483228800 * kSecond);
  EXPECT_EQ(read("rfc3339", "2012-02-29T00:00:00Z"), 1330473600 * kSecond);
  for (const char* text :
       {"", "2013-08-31", "2013-8-31T22:00:01Z", "2013-02-29T00:00:00Z", "2013-13-01T00:00:00Z", "2013-00-01T00:00:00Z",
        "2013-01-00T00:00:00Z", "2013-01-01T24:00:00Z", "2013-01-01T00:60:00Z", "2013-01-01T00:00:61Z",
        "2013-01-01T00:00:00.Z", "2013-01-01T00:00:00+2:00", "2013-01-01T00:00:00+0200", "2013-01-01T00:00:00+24:00",
        "2013-01-01T00:00:00Zx", "2013-01-01T00:00:00Z ", "2013-01-01T00:00:00+", "+2013-01-01T00:00:00Z"}) {
    EXPECT_EQ(read("rfc3339", text), std::nullopt) << text;
  }
}

// Berlin 2013: on 31 March 02:00 became 03:00, on 27 October 03:00 became 02:00.
TEST(TimeReader, ClockChanges) {
  for (const char* format : {"%Y-%m-%d %H:%M:%S", "rfc3339", "%Y-%m-%d %H:%M:%E*S"}) {
    const auto berlin = [&](const char* text) { return read(format, text, "Europe/Berlin"); };
    const auto utc = [&](const char* text) { return read("rfc3339", text); };
    EXPECT_EQ(berlin("2013-03-31 01:59:59"), utc("2013-03-31T00:59:59Z"));
    EXPECT_EQ(berlin("2013-03-31 02:30:00"), utc("2013-03-31T01:30:00Z"));  // does not exist: 03:30 summer time
    EXPECT_EQ(berlin("2013-03-31 03:00:00"), utc("2013-03-31T01:00:00Z"));
    EXPECT_EQ(berlin("2013-10-27 01:59:59"), utc("2013-10-26T23:59:59Z"));
    EXPECT_EQ(berlin("2013-10-27 02:30:00"), utc("2013-10-27T00:30:00Z"));  // the first of two
    EXPECT_EQ(berlin("2013-10-27 03:00:00"), utc("2013-10-27T02:00:00Z"));
    EXPECT_EQ(berlin("2013-07-01 12:00:00"), utc("2013-07-01T10:00:00Z"));
    EXPECT_EQ(berlin("2013-12-01 12:00:00"), utc("2013-12-01T11:00:00Z"));
  }
}

TEST(TimeReader, Strptime) {
  EXPECT_EQ(read("%d/%m/%Y %H.%M.%S", "10/03/2004 18.00.00"), 1078941600 * kSecond);
  EXPECT_EQ(read("%Y-%m-%d %H:%M:%S", "2004-12-31 01:00:00", "America/New_York"), 1104472800 * kSecond);
  EXPECT_EQ(read("%Y-%m-%dT%H:%M:%S", "2004-12-31T06:00:00"), 1104472800 * kSecond);
  EXPECT_EQ(read("%Y-%m-%d %H:%M:%S", "2004-2-1 6:0:0"), 1075615200 * kSecond);
  EXPECT_EQ(read("%Y-%m-%d %H:%M:%E*S %z", "2004-02-01 06:00:00.125 +0100"), 1075611600 * kSecond + kSecond / 8);
  EXPECT_EQ(read("%b %d %Y %I:%M %p", "Feb 01 2004 06:00 PM"), 1075658400 * kSecond);
  for (const char* text : {"", "2004-12-31", "2004-12-31 01:00", "2004-12-31T01:00:00", "2004-02-30 01:00:00",
                           "2004-12-31 01:00:00Z", "2004-12-31 01:00:00.5", "2004-12-31 25:00:00"}) {
    EXPECT_EQ(read("%Y-%m-%d %H:%M:%S", text), std::nullopt) << text;
  }
}

// The reader of the common forms agrees with the general one wherever it answers.
TEST(TimeReader, TheShortCutAgreesWithTheGeneralReader) {
  const std::string zone_name = "Europe/Berlin";
  absl::TimeZone zone;
  ASSERT_TRUE(absl::LoadTimeZone(zone_name, &zone));
  TimeReader reader = *TimeReader::make("%Y-%m-%d %H:%M:%S", zone_name);
  std::uint64_t x = 7;
  const auto below = [&](unsigned n) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>(x >> 33) % n;
  };
  for (int i = 0; i < 3000; ++i) {
    char text[40];
    std::snprintf(text, sizeof text, "%04u-%02u-%02u %02u:%02u:%02u", 1895 + below(300), below(14), below(33),
                  below(26), below(62), below(62));
    absl::Time expected;
    const bool good = absl::ParseTime("%Y-%m-%d %H:%M:%S", text, zone, &expected, nullptr) &&
                      absl::ToUnixNanos(expected) >= model::to_ns(kEarliestTime) &&
                      absl::ToUnixNanos(expected) < model::to_ns(kLatestTime);
    const std::optional<model::Time> time = reader.read(text);
    ASSERT_EQ(time.has_value(), good) << text;
    if (good) {
      EXPECT_EQ(model::to_ns(*time), absl::ToUnixNanos(expected)) << text;
    }
  }
}

TEST(TimeReader, RefusesUnknownZonesAndFormats) {
  EXPECT_EQ(TimeReader::make("unix", "Europe/Berln").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TimeReader::make("iso", "UTC").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TimeReader::make("", "UTC").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace orla::ingest
