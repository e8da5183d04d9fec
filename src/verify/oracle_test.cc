#include "verify/oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/csv_rows.h"

namespace orla::verify {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

model::RollupSpec rollup(std::string name, std::vector<std::string> by, std::vector<std::string> windows) {
  model::RollupSpec spec;
  spec.name = std::move(name);
  spec.metric = "load";
  spec.by = std::move(by);
  spec.slice = minutes(1);
  for (const std::string& window : windows) spec.windows.push_back(*model::parse_window(window));
  return spec;
}

model::RollupSpec across(std::string name, std::string from, std::vector<std::string> by, model::Statistic across,
                         model::Statistic of, std::vector<std::string> windows) {
  model::RollupSpec spec = rollup(std::move(name), std::move(by), std::move(windows));
  if (!from.empty()) {
    spec.metric.clear();
    spec.from = std::move(from);
  }
  spec.across = across;
  spec.of = of;
  return spec;
}

// A fleet with one edge that reads DEBS rows, the metric load with three decimals and 1 h of lateness.
model::Fleet fleet(std::vector<model::RollupSpec> rollups) {
  model::Fleet fleet;
  fleet.zone = "UTC";
  fleet.metrics = {{"load", "W", 3, seconds(30), hours(1)}};
  fleet.nodes.resize(1);
  fleet.nodes[0].name = "edge-1";
  fleet.inputs.resize(1);
  fleet.inputs[0].key = "edge-1/0";
  fleet.inputs[0].node = "edge-1";
  fleet.rollups = std::move(rollups);
  return fleet;
}

constexpr std::int64_t kDay = 1'377'993'600;  // 2013-09-01T00:00:00Z

// A row of house h, household 0, plug p; `at` in seconds since kDay.
std::string load(int house, int plug, std::int64_t at, const std::string& value) {
  return fmt::format("1,{},{},1,{},0,{}\n", kDay + at, value, plug, house);
}

// An oracle that has read these texts, one per input, up to their ends or the positions given.
class Verified {
 public:
  Verified(model::Fleet fleet, const std::vector<std::string>& texts, std::vector<InputEnd> ends = {})
      : plan_(model::make_plan(std::move(fleet))) {
    auto made = Oracle::create(plan_);
    EXPECT_TRUE(made.ok()) << made.status();
    oracle_ = *std::move(made);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto lines = static_cast<std::uint64_t>(std::count(texts[i].begin(), texts[i].end(), '\n'));
      const bool open_end = !texts[i].empty() && texts[i].back() != '\n';
      const InputEnd end = i < ends.size() ? ends[i] : InputEnd{{0, lines + (open_end ? 1 : 0)}, true};
      auto rows = read_csv_rows(plan_.fleet.inputs[i], base::bytes_in_memory(texts[i]));
      EXPECT_TRUE(rows.ok());
      const absl::Status status = oracle_->read(i, end, **rows);
      EXPECT_TRUE(status.ok()) << status;
    }
    oracle_->finish();
  }

