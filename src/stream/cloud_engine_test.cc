#include "stream/cloud_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "stream/cloud_for_tests.h"

namespace orla::stream {
namespace {

using model::Statistic;
using model::Time;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const Time kNoon = model::from_ns(1'379'073'600'000'000'000);  // 2013-09-13T12:00:00Z, a Friday

Labels plug(int house, int number) { return {{"house", std::to_string(house)}, {"plug", std::to_string(number)}}; }
Labels house(int number) { return {{"house", std::to_string(number)}}; }

// The instant of a UTC date and time.
Time utc(int year, unsigned month, unsigned day, int hour) {
  return Time(std::chrono::sys_days(std::chrono::year(year) / month / day)) + hours(hour);
}

TEST(CloudEngine, FoldsARowIntoEveryWindowItLiesIn) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"house", "plug"}, {"1m", "15m", "1d", "10m/5m"})}));
  const Time slice = kNoon + minutes(7);
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), slice, partial_of(slice, {1, 2})).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), slice + minutes(1), partial_of(slice + minutes(1), {4})).ok());
  cloud.commit();
  const auto count = [&](const std::string& window, Time start) {
    const LoadedRow* row = cloud.row("plug", window, start, plug(0, 1));
    return row == nullptr ? 0 : row->state.count;
  };
  EXPECT_EQ(count("1m", slice), 2u);
  EXPECT_EQ(count("1m", slice + minutes(1)), 1u);
  EXPECT_EQ(count("15m", kNoon), 3u);
  EXPECT_EQ(count("1d", kNoon - hours(12)), 3u);
  EXPECT_EQ(count("10m/5m", kNoon), 3u);
  EXPECT_EQ(count("10m/5m", kNoon + minutes(5)), 3u);
  EXPECT_EQ(cloud.windows.rows.size(), 6u);
  const model::Statistics shown = model::statistics(cloud.row("plug", "15m", kNoon, plug(0, 1))->state, 3);
  EXPECT_EQ(shown.sum, 7);
  EXPECT_EQ(shown.first, 1);
  EXPECT_EQ(shown.last, 4);
  const MemoryWindows::Key day{"plug", "1d", kNoon - hours(12)};
  EXPECT_EQ(cloud.windows.ends[day], kNoon + hours(12));
}

TEST(CloudEngine, DaysOfAZoneHave23And25Hours) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1d", "2h"})}, {"e1"}, "Europe/Berlin"));
  const Labels one = {{"plug", "1"}};
  const auto fold_hours = [&](Time first, int n) {
    for (int h = 0; h < n; ++h) {
      const Time t = first + hours(h);
      ASSERT_TRUE(cloud.fold("plug", one, t, partial_of(t, {1})).ok());
    }
  };
  // Clocks in Berlin: +1 h at 2013-03-31T01:00Z, -1 h at 2013-10-27T01:00Z.
  fold_hours(utc(2013, 3, 30, 20), 30);
  fold_hours(utc(2013, 10, 26, 20), 30);
  cloud.commit();
  const auto day = [&](Time start) {
    const LoadedRow* row = cloud.row("plug", "1d", start, one);
    const MemoryWindows::Key key{"plug", "1d", start};
    return std::pair(row == nullptr ? 0 : row->state.count, cloud.windows.ends[key]);
  };
  EXPECT_EQ(day(utc(2013, 3, 30, 23)), std::pair(std::uint64_t{23}, utc(2013, 3, 31, 22)));
  EXPECT_EQ(day(utc(2013, 10, 26, 22)), std::pair(std::uint64_t{25}, utc(2013, 10, 27, 23)));
  // Two-hour windows step from local midnight and the last one is cut there: 12 of 2 h and one of 1 h.
  EXPECT_EQ(cloud.row("plug", "2h", utc(2013, 10, 27, 20), one)->state.count, 2u);
  EXPECT_EQ(cloud.row("plug", "2h", utc(2013, 10, 27, 22), one)->state.count, 1u);
  const MemoryWindows::Key cut{"plug", "2h", utc(2013, 10, 27, 22)};
  EXPECT_EQ(cloud.windows.ends[cut], utc(2013, 10, 27, 23));
}

