// Samples that senders push: an acknowledged one is counted, once, whatever is killed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/clock.h"
#include "node/http_client.h"
#include "tests/fleet_under_test.h"
#include "tests/push_client.h"

namespace orla::behaviour {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::int64_t kStart = 1'700'000'000;  // seconds; every clock is beyond it

std::string fleet_text(const std::string& durability, const std::string& limits = "") {
  return FleetText{.edges = 1, .levels = 0, .durability = durability}.nodes() + limits +
         "[[metric]]\nname = \"m_value\"\n"
         "[[input]]\nnode = \"edge-0\"\nkind = \"push\"\n"
         "[[rollup]]\nname = \"values\"\nmetric = \"m_value\"\nby = [\"host\"]\nslice = \"1s\"\nwindows = [\"1m\"]\n";
}

// Lines first..first+count-1: value k of line k, four series, a hundred lines a second.
std::string lines(std::int64_t first, std::int64_t count) {
  std::string body;
  for (std::int64_t k = first; k < first + count; ++k) {
    body += fmt::format("m,host=h{} value={}i {}\n", k % 4, k, kStart + k / 100);
  }
  return body;
}

// The pushed samples that the cloud's windows hold, and their sum. Once the fleet has drained.
std::pair<std::int64_t, double> held(const FleetUnderTest& fleet) {
  std::int64_t count = 0;
  double sum = 0;
  const std::vector<std::string> rows = fleet.windows("values");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<std::string> cells(1);
    for (const char c : rows[i]) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    count += std::stoll(cells.at(3));  // start,end,host,count,sum
    sum += std::stod(cells.at(4));
  }
  return {count, sum};
}

void drain(const FleetUnderTest& fleet) {
  ASSERT_TRUE(node::http_request("POST", fleet.http("edge-0") + "/api/v1/inputs/stop", "", 5s).ok());
  ASSERT_TRUE(fleet.wait_until(
      "edge-0", [](const json& s) { return s.at("drained").get<bool>(); }, 60s));
  ASSERT_TRUE(fleet.wait_until(
      "cloud", [](const json& s) { return s.at("drained").get<bool>(); }, 60s));
}

double sum_up_to(std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n - 1) / 2; }

TEST(Push, WhatADiskEdgeAcknowledgedSurvivesEveryKill) {
  constexpr std::int64_t kSamples = 100'000;
  constexpr std::int64_t kBatch = 1'000;
  FleetUnderTest fleet(fleet_text("disk"));
  ASSERT_TRUE(fleet.up());
  ASSERT_TRUE(fleet.stop("cloud", SIGKILL));

  std::atomic<std::int64_t> acknowledged{0};
  std::atomic<int> resends{0};
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    PushClient client;
    for (std::int64_t batch = 0; batch < kSamples / kBatch && !stop;) {
      client.connect_to(fleet.http("edge-0"));
      const std::optional<PushReply> reply = client.push(
          lines(batch * kBatch, kBatch), {{"Orla-Producer", "test"}, {"Orla-Sequence", std::to_string(batch + 1)}});
      if (reply && reply->status == 204) {
        acknowledged = ++batch * kBatch;
        continue;
      }
      if (reply) {
        EXPECT_EQ(reply->status, 503) << reply->body;
      }
      ++resends;
      base::SystemClock().sleep(5ms);
    }
  });
  // Twice in the middle of sending, and right after the last acknowledgement.
  for (const std::int64_t until : {kSamples / 5, kSamples / 2, kSamples}) {
    const bool came = FleetUnderTest::until(60s, [&] { return acknowledged >= until; });
    EXPECT_TRUE(came) << acknowledged;
    stop = stop || !came || !fleet.stop("edge-0", SIGKILL) || !fleet.start("edge-0");
  }
  stop = stop || acknowledged == kSamples;
  sender.join();
  ASSERT_EQ(acknowledged, kSamples);
  EXPECT_GT(resends, 0);  // it was the middle

  ASSERT_TRUE(fleet.start("cloud"));
  drain(fleet);
  const auto [count, sum] = held(fleet);
  EXPECT_EQ(count, kSamples);
  EXPECT_EQ(sum, sum_up_to(kSamples));
  const json input = fleet.status("edge-0").at("inputs").at(0);
  EXPECT_EQ(input.at("received"), kSamples);
  EXPECT_EQ(input.at("aggregated"), kSamples);
}

