#include "model/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/hash.h"

namespace orla::model {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;

RollupSpec merge(std::string name, std::string metric, std::vector<std::string> by) {
  RollupSpec rollup;
  rollup.name = std::move(name);
  rollup.metric = std::move(metric);
  rollup.by = std::move(by);
  rollup.slice = minutes(1);
  rollup.windows = {parse_window("1m").value()};
  return rollup;
}

RollupSpec across(std::string name, std::string from, std::vector<std::string> by, Statistic what) {
  RollupSpec rollup = merge(std::move(name), "", std::move(by));
  rollup.from = std::move(from);
  rollup.across = what;
  return rollup;
}

Fleet small_fleet() {
  Fleet fleet;
  fleet.zone = "Europe/Berlin";
  fleet.metrics = {{"load", "W", 3, {}, {}}, {"work", "kWh", 3, {}, {}}};
  return fleet;
}

std::vector<std::string> names(const TableDef& table) {
  std::vector<std::string> out;
  for (const TableWindow& w : table.windows) out.push_back((w.hidden ? "hidden " : "") + to_string(w.spec));
  return out;
}

TEST(Plan, MergeRollupsAreStreams) {
  Fleet fleet = small_fleet();
  fleet.rollups = {merge("plug", "load", {"house", "plug"}), merge("house", "", {"house"})};
  fleet.rollups[1].from = "plug";
  fleet.rollups[1].emit = seconds(5);
  const Plan plan = make_plan(fleet);
  ASSERT_EQ(plan.streams.size(), 2u);
  EXPECT_EQ(plan.streams[1].name, "house");
  EXPECT_EQ(plan.streams[1].metric, 0u);
  EXPECT_EQ(plan.streams[1].decimals, 3);
  EXPECT_EQ(plan.streams[1].emit, Duration(seconds(5)));
  EXPECT_EQ(plan.streams[0].emit, Duration::zero());
  EXPECT_THAT(plan.streams[1].by, ElementsAre("house"));
  EXPECT_EQ(plan.table("house")->stream, 1u);
  EXPECT_FALSE(plan.table("house")->source);
  EXPECT_THAT(plan.streams_of_metric, ElementsAre(ElementsAre(0, 1), ElementsAre()));
  EXPECT_EQ(plan.table("nothing"), nullptr);
}

TEST(Plan, AcrossFromAMetricReadsWholeSeries) {
  Fleet fleet = small_fleet();
  fleet.rollups = {merge("total", "load", {}), merge("peak", "load", {"house"})};
  fleet.rollups[0].across = Statistic::kSum;
  fleet.rollups[0].slice = minutes(6);
  fleet.rollups[0].windows = {parse_window("30m").value()};
  fleet.rollups[1].across = Statistic::kMax;
  fleet.rollups[1].slice = minutes(4);
  fleet.rollups[1].emit = seconds(10);
  fleet.rollups[1].windows = {parse_window("1d").value()};
  const Plan plan = make_plan(fleet);
  ASSERT_EQ(plan.streams.size(), 1u);
  EXPECT_EQ(plan.streams[0].name, "load/series");
  EXPECT_TRUE(plan.streams[0].whole_series);
  EXPECT_EQ(plan.streams[0].slice, Duration(minutes(2)));
  EXPECT_EQ(plan.streams[0].emit, Duration(seconds(10)));
  ASSERT_EQ(plan.tables.size(), 3u);
  EXPECT_TRUE(plan.tables[0].hidden);
  EXPECT_THAT(names(plan.tables[0]), testing::UnorderedElementsAre("hidden 30m", "hidden 1d"));
  EXPECT_EQ(plan.table("total")->source, 0u);
  EXPECT_EQ(plan.table("peak")->source, 0u);
}

TEST(Plan, ChainsAndForecastsAddHiddenWindowsDownToTheRoot) {
  Fleet fleet = small_fleet();
  // Declared in the wrong order on purpose: sources still come first.
  fleet.rollups = {across("city", "house", {}, Statistic::kSum), across("house", "plug", {"house"}, Statistic::kSum),
                   merge("plug", "load", {"house", "plug"})};
  fleet.rollups[0].windows = {parse_window("1d").value()};
  fleet.rollups[1].windows = {parse_window("15m").value()};
  fleet.forecasts = {{{"city", "plug"}, "debs2014", {minutes(1), hours(2)}}};
  const Plan plan = make_plan(fleet);
  ASSERT_EQ(plan.tables.size(), 3u);
  EXPECT_EQ(plan.tables[0].name, "plug");
  EXPECT_EQ(plan.tables[1].name, "house");
  EXPECT_EQ(plan.tables[2].name, "city");
  EXPECT_EQ(plan.tables[2].source, 1u);
  EXPECT_EQ(plan.tables[1].source, 0u);
  EXPECT_EQ(plan.tables[2].metric, 0u);
  // Berlin moves its clock by one hour: two-hour steps are no plain windows there, one-minute ones are.
  EXPECT_THAT(names(plan.tables[2]), ElementsAre("1d", "hidden 1m", "hidden steps:2h"));
  EXPECT_THAT(names(plan.tables[1]), ElementsAre("15m", "hidden 1d", "hidden 1m", "hidden steps:2h"));
  EXPECT_THAT(names(plan.tables[0]), ElementsAre("1m", "hidden steps:2h", "hidden 15m", "hidden 1d"));
  ASSERT_EQ(plan.forecasts.size(), 2u);
  EXPECT_EQ(plan.forecasts[0].table, 2u);
  EXPECT_EQ(plan.forecasts[0].steps[0].window, 1u);
  EXPECT_EQ(plan.forecasts[0].steps[1].window, 2u);
  EXPECT_EQ(plan.forecasts[1].table, 0u);
  EXPECT_EQ(plan.forecasts[1].steps[0].window, 0u);
  EXPECT_EQ(plan.forecasts[1].steps[1].window, 1u);
}

TEST(Plan, StepsOfAZoneWithoutChangesArePlainWindows) {
  Fleet fleet = small_fleet();
  fleet.zone = "UTC";
  fleet.rollups = {merge("plug", "load", {"plug"})};
  fleet.forecasts = {{{"plug"}, "debs2014", {hours(2), hours(24)}}};
  EXPECT_THAT(names(*make_plan(fleet).table("plug")), ElementsAre("1m", "hidden 2h", "hidden 1d"));
}

TEST(Plan, DefinitionsHashWhatAPartialDependsOn) {
  const auto hash = [](const std::function<void(Fleet&)>& change) {
    Fleet fleet = small_fleet();
    fleet.rollups = {merge("plug", "load", {"house", "plug"})};
    change(fleet);
    return make_plan(fleet).streams[0].definition;
  };
  const auto same = hash([](Fleet&) {});
  // Stable across machines and versions: it is stored and sent.
  EXPECT_EQ(same, base::hash64("4:load;2:by;5:house;4:plug;slice_ns=60000000000;decimals=3"));
  EXPECT_EQ(same, hash([](Fleet& f) { f.rollups[0].name = "other"; }));
  EXPECT_EQ(same, hash([](Fleet& f) { f.rollups[0].windows = {parse_window("1d").value()}; }));
  EXPECT_NE(same, hash([](Fleet& f) { f.rollups[0].metric = "work"; }));
  EXPECT_NE(same, hash([](Fleet& f) { f.rollups[0].by = {"house"}; }));
  EXPECT_NE(same, hash([](Fleet& f) { f.rollups[0].by = {"housep", "lug"}; }));
  EXPECT_NE(same, hash([](Fleet& f) { f.rollups[0].slice = seconds(30); }));
  EXPECT_NE(same, hash([](Fleet& f) { f.metrics[0].decimals = 2; }));
  EXPECT_NE(same, hash([](Fleet& f) { f.rollups[0].across = Statistic::kSum; }));
  // Only when they are asked for, so that data from before stays its rollup's.
  EXPECT_EQ(hash([](Fleet& f) {
              f.rollups[0].quantiles = true;
              f.rollups[0].distinct = {"plug"};
            }),
            base::hash64("4:load;2:by;5:house;4:plug;slice_ns=60000000000;decimals=3;quantiles;distinct=4:plug;"));
  EXPECT_NE(same, hash([](Fleet& f) { f.rollups[0].quantiles = true; }));
}

TEST(Plan, SketchesAreOfTheRollupThatAsks) {
  Fleet fleet = small_fleet();
  fleet.rollups = {merge("plug", "load", {"house", "plug"}), across("sum", "plug", {}, Statistic::kSum),
                   merge("pool", "", {"house"}), across("top", "", {}, Statistic::kMax)};
  fleet.rollups[0].distinct = {"plug"};
  fleet.rollups[1].quantiles = true;
  fleet.rollups[2].from = "plug";
  fleet.rollups[3].metric = "load";
  fleet.rollups[3].quantiles = true;
  const Plan plan = make_plan(fleet);
  EXPECT_EQ(plan.table("plug")->sketches, (SketchKinds{false, true}));
  EXPECT_EQ(plan.table("sum")->sketches, (SketchKinds{true, false}));
  EXPECT_EQ(plan.table("pool")->sketches, SketchKinds{});
  EXPECT_EQ(plan.table("top")->sketches, (SketchKinds{true, false}));
  EXPECT_EQ(plan.table("load/series")->sketches, SketchKinds{});
  EXPECT_EQ(plan.streams[*plan.table("plug")->stream].sketches(), (SketchKinds{false, true}));
}

TEST(Plan, FeedersAreTheEdgesThatCanProduceAMetric) {
  Fleet fleet = small_fleet();
  fleet.metrics.push_back({"temperature", "C", 1, {}, {}});
  for (const char* name : {"e1", "e2", "cloud"}) {
    NodeSpec node;
    node.name = name;
    fleet.nodes.push_back(node);
  }
  InputSpec debs;
  debs.node = "e2";
  InputSpec mapped;
  mapped.node = "e1";
  mapped.schema = InputSpec::Schema::kMapping;
  mapped.mapping.values = {{"temperature", "t"}, {"load", "w1"}, {"load", "w2"}};
  fleet.inputs = {debs, mapped};
  const Plan plan = make_plan(fleet);
  EXPECT_THAT(plan.feeders(0), ElementsAre("e1", "e2"));
  EXPECT_THAT(plan.feeders(1), ElementsAre("e2"));
  EXPECT_THAT(plan.feeders(2), ElementsAre("e1"));
  EXPECT_THAT(metrics_of(mapped), ElementsAre("temperature", "load"));
}

}  // namespace
}  // namespace orla::model
