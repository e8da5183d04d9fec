#include "stream/hopping.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/time/time.h"
#include "base/random.h"
#include "stream/cloud_for_tests.h"

namespace orla::stream {
namespace {

using model::Statistic;
using model::Time;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

Time utc(int year, unsigned month, unsigned day, int hour) {
  return Time(std::chrono::sys_days(std::chrono::year(year) / month / day)) + hours(hour);
}

Labels plug(std::uint64_t number) { return {{"plug", std::to_string(number)}}; }

std::map<Labels, LoadedRow> rows_of(const TestCloud& cloud, const std::string& table, const std::string& window,
                                    Time start) {
  const auto found = cloud.windows.rows.find({table, window, start});
  return found == cloud.windows.rows.end() ? std::map<Labels, LoadedRow>() : found->second;
}

// All windows of size/hop that start in [from, to), straight from the rule: a new one every hop from local midnight.
std::vector<Window> hopping(const std::string& zone_name, model::Duration size, model::Duration hop, Time from,
                            Time to) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(zone_name, &zone));
  const auto midnight = [&](absl::CivilDay day) {
    return model::from_ns(absl::ToUnixNanos(absl::FromCivil(absl::CivilSecond(day), zone)));
  };
  std::vector<Window> out;
  absl::CivilDay day(zone.At(absl::FromUnixNanos(model::to_ns(from))).cs);
  for (; midnight(day) < to; ++day) {
    for (Time start = midnight(day); start < midnight(day + 1); start += hop) {
      if (start >= from && start < to) out.push_back({start, start + size});
    }
  }
  return out;
}

TEST(Hopping, OnlyThePanesAndOneWindowChangeWithARow) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1d/1m"})}));
  const Time first = utc(2013, 9, 13, 0);
  std::uint64_t merges = 0;
  std::size_t most = 0;
  for (int i = 0; i < 4 * 1440; ++i) {
    const Time slice = first + minutes(i);
    ASSERT_TRUE(cloud.fold("plug", plug(0), slice, partial_of(slice, {1.0 * i})).ok());
    ASSERT_TRUE(cloud.fold("plug", plug(1), slice, partial_of(slice, {2.0 * i})).ok());
    cloud.heard("e1", slice + minutes(1));
    const CloudChanges changes = cloud.commit();
    // Per group: the pane, and the window that ends with it. The first commits publish what began before the data.
    if (i > 0) most = std::max(most, changes.windows.size());
    if (i == 2 * 1440) merges = cloud.engine->hopping().merges();
    ASSERT_EQ(cloud.row("plug", "1d/1m", slice + minutes(1) - hours(24), plug(0))->state.count,
              static_cast<std::uint64_t>(std::min(i + 1, 1440)));
  }
  EXPECT_EQ(most, 4u);
  // Two days more: 1,440 hops of two groups each.
  const double per_hop = static_cast<double>(cloud.engine->hopping().merges() - merges) / (2 * 2 * 1440);
  EXPECT_LE(per_hop, 5);
  EXPECT_GE(per_hop, 3);
  EXPECT_LE(cloud.engine->hopping().sums(), 2u * 77);  // 2 sqrt(1440) + 1 of each group
}

TEST(Hopping, ALateRowChangesThePublishedWindowsItLiesIn) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1d/1m"})}));
  const Time first = utc(2013, 9, 13, 0);
  for (int i = 0; i < 100; ++i) {
    const Time slice = first + minutes(i);
    ASSERT_TRUE(cloud.fold("plug", plug(0), slice, partial_of(slice, {1})).ok());
  }
  cloud.heard("e1", first + minutes(100));
  cloud.commit();
  const Time late = first + minutes(90);
  ASSERT_TRUE(cloud.fold("plug", plug(0), late, partial_of(late, {5})).ok());
  const CloudChanges changes = cloud.commit();
  EXPECT_EQ(changes.windows.size(), 11u);  // the pane, and windows that end from 91 to 100
  for (const WindowChange& change : changes.windows) EXPECT_EQ(change.revision, 1u);
  const LoadedRow* row = cloud.row("plug", "1d/1m", first + minutes(95) - hours(24), plug(0));
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->state.count, 96u);
  EXPECT_EQ(row->state.max, 5);
  EXPECT_EQ(cloud.row("plug", "1d/1m", first + minutes(89) - hours(24), plug(0))->state.count, 89u);
}

