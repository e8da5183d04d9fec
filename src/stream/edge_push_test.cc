// Live inputs: producers that send again, and clocks and senders that are wrong.
#include <gtest/gtest.h>

#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

using std::chrono::hours;

model::Plan push_plan(std::vector<std::string> metrics = {"load", "work"}) {
  model::Plan plan = make_test_plan(1, {}, minutes(5));
  plan.fleet.inputs[0].kind = model::InputSpec::Kind::kPush;
  plan.fleet.inputs[0].metrics = std::move(metrics);
  plan.fleet.inputs[0].future = minutes(10);
  return plan;
}

// Built a day before kStart, so a clock at kStart is set.
EngineLimits limits() {
  EngineLimits limits;
  limits.clock_set_after = kStart - hours(24);
  return limits;
}

InputBatch of(InputBatch batch, const std::string& producer, std::uint64_t sequence) {
  batch.producer = producer;
  batch.producer_sequence = sequence;
  return batch;
}

TEST(Producers, WhatComesAgainChangesNothing) {
  const model::Plan plan = push_plan();
  EdgeEngine engine(plan, keys(plan), limits());
  Feed feed;
  const auto push = [&](const std::string& producer, std::uint64_t sequence, double s) {
    return engine.apply(0, of(feed.batch({{0, plug("load", 1, 1), at(s), 1}}, 1), producer, sequence), at(s)).code();
  };
  EXPECT_EQ(push("a", 1, 1), absl::StatusCode::kOk);
  EXPECT_EQ(push("a", 7, 2), absl::StatusCode::kOk);  // gaps are allowed
  EXPECT_EQ(push("b", 3, 3), absl::StatusCode::kOk);
  const EdgeState before = engine.snapshot();
  for (const std::uint64_t again : {1, 5, 7}) EXPECT_EQ(push("a", again, 4), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(push("b", 3, 4), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(engine.snapshot(), before);
  EXPECT_EQ(push("a", 8, 4), absl::StatusCode::kOk);
  EXPECT_EQ(engine.input(0).ledger.aggregated, 4u);
  EXPECT_EQ(engine.producer_sequence(0, "a"), 8u);
  EXPECT_EQ(engine.producer_sequence(0, "c"), 0u);
  // A number without a producer, and the other way round.
  EXPECT_EQ(push("", 9, 4), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(push("a", 0, 4), absl::StatusCode::kInvalidArgument);
}

TEST(Producers, AreKeptWithTheSamples) {
  const model::Plan plan = push_plan();
  EdgeEngine engine(plan, keys(plan), limits());
  Feed feed;
  const auto apply = [&](EdgeEngine& to, Feed& from, const std::string& producer, std::uint64_t sequence) {
    return to.apply(0, of(from.batch({{0, plug("load", 1, 1), at(1), 1}}, 1), producer, sequence), at(1)).code();
  };
  ASSERT_EQ(apply(engine, feed, "b", 2), absl::StatusCode::kOk);
  ASSERT_EQ(apply(engine, feed, "a", 1), absl::StatusCode::kOk);
  engine.take_changes();
  const EdgeState snapshot = engine.snapshot();
  EXPECT_EQ(snapshot.producers, (std::vector<model::ProducerState>{{"a", 0, 1}, {"b", 0, 2}}));
  ASSERT_EQ(apply(engine, feed, "b", 4), absl::StatusCode::kOk);
  const EdgeState change = engine.take_changes();
  EXPECT_EQ(change.producers, (std::vector<model::ProducerState>{{"b", 0, 4}}));
  EXPECT_TRUE(engine.take_changes().producers.empty());

  EdgeEngine next(plan, keys(plan), limits());
  for (const EdgeState& state : {snapshot, change}) ASSERT_TRUE(next.restore(state).ok());
  EXPECT_EQ(next.snapshot(), engine.snapshot());
  Feed refused;  // its series were never defined
  EXPECT_EQ(apply(next, refused, "b", 4), absl::StatusCode::kAlreadyExists);
  Feed again;
  EXPECT_EQ(apply(next, again, "b", 5), absl::StatusCode::kOk);
  EXPECT_EQ(next.input(0).ledger.aggregated, 4u);

  EdgeState bad = snapshot;
  bad.producers[0].input = 3;
  EXPECT_EQ(EdgeEngine(plan, keys(plan)).restore(bad).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Producers, OneTooManyIsRefusedAndNoneForgotten) {
  const model::Plan plan = push_plan();
  EngineLimits few = limits();
  few.producers = 2;
  EdgeEngine engine(plan, keys(plan), few);
  Feed feed;
  const InputBatch batch = feed.batch({{0, plug("load", 1, 1), at(1), 1}}, 1);
  InputBatch next = batch;
  next.new_series.clear();
  ASSERT_TRUE(engine.apply(0, of(batch, "a", 1), at(1)).ok());
  ASSERT_TRUE(engine.apply(0, of(next, "b", 1), at(1)).ok());
  const EdgeState before = engine.snapshot();
  EXPECT_EQ(engine.apply(0, of(next, "c", 1), at(1)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(engine.snapshot(), before);
  EXPECT_EQ(engine.apply(0, of(next, "a", 1), at(1)).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(engine.apply(0, of(next, "a", 2), at(1)).ok());
  EXPECT_EQ(engine.producer_count(), 2u);
}

TEST(Push, TakesOnlyTheMetricsOfTheInput) {
  const model::Plan plan = push_plan({"work"});
  EdgeEngine engine(plan, keys(plan), limits());
  Feed feed;
  ASSERT_TRUE(engine
                  .apply(0,
                         feed.batch({{0, plug("load", 1, 1), at(1), 1},
                                     {0, plug("work", 1, 1), at(1), 1},
                                     {0, plug("nobody", 1, 1), at(1), 1}},
                                    1),
                         at(1))
                  .ok());
  EXPECT_EQ(engine.input(0).ledger.aggregated, 1u);
  EXPECT_EQ(engine.input(0).ledger.unmatched, 2u);
}

// Of a live input whose sender stamps its samples with the true time, 1 per minute from kStart on, while the edge's
// clock is wrong by `skew` from minute 30 to minute 60.
struct SkewedHours {
  model::Ledger ledger;
  Cells cells;
  explicit SkewedHours(Duration skew) {
    const model::Plan plan = push_plan();
    EdgeEngine engine(plan, keys(plan), limits());
    Feed feed;
    for (int minute = 0; minute < 120; ++minute) {
      const Time now = at(60 * minute);
      const Time clock = minute >= 30 && minute < 60 ? now + skew : now;
      EXPECT_TRUE(engine.apply(0, feed.batch({{0, plug("load", 1, 1), now, 1}}, 1), clock).ok());
    }
    ledger = engine.input(0).ledger;
    engine.publish_open();
    collect(cells, engine, *engine.seal(SealScope::kEverything, SealWhen::kAlways));
  }
};

TEST(Push, AClockThatJumpsHarmsNobodyWhoseTimesAreRight) {
  const SkewedHours right({});
  EXPECT_EQ(right.ledger.aggregated, 120u);
  // A day ahead: nothing is in its future.
  const SkewedHours ahead(hours(24));
  EXPECT_EQ(ahead.ledger, right.ledger);
  EXPECT_EQ(ahead.cells, right.cells);
  // An hour behind: everything is, and said so; with the clock right again all goes on.
  const SkewedHours behind(-hours(1));
  EXPECT_EQ(behind.ledger.aggregated, 90u);
  EXPECT_EQ(behind.ledger.rejected, (model::ReasonCounts{{"future", 30}}));
  EXPECT_EQ(behind.ledger.unaccounted(), 0);
  for (const auto& [cell, partial] : behind.cells) EXPECT_EQ(partial, right.cells.at(cell));
  // 1970: it was never set, so nothing is `future`.
  const SkewedHours unset(-(kStart - from_ns(0)));
  EXPECT_EQ(unset.ledger, right.ledger);
  EXPECT_EQ(unset.cells, right.cells);
}

TEST(Push, AFirstSampleFromTheFutureHarmsOnlyItself) {
  const model::Plan plan = push_plan();
  EdgeEngine engine(plan, keys(plan), limits());
  Feed feed;
  const model::Series wrong = plug("load", 1, 1);
  const model::Series other = plug("load", 1, 2);
  ASSERT_TRUE(
      engine.apply(0, feed.batch({{0, wrong, at(0) + hours(24 * 365), 1}, {0, other, at(0), 1}}, 1), at(0)).ok());
  EXPECT_EQ(engine.input(0).ledger.rejected, (model::ReasonCounts{{"future", 1}}));
  EXPECT_EQ(engine.input(0).newest, at(0));
  // The same series with right times, and the other one: nothing is late, nothing waits.
  ASSERT_TRUE(engine.apply(0, feed.batch({{0, wrong, at(70), 1}, {0, other, at(70), 1}}, 2), at(70)).ok());
  EXPECT_EQ(engine.input(0).ledger.aggregated, 3u);
  EXPECT_EQ(engine.input(0).ledger.late.count, 0u);
  EXPECT_EQ(load_publication(engine), at(65));  // 5 s of disorder
  // Exactly at the bound is not ahead of it.
  ASSERT_TRUE(
      engine.apply(0, feed.batch({{0, wrong, at(680), 1}, {0, other, at(680) + Duration(1), 1}}, 3), at(80)).ok());
  EXPECT_EQ(engine.input(0).ledger.aggregated, 4u);
  EXPECT_EQ(engine.input(0).ledger.rejected, (model::ReasonCounts{{"future", 2}}));
}

}  // namespace
}  // namespace orla::stream::edge_tests
