// A random model of the whole protocol (protocol_world.h): every sample has to be folded in exactly once, and
// everything has to drain. Planted bugs in what surrounds the cores must be noticed (the canary).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "link/protocol_world.h"

namespace orla::link::model_test {
namespace {

TEST(ProtocolModel, EveryChunkIsCountedOnce) {
  std::uint64_t crashes = 0, freezes = 0, cuts = 0, refusals = 0, sessions = 0, chunks = 0, splits = 0, epochs = 0;
  std::uint64_t damaged = 0, stood = 0, regained = 0, reopened = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    World world(seed, Bug::kNone);
    const std::string problem = world.run();
    ASSERT_EQ(problem, "") << "seed " << seed;
    crashes += world.crashes;
    freezes += world.freezes;
    cuts += world.cuts;
    refusals += world.refusals;
    sessions += world.sessions;
    chunks += world.chunks;
    splits += world.splits;
    epochs += world.epochs;
    damaged += world.damaged;
    stood += world.stood;
    regained += world.regained;
    reopened += world.reopened;
  }
  RecordProperty("exercised", fmt::format("crashes {} freezes {} cuts {} refusals {} sessions {} chunks {} splits {} "
                                          "epochs {} damaged {} lost {} regained {} reopened {}",
                                          crashes, freezes, cuts, refusals, sessions, chunks, splits, epochs, damaged,
                                          stood, regained, reopened));
  // A run in which nothing happens proves nothing.
  EXPECT_GT(crashes, 150U);
  EXPECT_GT(freezes, 150U);
  EXPECT_GT(cuts, 150U);
  EXPECT_GT(refusals, 150U);
  EXPECT_GT(sessions, 500U);
  EXPECT_GT(chunks, 5000U);
  EXPECT_GT(splits, 50U);
  EXPECT_GT(epochs, 100U);
  EXPECT_GT(damaged, 200U) << "chunks";
  EXPECT_GT(stood, 100U) << "samples of chunks folded in as tombstones";
  EXPECT_GT(regained, 50U) << "samples of chunks whose original was folded in first";
  EXPECT_GT(reopened, 10U);
}

struct Planted {
  Bug bug;
  std::uint64_t first_seed;  // the rare ones are looked for where they are found
};
class Canary : public testing::TestWithParam<Planted> {};

TEST_P(Canary, PlantedBugIsNoticed) {
  const auto [bug, first_seed] = GetParam();
  for (std::uint64_t seed = first_seed; seed < first_seed + 100; ++seed) {
    if (!World(seed, bug).run().empty()) return;
  }
  FAIL() << "100 seeds ran clean with a planted bug";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Canary,
                         testing::Values(Planted{Bug::kOverlap, 1}, Planted{Bug::kTrimOnSend, 1},
                                         Planted{Bug::kNoCursors, 1}, Planted{Bug::kEpochNotClosed, 1},
                                         Planted{Bug::kAcknowledgeEarly, 1}, Planted{Bug::kNewNumber, 1},
                                         Planted{Bug::kRelayAcknowledges, 1}, Planted{Bug::kBlockOnLost, 1},
                                         Planted{Bug::kMergeDefinitions, 1}, Planted{Bug::kLossTwice, 1}));

}  // namespace
}  // namespace orla::link::model_test