TEST(Hopping, OfTheOpenWindowsTheOneThatEndsNextIsShown) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1h/10m"})}));
  const Time noon = utc(2013, 9, 13, 12);
  const auto starts = [&] {
    std::set<Time> out;
    for (const auto& [key, rows] : cloud.windows.rows) {
      if (std::get<1>(key) == "1h/10m") out.insert(std::get<2>(key));
    }
    return out;
  };
  // Nothing is published yet.
  ASSERT_TRUE(cloud.fold("plug", plug(0), noon + minutes(5), partial_of(noon + minutes(5), {1})).ok());
  cloud.commit();
  EXPECT_EQ(starts(), std::set<Time>({noon - minutes(50)}));
  // It is kept up to date, and no other is shown meanwhile.
  ASSERT_TRUE(cloud.fold("plug", plug(0), noon + minutes(7), partial_of(noon + minutes(7), {2})).ok());
  ASSERT_TRUE(cloud.fold("plug", plug(0), noon + minutes(23), partial_of(noon + minutes(23), {3})).ok());
  cloud.commit();
  EXPECT_EQ(starts(), std::set<Time>({noon - minutes(50)}));
  EXPECT_EQ(cloud.row("plug", "1h/10m", noon - minutes(50), plug(0))->state.count, 2u);
  EXPECT_EQ(cloud.row("plug", "1h/10m", noon - minutes(50), plug(0))->revision, 0u);
  // Published are those that end by 12:20, and the next one has data in its last ten minutes.
  cloud.heard("e1", noon + minutes(24));
  cloud.commit();
  EXPECT_EQ(starts(), std::set<Time>({noon - minutes(50), noon - minutes(40), noon - minutes(30)}));
  EXPECT_EQ(cloud.row("plug", "1h/10m", noon - minutes(30), plug(0))->state.count, 3u);
  // The end of all inputs publishes all that hold data.
  cloud.heard("e1", model::kMaxTime);
  cloud.commit();
  EXPECT_EQ(starts().size(), 8u);  // the last one starts at 12:20
  EXPECT_EQ(cloud.row("plug", "1h/10m", noon + minutes(20), plug(0))->state.count, 1u);
}

TEST(Hopping, PublicationWaitsForItsWindows) {
  CloudLimits limits;
  limits.hopping_rows_per_change = 10;
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"1d/1h"})}), limits);
  const Time noon = utc(2013, 9, 13, 12);
  ASSERT_TRUE(cloud.fold("plug", plug(0), noon, partial_of(noon, {1})).ok());
  cloud.heard("e1", model::kMaxTime);
  const CloudChanges some = cloud.commit();
  EXPECT_TRUE(some.more);
  EXPECT_EQ(some.windows.size(), 11u);  // with the pane
  ASSERT_EQ(some.publication.size(), 1u);
  EXPECT_EQ(some.publication[0].second, noon + hours(10));
  cloud.restart();
  EXPECT_TRUE(cloud.commit().more);
  const CloudChanges rest = cloud.commit();
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(rest.windows.size(), 4u);
  EXPECT_EQ(rest.publication[0].second, model::kMaxTime);
  for (const WindowChange& change : rest.windows) EXPECT_EQ(change.revision, 0u);
}

