#include "model/window.h"

#include <gtest/gtest.h>

namespace orla::model {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Kind = WindowSpec::Kind;

TEST(Duration, Parses) {
  const std::pair<const char*, Duration> cases[] = {
      {"250ms", milliseconds(250)},
      {"90s", seconds(90)},
      {"5m", minutes(5)},
      {"1h30m", minutes(90)},
      {"2d", hours(48)},
      {"7ns", nanoseconds(7)},
      {"3us", nanoseconds(3000)},
      {"0s", Duration::zero()},
      {"1d2h3m4s5ms6us7ns", hours(26) + minutes(3) + seconds(4) + milliseconds(5) + nanoseconds(6007)},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(Duration, RefusesWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it is empty"},
      {"5", "the unit is missing"},
      {"-5s", "no sign"},
      {"1.5s", "whole numbers"},
      {"s", "a number is missing"},
      {"5 s", "unexpected character 2"},
      {"5min", "\"min\" is no unit"},
      {"5s1h", "largest to the smallest"},
      {"1s1s", "each once"},
      {"99999999999999999999s", "too large"},
      {"200000d", "292 years"},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(std::string(parsed.status().message()).find(expected), std::string::npos) << parsed.status();
  }
}

TEST(Duration, PrintsOneUnit) {
  EXPECT_EQ(to_string(Duration(seconds(60))), "1m");
  EXPECT_EQ(to_string(Duration(seconds(90))), "90s");
  EXPECT_EQ(to_string(Duration(hours(24))), "1d");
  EXPECT_EQ(to_string(Duration(1)), "1ns");
  EXPECT_EQ(to_string(Duration(milliseconds(1500))), "1500ms");
  EXPECT_EQ(to_string(Duration::zero()), "0s");
}

TEST(Window, ParsesAndPrints) {
  const std::tuple<const char*, WindowSpec, const char*> cases[] = {
      {"1m", {Kind::kElapsed, minutes(1), {}}, "1m"},
      {"60m", {Kind::kElapsed, hours(1), {}}, "1h"},
      {"90s", {Kind::kElapsed, seconds(90), {}}, "90s"},
      {"1d", {Kind::kDay, {}, {}}, "1d"},
      {"24h", {Kind::kDay, {}, {}}, "1d"},
      {"1w", {Kind::kWeek, {}, {}}, "1w"},
      {"7d", {Kind::kWeek, {}, {}}, "1w"},
      {"1mo", {Kind::kMonth, {}, {}}, "1mo"},
      {"1h/5m", {Kind::kHopping, hours(1), minutes(5)}, "1h/5m"},
      {"1d/1h", {Kind::kHopping, hours(24), hours(1)}, "1d/1h"},
      {"steps:2h", {Kind::kSteps, hours(2), {}}, "steps:2h"},
      {"steps:24h", {Kind::kSteps, hours(24), {}}, "steps:1d"},
  };
  for (const auto& [text, expected, name] : cases) {
    const auto parsed = parse_window(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, expected) << text;
    EXPECT_EQ(to_string(*parsed), name);
    EXPECT_EQ(parse_window(to_string(*parsed)).value(), expected);
  }
}

TEST(Window, Refuses) {
  for (const char* text : {"", "2d", "36h", "0s", "1h/0s", "0s/0s", "5m/1h", "3d/2d", "1h/", "/5m", "2w", "2mo",
                           "steps:", "steps:0s", "1y"}) {
    EXPECT_FALSE(parse_window(text).ok()) << text;
  }
}

}  // namespace
}  // namespace orla::model
