// Bounds, contradictions and restarts with another plan.
#include <gtest/gtest.h>

#include <cmath>

#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

TEST(Limits, WhatDoesNotFitIsDroppedAndCounted) {
  const model::Plan plan = make_test_plan();
  EngineLimits limits;
  limits.series = 2;
  EdgeEngine few_series(plan, keys(plan), limits);
  Feed feed;
  const std::vector<Sample> samples = {{0, plug("load", 1, 1), at(0), 1},    {0, plug("load", 1, 2), at(0), 1},
                                       {0, plug("load", 1, 3), at(0), 1},    {0, plug("load", 1, 3), at(1), 1},
                                       {0, plug("nobody", 1, 3), at(1), 1},  {0, plug("load", 1, 2), at(-200), 1},
                                       {0, plug("load", 1, 1), at(500), NAN}};
  ASSERT_TRUE(few_series.apply(0, feed.batch(samples, 1), Time{}).ok());
  const model::Ledger& ledger = few_series.input(0).ledger;
  EXPECT_EQ(ledger.aggregated, 2u);
  EXPECT_EQ(ledger.dropped, (model::ReasonCounts{{"series_limit", 2}}));
  EXPECT_EQ(ledger.unmatched, 1u);
  EXPECT_EQ(ledger.late.count, 1u);
  EXPECT_EQ(ledger.rejected, (model::ReasonCounts{{"not_finite", 1}}));
  EXPECT_EQ(ledger.unaccounted(), 0);

  limits = EngineLimits();
  limits.groups = 4;  // of load: plug, house and series; the next plug needs two more
  EdgeEngine few_groups(plan, keys(plan), limits);
  Feed other;
  ASSERT_TRUE(
      few_groups
          .apply(0, other.batch({{0, plug("load", 1, 1), at(0), 1}, {0, plug("load", 1, 2), at(0), 1}}, 1), Time{})
          .ok());
  EXPECT_EQ(few_groups.group_count(), 3u);
  EXPECT_EQ(few_groups.input(0).ledger.dropped, (model::ReasonCounts{{"group_limit", 1}}));

  limits = EngineLimits();
  limits.open_rows = 2;
  EdgeEngine few_rows(plan, keys(plan), limits);
  Feed third;
  ASSERT_TRUE(few_rows.apply(0, third.batch({{0, plug("load", 1, 1), at(0), 1}}, 1), Time{}).ok());
  EXPECT_EQ(few_rows.seal(SealScope::kPublished, SealWhen::kSomethingNew)->rows.size(), 3u);
  EXPECT_TRUE(few_rows.take_changes().sealed_everything);
}

TEST(Apply, RefusesBatchesThatContradictThemselves) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  const EdgeState before = engine.snapshot();
  InputBatch good = Feed().batch({{0, plug("load", 1, 1), at(0), 1}, {0, plug("load", 1, 2), at(0), 1}}, 1);
  std::vector<InputBatch> bad(5, good);
  bad[0].samples.times.pop_back();
  bad[1].samples.runs.pop_back();
  bad[2].samples.runs[1].begin = 0;
  bad[3].new_series.pop_back();
  bad[4].samples.runs[0].end = 7;
  for (const InputBatch& b : bad) EXPECT_EQ(engine.apply(0, b, Time{}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.snapshot(), before);
  EXPECT_TRUE(engine.apply(0, good, Time{}).ok());
}

TEST(Restore, InputsAreKnownByTheirKey) {
  const model::Plan plan = make_test_plan(3);
  Life life(plan, SealScope::kPublished, {"e/0"});
  life.apply({{0, plug("load", 1, 1), at(10), 1}}, 5);
  life.commit(SealWhen::kSomethingNew, true);
  // Two more inputs, listed before the old one; one of them delivers.
  life.restart({"e/2", "e/1", "e/0"});
  life.apply({{1, plug("load", 2, 1), at(30), 1}}, 6);
  life.commit(SealWhen::kSomethingNew, false);
  // Another order, and the first is gone: its series hold nothing.
  life.restart({"e/1", "e/2"});
  EXPECT_EQ(life.engine->input(0).position.row, 6u);
  EXPECT_EQ(life.engine->input(1).position.row, 0u);
  EXPECT_EQ(life.engine->input(0).ledger.aggregated, 1u);
  EXPECT_EQ(life.engine->inputs().size(), 3u);
  life.apply({{0, plug("load", 2, 1), at(40), 1}}, 7);
  EXPECT_EQ(load_publication(*life.engine), at(35));
  const std::optional<Sealed> sealed = life.commit(SealWhen::kAlways, false);
  EXPECT_EQ(sealed->ledgers.size(), 3u);
}

TEST(Restore, RowsOfAnotherPlanAreSealedAtOnce) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  Feed feed;
  ASSERT_TRUE(engine.apply(0, feed.batch({{0, plug("load", 1, 1), at(10), 1}}, 1), Time{}).ok());
  engine.take_changes();
  const EdgeState snapshot = engine.snapshot();

  model::Plan changed = plan;  // house_load defined otherwise
  for (model::StreamDef& stream : changed.streams)
    if (stream.name == "house_load") stream.definition += 1;
  EdgeEngine next(changed, keys(changed));
  ASSERT_TRUE(next.restore(snapshot).ok());
  Feed again;
  ASSERT_TRUE(next.apply(0, again.batch({{0, plug("load", 1, 1), at(12), 1}}, 2), Time{}).ok());
  EXPECT_EQ(next.group_count(), 4u);
  const EdgeState before_seal = next.take_changes();
  const std::optional<Sealed> sealed = next.seal(SealScope::kPublished, SealWhen::kSomethingNew);
  ASSERT_TRUE(sealed.has_value());
  ASSERT_EQ(sealed->rows.size(), 1u);
  EXPECT_EQ(next.group(sealed->rows[0].group).stream, "house_load");
  EXPECT_EQ(sealed->rows[0].partial.count, 1u);
  // The states give what is left: three rows of the new plan.
  const EdgeState delta = next.take_changes();
  EdgeEngine last(changed, keys(changed));
  for (const EdgeState& state : {snapshot, before_seal, delta}) ASSERT_TRUE(last.restore(state).ok());
  EXPECT_EQ(last.open_rows(), 3u);
  EXPECT_EQ(last.snapshot(), next.snapshot());
}

TEST(Restore, RefusesStatesThatContradictThemselves) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  Feed feed;
  ASSERT_TRUE(engine.apply(0, feed.batch({{0, plug("load", 1, 1), at(10), 1}}, 1), Time{}).ok());
  const EdgeState good = engine.snapshot();
  std::vector<EdgeState> bad(5, good);
  bad[0].new_series.push_back(bad[0].new_series[0]);
  bad[1].new_groups.push_back(bad[1].new_groups[0]);
  bad[2].new_groups.clear();
  bad[3].new_series.clear();
  bad[4].series[0].input = 9;
  for (const EdgeState& state : bad)
    EXPECT_EQ(EdgeEngine(plan, keys(plan)).restore(state).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(EdgeEngine(plan, keys(plan)).restore(good).ok());
}

}  // namespace
}  // namespace orla::stream::edge_tests
