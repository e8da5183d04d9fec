#include "sim/fleet_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/fleet_plan.h"
#include "sim/planted.h"

namespace orla::sim {
namespace {

Exercised run_clean(Mix mix, std::uint64_t last) {
  Exercised all;
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    WorldOptions options;
    options.seed = seed;
    options.mix = mix;
    FleetWorld world(options);
    EXPECT_EQ(world.run(), "") << "replay: orla-sim --seed " << seed << (mix == Mix::kSwarm ? " --swarm" : "");
    all.add(world.exercised());
  }
  return all;
}

TEST(FleetWorld, InvariantsHold) {
  const Exercised all = run_clean(Mix::kAll, 12);
  // A run in which nothing happens proves nothing.
  EXPECT_GT(all.windows, 500U);
  EXPECT_GT(all.crashes, 20U);
  EXPECT_GT(all.refusals, 10U);
  EXPECT_GT(all.cuts, 10U);
  EXPECT_GT(all.failovers, 10U);
  EXPECT_GT(all.failed_writes, 20U);
  EXPECT_GT(all.slowed_messages, 20U);
}

TEST(FleetWorld, InvariantsHoldInSwarms) { EXPECT_GT(run_clean(Mix::kSwarm, 12).windows, 500U); }

TEST(FleetWorld, TheSameSeedIsTheSameRun) {
  WorldOptions options;
  options.seed = 5;
  FleetWorld one(options);
  FleetWorld two(options);
  EXPECT_EQ(one.run(), two.run());
  EXPECT_EQ(to_string(one.exercised()), to_string(two.exercised()));
}

TEST(FleetWorld, OnlyTheFaultsThatAreKeptHappen) {
  WorldOptions options;
  options.seed = 5;
  options.keep.emplace();
  FleetWorld none(options);
  EXPECT_EQ(none.run(), "");
  EXPECT_EQ(none.exercised().faults, 0U);
  EXPECT_EQ(none.exercised().crashes, 0U);
  ASSERT_GT(none.faults().size(), 10U);
  options.keep = std::vector<std::size_t>{2, 7};
  FleetWorld some(options);
  EXPECT_EQ(some.run(), "");
  EXPECT_EQ(some.exercised().faults, 2U);
}

// Of the fleets of a thousand seeds some have dozens of nodes and three levels.
TEST(FleetWorld, SomeFleetsAreLarge) {
  std::size_t most = 0;
  std::size_t levels = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    base::SeededRandom random(seed);
    const absl::StatusOr<model::Plan> plan = random_plan(random);
    ASSERT_TRUE(plan.ok()) << plan.status();
    most = std::max(most, plan->fleet.nodes.size());
    bool site = false, region = false, central = false;
    for (const model::NodeSpec& node : plan->fleet.nodes) {
      site = site || node.name.starts_with("site-");
      region = region || node.name.starts_with("region-");
      central = central || node.name.starts_with("central-");
    }
    levels = std::max<std::size_t>(levels, site + region + central);
  }
  EXPECT_GE(most, 30U);
  EXPECT_EQ(levels, 3U);
}

TEST(DrawFaults, SwarmsDiffer) {
  base::SeededRandom random(1);
  const absl::StatusOr<model::Plan> plan = random_plan(random);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::set<FaultKind> seen;
  std::size_t fewest = kFaultKinds;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    base::SeededRandom one(seed);
    base::SeededRandom same(seed);
    const std::vector<Fault> faults = draw_faults(one, *plan, Mix::kSwarm, std::chrono::seconds(8));
    const std::vector<Fault> again = draw_faults(same, *plan, Mix::kSwarm, std::chrono::seconds(8));
    ASSERT_EQ(faults.size(), again.size());
    std::set<FaultKind> kinds;
    for (std::size_t i = 0; i < faults.size(); ++i) {
      EXPECT_EQ(to_string(faults[i]), to_string(again[i]));
      EXPECT_LT(faults[i].at, std::chrono::seconds(8));
      EXPECT_NE(plan->fleet.node(faults[i].node), nullptr);
      kinds.insert(faults[i].kind);
    }
    seen.insert(kinds.begin(), kinds.end());
    if (!faults.empty()) fewest = std::min(fewest, kinds.size());
  }
  EXPECT_EQ(seen.size(), kFaultKinds);
  EXPECT_LE(fewest, 6U);
}

class Planted : public testing::TestWithParam<BugInfo> {};

// Each within a thousand seeds, in either mix: what is planted runs until it is noticed.
TEST_P(Planted, IsNoticed) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    for (const Mix mix : {Mix::kAll, Mix::kSwarm}) {
      WorldOptions options;
      options.seed = seed;
      options.mix = mix;
      options.bug = GetParam().bug;
      if (!FleetWorld(options).run().empty()) return;
    }
  }
  FAIL() << "1000 seeds ran clean with a planted bug";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::ValuesIn(bugs().begin(), bugs().end()), [](const auto& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace orla::sim
