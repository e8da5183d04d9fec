// 100,000 samples that a disk edge has acknowledged while its parent is down survive `kill -9`, whenever it comes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "node/http_client.h"
#include "tests/chaos/chaos_fleet.h"
#include "tests/push_client.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kSamples = 100'000;
constexpr std::int64_t kBatch = 1'000;
constexpr std::int64_t kStart = 1'700'000'000;  // seconds; every clock is beyond it

const base::SystemClock clock_of_test;

// Value k of line k, in ten series, a thousand lines a second.
std::string lines(std::int64_t first, std::int64_t count) {
  std::string body;
  for (std::int64_t k = first; k < first + count; ++k) {
    body += fmt::format("m,host=h{} value={}i {}\n", k % 10, k, kStart + k / 1'000);
  }
  return body;
}

class Acknowledged : public ::testing::TestWithParam<int> {
 protected:
  FleetUnderTest fleet{
      FleetText{.edges = 1, .levels = 0}.nodes() +
      "[[metric]]\nname = \"m_value\"\n[[input]]\nnode = \"edge-0\"\nkind = \"push\"\n[[rollup]]\n"
      "name = \"values\"\nmetric = \"m_value\"\nby = [\"host\"]\nslice = \"1s\"\nwindows = [\"1m\"]\n"};
};

// Seconds from the last acknowledgement to the kill.
TEST_P(Acknowledged, SurvivesAKillAfterSeconds) {
  if (GetParam() > 2 && chaos() == Chaos::kShort) GTEST_SKIP() << "not in the short length";
  ASSERT_TRUE(fleet.start("edge-0"));
  PushClient client;
  client.connect_to(fleet.http("edge-0"));
  for (std::int64_t k = 0; k < kSamples; k += kBatch) {
    const std::optional<PushReply> reply = client.push(lines(k, kBatch));
    ASSERT_TRUE(reply) << k;
    ASSERT_EQ(reply->status, 204) << reply->body;
  }
  clock_of_test.sleep(seconds(GetParam()));
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  ASSERT_TRUE(fleet.start("edge-0"));
  ASSERT_TRUE(fleet.start("cloud"));
  ASSERT_TRUE(node::http_request("POST", fleet.http("edge-0") + "/api/v1/inputs/stop", "", seconds(5)).ok());
  for (const std::string node : {"edge-0", "cloud"}) {
    ASSERT_TRUE(fleet.wait_until(
        node, [](const json& s) { return s.at("drained").get<bool>(); }, seconds(60)));
  }
  const json input = fleet.status("edge-0").at("inputs").at(0);
  EXPECT_EQ(input.at("received"), kSamples);
  EXPECT_EQ(input.at("aggregated"), kSamples);
  std::int64_t count = 0;
  double sum = 0;
  const std::vector<std::string> rows = fleet.windows("values");
  ASSERT_GT(rows.size(), 1U);
  ASSERT_EQ(rows[0].substr(0, 24), "start,end,host,count,sum");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(rows[i], ',');
    count += std::stoll(cells.at(3));
    sum += std::stod(cells.at(4));
  }
  EXPECT_EQ(count, kSamples);
  EXPECT_EQ(sum, static_cast<double>(kSamples * (kSamples - 1) / 2));
  fmt::print("killed {} s after the last acknowledgement: {} of {} samples arrived\n", GetParam(), count, kSamples);
}

INSTANTIATE_TEST_SUITE_P(At, Acknowledged, ::testing::Values(0, 2, 8),
                         [](const auto& info) { return fmt::format("{}s", info.param); });

}  // namespace
}  // namespace orla::behaviour