TEST(CloudEngine, AcrossEachSeriesContributesOneValue) {
  TestCloud cloud(
      test_fleet({test_rollup("plug", {"house", "plug"}, {"1m"}),
                  test_across("load_of_house", "plug", {"house"}, {"1m"}, Statistic::kSum, Statistic::kMean),
                  test_across("busiest", "load_of_house", {}, {"1m"}, Statistic::kMax, Statistic::kMean)}));
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, partial_of(kNoon, {1, 2, 6})).ok());  // mean 3
  ASSERT_TRUE(cloud.fold("plug", plug(0, 2), kNoon, partial_of(kNoon, {0.1})).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(1, 1), kNoon, partial_of(kNoon, {0, 1, 1})).ok());  // mean 2/3
  cloud.commit();
  const model::Statistics first = model::statistics(cloud.row("load_of_house", "1m", kNoon, house(0))->state, 3);
  EXPECT_EQ(first.count, 2u);
  EXPECT_EQ(first.sum, 3.1);
  EXPECT_EQ(first.min, 0.1);
  EXPECT_EQ(first.max, 3);
  EXPECT_EQ(first.mean, 1.55);
  const model::Statistics second = model::statistics(cloud.row("load_of_house", "1m", kNoon, house(1))->state, 3);
  EXPECT_EQ(second.sum, 2.0 / 3);
  // The chain reads the sums of the houses, not their means.
  const model::Statistics busiest = model::statistics(cloud.row("busiest", "1m", kNoon, {})->state, 3);
  EXPECT_EQ(busiest.count, 2u);
  EXPECT_EQ(busiest.max, 3.1);
  EXPECT_EQ(busiest.min, 2.0 / 3);

  // A later sample of a plug changes everything above it, and nothing beside.
  ASSERT_TRUE(cloud.fold("plug", plug(1, 1), kNoon, partial_of(kNoon + seconds(9), {38})).ok());  // mean 10
  const CloudChanges changes = cloud.commit();
  EXPECT_EQ(changes.windows.size(), 3u);
  EXPECT_EQ(model::statistics(cloud.row("load_of_house", "1m", kNoon, house(1))->state, 3).sum, 10);
  EXPECT_EQ(model::statistics(cloud.row("busiest", "1m", kNoon, {})->state, 3).max, 10);
}

TEST(CloudEngine, AcrossFromAMetricReadsWholeSeries) {
  TestCloud cloud(test_fleet({[] {
    model::RollupSpec peak = test_rollup("peak", {"house"}, {"1m"});
    peak.across = Statistic::kMax;
    peak.of = Statistic::kMax;
    return peak;
  }()}));
  // Series may lack the label: their value of it is "".
  ASSERT_TRUE(cloud.fold("load/series", plug(0, 1), kNoon, partial_of(kNoon, {1, 5})).ok());
  ASSERT_TRUE(cloud.fold("load/series", {{"plug", "2"}}, kNoon, partial_of(kNoon, {7})).ok());
  ASSERT_TRUE(cloud.fold("load/series", {{"plug", "3"}}, kNoon, partial_of(kNoon, {9})).ok());
  cloud.commit();
  EXPECT_EQ(model::statistics(cloud.row("peak", "1m", kNoon, house(0))->state, 3).max, 5);
  const model::Statistics without = model::statistics(cloud.row("peak", "1m", kNoon, {{"house", ""}})->state, 3);
  EXPECT_EQ(without.max, 9);
  EXPECT_EQ(without.count, 2u);
}

