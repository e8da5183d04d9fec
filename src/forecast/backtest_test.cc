#include "forecast/backtest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/time/time.h"

namespace orla::forecast {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr model::Time kMidnight = model::from_ns(1'377'993'600'000'000'000);  // 2013-09-01T00:00:00Z

Backtest make(std::vector<model::Duration> steps, std::string zone = "UTC") {
  BacktestOptions options;
  options.steps = std::move(steps);
  options.zone = std::move(zone);
  auto made = Backtest::create(std::move(options));
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Three days of one plug, in 2 h steps. By hand:
//   day 1: steps 0..11 are 10 20 30 40 50 60 70 80 90 100 110 120, day 2 the same plus 6, except that step 1 is
//   missing, day 3 only steps 0 and 2: 100 and 7.
// Targets (t, actual | now = t-2 | earlier days): day 2 (t = 12 + s, now is step s-2):
//   s=0: 16 | 110 | 10          s=2: 36 | 16 | 30          s=3: step 13 is missing, so no target
//   s=4..11: 10(s+1)+6 | 10(s-1)+6 | 10(s+1)
//   day 3: s=0: 100 | 116 | 10, 16 -> 13      s=2: 7 | 100 | 30, 36 -> 33
TEST(Backtest, GoldenSeries) {
  Backtest backtest = make({hours(2)});
  const std::uint32_t plug = backtest.plug("0", "0", "3");
  const auto put = [&](int day, int step, double load) {
    // Two samples around the value, at the edges of the step.
    const model::Time start = kMidnight + hours(24 * day + 2 * step);
    ASSERT_TRUE(backtest.add(plug, start, load - 0.5).ok());
    ASSERT_TRUE(backtest.add(plug, start + hours(2) - std::chrono::nanoseconds(1), load + 0.5).ok());
  };
  put(2, 2, 7);  // out of order on purpose
  for (int s = 0; s < 12; ++s) {
    put(0, s, 10 * (s + 1));
    if (s != 1) put(1, s, 10 * (s + 1) + 6);
  }
  put(2, 0, 100);

  const auto rows = backtest.finish();
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 1u);
  const BacktestScore& score = rows->front().plug;
  // errors now - actual:        94, -20, 8 x -20, 16, 93
  // errors day median - actual: -6,  -6, 8 x  -6, -87, 26
  // errors formula (the mean):  44, -13, 8 x -13, -35.5, 59.5
  EXPECT_EQ(score.n, 12u);
  EXPECT_DOUBLE_EQ(score.persistence.mae, (94 + 9 * 20 + 16 + 93) / 12.0);
  EXPECT_DOUBLE_EQ(score.persistence.rmse, std::sqrt((94 * 94 + 9 * 400 + 16 * 16 + 93 * 93) / 12.0));
  EXPECT_DOUBLE_EQ(score.day_median.mae, (10 * 6 + 87 + 26) / 12.0);
  EXPECT_DOUBLE_EQ(score.day_median.rmse, std::sqrt((10 * 36 + 87 * 87 + 26 * 26) / 12.0));
  EXPECT_DOUBLE_EQ(score.formula.mae, (44 + 9 * 13 + 35.5 + 59.5) / 12.0);
  EXPECT_DOUBLE_EQ(score.formula.rmse, std::sqrt((44 * 44 + 9 * 169 + 35.5 * 35.5 + 59.5 * 59.5) / 12.0));
  // One plug in the house: the house is the plug.
  EXPECT_EQ(rows->front().house.n, 12u);
  EXPECT_DOUBLE_EQ(rows->front().house.formula.rmse, score.formula.rmse);
}

TEST(Backtest, HousesAddThePlugsThatHaveSamplesAndPlugsArePooled) {
  Backtest backtest = make({minutes(1)});
  // Step 0 of day 1 and step 2 of day 2 are all that is needed for one target each: t = 1440 + 2, now = 1440,
  // history 2.
  const auto put = [&](const char* house, const char* plug, model::Duration at, double load) {
    ASSERT_TRUE(backtest.add(backtest.plug(house, "0", plug), kMidnight + at, load).ok());
  };
  put("1", "a", minutes(2), 1);
  put("1", "a", hours(24), 3);
  put("1", "a", hours(24) + minutes(2), 10);
  put("1", "b", minutes(2), 5);
  put("1", "b", hours(24) + minutes(2), 20);  // b has no value "now": no target of b, but part of its house
  put("2", "a", minutes(2), 4);
  put("2", "a", hours(24), 4);
  put("2", "a", hours(24) + minutes(2) + seconds(1), 4);

  const auto rows = backtest.finish();
  ASSERT_TRUE(rows.ok());
  const BacktestScore& plug = rows->front().plug;
  const BacktestScore& house = rows->front().house;
  EXPECT_EQ(plug.n, 2u);  // 1/a: (3 + 1)/2 = 2 for 10; 2/a: 4 for 4
  EXPECT_DOUBLE_EQ(plug.formula.mae, 4);
  EXPECT_DOUBLE_EQ(plug.persistence.mae, 3.5);
  EXPECT_DOUBLE_EQ(plug.day_median.mae, 4.5);
  EXPECT_EQ(house.n, 2u);  // 1: (3 + 6)/2 = 4.5 for 30; 2: 4 for 4
  EXPECT_DOUBLE_EQ(house.formula.mae, 12.75);
  EXPECT_DOUBLE_EQ(house.persistence.mae, 13.5);
  EXPECT_DOUBLE_EQ(house.day_median.mae, 12);
}

TEST(Backtest, StepsStartAtLocalMidnightAndAlwaysStepElapsedTime) {
  // Berlin left daylight-saving time on 2013-10-27, a day of 25 h: by elapsed time "24 h before" is another wall time.
  const model::Time midnight = model::from_ns(1'382'738'400'000'000'000);  // 2013-10-26T00:00:00+02:00
  Backtest backtest = make({hours(1)}, "Europe/Berlin");
  const std::uint32_t plug = backtest.plug("0", "0", "0");
  const auto put = [&](model::Duration at, double load) { ASSERT_TRUE(backtest.add(plug, midnight + at, load).ok()); };
  put(hours(0), 0);
  put(hours(30), 8);
  put(hours(54), 8);  // t = 54 has the history 30, and now = 52 is:
  put(hours(52), 6);
  const auto rows = backtest.finish();
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->front().plug.n, 1u);
  EXPECT_DOUBLE_EQ(rows->front().plug.formula.mae, 1);
}

