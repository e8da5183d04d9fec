#include "sim/capacity_world.h"

#include <gtest/gtest.h>

namespace orla::sim {
namespace {

CapacityOptions small() {
  CapacityOptions options;
  options.sites = 2;
  options.edges = 3;
  options.series = 5;
  options.time = std::chrono::seconds(30);
  return options;
}

TEST(CapacityWorld, CountsWhatItCharges) {
  const CapacityOptions options = small();
  const absl::StatusOr<CapacityReport> report = run_capacity(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->nodes, 2 * (3 + 1) + 1);
  EXPECT_EQ(report->made, 2U * 3 * 5 * 30);
  EXPECT_EQ(report->samples, report->samples_asked);
  // Per slice one window of each series, and one across the series of each edge.
  EXPECT_EQ(report->windows, 2U * 3 * (5 + 1) * 3);
  ASSERT_EQ(report->layers.size(), 3U);
  const LayerReport& edge = report->layers[0];
  EXPECT_EQ(edge.layer, "edge");
  EXPECT_EQ(edge.nodes, 6);
  EXPECT_NEAR(edge.in_per_s, 6 * options.rate, 1);
  EXPECT_NEAR(edge.rows_per_s * 30, 2 * 3 * 5 * 3, 0.5) << "a slice travels once";
  const double samples_cpu = options.rate * options.costs.sample_ns / 1e9;
  EXPECT_GT(edge.cpu_mean, samples_cpu);
  EXPECT_LT(edge.cpu_mean, samples_cpu + 0.01);
  // Every row that edges send is folded at the cloud; the way there takes at least both delays.
  EXPECT_NEAR(report->layers[2].rows_per_s, edge.rows_per_s, 0.01);
  EXPECT_GT(report->layers[2].lag_s.p50, 0.025);
  EXPECT_LT(report->layers[2].lag_s.p99, 10);
}

TEST(CapacityWorld, TheSameOptionsGiveTheSameAnswer) {
  const absl::StatusOr<CapacityReport> one = run_capacity(small());
  const absl::StatusOr<CapacityReport> two = run_capacity(small());
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->events, two->events);
  EXPECT_EQ(one->layers[2].lag_s.p99, two->layers[2].lag_s.p99);
  EXPECT_EQ(one->layers[1].bytes_up_per_s, two->layers[1].bytes_up_per_s);
}

TEST(CapacityWorld, SaysWhatIsFullFirst) {
  CapacityOptions options = small();
  options.rate = 13.5e6;  // times 60 ns: four fifths of a core
  absl::StatusOr<CapacityReport> report = run_capacity(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->first_full, "processor of the busiest edge");
  EXPECT_NEAR(report->first_full_use, 0.81, 0.05);
  options.rate = 1000;
  options.wan_mbit_s = 0.02;
  report = run_capacity(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->first_full, "way up of the busiest aggregator");
}

TEST(CapacityWorld, AnEdgeThatCannotKeepUpTakesLongerAndLosesNothing) {
  CapacityOptions options = small();
  options.rate = 3e7;  // 1.8 cores
  const absl::StatusOr<CapacityReport> report = run_capacity(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->samples, report->samples_asked);
  EXPECT_GT(report->drained_after_s, 15);
}

}  // namespace
}  // namespace orla::sim
