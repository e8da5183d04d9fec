#include "function/balance.h"

#include <gtest/gtest.h>

#include <vector>

namespace orla::function {
namespace {

TEST(ChooseReplica, ATableOfLoads) {
  struct Row {
    std::vector<ReplicaLoad> loads;
    std::uint64_t random;
    std::optional<std::size_t> expected;
  };
  const Row kTable[] = {
      {{}, 0, std::nullopt},
      {{{0, 1}}, 7, 0},
      {{{1, 1}}, 0, std::nullopt},
      {{{1, 1}, {2, 3}}, 0, 1},             // the least loaded one is full
      {{{3, 10}, {1, 10}, {2, 10}}, 0, 1},  // the least loaded
      {{{1, 10}, {1, 10}, {1, 10}}, 0, 0},  // equal: chance
      {{{1, 10}, {1, 10}, {1, 10}}, 1, 1},
      {{{1, 10}, {1, 10}, {1, 10}}, 5, 2},
      {{{5, 5}, {5, 5}, {5, 5}}, 2, std::nullopt},
      {{{9, 9}, {9, 9}, {9, 9}, {9, 9}, {9, 9}, {9, 9}, {9, 9}, {9, 9}, {9, 9}, {8, 9}},
       0,
       9},  // of many, the only one
  };
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    EXPECT_EQ(choose_replica(kTable[i].loads, kTable[i].random), kTable[i].expected) << "row " << i;
  }
}

TEST(ChooseReplica, OfManyItTakesTheLesserOfTwo) {
  // With 10 replicas the low bits (mod 10) pick one, the high half (mod 9) how far the other is from it, less one.
  std::vector<ReplicaLoad> loads(10, {.in_flight = 5, .concurrency = 10});
  loads[4].in_flight = 3;
  const std::uint64_t two_and_four = (std::uint64_t{1} << 32) + 6;  // 2^32 mod 10 is 6
  EXPECT_EQ(two_and_four % 10, 2u);
  EXPECT_EQ(choose_replica(loads, two_and_four), 4u);
  loads[2].in_flight = 2;
  EXPECT_EQ(choose_replica(loads, two_and_four), 2u);
  loads[2] = {.in_flight = 2, .concurrency = 2};
  EXPECT_EQ(choose_replica(loads, two_and_four), 4u);
}

TEST(ChooseReplica, SpreadsCallsThatStay) {
  std::vector<ReplicaLoad> loads(50, {.in_flight = 0, .concurrency = 100});
  std::uint64_t state = 1;
  for (int i = 0; i < 5'000; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const auto chosen = choose_replica(loads, state);
    ASSERT_TRUE(chosen);
    ++loads[*chosen].in_flight;
  }
  for (const ReplicaLoad& load : loads) {
    EXPECT_GE(load.in_flight, 90u);
    EXPECT_LE(load.in_flight, 110u);
  }
}

}  // namespace
}  // namespace orla::function
