#include "ingest/pacer.h"

#include <gtest/gtest.h>

namespace orla::ingest {
namespace {

using namespace std::chrono_literals;

base::SteadyTime steady(std::chrono::nanoseconds t) { return base::SteadyTime(t); }
model::Time event(std::chrono::nanoseconds t) { return model::Time(1370000000s + t); }
model::Batch at(std::initializer_list<std::chrono::nanoseconds> times) {
  model::Batch batch;
  for (const auto t : times) {
    batch.times.push_back(event(t));
    batch.values.push_back(0);
  }
  return batch;
}

TEST(Pacer, ReplaysAtItsSpeed) {
  Pacer pacer(10, {});
  EXPECT_EQ(pacer.event_now(steady(0s)), model::kMinTime);
  EXPECT_EQ(pacer.wait(at({0s}), steady(100s)), 0s);
  EXPECT_EQ(pacer.event_now(steady(103s)), event(30s));
  EXPECT_EQ(pacer.wait(at({5s, 20s, 15s}), steady(100s)), 2s);  // the newest counts
  EXPECT_EQ(pacer.wait(at({30s}), steady(102s)), 1s);
  EXPECT_EQ(pacer.wait(at({}), steady(103s)), 0s);
  EXPECT_EQ(pacer.wait(at({10s}), steady(103s)), 0s);  // out of order: long due
  EXPECT_EQ(pacer.wait(at({40s}), steady(103500ms)), 500ms);
  // Held up by five seconds, it catches up and keeps its clock.
  EXPECT_EQ(pacer.wait(at({50s}), steady(110s)), 0s);
  EXPECT_EQ(pacer.wait(at({100s}), steady(110s)), 0s);
  EXPECT_EQ(pacer.wait(at({120s}), steady(110s)), 2s);
  // A gap of the data is a gap of the replay.
  EXPECT_EQ(pacer.wait(at({120s + 10h}), steady(112s)), 1h);
}

TEST(Pacer, SlowAndFast) {
  Pacer slow(0.5, {});
  slow.wait(at({0s}), steady(0s));
  EXPECT_EQ(slow.wait(at({3s}), steady(1s)), 5s);
  Pacer fast(1e6, {});
  fast.wait(at({0s}), steady(0s));
  EXPECT_EQ(fast.wait(at({1000s}), steady(0s)), 1ms);
}

TEST(Pacer, SpeedZeroNeverWaitsAndHasNoClock) {
  Pacer pacer(0, 1h);
  EXPECT_EQ(pacer.wait(at({0s}), steady(0s)), 0s);
  EXPECT_EQ(pacer.wait(at({1000h}), steady(0s)), 0s);
  EXPECT_EQ(pacer.event_now(steady(5s)), model::kMinTime);
}

TEST(Pacer, WithMaxJumpAWrongClockHoldsNothingUp) {
  Pacer pacer(1, 1h);
  pacer.wait(at({0s}), steady(0s));
  EXPECT_EQ(pacer.wait(at({24h * 3650}), steady(1s)), 0s);  // ten years ahead
  EXPECT_EQ(pacer.wait(at({2s}), steady(1s)), 0s);          // and back
  EXPECT_EQ(pacer.wait(at({3s}), steady(1s)), 1s);
  EXPECT_EQ(pacer.event_now(steady(2s)), event(3s));
  EXPECT_EQ(pacer.wait(at({3s + 1h}), steady(2s)), 1h);  // not more than max_jump
}

TEST(Pacer, FarTimesDoNotOverflow) {
  Pacer pacer(1e-9, {});
  model::Batch early;
  early.times.push_back(model::from_ns(-2'000'000'000'000'000'000));
  early.values.push_back(0);
  model::Batch late;
  late.times.push_back(model::from_ns(6'900'000'000'000'000'000));
  late.values.push_back(0);
  EXPECT_EQ(pacer.wait(early, steady(0s)), 0s);
  EXPECT_GT(pacer.wait(late, steady(1s)), 24h * 365 * 100);
  Pacer quick(1e18, {});
  quick.wait(late, steady(0s));
  EXPECT_EQ(quick.event_now(steady(1000h)), model::kMaxTime);
}

}  // namespace
}  // namespace orla::ingest
