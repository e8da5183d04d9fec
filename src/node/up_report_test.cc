#include "node/up_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orla::node {
namespace {

UpSummary summary_of(std::uint64_t different, std::uint64_t missing, std::uint64_t extra) {
  UpSummary s;
  s.fleet = "test";
  s.seconds = 2;
  s.drained = true;
  s.totals.received = 1'000'000;
  s.totals.aggregated = 999'990;
  s.totals.late.add(1);
  s.totals.rejected = {{"malformed", 9}};
  s.rejections = {"plugs.csv line 7 column 3: found \"x\", expected a number (malformed)"};
  verify::Report report;
  report.windows_compared = 100;
  report.windows_different = different;
  report.windows_missing = missing;
  report.windows_extra = extra;
  s.verified = report;
  return s;
}

TEST(UpReport, TheSummaryIsOneLineOfJson) {
  const std::string text = summary_json(summary_of(0, 0, 0));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["measurements"], 1'000'000);
  EXPECT_EQ(json["rejected"], 9);
  EXPECT_EQ(json["late"], 1);
  EXPECT_EQ(json["windows_compared"], 100);
  EXPECT_EQ(json["windows_different"], 0);
  EXPECT_EQ(json["verified"], true);
  EXPECT_EQ(json["rate_per_s"], 500'000.0);
  EXPECT_EQ(json["rejections"].size(), 1U);
}

TEST(UpReport, EveryKindOfDifferenceCounts) {
  const nlohmann::json json = nlohmann::json::parse(summary_json(summary_of(1, 2, 4)));
  EXPECT_EQ(json["windows_different"], 7);
  EXPECT_EQ(json["windows_missing"], 2);
  EXPECT_EQ(json["windows_extra"], 4);
  EXPECT_EQ(json["verified"], false);
}

TEST(UpReport, PeopleSeeTheSameNumbers) {
  const std::string good = summary_text(summary_of(0, 0, 0));
  EXPECT_NE(good.find("1,000,000 measurements in 2.0 s (500.0k/s)"), std::string::npos) << good;
  EXPECT_NE(good.find("plugs.csv line 7 column 3"), std::string::npos);
  EXPECT_NE(good.find("all exact"), std::string::npos);
  EXPECT_EQ(good.find("DIFFERENT"), std::string::npos);
  EXPECT_NE(summary_text(summary_of(0, 1, 0)).find("DIFFERENT"), std::string::npos);
  UpSummary nothing = summary_of(0, 0, 0);
  nothing.verified->windows_compared = 0;
  EXPECT_NE(summary_text(nothing).find("NOTHING WAS COMPARED"), std::string::npos);
}

TEST(UpReport, TotalsAddUpOverInputs) {
  std::map<std::string, InputReport> inputs;
  inputs["a"].ledger.received = 3;
  inputs["a"].ledger.rejected = {{"malformed", 1}};
  inputs["b"].ledger.received = 4;
  inputs["b"].ledger.rejected = {{"malformed", 2}, {"not_finite", 1}};
  const model::Ledger total = total_of(inputs);
  EXPECT_EQ(total.received, 7U);
  EXPECT_EQ(total.rejected.at("malformed"), 3U);
  EXPECT_EQ(total.rejected_total(), 4U);
}

TEST(UpReport, TheTableHasALinePerNodeAndTheProgress) {
  NodeView edge;
  edge.node = "edge-1";
  edge.reachable = edge.ready = true;
  edge.in_per_s = 1'234'567;
  NodeView cloud;
  cloud.node = "cloud";
  cloud.layer = model::Layer::kCloud;
  const std::string table = live_table({edge, cloud}, 0.5);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_NE(table.find("1.23M"), std::string::npos);
  EXPECT_NE(table.find("down"), std::string::npos);
  EXPECT_NE(table.find("50%"), std::string::npos);
  // One that is not up yet is not down.
  EXPECT_NE(live_line({cloud}, -1).find("down: cloud"), std::string::npos);
  cloud.recovered = 0.254;
  EXPECT_NE(live_table({cloud}, -1).find("reads its state: 25%"), std::string::npos);
  EXPECT_EQ(live_line({cloud}, -1).find("down"), std::string::npos);
}

}  // namespace
}  // namespace orla::node
