// Links between two network namespaces that are slow, flap, lose everything or lose some; skipped where no namespace or
// no TAP device can be made.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <thread>

#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/file_descriptor.h"
#include "node/http_client.h"
#include "node/state_directory.h"
#include "tests/chaos/chaos_fleet.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t kPort = 7411;  // in namespaces that are nobody else's

const base::SystemClock clock_of_test;

// The cloud in namespace A, an edge in B, and the link between them.
class BadLink : public ::testing::Test {
 protected:
  void SetUp() override {
    set("");
    base::ProcessSpec spec;
    spec.argv = {(std::filesystem::path(program()).parent_path() / "tap_relay").string(), control(),
                 std::to_string(kPort)};
    spec.output = base::Output::pipe();
    absl::StatusOr<std::unique_ptr<base::ChildProcess>> started = spawner.start(spec);
    ASSERT_TRUE(started.ok()) << started.status();
    link = *std::move(started);
    const absl::StatusOr<std::string> line = link->read_line(base::ChildProcess::Stream::kOutput, seconds(20));
    ASSERT_TRUE(line.ok()) << line.status();
    const json said = json::parse(*line);
    if (said.at("event") != "ready") GTEST_SKIP() << "no link between namespaces here: " << said.at("why");
    where["cloud"] = said.at("a");
    where["edge-0"] = said.at("b");
  }
  void prepare(const FleetText& wanted) {
    text = wanted;
    fleet = std::make_unique<FleetUnderTest>(text.full());
    fleet->write("linked.toml", absl::StrReplaceAll(text.full(), {{"listen = \"127.0.0.1:0\"",
                                                                   fmt::format("listen = \"127.0.0.1:{}\"", kPort)}}));
  }
  void TearDown() override {
    nodes.clear();
    link.reset();
  }

  std::string control() const { return (directory.path() / "link").string(); }
  void set(const std::string& words) const {
    ASSERT_TRUE(base::write_file_atomically(control(), words).ok());
    clock_of_test.sleep(milliseconds(60));  // it looks every 20 ms
  }

