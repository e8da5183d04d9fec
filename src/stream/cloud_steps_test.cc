// The cloud engine's forecast steps: when they are published, what predictions read, what really happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stream/cloud_for_tests.h"

namespace orla::stream {
namespace {

using model::Statistic;
using model::Time;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const Time kMidnight = model::from_ns(1'379'030'400'000'000'000);  // 2013-09-13T00:00:00Z
const Labels kPlug1 = {{"house", "0"}, {"plug", "1"}};
const Labels kPlug2 = {{"house", "0"}, {"plug", "2"}};

// Forecasts of plugs and of their house in steps of the given length.
model::Fleet forecasting(model::Duration step, std::string zone = "UTC") {
  model::Fleet fleet = test_fleet({test_rollup("plug", {"house", "plug"}, {"1m"}),
                                   test_across("house", "plug", {"house"}, {"1m"}, Statistic::kSum, Statistic::kMean)},
                                  {"e1"}, std::move(zone));
  fleet.forecasts = {{{"plug", "house"}, "debs2014", {step}}};
  return fleet;
}

// Starts of the steps published for the plugs (forecast 0).
std::vector<Time> published(const CloudChanges& changes, std::size_t forecast = 0) {
  std::vector<Time> out;
  for (const PublishedStep& step : changes.published) {
    if (step.forecast == forecast) out.push_back(step.start);
  }
  return out;
}

std::vector<std::pair<Labels, double>> actuals(const CloudChanges& changes, std::size_t forecast, Time start) {
  std::vector<std::pair<Labels, double>> out;
  for (const StepActual& actual : changes.actuals) {
    if (actual.forecast == forecast && actual.start == start) out.emplace_back(*actual.labels, actual.value);
  }
  return out;
}

TEST(CloudSteps, EachIsPublishedOnceInOrderFromTheFirstWithDataToTheLast) {
  TestCloud cloud(forecasting(minutes(5)));
  ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight + minutes(12), partial_of(kMidnight + minutes(12), {1})).ok());
  cloud.heard("e1", kMidnight + minutes(14));
  EXPECT_THAT(published(cloud.commit()), IsEmpty());
  ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight + minutes(25), partial_of(kMidnight + minutes(25), {1})).ok());
  cloud.heard("e1", kMidnight + minutes(20));
  const CloudChanges changes = cloud.commit();
  EXPECT_THAT(published(changes), ElementsAre(kMidnight + minutes(10), kMidnight + minutes(15)));
  EXPECT_THAT(published(changes, 1), ElementsAre(kMidnight + minutes(10), kMidnight + minutes(15)));
  EXPECT_EQ(changes.published[0].target, kMidnight + minutes(20));
  EXPECT_THAT(published(cloud.commit()), IsEmpty());
  // After a crash nothing is published twice, and nothing is left out.
  cloud.restart();
  EXPECT_THAT(published(cloud.commit()), IsEmpty());
  cloud.heard("e1", model::kMaxTime);
  EXPECT_THAT(published(cloud.commit()), ElementsAre(kMidnight + minutes(20), kMidnight + minutes(25)));
  // An edge that had been given up returns with more.
  ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight + minutes(31), partial_of(kMidnight + minutes(31), {1})).ok());
  EXPECT_THAT(published(cloud.commit()), ElementsAre(kMidnight + minutes(30)));
}

TEST(CloudSteps, DataBeforeTheFirstStepCountsUntilItIsPublished) {
  TestCloud cloud(forecasting(minutes(5)));
  const auto fold = [&](int minute) {
    const Time slice = kMidnight + minutes(minute);
    ASSERT_TRUE(cloud.fold("plug", kPlug1, slice, partial_of(slice, {1})).ok());
  };
  fold(32);
  cloud.heard("e1", kMidnight + minutes(15));
  cloud.commit();
  fold(21);
  fold(7);  // late: its step is published already, and was empty
  cloud.heard("e1", kMidnight + minutes(40));
  EXPECT_THAT(published(cloud.commit()),
              ElementsAre(kMidnight + minutes(20), kMidnight + minutes(25), kMidnight + minutes(30)));
}

TEST(CloudSteps, ActualsComeWithTheStepAndWithCorrections) {
  TestCloud cloud(forecasting(minutes(5)));
  ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight, partial_of(kMidnight, {1, 2})).ok());
  ASSERT_TRUE(cloud.fold("plug", kPlug2, kMidnight + minutes(4), partial_of(kMidnight, {10})).ok());
  EXPECT_THAT(actuals(cloud.commit(), 0, kMidnight), IsEmpty());
  cloud.heard("e1", kMidnight + minutes(5));
  CloudChanges changes = cloud.commit();
  EXPECT_THAT(actuals(changes, 0, kMidnight), ElementsAre(Pair(kPlug1, 1.5), Pair(kPlug2, 10)));
  EXPECT_THAT(actuals(changes, 1, kMidnight), ElementsAre(Pair(Labels{{"house", "0"}}, 11.5)));
  ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight + minutes(1), partial_of(kMidnight, {6})).ok());
  changes = cloud.commit();
  EXPECT_THAT(published(changes), IsEmpty());
  EXPECT_THAT(actuals(changes, 0, kMidnight), ElementsAre(Pair(kPlug1, 3)));
  EXPECT_THAT(actuals(changes, 1, kMidnight), ElementsAre(Pair(Labels{{"house", "0"}}, 13)));
  cloud.restart();
  ASSERT_TRUE(cloud.fold("plug", kPlug2, kMidnight + minutes(1), partial_of(kMidnight, {20})).ok());
  EXPECT_THAT(actuals(cloud.commit(), 0, kMidnight), ElementsAre(Pair(kPlug2, 15)));
}