TEST(Push, AMemoryEdgeAnswersOnceTheCloudHasIt) {
  FleetUnderTest fleet(fleet_text("memory"));
  ASSERT_TRUE(fleet.up());
  ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) { return s.at("ready").get<bool>(); }));
  PushClient client;
  client.connect_to(fleet.http("edge-0"));
  const auto at_cloud = [&] {
    const json cloud = fleet.status("cloud");
    for (const json& origin : cloud.at("cloud").at("origins")) {
      if (origin.at("node") == "edge-0") return origin.at("inputs").at("edge-0/0").at("received").get<int>();
    }
    return 0;
  };
  for (int k = 0; k < 5; ++k) {
    const auto reply = client.push(lines(k, 1));
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 204) << reply->body;
    EXPECT_EQ(at_cloud(), k + 1);
  }
  // Nothing of it is wanted by a rollup: it is accounted for at the cloud all the same.
  const auto unmatched = client.push("nobody value=1 1700000000");
  ASSERT_TRUE(unmatched);
  EXPECT_EQ(unmatched->status, 204);
  EXPECT_EQ(unmatched->header("Orla-Unmatched"), "1");
  EXPECT_EQ(at_cloud(), 6);

  // A cloud that does not answer: neither does the edge.
  const int cloud = fleet.pid("cloud");
  ::kill(cloud, SIGSTOP);
  const PushClient::Headers stamp = {{"Orla-Producer", "p"}, {"Orla-Sequence", "1"}};
  auto pushed = std::async(std::launch::async, [&] { return client.push(lines(5, 1), stamp); });
  EXPECT_EQ(pushed.wait_for(500ms), std::future_status::timeout);
  // Its status still does.
  EXPECT_EQ(fleet.status("edge-0").at("push").at("waiting"), 1);
  ::kill(cloud, SIGCONT);
  const auto reply = pushed.get();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 204) << reply->body;
  EXPECT_EQ(at_cloud(), 7);

  // The edge forgets all, but for what the cloud keeps of it: what was sent again still counts once.
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  ASSERT_TRUE(fleet.start("edge-0"));
  ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) { return s.at("ready").get<bool>(); }));
  client.connect_to(fleet.http("edge-0"));
  const auto again = client.push(lines(5, 1), stamp);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, 204) << again->body;
  EXPECT_EQ(again->header("Orla-Duplicate"), "true");

  // Without a parent nothing is taken.
  ASSERT_TRUE(fleet.stop("cloud", SIGKILL));
  ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) { return !s.at("uplink").at("connected").get<bool>(); }));
  const auto refused = client.push(lines(6, 1));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(refused->header("Retry-After"), "1");

  ASSERT_TRUE(fleet.start("cloud"));
  ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) { return s.at("uplink").at("connected").get<bool>(); }));
  drain(fleet);
  EXPECT_EQ(held(fleet), std::pair(std::int64_t{6}, sum_up_to(6)));
}