// A file written by a cloud that folds every row into all windows it lies in.
TEST(Hopping, GoesOnWithRowsThatWereFoldedDirectly) {
  TestCloud cloud(test_fleet({test_rollup("plug", {"plug"}, {"5m", "1h/5m"})}));
  const Time noon = utc(2013, 9, 13, 12);
  const model::Partial before = partial_of(noon, {1, 2});
  cloud.windows.rows[{"plug", "5m", noon}][plug(0)] = {plug(0), 0, before};
  for (int k = 0; k < 12; ++k) {
    cloud.windows.rows[{"plug", "1h/5m", noon - minutes(5 * k)}][plug(0)] = {plug(0), 0, before};
  }
  ASSERT_TRUE(cloud.fold("plug", plug(0), noon + minutes(7), partial_of(noon + minutes(7), {4})).ok());
  cloud.heard("e1", model::kMaxTime);
  cloud.commit();
  const auto count = [&](Time start) { return cloud.row("plug", "1h/5m", start, plug(0))->state.count; };
  EXPECT_EQ(count(noon - minutes(55)), 2u);
  EXPECT_EQ(count(noon - minutes(50)), 3u);
  EXPECT_EQ(count(noon), 3u);
  EXPECT_EQ(count(noon + minutes(5)), 1u);
}

// Whatever comes in which order, with commits, errors, restarts and forgotten rows in between: after each commit a row
// of a hopping window that is there is the sum of its slices, and one that is published is there.
class HoppingOrder : public testing::TestWithParam<int> {};