TEST(CloudSteps, PredictionsReadStepIAndTheDaysBeforeTheTarget) {
  TestCloud cloud(forecasting(hours(1)));
  const auto fold = [&](const Labels& plug, int hour, double value) {
    const Time slice = kMidnight + hours(hour);
    ASSERT_TRUE(cloud.fold("plug", plug, slice, partial_of(slice, {value})).ok());
  };
  // Hour 12 of days 0, 1 and 3 (day 2 is missing), and hour 10 of day 3 for plug 1 only.
  fold(kPlug1, 12, 100);
  fold(kPlug1, 36, 200);
  fold(kPlug1, 84, 999);  // the target itself is never read
  fold(kPlug2, 36, 7);
  fold(kPlug1, 82, 5);
  cloud.heard("e1", kMidnight + hours(83));
  CloudChanges changes = cloud.commit();
  while (changes.more) changes = cloud.commit();
  const PublishedStep* step = nullptr;
  for (const PublishedStep& p : changes.published) {
    if (p.forecast == 0 && p.start == kMidnight + hours(82)) step = &p;
  }
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->target, kMidnight + hours(84));
  std::vector<StepInput> inputs = cloud.engine->step_inputs(*step).value();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(*inputs[0].labels, kPlug1);
  EXPECT_EQ(inputs[0].current, 5);
  EXPECT_THAT(inputs[0].history, ElementsAre(200, 100));
  EXPECT_EQ(inputs[1].current, std::nullopt);
  EXPECT_THAT(inputs[1].history, ElementsAre(7));
  PublishedStep house = *step;
  house.forecast = 1;
  inputs = cloud.engine->step_inputs(house).value();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].current, 5);
  EXPECT_THAT(inputs[0].history, ElementsAre(207, 100));
  // The same after a restart: groups and windows come back from the store.
  cloud.restart();
  inputs = cloud.engine->step_inputs(*step).value();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_THAT(inputs[0].history, ElementsAre(200, 100));
}

// Eight steps of two groups.
void expect_pieces(CloudLimits limits, std::vector<std::size_t> expected) {
  TestCloud cloud(forecasting(minutes(1)), limits);
  for (const int m : {0, 7}) {
    ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight + minutes(m), partial_of(kMidnight, {1})).ok());
    ASSERT_TRUE(cloud.fold("plug", kPlug2, kMidnight + minutes(m), partial_of(kMidnight, {1})).ok());
  }
  cloud.heard("e1", model::kMaxTime);
  std::vector<std::size_t> counts;
  CloudChanges changes;
  do {
    changes = cloud.commit();
    counts.push_back(published(changes).size());
    cloud.restart();
  } while (changes.more);
  EXPECT_EQ(counts, expected);
}

TEST(CloudSteps, OnlySoManyArePublishedAtATime) {
  CloudLimits limits;
  expect_pieces(limits, {8});
  limits.steps_per_change = 3;
  expect_pieces(limits, {3, 3, 2});
  limits.step_rows_per_change = 5;
  expect_pieces(limits, {2, 2, 2, 2});
  limits.step_rows_per_change = 1;
  expect_pieces(limits, {1, 1, 1, 1, 1, 1, 1, 1});
}

TEST(CloudSteps, ALongGapIsPassedOverAShortOneIsNot) {
  TestCloud cloud(forecasting(hours(1)));
  const Time later = kMidnight + hours(5);
  const Time much_later = kMidnight + hours(24 * 400);
  ASSERT_TRUE(cloud.fold("plug", kPlug1, kMidnight, partial_of(kMidnight, {1})).ok());
  ASSERT_TRUE(cloud.fold("plug", kPlug1, later, partial_of(later, {1})).ok());
  ASSERT_TRUE(cloud.fold("plug", kPlug1, much_later, partial_of(much_later, {1})).ok());
  cloud.heard("e1", model::kMaxTime);
  const std::vector<Time> steps = published(cloud.commit());
  ASSERT_EQ(steps.size(), 7u);
  EXPECT_EQ(steps[5], later);
  EXPECT_EQ(steps[6], much_later);
}

TEST(CloudSteps, OddLengthsAreNumberedFromTheFirstDay) {
  // Berlin moves its clock by an hour, so two-hour steps are no plain windows there.
  TestCloud cloud(forecasting(hours(2), "Europe/Berlin"));
  const Time local_midnight = kMidnight - hours(2);
  // The first samples to arrive are of the second day.
  ASSERT_TRUE(cloud.fold("plug", kPlug1, local_midnight + hours(25), partial_of(kMidnight, {1})).ok());
  EXPECT_THAT(cloud.commit().anchors,
              ElementsAre(Pair(0, local_midnight + hours(24)), Pair(1, local_midnight + hours(24))));
  ASSERT_TRUE(cloud.fold("plug", kPlug1, local_midnight + hours(3), partial_of(kMidnight, {2})).ok());
  EXPECT_THAT(cloud.commit().anchors, ElementsAre(Pair(0, local_midnight), Pair(1, local_midnight)));
  EXPECT_NE(cloud.row("plug", "steps:2h", local_midnight + hours(2), kPlug1), nullptr);
  EXPECT_NE(cloud.row("plug", "steps:2h", local_midnight + hours(24), kPlug1), nullptr);
  cloud.restart();
  // Weeks later, after the clock change, steps go on in elapsed time.
  const Time november = local_midnight + hours(24 * 60);
  ASSERT_TRUE(cloud.fold("plug", kPlug1, november + hours(1), partial_of(kMidnight, {2})).ok());
  EXPECT_THAT(cloud.commit().anchors, IsEmpty());
  EXPECT_NE(cloud.row("plug", "steps:2h", november, kPlug1), nullptr);
}

}  // namespace
}  // namespace orla::stream
