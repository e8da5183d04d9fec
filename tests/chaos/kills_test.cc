// Nodes that are killed and frozen in the middle of a replay, all roles of them, change nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/clock.h"
#include "base/random.h"
#include "tests/chaos/chaos_fleet.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

const base::SystemClock clock_of_test;

// First every node in turn, then at random: killed, killed together with another, or frozen for a while.
TEST(Kills, OfEveryRoleInTurnAndAtRandomChangeNothing) {
  const int kills = chaos_kills();
  const std::uint64_t seed = chaos_seed();
  base::SeededRandom random(seed);
  SCOPED_TRACE(fmt::format("ORLA_CHAOS_SEED={} ORLA_CHAOS_KILLS={}", seed, kills));
  // At this speed the replay is on until the last kill: each costs more than 200 ms.
  const ChaosText text{.length = fmt::format("{}m", 4 + kills / 8), .speed = 20};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up({"--verify"}));
  std::vector<std::string> nodes = text.edges();
  nodes.insert(nodes.end(), {"agg-1", "agg-2", "top", "cloud"});
  ASSERT_TRUE(reads_on(fleet, "edge-0"));
  int done = 0;
  int frozen = 0;
  std::map<std::string, int> by_node;
  const auto kill = [&](const std::string& node) {
    ++done;
    ++by_node[node];
    return fleet.stop(node, SIGKILL);
  };
  for (std::size_t turn = 0; done < kills; ++turn) {
    const std::string node = nodes[turn < nodes.size() ? turn : random.below(nodes.size())];
    const std::string other = nodes[random.below(nodes.size())];
    SCOPED_TRACE(fmt::format("turn {}: {}, {}", turn, node, other));
    if (turn >= nodes.size() && random.below(5) == 0 && other != node) {
      // Frozen while another one is killed; it wakes up with what it had.
      const int pid = fleet.pid(node);
      ::kill(pid, SIGSTOP);
      ++frozen;
      ASSERT_TRUE(kill(other));
      ASSERT_TRUE(fleet.start(other));
      clock_of_test.sleep(milliseconds(random.below(2'500)));
      ::kill(pid, SIGCONT);
    } else if (turn >= nodes.size() && random.below(4) == 0 && other != node) {
      ASSERT_TRUE(kill(node));
      ASSERT_TRUE(kill(other));
      ASSERT_TRUE(fleet.start(other));
      ASSERT_TRUE(fleet.start(node));
    } else {
      ASSERT_TRUE(kill(node));
      clock_of_test.sleep(milliseconds(random.below(100)));
      ASSERT_TRUE(fleet.start(node));
    }
    clock_of_test.sleep(milliseconds(random.below(200)));
  }
  // It was the middle.
  const json edge = fleet.status("edge-0");
  EXPECT_TRUE(edge.is_object() && !edge.at("inputs").at(0).at("ended").get<bool>()) << "the replay was over too early";
  const json summary = fleet.summary(seconds(240));
  expect_everything_once(summary, text.rows());
  std::string counts;
  for (const auto& [node, n] : by_node) counts += fmt::format(" {} {}", node, n);
  fmt::print("seed {}: {} kills ({}), {} frozen, {} measurements, windows_different {}\n", seed, done,
             counts.empty() ? counts : counts.substr(1), frozen, summary.value("measurements", 0),
             summary.value("windows_different", -1));
  RecordProperty("kills", done);
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

// Both aggregators of the group serve edges or not as their names hash; the one of edge-0 is the victim.
class LostAggregator : public ::testing::Test {
 protected:
  LostAggregator() : fleet(text.full()) {}
  void SetUp() override {
    ASSERT_TRUE(fleet.up({"--verify"}));
    ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) { return s.at("uplink").at("connected").get<bool>(); }));
    ASSERT_TRUE(fleet.wait_until("cloud", [](const json& s) { return s.at("chunks").at("applied").get<int>() > 3; }));
    victim = parent_of(fleet, "edge-0");
    ASSERT_TRUE(victim == "agg-1" || victim == "agg-2") << victim;
    for (const std::string& edge : text.edges()) {
      if (parent_of(fleet, edge) == victim) orphans.push_back(edge);
    }
  }
  // From `signal` until all its children are connected elsewhere.
  milliseconds until_moved(int signal) {
    const base::SteadyTime begin = clock_of_test.steady_now();
    ::kill(fleet.pid(victim), signal);
    for (const std::string& edge : orphans) {
      EXPECT_TRUE(fleet.wait_until(edge, [&](const json& s) {
        return s.at("uplink").at("connected").get<bool>() && s.at("uplink").at("parent") != victim;
      })) << edge;
    }
    return std::chrono::duration_cast<milliseconds>(clock_of_test.steady_now() - begin);
  }

  // Slices of a minute at 30 times real time, and sent while open: most of what is under way is half of one. The limits
  // are those of every fleet.
  const ChaosText text{.length = chaos() == Chaos::kLong ? "30m" : "6m",
                       .speed = 30,
                       .limits = "",
                       .edge_parents = R"([["agg-1", "agg-2"]])"};
  FleetUnderTest fleet;
  std::string victim;
  std::vector<std::string> orphans;
};

TEST_F(LostAggregator, KilledForGoodIsReplacedAtOnce) {
  const milliseconds took = until_moved(SIGKILL);
  fmt::print("{} children of a killed aggregator moved within {} ms\n", orphans.size(), took.count());
  EXPECT_LT(took, seconds(2));
  expect_everything_once(fleet.summary(seconds(120)), text.rows());
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

// Frozen with what it had, left by its children, and awake again when that is long folded in.
TEST_F(LostAggregator, AwakeMuchLaterAddsNothing) {
  const milliseconds took = until_moved(SIGSTOP);
  fmt::print("{} children of a frozen aggregator moved within {} ms\n", orphans.size(), took.count());
  // Silence is noticed after 2 s; the rest is for the new session, on a machine that does other things too.
  EXPECT_LT(took, milliseconds(3'500));
  const std::int64_t applied = number_of(fleet, "cloud", "/chunks/applied");
  ASSERT_TRUE(
      fleet.wait_until("cloud", [&](const json& s) { return s.at("chunks").at("applied").get<int>() > applied + 5; }));
  ::kill(fleet.pid(victim), SIGCONT);
  if (chaos() == Chaos::kLong) {
    // A better parent is tried every 30 s.
    EXPECT_TRUE(fleet.wait_until(
        "edge-0", [&](const json& s) { return s.at("uplink").at("parent") == victim; }, seconds(60)))
        << "children do not come back";
  }
  expect_everything_once(fleet.summary(seconds(120)), text.rows());
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

}  // namespace
}  // namespace orla::behaviour