// Sketches come with the partials into every window; an across rollup sketches what its groups give.
TEST(CloudEngine, SketchesReachEveryWindow) {
  model::RollupSpec plugs = test_rollup("plug", {"house", "plug"}, {"1m", "15m"});
  plugs.quantiles = true;
  plugs.distinct = {"plug"};
  model::RollupSpec sum = test_across("house", "plug", {"house"}, {"15m"}, Statistic::kSum, Statistic::kMax);
  sum.quantiles = true;
  TestCloud cloud(test_fleet({plugs, sum}));
  const auto sketched = [](std::initializer_list<double> values, std::uint64_t series) {
    model::Partial p;
    p.sketches = model::Sketches({true, true});
    for (const double v : values) p.add(kNoon, v, 3);
    p.sketches.distinct()->add(series);
    return p;
  };
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, sketched({1, 2, 3}, 1)).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon + minutes(1), sketched({4, 100}, 2)).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(0, 2), kNoon, sketched({8}, 3)).ok());
  cloud.commit();
  EXPECT_EQ(cloud.row("plug", "1m", kNoon, plug(0, 1))->state, sketched({1, 2, 3}, 1));
  const model::Statistics whole = model::statistics(cloud.row("plug", "15m", kNoon, plug(0, 1))->state, 3);
  EXPECT_NEAR(*whole.p50, 3, 3 / 256.0);
  EXPECT_EQ(whole.p999, 100);
  EXPECT_EQ(whole.distinct, 2u);
  const model::Statistics houses = model::statistics(cloud.row("house", "15m", kNoon, house(0))->state, 3);
  EXPECT_NEAR(*houses.p50, 8, 8 / 256.0);
  EXPECT_EQ(houses.p90, 100);
  EXPECT_FALSE(houses.distinct.has_value());
}

TEST(CloudEngine, RevisionCountsCommitsThatChangeAPublishedWindow) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"house", "plug"}, {"1m"}),
                              test_across("house", "plug", {"house"}, {"1m"}, Statistic::kMax, Statistic::kMax)}));
  const auto revision = [&](const std::string& table, const Labels& labels) {
    return cloud.row(table, "1m", kNoon, labels)->revision;
  };
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, partial_of(kNoon, {5})).ok());
  cloud.commit();
  // Still open, then published by the very commit that adds to it.
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, partial_of(kNoon, {6})).ok());
  cloud.heard("e1", kNoon + minutes(1));
  cloud.commit();
  EXPECT_EQ(revision("plug", plug(0, 1)), 0u);
  EXPECT_EQ(revision("house", house(0)), 0u);
  // Two rows in one commit are one revision; the maximum of the house stays what it is.
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, partial_of(kNoon, {1})).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, partial_of(kNoon, {2})).ok());
  cloud.commit();
  EXPECT_EQ(revision("plug", plug(0, 1)), 1u);
  EXPECT_EQ(revision("house", house(0)), 0u);
  cloud.restart();
  ASSERT_TRUE(cloud.fold("plug", plug(0, 1), kNoon, partial_of(kNoon, {9})).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(0, 2), kNoon, partial_of(kNoon, {9})).ok());
  cloud.commit();
  EXPECT_EQ(revision("plug", plug(0, 1)), 2u);
  EXPECT_EQ(revision("plug", plug(0, 2)), 1u);  // appeared after publication
  EXPECT_EQ(revision("house", house(0)), 1u);
}

TEST(CloudEngine, PublicationIsReportedWhenItChangesForEveryTableOfTheMetric) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1m"}), test_rollup("all", {}, {"1m"})}, {"e1", "e2"}));
  cloud.heard("e1", kNoon);
  EXPECT_TRUE(cloud.commit().publication.empty());
  cloud.heard("e2", kNoon - minutes(1));
  EXPECT_THAT(cloud.commit().publication, ElementsAre(Pair(0, kNoon - minutes(1)), Pair(1, kNoon - minutes(1))));
  EXPECT_TRUE(cloud.commit().publication.empty());
  cloud.restart();
  EXPECT_TRUE(cloud.commit().publication.empty());
  EXPECT_EQ(cloud.engine->publication(0), kNoon - minutes(1));
}