TEST_P(HoppingOrder, RowsAreTheSumsOfTheirSlices) {
  base::SeededRandom random(static_cast<std::uint64_t>(GetParam()));
  struct Kind {
    std::string name;
    model::Duration size, hop;
  };
  // A day of 23 hours, one of 25, or none of these; hops that do not divide the day; sizes that are no whole hops.
  const std::vector<Kind> kinds = {{"1d/30m", hours(24), minutes(30)},
                                   {"90m/10m", minutes(90), minutes(10)},
                                   {"35h/7h", hours(35), hours(7)},
                                   {"2h/20m", hours(2), minutes(20)},
                                   {"2h/1h", hours(2), hours(1)}};
  const std::string zone = random.below(3) == 0 ? "Asia/Kolkata" : "Europe/Berlin";
  const Time first = random.below(2) == 0 ? utc(2013, 3, 30, 0) : utc(2013, 10, 26, 0);
  std::vector<std::string> names = {"10m"};
  for (const Kind& kind : kinds) names.push_back(kind.name);
  CloudLimits limits;
  if (random.below(2) == 0) limits.cached_window_rows = random.below(300);
  if (random.below(2) == 0) limits.hopping_rows_per_change = random.below(20);
  if (random.below(3) == 0) limits.hopping_sums = random.below(50);
  model::Fleet fleet = test_fleet({test_rollup("plug", {"plug"}, names),
                                   test_across("total", "plug", {}, names, Statistic::kSum, Statistic::kMean)},
                                  {"e1"}, zone);
  fleet.rollups[0].slice = fleet.rollups[1].slice = minutes(10);
  TestCloud cloud(fleet, limits);

  std::map<std::pair<Time, std::uint64_t>, model::Partial> slices;  // by start and plug
  std::map<std::string, std::vector<Window>> windows;
  constexpr int kSlices = 3 * 144;
  const Time last = first + kSlices * minutes(10);
  for (const Kind& kind : kinds) windows[kind.name] = hopping(zone, kind.size, kind.hop, first - kind.size, last);
  std::map<MemoryWindows::Key, std::map<Labels, std::uint64_t>> revisions;
  Time published = model::kMinTime;
  int front = 0;  // slices before it have come, but for late ones

  const auto check = [&] {
    const Time now = cloud.engine->publication(0);
    for (const Kind& kind : kinds) {
      for (const Window& window : windows[kind.name]) {
        std::map<std::uint64_t, model::Partial> expected;
        for (auto slice = slices.lower_bound({window.start, 0});
             slice != slices.end() && slice->first.first < window.end; ++slice) {
          expected[slice->first.second].merge(slice->second);
        }
        const auto rows = rows_of(cloud, "plug", kind.name, window.start);
        const bool must = window.end <= now || kind.name == "2h/1h";
        if (!must && rows.empty()) continue;
        ASSERT_EQ(rows.size(), expected.size()) << kind.name << " " << model::to_ns(window.start);
        model::Partial total;
        for (const auto& [number, partial] : expected) {
          ASSERT_TRUE(rows.contains(plug(number)));
          ASSERT_EQ(rows.at(plug(number)).state, partial) << kind.name << " " << model::to_ns(window.start);
          total.add_contribution(model::pick(partial, 3, Statistic::kMean));
        }
        const auto totals = rows_of(cloud, "total", kind.name, window.start);
        ASSERT_EQ(totals.size(), expected.empty() ? 0u : 1u);
        if (!expected.empty()) {
          ASSERT_EQ(totals.begin()->second.state, total);
        }
      }
    }
  };
  const auto commit = [&] {
    const Time before = cloud.engine->publication(0);
    bool more = true;
    while (more) {
      const Time standing = cloud.engine->publication(0);
      const CloudChanges changes = cloud.commit();
      more = changes.more;
      for (const WindowChange& change : changes.windows) {
        const model::TableDef& table = cloud.plan->tables[change.table];
        std::uint64_t& revision =
            revisions[{table.name, model::to_string(table.windows[change.window].spec), change.start}][*change.labels];
        revision += standing >= change.end ? 1 : 0;
        ASSERT_EQ(change.revision, revision) << model::to_string(table.windows[change.window].spec);
      }
      if (random.below(3) == 0) break;  // the rest follows with the next frame
    }
    EXPECT_GE(cloud.engine->publication(0), before);
  };

  while (front < kSlices) {
    front += static_cast<int>(random.below(random.below(10) == 0 ? 60 : 6));
    model::PartialRows rows;
    std::vector<std::uint64_t> plugs;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      // Mostly new ones, in any order; some late, some very late.
      const int back = random.below(4) == 0 ? static_cast<int>(random.below(200)) : static_cast<int>(random.below(8));
      const Time slice = first + std::max(0, std::min(front - back, kSlices - 1)) * minutes(10);
      const double value = random.below(6) == 0 ? random.unit() * 1e9 : static_cast<double>(random.below(100));
      const model::Partial partial = partial_of(slice + seconds(random.below(500)), {value});
      plugs.push_back(random.below(1 + static_cast<std::uint64_t>(front) / 60));
      rows.push_back({cloud.engine->intern(cloud.group("plug", plug(plugs.back()))).value(), slice, partial});
    }
    if (random.below(10) == 0) cloud.windows.failure = absl::UnavailableError("the disk is gone");
    const absl::Status folded = cloud.engine->fold(rows);
    if (folded.ok()) {
      for (std::size_t i = 0; i < rows.size(); ++i) slices[{rows[i].slice, plugs[i]}].merge(rows[i].partial);
    }
    if (!cloud.windows.failure.ok()) {
      const auto failed = cloud.engine->take_changes(cloud.now);
      if (failed.ok()) {
        cloud.keep(*failed);
        for (const WindowChange& change : failed->windows) {
          const model::TableDef& table = cloud.plan->tables[change.table];
          revisions[{table.name, model::to_string(table.windows[change.window].spec), change.start}][*change.labels] =
              change.revision;
        }
        cloud.engine->committed();
      }
      cloud.windows.failure = absl::OkStatus();
    }
    if (random.below(2) == 0) {
      published = std::max(published, first + (front - static_cast<int>(random.below(6))) * minutes(10));
      cloud.heard("e1", published);
    }
    if (random.below(2) == 0) {
      commit();
      if (random.below(10) == 0) check();
      if (testing::Test::HasFatalFailure()) return;
    }
    if (random.below(12) == 0) {
      commit();
      cloud.restart();
    }
  }
  cloud.heard("e1", model::kMaxTime);
  do {
    commit();
  } while (cloud.engine->publication(0) != model::kMaxTime);
  check();
  EXPECT_LE(cloud.engine->hopping().sums(), limits.hopping_sums);
  // Every window with data in it is there now, and after more data, too.
  const Time late = first + 77 * minutes(10);
  ASSERT_TRUE(cloud.fold("plug", plug(0), late, partial_of(late, {3})).ok());
  slices[{late, 0}].merge(partial_of(late, {3}));
  commit();
  check();
}

INSTANTIATE_TEST_SUITE_P(Seeds, HoppingOrder, testing::Range(1, 13));

}  // namespace
}  // namespace orla::stream
