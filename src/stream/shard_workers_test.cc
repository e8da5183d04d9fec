#include "stream/shard_workers.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace orla::stream {
namespace {

TEST(ShardWorkers, InlineShardsAreTheCallers) {
  InlineShards workers(3);
  EXPECT_EQ(workers.size(), 3U);
  std::vector<std::size_t> order;
  workers.run([&](std::size_t shard) { order.push_back(shard); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2}));
}

// Neither the caller's values nor the shards' are atomic: only run() orders them.
TEST(ShardWorkers, EveryShardSeesTheCallerAndTheCallerEveryShard) {
  for (const std::size_t size : {1, 2, 3, 8}) {
    ThreadShards workers(size);
    ASSERT_EQ(workers.size(), size);
    std::vector<std::uint64_t> sums(size);
    std::uint64_t given = 0;
    std::uint64_t expected = 0;
    for (int round = 1; round <= 2'000; ++round) {
      given = static_cast<std::uint64_t>(round) * 7;
      workers.run([&](std::size_t shard) { sums[shard] += given + shard; });
      expected += given;
      for (std::size_t shard = 0; shard < size; ++shard)
        ASSERT_EQ(sums[shard], expected + static_cast<std::uint64_t>(round) * shard);
    }
  }
}

TEST(ShardWorkers, AShardHasOneThreadForItsLife) {
  ThreadShards workers(4);
  std::vector<std::thread::id> first(4);
  workers.run([&](std::size_t shard) { first[shard] = std::this_thread::get_id(); });
  EXPECT_EQ(first[0], std::this_thread::get_id());
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(first[a], first[b]);
  std::vector<std::thread::id> again(4);
  workers.run([&](std::size_t shard) { again[shard] = std::this_thread::get_id(); });
  EXPECT_EQ(again, first);
}

TEST(ShardWorkers, ThreadsThatWereNeverUsedEnd) {
  for (int i = 0; i < 20; ++i) ThreadShards workers(3);
}

// Threads that sleep are woken: more of them than processors, and a caller that takes its time.
TEST(ShardWorkers, SleepersWake) {
  ThreadShards workers(8);
  std::vector<int> rounds(8);
  for (int round = 0; round < 50; ++round) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    workers.run([&](std::size_t shard) {
      if (shard == 7)
        while (std::chrono::steady_clock::now() < until) {
        }
      ++rounds[shard];
    });
    while (std::chrono::steady_clock::now() < until + std::chrono::microseconds(200)) {
    }
  }
  EXPECT_EQ(rounds, std::vector<int>(8, 50));
}

}  // namespace
}  // namespace orla::stream