  void start(const std::string& node) {
    base::ProcessSpec spec;
    spec.argv = {
        "nsenter", "--net=" + where.at(node), program(), "node", (fleet->directory() / "linked.toml").string(), node,
        "--state", fleet->state().string()};
    spec.output = base::Output::discarded();
    spec.errors = base::Output::file((fleet->directory() / (node + ".log")).string());
    absl::StatusOr<std::unique_ptr<base::ChildProcess>> started = spawner.start(spec);
    ASSERT_TRUE(started.ok()) << started.status();
    nodes[node] = *std::move(started);
    ASSERT_TRUE(until(seconds(20), node, [&](const json& s) { return s.at("pid") == nodes.at(node)->pid(); }))
        << fleet->log_of(node);
  }
  void stop(const std::string& node, int signal) {
    nodes.at(node)->send_signal(signal);
    EXPECT_TRUE(nodes.at(node)->wait(seconds(20)).has_value()) << node;
    nodes.erase(node);
  }
  // Asked for inside its namespace.
  json status(const std::string& node) const {
    json out;
    std::thread([&] {
      const base::FileDescriptor space(::open(where.at(node).c_str(), O_RDONLY | O_CLOEXEC));
      if (::setns(space.get(), CLONE_NEWNET) != 0) return;
      const std::optional<node::NodeAddresses> at = node::read_addresses(fleet->state(), node);
      if (!at) return;
      const absl::StatusOr<node::HttpReply> reply =
          node::http_request("GET", at->http + "/api/v1/status", "", milliseconds(2'000));
      if (reply.ok() && reply->status == 200) out = json::parse(reply->body, nullptr, false);
    }).join();
    return out.is_object() && out.at("recovering").is_null() ? out : json(nullptr);
  }
  template <typename Condition>
  bool until(seconds timeout, const std::string& node, Condition condition) const {
    return FleetUnderTest::until(timeout, [&] {
      const json s = status(node);
      return s.is_object() && condition(s);
    });
  }
  static bool connected(const json& s) { return s.at("uplink").at("connected").get<bool>(); }
  static bool drained(const json& s) {
    return s.at("inputs").at(0).at("ended").get<bool>() && s.at("outbox").at("chunks") == 0;
  }
  // Both end, and the state that they leave is compared with what was generated.
  void expect_exact() {
    const std::int64_t read = status("edge-0").at("samples_in").get<std::int64_t>();
    stop("edge-0", SIGTERM);
    stop("cloud", SIGTERM);
    expect_everything_once(fleet->run({"--for", "60s", "--verify"}), read);
  }

  base::TemporaryDirectory directory = base::TemporaryDirectory::create("orla-link-").value();
  base::SystemSpawner spawner;
  std::unique_ptr<base::ChildProcess> link;
  std::map<std::string, std::string> where;
  FleetText text;
  std::unique_ptr<FleetUnderTest> fleet;
  std::map<std::string, std::unique_ptr<base::ChildProcess>> nodes;
};

TEST_F(BadLink, ThatFlapsDrains) {
  prepare({.edges = 1, .levels = 0, .houses = 2, .length = "10m", .speed = 300});
  set("delay_ms=3 jitter_ms=4 loss=0.01 flap_ms=300");
  start("cloud");
  start("edge-0");
  EXPECT_TRUE(until(seconds(60), "edge-0", drained)) << status("edge-0");
  set("");
  expect_exact();
}

// The long variant is the link of 50 kbit/s with 2 MB waiting; the usual one takes a fortieth of its time.
TEST_F(BadLink, ThatIsSlowKeepsItsSessionAndMakesSteadyProgress) {
  const bool is_long = chaos() == Chaos::kLong;
  const int rate = is_long ? 6'250 : 50'000;
  prepare({.edges = 1, .levels = 0, .houses = is_long ? 40 : 20, .length = is_long ? "70m" : "30m", .speed = 0});
  set("down=1");
  start("cloud");
  start("edge-0");
  ASSERT_TRUE(
      until(seconds(120), "edge-0", [](const json& s) { return s.at("inputs").at(0).at("ended").get<bool>(); }));
  set(fmt::format("delay_ms=20 jitter_ms=5 rate={}", rate));
  ASSERT_TRUE(until(seconds(60), "edge-0", connected));
  const json first = status("edge-0");
  const base::SteadyTime begin = clock_of_test.steady_now();
  const std::int64_t backlog = first.at("outbox").at("bytes").get<std::int64_t>();
  EXPECT_GT(backlog, is_long ? 1'500'000 : 200'000);
  const seconds patience(10 + 3 * backlog / rate);
  std::int64_t acknowledged = first.at("outbox").at("acknowledged").get<std::int64_t>();
  base::SteadyTime moved = begin;
  milliseconds longest{0};
  EXPECT_TRUE(until(patience, "edge-0", [&](const json& s) {
    const base::SteadyTime now = clock_of_test.steady_now();
    if (s.at("outbox").at("acknowledged").get<std::int64_t>() > acknowledged) {
      acknowledged = s.at("outbox").at("acknowledged").get<std::int64_t>();
      longest = std::max(longest, std::chrono::duration_cast<milliseconds>(now - moved));
      moved = now;
    }
    return drained(s);
  })) << status("edge-0");
  const double took = std::chrono::duration<double>(clock_of_test.steady_now() - begin).count();
  const json last = status("edge-0");
  fmt::print("{} bytes over {} bytes/s in {:.1f} s, longest pause between acknowledgements {} ms, sessions {} -> {}\n",
             backlog, rate, took, longest.count(), first.at("uplink").at("connects").get<int>(),
             last.at("uplink").at("connects").get<int>());
  EXPECT_EQ(last.at("uplink").at("connects"), first.at("uplink").at("connects"))
      << "heartbeats were not kept; the edge says:\n"
      << fleet->log_of("edge-0") << "the cloud says:\n"
      << fleet->log_of("cloud");
  expect_exact();
}

// Nobody is told: only silence says so.
TEST_F(BadLink, ThatIsHalfOpenIsNoticedWithinTwoSecondsByBothEnds) {
  FleetText wanted{.edges = 1, .levels = 0, .houses = 1, .length = "10m", .speed = 60};
  prepare(wanted);
  start("cloud");
  start("edge-0");
  ASSERT_TRUE(until(seconds(20), "edge-0", connected));
  ASSERT_TRUE(until(seconds(20), "edge-0", [](const json& s) { return s.at("samples_in").get<int>() > 0; }));
  const base::SteadyTime begin = clock_of_test.steady_now();
  ASSERT_TRUE(base::write_file_atomically(control(), "down=1").ok());
  EXPECT_TRUE(until(seconds(20), "edge-0", [](const json& s) { return !connected(s); }));
  const auto took = std::chrono::duration_cast<milliseconds>(clock_of_test.steady_now() - begin);
  fmt::print("a half open link was noticed after {} ms\n", took.count());
  EXPECT_LT(took, milliseconds(3'000));  // parent_timeout is 1.5 s here; the rest is the machine's other work
  EXPECT_TRUE(until(seconds(20), "cloud", [](const json& s) { return s.at("children").empty(); }));
  // The edge goes on by itself.
  const std::int64_t read = status("edge-0").at("samples_in").get<std::int64_t>();
  EXPECT_TRUE(
      until(seconds(20), "edge-0", [&](const json& s) { return s.at("samples_in").get<std::int64_t>() > read; }));
  set("");
  EXPECT_TRUE(until(seconds(20), "edge-0", connected));
  // The cloud is away for a while, and comes back.
  stop("cloud", SIGKILL);
  EXPECT_TRUE(until(seconds(20), "edge-0", [](const json& s) { return !connected(s); }));
  start("cloud");
  EXPECT_TRUE(until(seconds(60), "edge-0", drained)) << status("edge-0");
  expect_exact();
}

}  // namespace
}  // namespace orla::behaviour
