// Nodes that stop and start again in the middle of a replay, asked to or killed, change nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/random.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

std::int64_t generated_rows(const FleetText& text) {
  const base::Finished made = run_program({"generate", "--houses", std::to_string(text.houses), "--for", text.length});
  return static_cast<std::int64_t>(lines_of(made.output).size());
}

void expect_exact(const json& summary, std::int64_t rows) {
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("verified"), true);
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_EQ(summary.at("windows_extra"), 0);
  EXPECT_EQ(summary.at("inputs_different"), 0);
  EXPECT_EQ(summary.at("measurements"), rows);
  EXPECT_EQ(summary.at("aggregated"), rows);
}

std::int64_t read_so_far(const FleetUnderTest& fleet, const std::string& edge) {
  const json s = fleet.status(edge);
  return s.is_object() ? s.at("samples_in").get<std::int64_t>() : -1;
}

// The edge has read more than `before`.
bool goes_on(const FleetUnderTest& fleet, const std::string& edge, std::int64_t before) {
  return fleet.wait_until(edge, [&](const json& s) { return s.at("samples_in").get<std::int64_t>() > before; });
}

class RestartedRole : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

// Stopped in the middle, once by SIGTERM and once by SIGKILL, and started again by hand.
TEST_P(RestartedRole, ChangesNothing) {
  const auto& [role, durability] = GetParam();
  const FleetText text{.edges = 2, .levels = 1, .houses = 2, .length = "5m", .speed = 90, .durability = durability};
  FleetUnderTest fleet(text.full());
  const FindState find = role == "edge-0" ? FindState::kByRunRecord : FindState::kGiven;
  ASSERT_TRUE(fleet.up({"--verify"}, find));
  for (const int signal : {SIGTERM, SIGKILL}) {
    ASSERT_TRUE(goes_on(fleet, "edge-0", std::max<std::int64_t>(0, read_so_far(fleet, "edge-0"))));
    ASSERT_TRUE(fleet.stop(role, signal));
    ASSERT_TRUE(fleet.start(role, find));
    ASSERT_TRUE(fleet.wait_until(role, [](const json& s) { return s.at("ready").get<bool>(); }));
    // The replay is still on: it was the middle.
    if (signal == SIGTERM) {
      EXPECT_FALSE(fleet.status("edge-1").at("drained").get<bool>());
    }
  }
  expect_exact(fleet.summary(), generated_rows(text));
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
  // The one that was started by hand ends with its fleet.
  const std::optional<base::ExitStatus> last = fleet.ended(role, std::chrono::seconds(8));
  ASSERT_TRUE(last.has_value()) << role << " runs on after its fleet has ended";
  EXPECT_TRUE(last->success()) << to_string(*last) << "\n" << fleet.log_of(role);
}

INSTANTIATE_TEST_SUITE_P(Disk, RestartedRole,
                         ::testing::Combine(::testing::Values("edge-0", "agg-1", "cloud"), ::testing::Values("disk")));
INSTANTIATE_TEST_SUITE_P(Memory, RestartedRole,
                         ::testing::Combine(::testing::Values("edge-0", "cloud"), ::testing::Values("memory")));

// Whole state directories outlive `orla up` itself.
TEST(Restart, UpKilledGoesOnWhereItStopped) {
  const FleetText text{.edges = 1, .levels = 1, .houses = 1, .length = "5m", .speed = 150};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up({}));
  ASSERT_TRUE(goes_on(fleet, "edge-0", 0));
  ::kill(fleet.up_pid(), SIGKILL);
  EXPECT_EQ(fleet.end(), 128 + SIGKILL);
  for (const std::string node : {"edge-0", "agg-1", "cloud"}) {
    const int pid = fleet.pid(node);
    EXPECT_TRUE(FleetUnderTest::until(std::chrono::seconds(8), [pid] { return !runs(pid); })) << node;
  }
  expect_exact(fleet.run({"--for", "60s", "--verify"}), generated_rows(text));
}

// An edge with threads for its shards goes on after SIGKILL with another number of them.
TEST(Restart, AnEdgeMayComeBackWithOtherShards) {
  FleetText text{.edges = 1, .levels = 0, .houses = 2, .length = "5m", .speed = 150};
  text.shards = 2;
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up({"--verify"}));
  ASSERT_TRUE(goes_on(fleet, "edge-0", 0));
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  text.shards = 3;
  fleet.write("fleet.toml", text.full());
  ASSERT_TRUE(fleet.start("edge-0"));
  expect_exact(fleet.summary(), generated_rows(text));
}

