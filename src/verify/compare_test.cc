// The comparison must ring: every kind of damage to a right answer is told.
#include "verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "verify/csv_rows.h"

namespace orla::verify {
namespace {

// One edge with one input, and the load in watts; no rollup yet.
model::Fleet one_edge() {
  model::Fleet fleet;
  fleet.zone = "UTC";
  fleet.metrics = {{"load", "W", 3, std::chrono::seconds(30), std::chrono::hours(1)}};
  fleet.nodes.resize(1);
  fleet.nodes[0].name = "edge-1";
  fleet.inputs.resize(1);
  fleet.inputs[0].key = "edge-1/0";
  fleet.inputs[0].node = "edge-1";
  return fleet;
}

// Of it, by plug and minute; no windows yet.
model::RollupSpec plug_load() {
  model::RollupSpec plugs;
  plugs.name = "plug_load";
  plugs.metric = "load";
  plugs.by = {"plug"};
  plugs.slice = std::chrono::minutes(1);
  return plugs;
}

// Two plugs over two minutes, with a sum over them and a forecast's hidden windows; and what a right cloud holds.
class Comparing : public ::testing::Test {
 protected:
  Comparing() {
    model::Fleet fleet = one_edge();
    model::RollupSpec plugs = plug_load();
    plugs.windows = {*model::parse_window("1m")};
    model::RollupSpec total = plugs;
    total.name = "total";
    total.metric.clear();
    total.from = "plug_load";
    total.by = {};
    total.across = model::Statistic::kSum;
    plugs.quantiles = total.quantiles = true;
    plugs.distinct = {"house", "plug"};
    fleet.rollups = {plugs, total};
    fleet.forecasts = {{{"plug_load"}, "debs2014", {std::chrono::minutes(5)}}};
    plan_ = model::make_plan(fleet);
    oracle_ = Oracle::create(plan_).value();
    const std::string text =
        "1,0,1,1,1,0,0\n2,10,2,1,1,0,0\n3,20,0.5,1,2,0,0\n4,60,0,1,1,0,0\nbad\n5,7200,3,1,2,0,0\n6,1,9,1,2,0,0\n";
    auto rows = read_csv_rows(plan_.fleet.inputs[0], base::bytes_in_memory(text)).value();
    EXPECT_TRUE(oracle_->read(0, {{0, 7}, true}, *rows).ok());
    oracle_->finish();

    // By hand. minutes 0, 1, 120; plug 1: (1, 2), (0); plug 2: (0.5), then (3); the sample at 1 s is late.
    const auto row = [](const char* table, std::vector<model::Label> labels, int minute, model::Statistics shown,
                        bool has_order) {
      const model::Time start = model::from_ns(0) + std::chrono::minutes(minute);
      return StoredWindow{table, "1m", std::move(labels), start, start + std::chrono::minutes(1), shown, has_order};
    };
    windows_ = {row("plug_load", {{"plug", "1"}}, 0, {2, 3, 1, 2, 1.5, 0.5, 1, 2, 1, 2, 2, 2, 1}, true),
                row("plug_load", {{"plug", "1"}}, 1, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, true),
                row("plug_load", {{"plug", "2"}}, 0, {1, 0.5, 0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1}, true),
                row("plug_load", {{"plug", "2"}}, 120, {1, 3, 3, 3, 3, 0, 3, 3, 3, 3, 3, 3, 1}, true),
                row("total", {}, 0, {2, 2, 0.5, 1.5, 1, 0.5, 0, 0, 0.5, 1.5, 1.5, 1.5}, false),
                row("total", {}, 1, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false),
                row("total", {}, 120, {1, 3, 3, 3, 3, 0, 0, 0, 3, 3, 3, 3}, false)};
    ledger_.received = 7;
    ledger_.aggregated = 5;
    ledger_.late.add(
        model::sample_hash(model::identity(model::Series{"load", {{"house", "0"}, {"household", "0"}, {"plug", "2"}}}),
                           model::from_ns(1'000'000'000), 9));
    ledger_.rejected["malformed"] = 1;
    ledger_.rejected_set.add(model::row_hash("edge-1/0", 5));
  }

  Report compare() const {
    Comparison comparison(plan_, *oracle_);
    for (const StoredWindow& window : windows_) comparison.add(window);
    comparison.add("edge-1/0", ledger_);
    return comparison.finish();
  }

  model::Plan plan_;
  std::unique_ptr<Oracle> oracle_;
  std::vector<StoredWindow> windows_;
  model::Ledger ledger_;
};

// Of a paned hopping window that is not published the row may be missing, and only then.
TEST(ComparingHopping, AWindowThatIsNotPublishedMayBeMissing) {
  model::Fleet fleet = one_edge();
  model::RollupSpec plugs = plug_load();
  plugs.windows = {*model::parse_window("10m/2m"), *model::parse_window("2m/1m")};
  fleet.rollups = {plugs};
  const model::Plan plan = model::make_plan(fleet);
  const auto missing = [&](std::optional<int> minute) {
    const std::unique_ptr<Oracle> oracle = Oracle::create(plan).value();
    auto rows = read_csv_rows(fleet.inputs[0], base::bytes_in_memory("1,60,1,1,1,0,0\n")).value();
    EXPECT_TRUE(oracle->read(0, {{0, 1}, true}, *rows).ok());
    oracle->finish();
    Comparison comparison(plan, *oracle);
    if (minute) comparison.published("plug_load", model::from_ns(0) + std::chrono::minutes(*minute));
    return comparison.finish().windows_missing;
  };
  // Windows of ten minutes that end at 2, 4, ..., 10; of the others two hold the sample.
  EXPECT_EQ(missing(std::nullopt), 7u);
  EXPECT_EQ(missing(1), 2u);
  EXPECT_EQ(missing(4), 4u);
  EXPECT_EQ(missing(10), 7u);
}

TEST_F(Comparing, TheRightAnswerPasses) {
  const Report report = compare();
  EXPECT_TRUE(report.passed()) << ::testing::PrintToString(report.examples);
  EXPECT_EQ(report.windows_compared, 7u);
  EXPECT_EQ(report.differences(), 0u);
  EXPECT_EQ(report.inputs_compared, 1u);
  EXPECT_EQ(report.totals.received, 7u);
  EXPECT_EQ(report.totals.late.count, 1u);
  EXPECT_TRUE(report.examples.empty());
}

TEST_F(Comparing, AChangedCellIsToldWhicheverItIs) {
  const std::vector<StoredWindow> right = windows_;
  const auto next = [](double v) { return std::nextafter(v, 1e9); };
  const std::vector<std::pair<std::string, std::function<void(StoredWindow&)>>> damages = {
      {"end", [](StoredWindow& w) { w.end += std::chrono::nanoseconds(1); }},
      {"count", [](StoredWindow& w) { ++w.shown.count; }},
      {"sum", [&](StoredWindow& w) { w.shown.sum = next(w.shown.sum); }},
      {"min", [&](StoredWindow& w) { w.shown.min = next(w.shown.min); }},
      {"max", [&](StoredWindow& w) { w.shown.max = next(w.shown.max); }},
      {"mean", [&](StoredWindow& w) { w.shown.mean = std::numeric_limits<double>::quiet_NaN(); }},
      {"stddev", [&](StoredWindow& w) { w.shown.stddev = next(w.shown.stddev); }},
      {"p50", [](StoredWindow& w) { w.shown.p50 = *w.shown.p50 * 1.0041 + 1e-300; }},
      {"p90", [](StoredWindow& w) { w.shown.p90.reset(); }},
      {"p99", [](StoredWindow& w) { w.shown.p99 = -*w.shown.p99 - 1; }},
      {"p999", [](StoredWindow& w) { w.shown.p999 = std::numeric_limits<double>::quiet_NaN(); }},
      {"distinct", [](StoredWindow& w) { w.shown.distinct = w.shown.distinct.value_or(1) + 1; }},
      {"first and last", [](StoredWindow& w) { w.has_order = !w.has_order; }}};
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (const auto& [column, damage] : damages) {
      windows_ = right;
      damage(windows_[i]);
      const Report report = compare();
      EXPECT_FALSE(report.passed()) << column;
      EXPECT_EQ(report.windows_different, 1u) << column;
      EXPECT_EQ(report.windows_compared, right.size());
      ASSERT_EQ(report.examples.size(), 1u);
      EXPECT_NE(report.examples[0].find(column + " is"), std::string::npos) << report.examples[0];
    }
  }
  windows_ = right;
  windows_[0].shown.last = 7;
  EXPECT_EQ(compare().examples,
            std::vector<std::string>{"plug_load{plug=1} 1970-01-01T00:00:00+00:00, window 1m: last is 7, expected 2"});
}

TEST_F(Comparing, MinusZeroIsZero) {
  windows_[1].shown.sum = windows_[1].shown.first = -0.0;
  EXPECT_TRUE(compare().passed());
}

TEST_F(Comparing, QuantilesMayBeAsFarAwayAsIsStated) {
  windows_[0].shown.p90 = 2 * (1 + 1.0 / 256);
  EXPECT_TRUE(compare().passed());
  windows_[0].shown.p90 = std::nextafter(2 * (1 + 1.0 / 256), 3);
  EXPECT_FALSE(compare().passed());
}

TEST_F(Comparing, ADroppedWindowIsMissing) {
  const std::vector<StoredWindow> right = windows_;
  for (std::size_t i = 0; i < right.size(); ++i) {
    windows_ = right;
    windows_.erase(windows_.begin() + static_cast<std::ptrdiff_t>(i));
    const Report report = compare();
    EXPECT_FALSE(report.passed());
    EXPECT_EQ(report.windows_missing, 1u);
    EXPECT_EQ(report.windows_compared, right.size() - 1);
    EXPECT_NE(report.examples[0].find("is missing"), std::string::npos);
  }
}

TEST_F(Comparing, AnAddedWindowIsExtra) {
  const std::vector<StoredWindow> right = windows_;
  const auto extra = [&](const std::function<void(StoredWindow&)>& change) {
    windows_ = right;
    StoredWindow added = right[0];
    change(added);
    windows_.push_back(added);
    const Report report = compare();
    EXPECT_FALSE(report.passed());
    EXPECT_EQ(report.windows_compared, right.size());
    return report.windows_extra;
  };
  EXPECT_EQ(extra([](StoredWindow& w) { w.start += std::chrono::hours(5); }), 1u);
  EXPECT_EQ(extra([](StoredWindow& w) { w.labels[0].second = "3"; }), 1u);
  EXPECT_EQ(extra([](StoredWindow& w) { w.labels.clear(); }), 1u);
  EXPECT_EQ(extra([](StoredWindow& w) { w.table = "other"; }), 1u);
  EXPECT_EQ(extra([](StoredWindow& w) { w.window = "15m"; }), 1u);
  EXPECT_EQ(extra([](StoredWindow&) {}), 1u);  // the same once more
}

TEST_F(Comparing, HiddenWindowsAreNotCompared) {
  StoredWindow hidden = windows_[0];
  hidden.window = "5m";  // of the forecast
  windows_.push_back(hidden);
  EXPECT_TRUE(compare().passed());
}

TEST_F(Comparing, AccountsAreCompared) {
  const model::Ledger right = ledger_;
  const auto told = [&](const std::function<void(model::Ledger&)>& damage, const std::string& text) {
    ledger_ = right;
    damage(ledger_);
    const Report report = compare();
    EXPECT_FALSE(report.passed()) << text;
    EXPECT_EQ(report.inputs_different, 1u) << text;
    ASSERT_EQ(report.examples.size(), 1u);
    EXPECT_NE(report.examples[0].find(text), std::string::npos) << report.examples[0];
  };
  told([](model::Ledger& l) { ++l.received; }, "received 8, expected 7");
  told([](model::Ledger& l) { --l.aggregated; }, "aggregated 4, expected 5");
  told([](model::Ledger& l) { ++l.unmatched; }, "unmatched 1, expected 0");
  told([](model::Ledger& l) { l.late.add(1); }, "late 2, expected 1");
  told([](model::Ledger& l) { ++l.late.sum; }, "late samples others");
  told([](model::Ledger& l) { ++l.rejected["malformed"]; }, "rejected 2 malformed, expected 1 malformed");
  told([](model::Ledger& l) { ++l.rejected_set.sum; }, "rejected rows others");
  told([](model::Ledger& l) { l.dropped["outbox"] = 3; }, "dropped 3 outbox, expected none");
  told([](model::Ledger& l) { ++l.held; }, "held 1, expected 0");
}

TEST_F(Comparing, AnInputThatNobodyReportsOrKnowsIsADifference) {
  Comparison silent(plan_, *oracle_);
  for (const StoredWindow& window : windows_) silent.add(window);
  EXPECT_EQ(silent.finish().inputs_different, 1u);

  Comparison strange(plan_, *oracle_);
  for (const StoredWindow& window : windows_) strange.add(window);
  strange.add("edge-1/0", ledger_);
  strange.add("edge-9/0", ledger_);
  EXPECT_EQ(strange.finish().inputs_different, 1u);
}

// What was pushed cannot be read again: its rollups are named and passed over, the others are compared as ever.
TEST_F(Comparing, WhatWasPushedIsPassedOverAndNamed) {
  plan_.fleet.metrics.push_back({"work", "kWh", 3, {}, {}});
  model::InputSpec push;
  push.key = "edge-1/1";
  push.kind = model::InputSpec::Kind::kPush;
  push.metrics = {"work"};
  plan_.fleet.inputs.push_back(push);
  model::RollupSpec work;
  work.name = "pushed_work";
  work.metric = "work";
  work.slice = std::chrono::minutes(1);
  work.windows = {*model::parse_window("1m")};
  plan_.fleet.rollups.push_back(work);
  plan_ = model::make_plan(plan_.fleet);
  oracle_ = Oracle::create(plan_).value();
  auto rows = read_csv_rows(plan_.fleet.inputs[0], base::bytes_in_memory("1,0,1,1,1,0,0\n")).value();
  ASSERT_TRUE(oracle_->read(0, {{0, 1}, true}, *rows).ok());
  oracle_->finish();
  const model::Time start = model::from_ns(0);
  const auto report_of = [&](const model::Ledger& pushed) {
    Comparison comparison(plan_, *oracle_);
    comparison.add({"plug_load",
                    "1m",
                    {{"plug", "1"}},
                    start,
                    start + std::chrono::minutes(1),
                    {1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1},
                    true});
    comparison.add(
        {"total", "1m", {}, start, start + std::chrono::minutes(1), {1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1}, false});
    comparison.add({"pushed_work", "1m", {}, start, start + std::chrono::minutes(1), {7, 1, 1, 1, 1, 0, 1, 1}, true});
    model::Ledger read;
    read.received = read.aggregated = 1;
    comparison.add("edge-1/0", read);
    comparison.add("edge-1/1", pushed);
    return comparison.finish();
  };
  model::Ledger pushed;
  pushed.received = pushed.aggregated = 7;
  const Report report = report_of(pushed);
  EXPECT_TRUE(report.passed()) << ::testing::PrintToString(report.examples);
  EXPECT_EQ(report.windows_compared, 2u);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("edge-1/1"), std::string::npos);
  EXPECT_NE(report.warnings[0].find("not compared: pushed_work"), std::string::npos) << report.warnings[0];
  // Its account has to add up all the same.
  pushed.received = 8;
  EXPECT_FALSE(report_of(pushed).passed());

  // When it may bring every metric, nothing is left to compare, which is no success.
  plan_.fleet.inputs[1].metrics = {"load", "work"};
  pushed.received = 7;
  const Report nothing = report_of(pushed);
  EXPECT_EQ(nothing.differences(), 0u);
  EXPECT_FALSE(nothing.passed());
}

TEST_F(Comparing, ComparingNothingFails) {
  const auto oracle = Oracle::create(plan_).value();
  oracle->finish();
  const Report report = Comparison(plan_, *oracle).finish();
  EXPECT_EQ(report.differences(), 0u);
  EXPECT_FALSE(report.passed());
}

TEST_F(Comparing, ExamplesAreBounded) {
  const StoredWindow added = windows_[0];
  for (int i = 0; i < 100; ++i) windows_.push_back(added);
  const Report report = compare();
  EXPECT_EQ(report.windows_extra, 100u);
  EXPECT_EQ(report.examples.size(), kMaxExamples);
}

// The same plugs, kept raw: every sample, as often as it was accepted.
TEST(ComparingRaw, EveryDifferenceOfSamplesIsTold) {
  model::Fleet fleet = one_edge();
  model::RollupSpec plugs = plug_load();
  plugs.windows = {*model::parse_window("1m")};
  plugs.keep_raw = true;
  fleet.rollups = {plugs};
  const model::Plan plan = model::make_plan(fleet);
  const std::unique_ptr<Oracle> oracle = Oracle::create(plan).value();
  // The last one is late.
  const std::string text = "1,7200,1,1,1,0,0\n2,7210,2,1,1,0,0\n3,7210,2,1,1,0,0\n4,7200,-0,1,2,0,0\n5,1,9,1,2,0,0\n";
  auto rows = read_csv_rows(plan.fleet.inputs[0], base::bytes_in_memory(text)).value();
  ASSERT_TRUE(oracle->read(0, {{0, 5}, true}, *rows).ok());
  oracle->finish();
  const auto series = [](const char* plug) {
    return model::Series{"load", {{"house", "0"}, {"household", "0"}, {"plug", plug}}};
  };
  using Samples = std::vector<std::tuple<const char*, int, double>>;
  const auto compare = [&](const Samples& stored) {
    Comparison comparison(plan, *oracle);
    for (const auto& [plug, s, value] : stored) {
      model::SetDigest digest;
      digest.add(Oracle::raw_hash(model::identity(series(plug)), model::from_ns(0) + std::chrono::seconds(s), value));
      comparison.add(series(plug), digest);
    }
    return comparison.finish();
  };
  const Samples right = {{"1", 7210, 2}, {"2", 7200, 0}, {"1", 7200, 1}, {"1", 7210, 2}};
  const Report report = compare(right);
  EXPECT_EQ(report.raw_series_different, 0u);
  EXPECT_EQ(report.raw_series_compared, 2u);
  EXPECT_EQ(report.raw_samples_compared, 4u);
  for (std::size_t i = 0; i < right.size(); ++i) {
    Samples less = right;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(compare(less).raw_series_different, 1u) << i;
    Samples more = right;
    more.push_back(right[i]);
    EXPECT_EQ(compare(more).raw_series_different, 1u) << i;
    Samples other = right;
    std::get<1>(other[i]) += 1;
    EXPECT_EQ(compare(other).raw_series_different, 1u) << i;
    other = right;
    std::get<2>(other[i]) += 0.001;
    EXPECT_EQ(compare(other).raw_series_different, 1u) << i;
    EXPECT_GT(compare(other).differences(), compare(right).differences()) << i;
  }
  Samples extra = right;
  extra.emplace_back("3", 7200, 1);
  EXPECT_EQ(compare(extra).raw_series_different, 1u);
}

}  // namespace
}  // namespace orla::verify