TEST(CloudEngine, UnknownDefinitionsAreParkedAndFoldedWhenTheyAreKnown) {
  const model::Fleet old = test_fleet({test_rollup("plug", {"plug"}, {"1m"})});
  const model::Fleet next =
      test_fleet({test_rollup("plug", {"plug"}, {"1m"}), test_rollup("later", {"house"}, {"1m"})});
  TestCloud cloud(old);
  model::GroupDef group = TestCloud(next).group("later", house(3));
  const auto fold = [&](std::vector<double> values) {
    const model::GroupId id = cloud.engine->intern(group).value();
    return cloud.engine->fold({{id, kNoon, partial_of(kNoon, values)}});
  };
  ASSERT_TRUE(fold({1}).ok());
  ASSERT_TRUE(fold({2}).ok());
  EXPECT_EQ(cloud.commit().parked.size(), 2u);
  cloud.restart();
  EXPECT_EQ(cloud.engine->parked_rows(), 2u);
  EXPECT_TRUE(cloud.windows.rows.empty());

  cloud.restart(next);
  EXPECT_EQ(cloud.engine->parked_rows(), 0u);
  const CloudChanges changes = cloud.commit();
  EXPECT_THAT(changes.unparked, ElementsAre(Pair("later", group.definition)));
  model::Partial both = partial_of(kNoon, {1});
  both.merge(partial_of(kNoon, {2}));
  EXPECT_EQ(cloud.row("later", "1m", kNoon, house(3))->state, both);
  // Once.
  cloud.restart(next);
  EXPECT_TRUE(cloud.commit().windows.empty());
  EXPECT_EQ(cloud.row("later", "1m", kNoon, house(3))->state.count, 2u);
}

TEST(CloudEngine, ParkingHasABound) {
  CloudLimits limits;
  limits.parked_rows = 2;
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1m"})}), limits);
  ASSERT_TRUE(cloud.fold("strange", house(1), kNoon, partial_of(kNoon, {1})).ok());
  ASSERT_TRUE(cloud.fold("strange", house(1), kNoon + minutes(1), partial_of(kNoon, {1})).ok());
  // A frame at the bound is refused as a whole.
  const model::GroupId strange = cloud.engine->intern(cloud.group("strange", house(1))).value();
  const model::GroupId known = cloud.engine->intern(cloud.group("plug", {{"plug", "1"}})).value();
  const absl::Status full = cloud.engine->fold(
      {{strange, kNoon + minutes(2), partial_of(kNoon, {1})}, {known, kNoon, partial_of(kNoon, {1})}});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  const CloudChanges changes = cloud.commit();
  EXPECT_EQ(changes.parked.size(), 2u);
  EXPECT_TRUE(changes.windows.empty());
}