class RandomKills : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomKills, OfAllRolesChangeNothing) {
  static std::uint64_t seed = 20130901;  // another one at each --gtest_repeat
  ++seed;
  base::SeededRandom random(seed);
  const FleetText text{.edges = 2, .levels = 2, .houses = 2, .length = "5m", .speed = 75, .durability = GetParam()};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up({"--verify"}));
  const std::vector<std::string> nodes = {"edge-0", "edge-1", "agg-1", "agg-2", "cloud"};
  for (int round = 0; round < 4; ++round) {
    // Two at once, back in the other order.
    const std::size_t first = random.below(nodes.size());
    const std::size_t second = (first + 1 + random.below(nodes.size() - 1)) % nodes.size();
    SCOPED_TRACE(fmt::format("seed {}, round {}: {} and {}", seed, round, nodes[first], nodes[second]));
    ASSERT_TRUE(fleet.stop(nodes[first], SIGKILL));
    ASSERT_TRUE(fleet.stop(nodes[second], SIGKILL));
    base::SystemClock().sleep(std::chrono::milliseconds(random.below(150)));
    ASSERT_TRUE(fleet.start(nodes[second]));
    ASSERT_TRUE(fleet.start(nodes[first]));
  }
  expect_exact(fleet.summary(), generated_rows(text));
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

INSTANTIATE_TEST_SUITE_P(Durability, RandomKills, ::testing::Values("disk", "memory"));

// A fleet that has sent everything and is stopped and started again without new input is silent.
TEST(Restart, CleanWithoutInputSendsNothing) {
  FleetUnderTest fleet(FleetText{.edges = 2, .levels = 1, .houses = 2}.full());
  ASSERT_TRUE(fleet.up({"--verify"}));
  ASSERT_EQ(fleet.summary().at("exit_code"), 0);
  const json before = fleet.status("cloud").at("cloud").at("origins");
  const std::vector<std::string> nodes = {"edge-0", "edge-1", "agg-1", "cloud"};
  for (const std::string& node : nodes) ASSERT_TRUE(fleet.stop(node, SIGTERM));
  for (const std::string& node : nodes) ASSERT_TRUE(fleet.start(node));
  for (const std::string node : {"edge-0", "edge-1", "agg-1"}) {
    ASSERT_TRUE(fleet.wait_until(node, [](const json& s) { return s.at("uplink").at("connected").get<bool>(); }));
  }
  // Some heartbeats and commit intervals later.
  const base::SystemClock clock;
  clock.sleep(std::chrono::seconds(2));
  for (const std::string node : {"edge-0", "edge-1", "agg-1"}) {
    const json uplink = fleet.status(node).at("uplink");
    EXPECT_EQ(uplink.at("connected"), true);
    EXPECT_EQ(uplink.at("frames_sent"), 0) << node;
  }
  const json cloud = fleet.status("cloud");
  EXPECT_EQ(cloud.at("chunks").at("received"), 0) << cloud.at("chunks");
  EXPECT_EQ(cloud.at("cloud").at("windows_written"), 0);
  EXPECT_EQ(cloud.at("cloud").at("origins"), before);
}

// What a killed process still holds for a moment is waited for, not for ever.
TEST(Restart, WaitsForTheLockOfAProcessThatEnds) {
  FleetUnderTest fleet(FleetText{.edges = 1, .levels = 0}.full());
  for (const std::string node : {"cloud", "edge-0"}) {
    const std::filesystem::path directory = fleet.state() / node;
    ASSERT_TRUE(base::make_directories(directory).ok());
    std::optional<base::FileLock> holder = base::FileLock::acquire(directory / "lock").value();
    std::thread ends([&] {
      EXPECT_TRUE(FleetUnderTest::until(std::chrono::seconds(20), [&] {
        return fleet.log_of(node).find("waits up to 5 s for its end") != std::string::npos;
      }));
      holder.reset();
    });
    EXPECT_TRUE(fleet.start(node));
    ends.join();
  }
}

// A memory edge that loses its cloud for good says what is lost with it.
TEST(Restart, MemoryEdgeSaysWhatItLeavesBehind) {
  const FleetText text{.edges = 1, .levels = 0, .houses = 1, .length = "10m", .speed = 60, .durability = "memory"};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.start("cloud"));
  ASSERT_TRUE(fleet.start("edge-0"));
  ASSERT_TRUE(goes_on(fleet, "edge-0", 0));
  ASSERT_TRUE(fleet.stop("cloud", SIGKILL));
  ASSERT_TRUE(goes_on(fleet, "edge-0", read_so_far(fleet, "edge-0")));
  ASSERT_TRUE(fleet.stop("edge-0", SIGTERM));
  const std::optional<base::ExitStatus> end = fleet.ended("edge-0", std::chrono::seconds(8));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 5) << to_string(*end);
  const std::string log = fleet.log_of("edge-0");
  const std::size_t found = log.find(" samples that the cloud has not acknowledged");
  ASSERT_NE(found, std::string::npos) << log;
  const std::size_t begin = log.rfind(' ', found - 1) + 1;
  EXPECT_GT(std::stoll(log.substr(begin, found - begin)), 0) << log;
}

}  // namespace
}  // namespace orla::behaviour