TEST(Backtest, AHalfHourZoneShiftsTheSteps) {
  // 2 h steps from midnight in Kolkata (UTC+05:30) start at odd half hours UTC: 18:30, 20:30, ...
  const model::Time day = model::from_ns(1'377'973'800'000'000'000);  // 2013-08-31T18:30:00Z = 2013-09-01 00:00 there
  for (const char* zone : {"Asia/Kolkata", "UTC"}) {
    Backtest backtest = make({hours(2)}, zone);
    const std::uint32_t plug = backtest.plug("0", "0", "0");
    for (const int minute : {0, 24 * 60 - 4 * 60, 24 * 60 + 0, 24 * 60 + 119}) {
      ASSERT_TRUE(backtest.add(plug, day + minutes(minute), minute).ok());
    }
    const auto rows = backtest.finish();
    ASSERT_TRUE(rows.ok());
    // In Kolkata the last two are one step with mean 1499.5. In UTC they are two: 18:00-20:00 (a target, with the value
    // 1440) and 20:00-22:00 (without a value 24 h before).
    EXPECT_EQ(rows->front().plug.n, 1u) << zone;
    EXPECT_DOUBLE_EQ(rows->front().plug.day_median.mae, zone == std::string("UTC") ? 1440 : 1499.5) << zone;
  }
}