TEST(CloudEngine, GroupsHaveABound) {
  CloudLimits limits;
  limits.groups = 2;
  TestCloud cloud(test_fleet({test_rollup("plug", {"house", "plug"}, {"1m"})}), limits);
  EXPECT_TRUE(cloud.engine->intern(cloud.group("plug", plug(0, 1))).ok());
  EXPECT_TRUE(cloud.engine->intern(cloud.group("plug", plug(0, 2))).ok());
  EXPECT_EQ(cloud.engine->intern(cloud.group("plug", plug(0, 3))).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(cloud.engine->intern(cloud.group("plug", plug(0, 2))).ok());
}

TEST(CloudEngine, WhatContradictsItselfIsRefused) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"house", "plug"}, {"1m"})}));
  model::GroupDef wrong = cloud.group("plug", plug(0, 1));
  wrong.slice_ns *= 2;
  EXPECT_EQ(cloud.engine->intern(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  wrong = cloud.group("plug", house(1));
  EXPECT_EQ(cloud.engine->intern(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  const model::GroupId id = cloud.engine->intern(cloud.group("plug", plug(0, 1))).value();
  for (const model::PartialRow& row : {model::PartialRow{id, kNoon + seconds(1), partial_of(kNoon, {1})},
                                       model::PartialRow{id, model::kMaxTime, partial_of(kNoon, {1})},
                                       model::PartialRow{model::GroupId(9), kNoon, partial_of(kNoon, {1})}}) {
    const absl::Status status = cloud.engine->fold({{id, kNoon, partial_of(kNoon, {1})}, row});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(cloud.commit().windows.empty());
}

TEST(CloudEngine, AFailingLoaderChangesNothing) {
  CloudLimits limits;
  limits.cached_window_rows = 0;
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1m", "1h"}),
                              test_across("all", "plug", {}, {"1m"}, Statistic::kSum, Statistic::kMean)}),
                  limits);
  const Labels one = {{"plug", "1"}};
  ASSERT_TRUE(cloud.fold("plug", one, kNoon, partial_of(kNoon, {1})).ok());
  cloud.commit();
  cloud.windows.failure = absl::UnavailableError("the disk is away");
  EXPECT_EQ(cloud.fold("plug", one, kNoon, partial_of(kNoon, {2})).code(), absl::StatusCode::kUnavailable);
  cloud.windows.failure = absl::OkStatus();
  EXPECT_TRUE(cloud.commit().windows.empty());
  // The across window fails to load when the changes are taken: they are taken later, whole.
  ASSERT_TRUE(cloud.fold("plug", one, kNoon, partial_of(kNoon, {3})).ok());
  cloud.windows.failure = absl::UnavailableError("the disk is away");
  EXPECT_EQ(cloud.engine->take_changes(cloud.now).status().code(), absl::StatusCode::kUnavailable);
  cloud.windows.failure = absl::OkStatus();
  EXPECT_EQ(cloud.commit().windows.size(), 3u);
  EXPECT_EQ(cloud.row("plug", "1h", kNoon, one)->state.count, 2u);
  EXPECT_EQ(model::statistics(cloud.row("all", "1m", kNoon, {})->state, 3).sum, 2);
}

TEST(CloudEngine, NothingIsFoldedBetweenTakingAndCommitting) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1m"})}));
  ASSERT_TRUE(cloud.engine->take_changes(cloud.now).ok());
  EXPECT_EQ(cloud.fold("plug", {{"plug", "1"}}, kNoon, partial_of(kNoon, {1})).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cloud.engine->take_changes(cloud.now).status().code(), absl::StatusCode::kFailedPrecondition);
  cloud.engine->committed();
  EXPECT_TRUE(cloud.fold("plug", {{"plug", "1"}}, kNoon, partial_of(kNoon, {1})).ok());
}

TEST(CloudEngine, TheCacheIsBoundedAndForgetsOnlyWhatIsKept) {
  CloudLimits limits;
  limits.cached_window_rows = 50;
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1m"})}), limits);
  for (int m = 0; m < 200; ++m) {
    ASSERT_TRUE(cloud.fold("plug", {{"plug", "1"}}, kNoon + minutes(m), partial_of(kNoon, {1})).ok());
  }
  EXPECT_GT(cloud.engine->cached_rows(), 50u);
  EXPECT_EQ(cloud.engine->changed_rows(), 200u);
  cloud.commit();
  EXPECT_LE(cloud.engine->cached_rows(), 50u);
  EXPECT_EQ(cloud.engine->changed_rows(), 0u);
}

// The same samples, in any order, split and grouping, with any commits and restarts in between and whatever the cache
// holds, give the windows that a direct computation gives.
class CloudOrder : public testing::TestWithParam<int> {};

