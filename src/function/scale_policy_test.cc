#include "function/scale_policy.h"

#include <gtest/gtest.h>

#include "function/host_load.h"

namespace orla::function {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Type = ScaleOptions::Type;

base::SteadyTime at(nanoseconds since) { return base::SteadyTime(std::chrono::hours(1) + since); }

ScaleOptions options(std::uint32_t min, std::uint32_t max, double target = 10, double proportion = 1,
                     Type type = Type::kCapacity) {
  ScaleOptions options;
  options.min = min;
  options.max = max;
  options.target = target;
  options.target_proportion = proportion;
  options.type = type;
  return options;
}
ScaleSnapshot snapshot(std::uint32_t replicas, double load, double rps = 0, std::uint64_t queue = 0,
                       std::uint32_t concurrency = 0) {
  ScaleSnapshot snapshot;
  snapshot.now = at(seconds(0));
  snapshot.wanted = replicas;
  snapshot.ready = replicas;
  snapshot.concurrency = concurrency;
  snapshot.stable = {load, rps};
  snapshot.panic = {load, rps};
  snapshot.queue = queue;
  snapshot.calls = load > 0 ? 1 : 0;
  return snapshot;
}

TEST(DecideReplicas, ATableOfLoads) {
  struct Row {
    ScaleSnapshot snapshot;
    ScaleOptions options;
    std::uint32_t expected;
  };
  const Row kTable[] = {
      {snapshot(1, 0), options(1, 20), 1},
      {snapshot(1, 10), options(1, 20), 1},  // exactly what one replica takes
      {snapshot(1, 10.1), options(1, 20), 2},
      {snapshot(5, 50), options(1, 20), 5},
      {snapshot(5, 51), options(1, 20), 6},
      {snapshot(5, 1'000), options(1, 20), 20},  // never above the maximum
      {snapshot(5, 1e18), options(1, 20), 20},
      {snapshot(5, 0), options(3, 20), 3},            // never below the minimum
      {snapshot(1, 45), options(1, 20, 50, 0.9), 1},  // 45 = 50 * 0.9
      {snapshot(1, 46), options(1, 20, 50, 0.9), 2},
      {snapshot(1, 4), options(1, 20, 50, 1, Type::kCapacity), 1},
      {snapshot(1, 4, 0, 0, 2), options(1, 20, 50, 1, Type::kCapacity), 2},  // a replica takes two at a time
      {snapshot(3, 1'000, 25), options(1, 20, 10, 1, Type::kRps), 3},
      {snapshot(3, 1'000, 31), options(1, 20, 10, 1, Type::kRps), 4},
      {snapshot(1, 1'000, 1'000, 35), options(1, 20, 10, 1, Type::kQueue), 4},
      {snapshot(7, 1'000), options(4, 4), 4},   // min == max: never scaled
      {snapshot(0, 1'000), options(1, 20), 0},  // only a call wakes it
  };
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    ScaleMemory memory;
    EXPECT_EQ(decide_replicas(kTable[i].snapshot, kTable[i].options, memory), kTable[i].expected) << "row " << i;
  }
}

TEST(DecideReplicas, ComesDownToTheMostOfTheDownWindow) {
  ScaleOptions o = options(1, 20);
  o.down_window = seconds(60);
  ScaleMemory memory;
  const auto decide = [&](seconds when, std::uint32_t replicas, double load) {
    ScaleSnapshot s = snapshot(replicas, load);
    s.now = at(when);
    return decide_replicas(s, o, memory);
  };
  EXPECT_EQ(decide(seconds(0), 5, 80), 8u);
  EXPECT_EQ(decide(seconds(30), 8, 55), 8u);
  EXPECT_EQ(decide(seconds(59), 8, 10), 8u);
  EXPECT_EQ(decide(seconds(60), 8, 10), 6u);  // what was said at 30 s
  EXPECT_EQ(decide(seconds(89), 6, 10), 6u);
  EXPECT_EQ(decide(seconds(90), 6, 10), 1u);
  o.down_window = seconds(0);
  EXPECT_EQ(decide(seconds(91), 5, 80), 8u);
  EXPECT_EQ(decide(seconds(92), 8, 10), 1u);
}

TEST(DecideReplicas, ABurstGoesUpByTheShortWindowAndHoldsForTheStableOne) {
  ScaleOptions o = options(1, 50);
  o.down_window = seconds(0);
  ScaleMemory memory;
  const auto decide = [&](seconds when, std::uint32_t replicas, double stable, double panic) {
    ScaleSnapshot s = snapshot(replicas, stable);
    s.panic.calls = panic;
    s.now = at(when);
    return decide_replicas(s, o, memory);
  };
  EXPECT_EQ(decide(seconds(0), 2, 12, 39), 4u);  // 4 is twice what is ready
  EXPECT_EQ(decide(seconds(1), 4, 12, 70), 7u);  // still in it: up
  EXPECT_EQ(decide(seconds(10), 7, 12, 0), 7u);  // and not down
  EXPECT_EQ(decide(seconds(29), 7, 12, 0), 7u);
  EXPECT_EQ(decide(seconds(30), 7, 12, 0), 2u);
  ScaleMemory calm;
  ScaleSnapshot s = snapshot(3, 12);
  s.panic.calls = 59;  // asks for 6: a burst; 5 would not be
  EXPECT_EQ(decide_replicas(s, o, calm), 6u);
  calm = {};
  s.panic.calls = 50;
  EXPECT_EQ(decide_replicas(s, o, calm), 2u);
}

TEST(DecideReplicas, GoesToNoneOnlyWithoutCallsAndWhenItIsWanted) {
  ScaleOptions o = options(2, 20);
  o.zero = true;
  o.zero_duration = minutes(5);
  struct Row {
    nanoseconds idle;
    std::uint32_t calls;
    std::uint64_t queue;
    bool zero;
    std::uint32_t expected;
  };
  const Row kTable[] = {
      {minutes(5), 0, 0, true, 0},   {minutes(5) - nanoseconds(1), 0, 0, true, 2},
      {minutes(5), 1, 0, true, 2},   {minutes(5), 0, 1, true, 2},
      {minutes(50), 0, 0, false, 2},
  };
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    ScaleMemory memory;
    ScaleSnapshot s = snapshot(2, 0);
    s.idle = kTable[i].idle;
    s.calls = kTable[i].calls;
    s.queue = kTable[i].queue;
    o.zero = kTable[i].zero;
    EXPECT_EQ(decide_replicas(s, o, memory), kTable[i].expected) << "row " << i;
  }
  ScaleMemory memory;
  ScaleSnapshot s = snapshot(2, 0);
  s.idle = minutes(6);
  o = options(2, 2);
  o.zero = true;
  o.zero_duration = minutes(5);
  EXPECT_EQ(decide_replicas(s, o, memory), 0u);  // min == max with zero: these or none
}

TEST(DecideReplicas, WhatPeopleSetHoldsForTheDownWindow) {
  const ScaleOptions o = options(1, 20);
  ScaleMemory memory;
  memory.set_by_hand(at(seconds(0)), 5);
  ScaleSnapshot s = snapshot(5, 0);
  s.now = at(seconds(59));
  EXPECT_EQ(decide_replicas(s, o, memory), 5u);
  s.now = at(seconds(60));
  EXPECT_EQ(decide_replicas(s, o, memory), 1u);
}

TEST(StepUp, IsAPartOfTheMaximumRoundedUp) {
  ScaleOptions o = options(1, 20);
  o.factor = 20;
  EXPECT_EQ(step_up(1, o), 5u);
  EXPECT_EQ(step_up(18, o), 20u);
  o.max = 4;
  EXPECT_EQ(step_up(1, o), 2u);  // 0.8 of a replica
  o.factor = 0;
  EXPECT_EQ(step_up(1, o), 1u);
}

TEST(LoadWindow, MeansOverItsWindowsFromNoLoadOn) {
  LoadWindow load;
  EXPECT_TRUE(load.empty());
  // Six calls for two seconds, then none.
  load.change(at(seconds(10)), 6, 6);
  load.mark(at(seconds(10)));
  EXPECT_FALSE(load.empty());
  for (int i = 1; i <= 4; ++i) load.mark(at(seconds(10) + milliseconds(500 * i)));
  load.change(at(seconds(12)), 0, 0);
  EXPECT_DOUBLE_EQ(load.means(at(seconds(12)), kPanicWindow).calls, 6 * 2.0 / 3);
  EXPECT_DOUBLE_EQ(load.means(at(seconds(12)), kStableWindow).calls, 6 * 2.0 / 30);
  EXPECT_DOUBLE_EQ(load.means(at(seconds(12)), kPanicWindow).per_second, 2);
  EXPECT_DOUBLE_EQ(load.means(at(seconds(12)), kStableWindow).per_second, 0.2);
  // At 14 s the short window holds the second half of it.
  EXPECT_DOUBLE_EQ(load.means(at(seconds(14)), kPanicWindow).calls, 6 * 1.0 / 3);
  EXPECT_DOUBLE_EQ(load.means(at(seconds(14)), kPanicWindow).per_second, 0);
  // A window later it is as if nothing had been.
  for (int i = 0; i <= 140; ++i) load.mark(at(seconds(12) + milliseconds(500 * i)));
  EXPECT_TRUE(load.empty());
  EXPECT_DOUBLE_EQ(load.means(at(seconds(90)), kStableWindow).calls, 0);
  load.change(at(seconds(100)), 3, 3);
  load.mark(at(seconds(103)));
  EXPECT_DOUBLE_EQ(load.means(at(seconds(103)), kPanicWindow).calls, 3);
}

TEST(LoadWindow, ALoadThatStaysIsItsMean) {
  LoadWindow load;
  load.change(at(seconds(0)), 4, 4);
  for (int i = 0; i <= 2'000; ++i) {
    load.change(at(milliseconds(100 * i)), 4, 1);
    load.mark(at(milliseconds(100 * i)));
  }
  EXPECT_NEAR(load.means(at(seconds(200)), kStableWindow).calls, 4, 0.05);
  EXPECT_NEAR(load.means(at(seconds(200)), kPanicWindow).calls, 4, 0.5);
  EXPECT_NEAR(load.means(at(seconds(200)), kStableWindow).per_second, 10, 0.2);
}

}  // namespace
}  // namespace orla::function
