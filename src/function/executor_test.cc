#include "function/executor.h"

#include <gtest/gtest.h>

#include <atomic>

#include "function/host_fakes.h"

namespace orla::function {
namespace {

using std::chrono::milliseconds;

struct ShortTask final : Executor::Task {
  explicit ShortTask(std::function<void()> what) : what(std::move(what)) {}
  void run() override { what(); }
  bool long_expected() const override { return false; }
  void runs_long() override { was_long = true; }
  const std::function<void()> what;
  std::atomic<bool> was_long{false};
};

TEST(Executor, RunsEverythingOnceAlsoWhatIsLeftAtItsEnd) {
  std::atomic<int> ran{0};
  {
    Executor executor({.name = "test", .threads = 3});
    for (int i = 0; i < 10'000; ++i) {
      if (i % 2 == 0) {
        executor.submit([&] { ++ran; });
      } else {
        executor.submit(std::make_shared<ShortTask>([&] { ++ran; }));
      }
    }
    EXPECT_LE(executor.threads(), 3u);
  }
  EXPECT_EQ(ran, 10'000);
}

TEST(Executor, GrowsWithTasksThatBlockUpToItsBound) {
  Gate gate;
  Cancellation never;
  std::atomic<int> inside{0};
  std::atomic<int> done{0};
  Executor executor({.name = "test", .threads = 20});
  for (int i = 0; i < 30; ++i) {
    executor.submit([&] {
      ++inside;
      gate.wait(never);
      ++done;
    });
  }
  EXPECT_TRUE(eventually([&] { return inside == 20; }));
  EXPECT_EQ(executor.threads(), 20u);
  gate.open();
  EXPECT_TRUE(eventually([&] { return done == 30; }));
}

TEST(Executor, WhatWasExpectedToBeShortAndBlocksHoldsUpNobody) {
  Gate gate;
  Cancellation never;
  std::vector<std::shared_ptr<ShortTask>> blocked;
  std::atomic<bool> ran{false};
  Executor executor({.name = "test", .threads = 64});
  for (int i = 0; i < 8; ++i) {
    blocked.push_back(std::make_shared<ShortTask>([&] { gate.wait(never); }));
    executor.submit(blocked.back());
  }
  executor.submit(std::make_shared<ShortTask>([&] { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  for (const auto& task : blocked) EXPECT_TRUE(eventually([&] { return task->was_long.load(); }));
  gate.open();
}

TEST(Executor, ThreadsThatComputeAllTheTimeAreLoweredAndOthersNot) {
  Gate gate;
  Cancellation never;
  std::atomic<bool> stop{false};
  std::atomic<bool> ran{false};
  Executor executor({.name = "test", .threads = 8});
  executor.submit([&] { gate.wait(never); });
  executor.submit([&] {
    while (!stop) {
    }
  });
  EXPECT_TRUE(eventually([&] { return executor.lowered() == 1; }));
  stop = true;
  EXPECT_TRUE(eventually([&] { return executor.lowered() == 0; }));
  gate.open();
  executor.submit([&] { ran = true; });
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

// More of them than processors: none gets half of one.
TEST(Executor, ManyThatComputeAreAllLowered) {
  const std::size_t many = 4 * std::max(1u, std::thread::hardware_concurrency());
  std::atomic<bool> stop{false};
  Executor executor({.name = "test", .threads = 64});
  for (std::size_t i = 0; i < many; ++i) {
    executor.submit([&] {
      while (!stop) {
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return executor.lowered() == many; }));
  stop = true;
}

}  // namespace
}  // namespace orla::function