TEST_P(CloudOrder, GivesTheWindowsOfADirectComputation) {
  base::SeededRandom random(static_cast<std::uint64_t>(GetParam()));
  const std::vector<std::pair<std::string, model::Duration>> kWindows = {
      {"1m", minutes(1)}, {"5m", minutes(5)}, {"1h", hours(1)}};
  std::vector<std::string> names;
  for (const auto& [name, size] : kWindows) names.push_back(name);
  CloudLimits limits;
  limits.cached_window_rows = random.below(2) == 0 ? random.below(60) : 1'000'000;
  TestCloud cloud(test_fleet({test_rollup("plug", {"house", "plug"}, names), test_rollup("pool", {"house"}, names),
                              test_across("load", "plug", {"house"}, names, Statistic::kSum, Statistic::kMean),
                              test_across("least", "plug", {}, names, Statistic::kMin, Statistic::kLast),
                              test_across("chain", "load", {}, names, Statistic::kMean, Statistic::kMean)}),
                  limits);

  // Samples, among them duplicates and values that are no decimals.
  struct Sample {
    Labels labels;
    Time time;
    double value;
  };
  std::vector<Sample> samples;
  for (int i = 0; i < 400; ++i) {
    const int h = static_cast<int>(random.below(3));
    const Time time = kNoon + seconds(random.below(3 * 3600));
    const double value =
        random.below(8) == 0 ? (random.unit() - 0.5) * 1e12 : 0.001 * static_cast<double>(random.below(90'000));
    samples.push_back({plug(h, static_cast<int>(random.below(4))), time, value});
    if (random.below(10) == 0) samples.push_back(samples.back());
  }

  // Expected, straight from the samples.
  using Rows = std::map<std::tuple<std::string, std::string, Time, Labels>, model::Partial>;
  Rows expected;
  for (const auto& [window, size] : kWindows) {
    for (const Sample& s : samples) {
      const Time start = model::slice_start(s.time, size);
      expected[{"plug", window, start, s.labels}].add(s.time, s.value, 3);
      expected[{"pool", window, start, {s.labels[0]}}].add(s.time, s.value, 3);
    }
    const auto across = [&](const std::string& source, const std::string& into, bool by_house, Statistic of) {
      Rows more;
      for (const auto& [key, partial] : expected) {
        if (std::get<0>(key) != source || std::get<1>(key) != window) continue;
        const Labels labels = by_house ? Labels{std::get<3>(key)[0]} : Labels{};
        more[{into, window, std::get<2>(key), labels}].add_contribution(model::pick(partial, 3, of));
      }
      expected.merge(more);
    };
    across("plug", "load", true, Statistic::kMean);
    across("plug", "least", false, Statistic::kLast);
    across("load", "chain", false, Statistic::kSum);
  }

  // Partials of random pieces of the samples, in random order.
  for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random.below(i)]);
  for (std::size_t i = 0; i < samples.size();) {
    model::PartialRows rows;
    for (std::size_t n = 1 + random.below(40); n > 0 && i < samples.size(); --n, ++i) {
      const Sample& s = samples[i];
      model::Partial one;
      one.add(s.time, s.value, 3);
      const Time slice = model::slice_start(s.time, minutes(1));
      rows.push_back({cloud.engine->intern(cloud.group("plug", s.labels)).value(), slice, one});
      rows.push_back({cloud.engine->intern(cloud.group("pool", {s.labels[0]})).value(), slice, one});
    }
    if (random.below(2) == 0) model::canonicalize(rows);
    ASSERT_TRUE(cloud.engine->fold(rows).ok());
    if (random.below(3) == 0) cloud.commit();
    if (random.below(10) == 0) {
      cloud.commit();
      cloud.restart();
    }
  }
  cloud.commit();

  std::size_t compared = 0;
  for (const auto& [key, partial] : expected) {
    const auto& [table, window, start, labels] = key;
    const LoadedRow* row = cloud.row(table, window, start, labels);
    ASSERT_NE(row, nullptr) << table << " " << window;
    EXPECT_EQ(row->state, partial) << table << " " << window;
    ++compared;
  }
  std::size_t kept = 0;
  for (const auto& [key, rows] : cloud.windows.rows) kept += rows.size();
  EXPECT_EQ(kept, compared);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CloudOrder, testing::Range(1, 13));

}  // namespace
}  // namespace orla::stream