TEST(Push, SaysWhatIsWrongAndKeepsTheRest) {
  FleetUnderTest fleet(fleet_text("disk",
                                  "push_body_bytes = 20000\npush_unpacked_bytes = 100000\npush_samples = 1000\n"
                                  "producers = 1\n"));
  ASSERT_TRUE(fleet.up());
  PushClient client;
  client.connect_to(fleet.http("edge-0"));
  const auto push = [&](const std::string& body, const PushClient::Headers& headers = {},
                        const std::string& path = "/api/v2/write?org=o&bucket=b&precision=s") {
    const std::optional<PushReply> reply = client.push(body, headers, path);
    EXPECT_TRUE(reply) << body.substr(0, 100);
    return reply.value_or(PushReply());
  };
  const PushReply partial = push(
      "m,host=a value=1 1700000000\nm,host=a value= 1700000000\nm,host=a value=\"x\",other=1\n"
      "m,host=a value=2 1700000001\n");
  EXPECT_EQ(partial.status, 400);
  const json said = json::parse(partial.body);
  EXPECT_EQ(said.at("code"), "invalid");
  EXPECT_EQ(said.at("accepted"), 3);
  EXPECT_EQ(said.at("rejected"), 2);
  EXPECT_EQ(said.at("errors").at(0).at("line"), 2);
  EXPECT_EQ(said.at("errors").at(0).at("column"), 16);
  EXPECT_EQ(said.at("errors").at(1).at("reason"), "not_numeric");
  EXPECT_NE(said.at("message").get<std::string>().find("do not send them again"), std::string::npos) << said;

  const PushReply packed = push(gzip(lines(0, 900)), {{"Content-Encoding", "gzip"}});
  EXPECT_EQ(packed.status, 204) << packed.body;
  EXPECT_EQ(push(gzip(lines(0, 1001)), {{"Content-Encoding", "gzip"}}).status, 413);
  EXPECT_EQ(push(gzip(std::string(99'000, '\n')), {{"Content-Encoding", "gzip"}}).status, 413);     // the ratio
  EXPECT_EQ(push(gzip(std::string(101'000, '#')), {{"Content-Encoding", "gzip"}}).status, 413);     // the size
  EXPECT_EQ(push(gzip(lines(0, 900)).substr(0, 500), {{"Content-Encoding", "gzip"}}).status, 400);  // cut off
  EXPECT_EQ(push("m value=1", {{"Content-Encoding", "gzip"}}).status, 400);
  EXPECT_EQ(push("m value=1", {{"Content-Encoding", "br"}}).status, 415);
  EXPECT_EQ(push("{}", {{"Content-Type", "application/json"}}).status, 415);
  EXPECT_EQ(push("m value=1", {{"Origin", "http://example.org"}}).status, 403);
  EXPECT_EQ(push("m value=1", {}, "/write?precision=day").status, 400);
  EXPECT_EQ(push("m value=1", {}, "/write?precison=s").status, 400);
  EXPECT_EQ(push(std::string(20'001, '#')).status, 413);
  EXPECT_EQ(push("").status, 204);

  EXPECT_EQ(push("m value=1", {{"Orla-Producer", "a"}}).status, 400);
  EXPECT_EQ(push("m value=1", {{"Orla-Producer", "a"}, {"Orla-Sequence", "0"}}).status, 400);
  EXPECT_EQ(push("m value=1", {{"Orla-Producer", "a b"}, {"Orla-Sequence", "1"}}).status, 400);
  EXPECT_EQ(push("m value=1 1700000002", {{"Orla-Producer", "a"}, {"Orla-Sequence", "7"}}).status, 204);
  const PushReply duplicate = push("m value=1 1700000002", {{"Orla-Producer", "a"}, {"Orla-Sequence", "7"}});
  EXPECT_EQ(duplicate.status, 204);
  EXPECT_EQ(duplicate.header("Orla-Duplicate"), "true");
  const PushReply many = push("m value=1 1700000002", {{"Orla-Producer", "b"}, {"Orla-Sequence", "1"}});
  EXPECT_EQ(many.status, 429);
  EXPECT_EQ(many.header("Retry-After"), "1");

  const auto ping = node::http_request("GET", fleet.http("edge-0") + "/ping", "", 5s);
  ASSERT_TRUE(ping.ok()) << ping.status();
  EXPECT_EQ(ping->status, 204);
  const json status = fleet.status("edge-0");
  const json& account = status.at("inputs").at(0);
  // 5 of the first, 900 packed, 1 of the producer.
  EXPECT_EQ(account.at("received"), 5 + 900 + 1);
  EXPECT_EQ(account.at("aggregated"), 2 + 900 + 1);
  EXPECT_EQ(account.at("unmatched"), 1);
  EXPECT_EQ(account.at("rejected_by_reason"), (json{{"malformed", 1}, {"not_numeric", 1}}));
  EXPECT_EQ(status.at("push").at("duplicates"), 1);
  EXPECT_EQ(status.at("push").at("producers"), 1);
  EXPECT_EQ(status.at("push").at("answers").at("429"), 1);
}

// The first sample that a series, and its edge, ever sees is a day ahead: it is refused by itself.
TEST(Push, AFirstSampleFromTheFutureHarmsNobody) {
  FleetUnderTest fleet(fleet_text("disk"));
  ASSERT_TRUE(fleet.up());
  PushClient client;
  client.connect_to(fleet.http("edge-0"));
  const base::SystemClock clock;
  const auto now = [&] {
    return std::chrono::floor<std::chrono::seconds>(clock.wall_now()).time_since_epoch().count();
  };
  const auto ahead = client.push(fmt::format("m,host=h0 value=7i {}\n", now() + 86'400));
  ASSERT_TRUE(ahead);
  EXPECT_EQ(ahead->status, 400) << ahead->body;
  EXPECT_NE(ahead->body.find("`future`"), std::string::npos) << ahead->body;
  // The same series and another one, at their times, in one push with a second jumper.
  const auto rest = client.push(fmt::format("m,host=h0 value=1i {0}\nm,host=h1 value=2i {0}\nm,host=h1 value=9i {1}\n",
                                            now() - 120, now() + 3 * 86'400));
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->status, 400) << rest->body;
  const auto later = client.push(fmt::format("m,host=h0 value=4i {0}\nm,host=h1 value=8i {0}\n", now() - 60));
  ASSERT_TRUE(later);
  EXPECT_EQ(later->status, 204) << later->body;
  drain(fleet);
  EXPECT_EQ(held(fleet), std::pair(std::int64_t{4}, 15.0));
  const json input = fleet.status("edge-0").at("inputs").at(0);
  EXPECT_EQ(input.at("received"), 6);
  EXPECT_EQ(input.at("aggregated"), 4);
  EXPECT_EQ(input.at("late"), 0);
  EXPECT_EQ(input.at("rejected_by_reason"), (json{{"future", 2}}));
}

TEST(Push, AFullOutboxPushesBackAndRecovers) {
  FleetUnderTest fleet(fleet_text("disk", "outbox_bytes = 1048576\n"));
  ASSERT_TRUE(fleet.up());
  ASSERT_TRUE(fleet.stop("cloud", SIGKILL));
  PushClient client;
  client.connect_to(fleet.http("edge-0"));
  std::int64_t kept = 0;
  std::optional<PushReply> last;
  // 500 series a second of event time; each second is a row of the outbox for each. All values differ: rows of equal
  // ones are packed so well that the outbox would hold all of them.
  const auto value = [](int host, std::int64_t k) { return (host * 7'919 + k * 104'729) % 1'000'003; };
  const auto second = [&](std::int64_t k) {
    std::string body;
    for (int host = 0; host < 500; ++host)
      body += fmt::format("m,host=h{} value={} {}\n", host, value(host, k), kStart + k);
    return body;
  };
  for (int k = 0; k < 2'000; ++k) {
    last = client.push(second(k));
    ASSERT_TRUE(last);
    if (last->status != 204) break;
    kept += 500;
  }
  ASSERT_EQ(last->status, 503) << last->body;
  EXPECT_EQ(last->header("Retry-After"), "1");
  EXPECT_NE(last->body.find("outbox is full"), std::string::npos) << last->body;
  ASSERT_TRUE(fleet.start("cloud"));
  EXPECT_TRUE(FleetUnderTest::until(30s, [&] {
    last = client.push(second(2'000));
    return last && last->status == 204;
  }));
  kept += 500;
  drain(fleet);
  std::int64_t sum = 0;
  for (int host = 0; host < 500; ++host) {
    for (std::int64_t k = 0; k < kept / 500 - 1; ++k) sum += value(host, k);
    sum += value(host, 2'000);
  }
  EXPECT_EQ(held(fleet), std::pair(kept, static_cast<double>(sum)));
}

TEST(Push, VerifySaysThatItHasNothingToCompare) {
  FleetUnderTest fleet(fleet_text("disk"));
  ASSERT_TRUE(fleet.up({"--for", "2s", "--verify"}));
  PushClient client;
  client.connect_to(fleet.http("edge-0"));
  const auto reply = client.push(lines(0, 10));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 204);
  const json summary = fleet.summary();
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 1);
  EXPECT_EQ(summary.at("windows_compared"), 0);
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_NE(summary.at("warnings").at(0).get<std::string>().find("not compared: values"), std::string::npos);
  EXPECT_EQ(fleet.end(), 1);
}

}  // namespace
}  // namespace orla::behaviour
