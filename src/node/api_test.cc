#include "node/api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace orla::node {
namespace {

NodeStatus edge_status() {
  NodeStatus s;
  s.node = "edge-1";
  s.layer = model::Layer::kEdge;
  s.site = "a<b";
  s.fleet = "test";
  InputStatus& input = s.inputs.emplace_back();
  input.key = "edge-1/0";
  input.ledger.received = 10;
  input.ledger.aggregated = 4;
  input.ledger.unmatched = 1;
  input.ledger.late.add(5);
  input.ledger.rejected = {{"malformed", 2}};
  input.ledger.dropped = {{"series_limit", 1}};
  input.ledger.held = 1;
  s.uplink.emplace();
  s.outbox.emplace();
  return s;
}

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    ApiParts parts;
    parts.status = [this]() -> absl::StatusOr<NodeStatus> {
      if (busy_) return absl::DeadlineExceededError("busy");
      return status_;
    };
    parts.stop_inputs = [this] { ++stops_; };
    api_ = make_api(std::move(parts));
  }
  HttpResponse ask(const std::string& method, const std::string& path) {
    HttpRequest request;
    request.method = method;
    request.path = path;
    return api_(request);
  }
  NodeStatus status_ = edge_status();
  bool busy_ = false;
  int stops_ = 0;
  HttpHandler api_;
};

TEST_F(ApiTest, SaysHowFarANodeIsThatReadsItsState) {
  EXPECT_TRUE(nlohmann::json::parse(ask("GET", "/api/v1/status").body).at("recovering").is_null());
  status_ = NodeStatus();
  status_.node = "edge-1";
  status_.ready = "reads its state: 1 of 1024 MiB";
  status_.recovering = {1 << 20, 1 << 30};
  const nlohmann::json s = nlohmann::json::parse(ask("GET", "/api/v1/status").body);
  EXPECT_EQ(s.at("node"), "edge-1");
  EXPECT_EQ(s.at("ready"), false);
  EXPECT_EQ(s.at("not_ready"), "reads its state: 1 of 1024 MiB");
  EXPECT_EQ(s.at("recovering"), (nlohmann::json{{"read_bytes", 1 << 20}, {"all_bytes", 1 << 30}}));
  EXPECT_EQ(ask("GET", "/").status, 200);
  EXPECT_EQ(ask("GET", "/metrics").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
}

TEST_F(ApiTest, HealthAndReadiness) {
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
  status_.ready = "waits for the cloud";
  const HttpResponse waits = ask("GET", "/readyz");
  EXPECT_EQ(waits.status, 503);
  EXPECT_EQ(waits.body, "waits for the cloud\n");
  busy_ = true;
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(ApiTest, TheTermsOfTheAccountAddUp) {
  const nlohmann::json input = nlohmann::json::parse(ask("GET", "/api/v1/status").body)["inputs"][0];
  int sum = 0;
  for (const char* term : {"aggregated", "unmatched", "late", "rejected", "dropped", "pending"}) {
    sum += input[term].get<int>();
  }
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(input["received"], 10);
  EXPECT_EQ(input["rejected_by_reason"]["malformed"], 2);
}

TEST_F(ApiTest, MetricsNameEveryTerm) {
  const std::string text = ask("GET", "/metrics").body;
  for (const char* line :
       {"orla_received_samples_total{input=\"edge-1/0\"} 10\n", "orla_aggregated_samples_total{input=\"edge-1/0\"} 4\n",
        "orla_unmatched_samples_total{input=\"edge-1/0\"} 1\n", "orla_late_samples_total{input=\"edge-1/0\"} 1\n",
        "orla_rejected_samples_total{input=\"edge-1/0\",reason=\"malformed\"} 2\n",
        "orla_dropped_samples_total{input=\"edge-1/0\",reason=\"series_limit\"} 1\n",
        "orla_pending_samples{input=\"edge-1/0\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST_F(ApiTest, ThePageEscapes) {
  const HttpResponse page = ask("GET", "/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("a&lt;b"), std::string::npos);
  EXPECT_EQ(page.body.find("a<b"), std::string::npos);
}

TEST_F(ApiTest, StopsInputsOnPostOnly) {
  EXPECT_EQ(ask("GET", "/api/v1/inputs/stop").status, 405);
  EXPECT_EQ(stops_, 0);
  EXPECT_EQ(ask("POST", "/api/v1/inputs/stop").status, 202);
  EXPECT_EQ(stops_, 1);
}

TEST_F(ApiTest, SaysWhatIsNotThere) {
  EXPECT_EQ(ask("GET", "/nothing").status, 404);
  EXPECT_EQ(ask("PUT", "/").status, 405);
  const HttpResponse windows = ask("GET", "/api/v1/windows");  // not a cloud
  EXPECT_EQ(windows.status, 404);
  EXPECT_NE(windows.body.find("cloud"), std::string::npos);
}

}  // namespace
}  // namespace orla::node
