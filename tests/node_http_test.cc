// What every node says over HTTP.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "node/http_client.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

node::HttpReply get(const FleetUnderTest& fleet, const std::string& node, const std::string& path) {
  absl::StatusOr<node::HttpReply> reply =
      node::http_request("GET", fleet.http(node) + path, "", std::chrono::seconds(10));
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.value_or(node::HttpReply{});
}

// The sum over all label sets, by name.
std::map<std::string, double> metrics(const std::string& text) {
  std::map<std::string, double> sums;
  for (const std::string& line : lines_of(text)) {
    if (line.empty() || line[0] == '#') continue;
    double value = 0;
    const std::size_t space = line.rfind(' ');
    EXPECT_TRUE(space != std::string::npos && absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    sums[line.substr(0, line.find_first_of("{ "))] += value;
  }
  return sums;
}

TEST(NodeHttp, EveryNodeTellsOfItself) {
  const FleetText text{.edges = 1, .levels = 1, .houses = 1, .length = "2m"};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up());
  const json summary = fleet.summary();
  ASSERT_TRUE(summary.is_object());
  const double rows = summary.at("measurements");
  EXPECT_GT(rows, 0);
  for (const auto& [node, layer] :
       std::map<std::string, std::string>{{"edge-0", "edge"}, {"agg-1", "aggregator"}, {"cloud", "cloud"}}) {
    SCOPED_TRACE(node);
    EXPECT_EQ(get(fleet, node, "/healthz").status, 200);
    EXPECT_EQ(get(fleet, node, "/readyz").status, 200);
    const node::HttpReply page = get(fleet, node, "/");
    EXPECT_EQ(page.status, 200);
    EXPECT_THAT(page.content_type, HasSubstr("text/html"));
    EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
    EXPECT_THAT(page.body, HasSubstr("viewport"));
    EXPECT_THAT(page.body, HasSubstr(node));
    const node::HttpReply status = get(fleet, node, "/api/v1/status");
    EXPECT_EQ(status.status, 200);
    EXPECT_THAT(status.content_type, HasSubstr("application/json"));
    const json s = json::parse(status.body);
    EXPECT_EQ(s.at("node"), node);
    EXPECT_EQ(s.at("layer"), layer);
    EXPECT_EQ(s.at("fleet"), "tested");
    EXPECT_EQ(s.at("pid"), fleet.pid(node));
    EXPECT_EQ(s.at("ready"), true);
    EXPECT_EQ(s.at("drained"), true);
    const node::HttpReply unknown = get(fleet, node, "/no/such/page");
    EXPECT_EQ(unknown.status, 404);
    EXPECT_FALSE(json::parse(unknown.body).at("error").get<std::string>().empty());

    const node::HttpReply text_of_metrics = get(fleet, node, "/metrics");
    EXPECT_EQ(text_of_metrics.status, 200);
    EXPECT_THAT(text_of_metrics.content_type, HasSubstr("text/plain"));
    std::map<std::string, double> m = metrics(text_of_metrics.body);
    EXPECT_EQ(m.at("orla_ready"), 1);
    if (layer == "edge") {
      EXPECT_EQ(m.at("orla_received_samples_total"), rows);
      EXPECT_EQ(m.at("orla_received_samples_total"),
                m.at("orla_aggregated_samples_total") + m.at("orla_unmatched_samples_total") +
                    m.at("orla_late_samples_total") + m.at("orla_rejected_samples_total") +
                    m.at("orla_dropped_samples_total") + m.at("orla_pending_samples"));
      EXPECT_EQ(m.at("orla_outbox_chunks"), 0);
    } else {
      EXPECT_GT(m.at("orla_chunks_received_total"), 0);
      EXPECT_EQ(m.at("orla_chunks_received_total"),
                m.at("orla_chunks_applied_total") + m.at("orla_chunks_duplicate_total") + m.at("orla_chunks_pending"));
      EXPECT_EQ(m.at("orla_chunks_pending"), 0);
    }
  }
  // What only the cloud has, and what only an edge does.
  EXPECT_EQ(get(fleet, "cloud", "/api/v1/rollups").status, 200);
  EXPECT_EQ(get(fleet, "edge-0", "/api/v1/windows").status, 404);
  EXPECT_EQ(get(fleet, "cloud", "/api/v1/windows?from=whenever").status, 400);
  EXPECT_EQ(get(fleet, "edge-0", "/api/v1/inputs/stop").status, 405);
  const json page = json::parse(get(fleet, "cloud", "/api/v1/windows?rollup=plug_load&window=1m&limit=2").body);
  EXPECT_EQ(page.at("windows").size(), 2u);
  EXPECT_FALSE(page.at("next").is_null());
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

// Ready is more than alive.
TEST(NodeHttp, NotReadyWithoutACloud) {
  FleetUnderTest fleet(FleetText{.edges = 1, .levels = 1, .houses = 1, .length = "2m", .durability = "memory"}.full());
  ASSERT_TRUE(fleet.start("edge-0"));
  EXPECT_EQ(get(fleet, "edge-0", "/healthz").status, 200);
  const node::HttpReply ready = get(fleet, "edge-0", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_FALSE(ready.body.empty());
}

}  // namespace
}  // namespace orla::behaviour
