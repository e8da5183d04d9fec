#include "node/time_text.h"

#include <gtest/gtest.h>

namespace orla::node {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(TimeText, WritesUtcWithTheDigitsNeeded) {
  EXPECT_EQ(rfc3339(model::Time(seconds(1377986401))), "2013-08-31T22:00:01Z");
  EXPECT_EQ(rfc3339(model::Time(seconds(1377986401) + nanoseconds(250'000'000))), "2013-08-31T22:00:01.25Z");
  EXPECT_EQ(rfc3339(model::kMinTime), "-inf");
  EXPECT_EQ(rfc3339(model::kMaxTime), "+inf");
}

TEST(TimeText, ReadsOffsetsDatesAndNanoseconds) {
  const model::Time expected(seconds(1377986401));
  EXPECT_EQ(*parse_time("2013-08-31T22:00:01Z"), expected);
  EXPECT_EQ(*parse_time("2013-09-01T00:00:01+02:00"), expected);
  EXPECT_EQ(*parse_time("1377986401000000000"), expected);
  EXPECT_EQ(*parse_time("1970-01-02"), model::Time(seconds(86'400)));
}

TEST(TimeText, SaysWhatItExpected) {
  for (const char* text : {"", "yesterday", "2013-13-01", "9999-01-01T00:00:00Z"}) {
    const auto time = parse_time(text);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_NE(time.status().message().find("expected RFC 3339"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace orla::node