  // All windows of a rollup: "{labels} start+length count sum min max mean stddev first last", in minutes since kDay.
  std::vector<std::string> windows(const std::string& rollup, const std::string& window) const {
    std::vector<std::string> all;
    for (const Oracle::Table& table : oracle_->tables()) {
      if (table.name != rollup || table.window != window) continue;
      for (const Cell& cell : table.sheet->cells()) {
        const ExpectedWindow expected = oracle_->expected(table, cell);
        const model::Statistics& s = expected.shown;
        std::string line = fmt::format("{} {}+{} n={} sum={} min={} max={} mean={} sd={}",
                                       model::to_string(model::Series{"", table.groups->labels(cell.group)}),
                                       (cell.window.start - model::from_ns(kDay * 1'000'000'000)) / minutes(1),
                                       (expected.end - cell.window.start) / minutes(1), s.count, s.sum, s.min, s.max,
                                       s.mean, s.stddev);
        if (expected.has_order) line += fmt::format(" first={} last={}", s.first, s.last);
        all.push_back(line);
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  const model::Ledger& ledger(const std::string& key = "edge-1/0") const { return oracle_->ledgers().at(key); }
  const Oracle& oracle() const { return *oracle_; }

 private:
  model::Plan plan_;
  std::unique_ptr<Oracle> oracle_;
};

using Lines = std::vector<std::string>;

TEST(Oracle, EveryStatisticOfAWindow) {
  // 2 4 4 4 5 5 7 9: mean 5, deviation 2. Out of order and with equal rows; first and last are by (time, value).
  std::string text;
  for (const auto& [at, value] :
       {std::pair{10, "4"}, {2, "4"}, {50, "2"}, {50, "9"}, {2, "5"}, {20, "5"}, {20, "7"}, {10, "4"}}) {
    text += load(0, 3, at, value);
  }
  const Verified run(fleet({rollup("plug_load", {"house", "household", "plug"}, {"1m"})}), {text});
  EXPECT_EQ(run.windows("plug_load", "1m"),
            Lines{"{house=0,household=0,plug=3} 0+1 n=8 sum=40 min=2 max=9 mean=5 sd=2 first=4 last=9"});
  EXPECT_EQ(run.ledger().received, 8u);
  EXPECT_EQ(run.ledger().aggregated, 8u);
  EXPECT_EQ(run.ledger().unaccounted(), 0);
}

TEST(Oracle, DecimalsAreSummedAsDecimals) {
  const Verified run(fleet({rollup("all", {}, {"1m"})}), {load(0, 1, 0, "0.1") + load(0, 2, 1, "0.2")});
  EXPECT_EQ(run.windows("all", "1m"), Lines{" 0+1 n=2 sum=0.3 min=0.1 max=0.2 mean=0.15 sd=0.05 first=0.1 last=0.2"});
}

TEST(Oracle, ValuesThatAreNoDecimalsAndMinusZero) {
  const Verified run(fleet({rollup("all", {}, {"1m"})}), {load(0, 1, 0, "-0.0") + load(0, 2, 1, "0.0005")});
  EXPECT_EQ(run.windows("all", "1m"),
            Lines{" 0+1 n=2 sum=0.0005 min=0 max=0.0005 mean=0.00025 sd=0.00025 first=0 last=0.0005"});
}

TEST(Oracle, WindowsGroupsAndMissingLabels) {
  const std::string text = load(0, 1, 59, "1") + load(0, 2, 60, "2") + load(1, 1, 899, "4") + load(1, 1, 900, "8");
  const Verified run(fleet({rollup("by_house", {"house"}, {"1m", "15m"}), rollup("by_floor", {"floor"}, {"1d"})}),
                     {text});
  EXPECT_EQ(run.windows("by_house", "1m"), (Lines{"{house=0} 0+1 n=1 sum=1 min=1 max=1 mean=1 sd=0 first=1 last=1",
                                                  "{house=0} 1+1 n=1 sum=2 min=2 max=2 mean=2 sd=0 first=2 last=2",
                                                  "{house=1} 14+1 n=1 sum=4 min=4 max=4 mean=4 sd=0 first=4 last=4",
                                                  "{house=1} 15+1 n=1 sum=8 min=8 max=8 mean=8 sd=0 first=8 last=8"}));
  EXPECT_EQ(run.windows("by_house", "15m"),
            (Lines{"{house=0} 0+15 n=2 sum=3 min=1 max=2 mean=1.5 sd=0.5 first=1 last=2",
                   "{house=1} 0+15 n=1 sum=4 min=4 max=4 mean=4 sd=0 first=4 last=4",
                   "{house=1} 15+15 n=1 sum=8 min=8 max=8 mean=8 sd=0 first=8 last=8"}));
  EXPECT_EQ(run.windows("by_floor", "1d").size(), 1u);
  EXPECT_EQ(run.windows("by_floor", "1d")[0].substr(0, 26), "{floor=} 0+1440 n=4 sum=15");
}

TEST(Oracle, ADayOfTwentyFiveHoursAndAHoppingWindow) {
  // Berlin, 2013-10-27: 22:00 UTC the day before to 23:00 UTC.
  model::Fleet spec = fleet({rollup("all", {}, {"1d", "2h", "1h/30m"})});
  spec.zone = "Europe/Berlin";
  const std::int64_t from = 1'382'824'800 - kDay;  // 2013-10-26T22:00:00Z
  const std::int64_t minute = from / 60;
  const Verified run(
      spec, {load(0, 1, from, "1") + load(0, 1, from + 25 * 3600 - 1, "2") + load(0, 1, from + 25 * 3600, "4")});
  EXPECT_EQ(run.windows("all", "1d"),
            (Lines{fmt::format(" {}+1500 n=2 sum=3 min=1 max=2 mean=1.5 sd=0.5 first=1 last=2", minute),
                   fmt::format(" {}+1440 n=1 sum=4 min=4 max=4 mean=4 sd=0 first=4 last=4", minute + 1500)}));
  EXPECT_EQ(run.windows("all", "2h"),
            (Lines{fmt::format(" {}+120 n=1 sum=1 min=1 max=1 mean=1 sd=0 first=1 last=1", minute),
                   fmt::format(" {}+60 n=1 sum=2 min=2 max=2 mean=2 sd=0 first=2 last=2", minute + 1440),
                   fmt::format(" {}+120 n=1 sum=4 min=4 max=4 mean=4 sd=0 first=4 last=4", minute + 1500)}));
  EXPECT_EQ(run.windows("all", "1h/30m"),
            (Lines{fmt::format(" {}+60 n=1 sum=1 min=1 max=1 mean=1 sd=0 first=1 last=1", minute - 30),
                   fmt::format(" {}+60 n=1 sum=1 min=1 max=1 mean=1 sd=0 first=1 last=1", minute),
                   fmt::format(" {}+60 n=1 sum=2 min=2 max=2 mean=2 sd=0 first=2 last=2", minute + 1440),
                   fmt::format(" {}+60 n=2 sum=6 min=2 max=4 mean=3 sd=1 first=2 last=4", minute + 1470),
                   fmt::format(" {}+60 n=1 sum=4 min=4 max=4 mean=4 sd=0 first=4 last=4", minute + 1500)}));
}

TEST(Oracle, AHouseIsTheSumOfTheMeansOfItsPlugs) {
  // Plug 1: mean 2 in minute 0; plug 2: mean 10 in minute 0, 20 in minute 1; house 1: 7.
  const std::string text =
      load(0, 1, 0, "1") + load(0, 1, 30, "3") + load(0, 2, 1, "10") + load(0, 2, 61, "20") + load(1, 1, 2, "7");
  using model::Statistic;
  const Verified run(fleet({rollup("plug_load", {"house", "household", "plug"}, {"1m"}),
                            across("house_load", "plug_load", {"house"}, Statistic::kSum, Statistic::kMean, {"1m"}),
                            across("highest", "house_load", {}, Statistic::kMax, Statistic::kMean, {"1m"}),
                            across("straight", "", {"house"}, Statistic::kMean, Statistic::kLast, {"1m", "2m"})}),
                     {text});
  EXPECT_EQ(run.windows("house_load", "1m"), (Lines{"{house=0} 0+1 n=2 sum=12 min=2 max=10 mean=6 sd=4",
                                                    "{house=0} 1+1 n=1 sum=20 min=20 max=20 mean=20 sd=0",
                                                    "{house=1} 0+1 n=1 sum=7 min=7 max=7 mean=7 sd=0"}));
  // Reads the sums of house_load: 12 and 7, then 20.
  EXPECT_EQ(run.windows("highest", "1m"),
            (Lines{" 0+1 n=2 sum=19 min=7 max=12 mean=9.5 sd=2.5", " 1+1 n=1 sum=20 min=20 max=20 mean=20 sd=0"}));
  // The last of each series: 3 and 10 in minute 0, 3 and 20 over two minutes.
  EXPECT_EQ(run.windows("straight", "1m"), (Lines{"{house=0} 0+1 n=2 sum=13 min=3 max=10 mean=6.5 sd=3.5",
                                                  "{house=0} 1+1 n=1 sum=20 min=20 max=20 mean=20 sd=0",
                                                  "{house=1} 0+1 n=1 sum=7 min=7 max=7 mean=7 sd=0"}));
  EXPECT_EQ(run.windows("straight", "2m"), (Lines{"{house=0} 0+2 n=2 sum=23 min=3 max=20 mean=11.5 sd=8.5",
                                                  "{house=1} 0+2 n=1 sum=7 min=7 max=7 mean=7 sd=0"}));
  EXPECT_EQ(run.oracle().tables().size(), 5u);  // not the hidden table of whole series
}

TEST(Oracle, ContributionsAreSummedAsBinaryNumbers) {
  // The nearest double to the exact sum of the doubles 0.1, 0.2 and 0.3 is 0.6; adding them one after another gives
  // 0.6000000000000001. 64 bits hold the exact sum.
  const std::string text = load(0, 1, 0, "0.1") + load(0, 2, 0, "0.2") + load(0, 3, 0, "0.3");
  const Verified run(fleet({rollup("plug_load", {"plug"}, {"1m"}),
                            across("sum", "plug_load", {}, model::Statistic::kSum, model::Statistic::kMean, {"1m"})}),
                     {text});
  const auto exact = static_cast<double>(static_cast<long double>(0.1) + 0.2 + 0.3);
  EXPECT_NE(exact, 0.1 + 0.2 + 0.3);
  EXPECT_EQ(run.windows("sum", "1m")[0].substr(0, 20), fmt::format(" 0+1 n=3 sum={} min=0.1", exact).substr(0, 20));
}

TEST(Oracle, LateSamplesAndTheirSet) {
  const std::string text = load(0, 1, 7200, "1") + load(0, 1, 3600, "2") + load(0, 1, 3599, "3") + load(0, 2, 0, "4");
  const Verified run(fleet({rollup("all", {}, {"1d"})}), {text});
  EXPECT_EQ(run.windows("all", "1d")[0].substr(0, 18), " 0+1440 n=3 sum=7 ");
  EXPECT_EQ(run.ledger().late.count, 1u);
  const model::Series series{"load", {{"house", "0"}, {"household", "0"}, {"plug", "1"}}};
  EXPECT_EQ(run.ledger().late.sum,
            model::sample_hash(model::identity(series), model::from_ns((kDay + 3599) * 1'000'000'000), 3));
}

TEST(Oracle, RejectedRowsNaNCarriageReturnsAndAHalfWrittenLine) {
  std::string text = load(0, 1, 0, "1") + load(0, 1, 1, "nan") + "garbage\n" + load(0, 1, 2, "2");
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, "\r");
  text += "5,1377993603,3,1,1,";
  const Verified run(fleet({rollup("all", {}, {"1m"})}), {text});
  EXPECT_EQ(run.windows("all", "1m"), Lines{" 0+1 n=2 sum=3 min=1 max=2 mean=1.5 sd=0.5 first=1 last=2"});
  EXPECT_EQ(run.ledger().received, 5u);
  EXPECT_EQ(run.ledger().rejected, (model::ReasonCounts{{"malformed", 2}, {"not_finite", 1}}));
  model::SetDigest rows;
  for (const std::uint64_t row : {2, 3, 5}) rows.add(model::row_hash("edge-1/0", row));
  EXPECT_EQ(run.ledger().rejected_set, rows);
  EXPECT_EQ(run.ledger().unaccounted(), 0);
}

TEST(Oracle, UnmatchedSamples) {
  const std::string text = "1,1377993600,5,0,1,0,0\n" + load(0, 1, 0, "1");
  const Verified run(fleet({rollup("all", {}, {"1m"})}), {text});  // `work` is not declared
  EXPECT_EQ(run.ledger().unmatched, 1u);
  EXPECT_EQ(run.ledger().aggregated, 1u);
  model::Fleet idle = fleet({});
  const Verified none(idle, {text});  // `load` is declared, but no rollup wants it
  EXPECT_EQ(none.ledger().unmatched, 2u);
}

TEST(Oracle, JumpsAreHeldUntilTheEnd) {
  model::Fleet spec = fleet({rollup("all", {}, {"1d"})});
  spec.inputs[0].max_jump = hours(1);
  const std::string text = load(0, 1, 0, "1") + load(0, 1, 100'000, "2") + load(0, 1, 100'010, "3");
  const Verified stopped(spec, {text}, {{{0, 3}, false}});
  EXPECT_EQ(stopped.ledger().held, 2u);
  EXPECT_EQ(stopped.ledger().aggregated, 1u);
  const Verified ended(spec, {text});
  EXPECT_EQ(ended.ledger().held, 0u);
  EXPECT_EQ(ended.ledger().rejected, (model::ReasonCounts{{"max_jump", 2}}));
  EXPECT_EQ(ended.ledger().unaccounted(), 0);
  const Verified real(spec, {text + load(0, 1, 100'020, "4")});
  EXPECT_EQ(real.ledger().aggregated, 4u);
}

TEST(Oracle, ReadsUpToThePosition) {
  const std::string text = load(0, 1, 0, "1") + load(0, 1, 1, "2") + load(0, 1, 2, "4");
  const Verified run(fleet({rollup("all", {}, {"1m"})}), {text}, {{{0, 2}, false}});
  EXPECT_EQ(run.ledger().received, 2u);
  EXPECT_EQ(run.windows("all", "1m")[0].substr(0, 14), " 0+1 n=2 sum=3");
}

TEST(Oracle, AnInputThatIsShorterThanReportedIsAnError) {
  const model::Plan plan = model::make_plan(fleet({rollup("all", {}, {"1m"})}));
  auto oracle = Oracle::create(plan);
  ASSERT_TRUE(oracle.ok());
  auto rows = read_csv_rows(plan.fleet.inputs[0], base::bytes_in_memory(load(0, 1, 0, "1")));
  ASSERT_TRUE(rows.ok());
  const absl::Status status = (*oracle)->read(0, {{0, 2}, false}, **rows);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(std::string(status.message()).find("edge-1/0 ends at row 1"), std::string::npos) << status;
}

TEST(Oracle, TwoEdgesShareAFileAndASeriesSeenTwiceIsNamed) {
  model::Fleet spec = fleet({rollup("all", {}, {"1m"})});
  spec.nodes.push_back(spec.nodes[0]);
  spec.nodes[1].name = "edge-2";
  spec.inputs.push_back(spec.inputs[0]);
  spec.inputs[1].key = "edge-2/0";
  spec.inputs[1].node = "edge-2";
  spec.inputs[0].select = {{"house", {"0"}}};
  spec.inputs[1].select = {{"house", {"1"}}};
  const std::string text = load(0, 1, 0, "1") + load(1, 1, 1, "2") + "bad\n";
  const Verified run(spec, {text, text});
  EXPECT_EQ(run.windows("all", "1m")[0].substr(0, 14), " 0+1 n=2 sum=3");
  EXPECT_EQ(run.ledger("edge-1/0").received, 2u);
  EXPECT_EQ(run.ledger("edge-2/0").received, 2u);
  EXPECT_TRUE(run.oracle().shared_series().empty());

  spec.inputs[1].node = "edge-1";
  spec.inputs[1].key = "edge-1/1";
  spec.inputs[1].select = {};
  const Verified shared(spec, {text, text});
  EXPECT_EQ(shared.oracle().shared_series(), Lines{"edge-1: load{house=0,household=0,plug=1}"});
}

TEST(Oracle, NoRowsNoWindows) {
  const Verified run(fleet({rollup("all", {}, {"1m"})}), {""});
  EXPECT_TRUE(run.windows("all", "1m").empty());
  EXPECT_EQ(run.ledger().received, 0u);
}

}  // namespace
}  // namespace orla::verify
