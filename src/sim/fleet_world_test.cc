#include "sim/fleet_world.h"

#include <gtest/gtest.h>

namespace orla::sim {
namespace {

TEST(FleetWorld, InvariantsHold) {
  Exercised all;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    WorldOptions options;
    options.seed = seed;
    FleetWorld world(options);
    ASSERT_EQ(world.run(), "") << "replay: orla-sim --seed " << seed << " --trace";
    all.add(world.exercised());
  }
  // A run in which nothing happens proves nothing.
  EXPECT_GT(all.windows, 500U);
  EXPECT_GT(all.crashes, 20U);
  EXPECT_GT(all.refusals, 10U);
  EXPECT_GT(all.cuts, 10U);
  EXPECT_GT(all.failed_writes, 20U);
}

TEST(FleetWorld, TheSameSeedIsTheSameRun) {
  WorldOptions options;
  options.seed = 5;
  FleetWorld one(options);
  FleetWorld two(options);
  EXPECT_EQ(one.run(), two.run());
  EXPECT_EQ(to_string(one.exercised()), to_string(two.exercised()));
}

class Planted : public testing::TestWithParam<Bug> {};

TEST_P(Planted, IsNoticed) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    WorldOptions options;
    options.seed = seed;
    options.bug = GetParam();
    if (!FleetWorld(options).run().empty()) return;
  }
  FAIL() << "40 seeds ran clean with a planted bug";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted,
                         testing::Values(Bug::kLostWrite, Bug::kForgetJournal, Bug::kCursorsApart, Bug::kTrimOnRead,
                                         Bug::kSkipRows));

}  // namespace
}  // namespace orla::sim
