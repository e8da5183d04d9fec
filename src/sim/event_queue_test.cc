#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/fake_loop.h"

namespace orla::sim {
namespace {

using std::chrono::milliseconds;

TEST(EventQueue, RunsInOrderOfTimeAndOfAdding) {
  EventQueue queue;
  std::vector<int> ran;
  queue.after(milliseconds(2), [&] { ran.push_back(3); });
  queue.after(milliseconds(1), [&] {
    ran.push_back(1);
    queue.after({}, [&] { ran.push_back(2); });
  });
  queue.after(milliseconds(2), [&] { ran.push_back(4); });
  const base::SteadyTime start = queue.now();
  while (queue.step()) {
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(queue.now() - start, milliseconds(2));
}

TEST(FakeLoop, WhatHappensWhileFrozenHappensAfter) {
  EventQueue queue;
  FakeLoop loop(queue, [] {});
  std::vector<int> ran;
  loop.post([&] { ran.push_back(1); });
  loop.post_after(milliseconds(5), [&] { ran.push_back(2); });
  loop.freeze();
  while (queue.step()) {
  }
  EXPECT_TRUE(ran.empty());
  loop.thaw();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(FakeLoop, ACrashEndsTheLifeInTheMiddleOfATask) {
  EventQueue queue;
  int crashes = 0;
  int after = 0;
  std::unique_ptr<FakeLoop> loop;
  loop = std::make_unique<FakeLoop>(queue, [&] {
    ++crashes;
    loop.reset();
  });
  loop->post([&]() -> void {
    loop->post([&] { ++after; });
    throw Crash{};
  });
  while (queue.step()) {
  }
  EXPECT_EQ(crashes, 1);
  EXPECT_EQ(after, 0);
}

}  // namespace
}  // namespace orla::sim