TEST(Backtest, MeansAreExactWhateverTheValues) {
  // 0.1 + 0.2 as decimals is 0.3 exactly; 1e17 and -1e17 cancel although no double holds the sum with 3.
  Backtest backtest = make({minutes(1)});
  const std::uint32_t plug = backtest.plug("0", "0", "0");
  for (const double v : {0.1, 0.2}) ASSERT_TRUE(backtest.add(plug, kMidnight + minutes(2), v).ok());
  for (const double v : {1e17, 0.1, -1e17}) ASSERT_TRUE(backtest.add(plug, kMidnight + hours(24), v).ok());
  ASSERT_TRUE(backtest.add(plug, kMidnight + hours(24) + minutes(2), 0).ok());
  const auto rows = backtest.finish();
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->front().plug.n, 1u);
  EXPECT_EQ(rows->front().plug.day_median.mae, 0.15);
  EXPECT_EQ(rows->front().plug.persistence.mae, 0.1 / 3);
}

TEST(Backtest, NothingGivesNothing) {
  Backtest backtest = make({minutes(1), minutes(120)});
  auto rows = backtest.finish();
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->front().plug.n, 0u);
  EXPECT_TRUE(std::isnan(rows->front().plug.formula.mae));
  // One day has no earlier day.
  const std::uint32_t plug = backtest.plug("0", "0", "0");
  for (int m = 0; m < 24 * 60; ++m) ASSERT_TRUE(backtest.add(plug, kMidnight + minutes(m), m).ok());
  rows = backtest.finish();
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->front().plug.n, 0u);
  EXPECT_EQ(rows->back().house.n, 0u);
}

TEST(Backtest, RefusesWhatItCannotNumber) {
  const auto refused = [](BacktestOptions options) {
    const auto made = Backtest::create(std::move(options));
    return !made.ok() && absl::IsInvalidArgument(made.status());
  };
  EXPECT_TRUE(refused({.steps = {seconds(90)}}));
  EXPECT_TRUE(refused({.steps = {minutes(7)}}));
  EXPECT_TRUE(refused({.steps = {hours(24)}}));
  EXPECT_TRUE(refused({.steps = {minutes(0)}}));
  EXPECT_TRUE(refused({.zone = "Europe/Atlantis"}));
  EXPECT_TRUE(refused({.decimals = 16}));
}

TEST(Backtest, BoundsAreKept) {
  BacktestOptions options;
  options.max_plug_days = 2;
  auto made = Backtest::create(options);
  ASSERT_TRUE(made.ok());
  const std::uint32_t plug = made->plug("0", "0", "0");
  EXPECT_TRUE(made->add(plug, kMidnight, 1).ok());
  EXPECT_TRUE(made->add(plug, kMidnight + hours(24), 1).ok());
  EXPECT_TRUE(made->add(plug, kMidnight + hours(1), 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(made->add(plug, kMidnight + hours(48), 1)));

  options = {};
  options.max_days = 10;
  made = Backtest::create(options);
  ASSERT_TRUE(made.ok());
  const std::uint32_t far = made->plug("0", "0", "0");
  EXPECT_TRUE(made->add(far, kMidnight, 1).ok());
  EXPECT_TRUE(made->add(far, kMidnight + hours(24 * 100), 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(made->finish().status()));
}

TEST(Backtest, NamesOfPlugsDoNotRunIntoEachOther) {
  Backtest backtest = make({minutes(1)});
  EXPECT_EQ(backtest.plug("1", "2", "3"), backtest.plug("1", "2", "3"));
  EXPECT_NE(backtest.plug("1/2", "3", "4"), backtest.plug("1", "2/3", "4"));
  EXPECT_NE(backtest.plug("1", "23", "4"), backtest.plug("12", "3", "4"));
}

}  // namespace
}  // namespace orla::forecast
