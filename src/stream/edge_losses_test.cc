// Whose samples a chunk holds, and what becomes of the accounts when it is lost.
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

Counts counted(const Sealed& sealed) {
  Counts counts;
  EXPECT_EQ(sealed.counted.size(), sealed.rows.size());
  for (std::size_t i = 0; i < sealed.rows.size(); ++i) {
    if (sealed.counted[i] == Sealed::kRepeats) continue;
    counts[sealed.ledgers[sealed.counted[i]].first] += sealed.rows[i].partial.count;
  }
  return counts;
}

std::vector<std::pair<std::string, std::uint64_t>> list(const Counts& counts) { return {counts.begin(), counts.end()}; }

TEST(EdgeLosses, RowsCountEverySampleOnceForItsInput) {
  const model::Plan plan = make_test_plan(2);
  base::SeededRandom random(4);
  Life life(plan, SealScope::kPublished, keys(plan));
  Counts all;
  for (std::size_t row = 1; row <= 60; ++row) {
    std::vector<Sample> samples;
    for (int i = 0; i < 20; ++i) {
      const std::size_t input = random.below(2);  // houses of their own, so groups of their own
      const auto house = static_cast<int>(10 * input + random.below(3));
      samples.push_back({input, plug(random.below(3) == 0 ? "work" : "load", house, static_cast<int>(random.below(2))),
                         at(static_cast<double>(row) * 20 + static_cast<double>(random.below(20))), 1.5});
    }
    life.apply(samples, row);
    const bool last = row == 60;
    if (last) {
      life.engine->end_input(0);
      life.engine->end_input(1);
    }
    const std::optional<Sealed> sealed = life.commit(last ? SealWhen::kAlways : SealWhen::kSomethingNew, row % 7 == 0);
    if (sealed) {
      for (const auto& [key, count] : counted(*sealed)) all[key] += count;
      for (std::size_t i = 0; i < sealed->ledgers.size(); ++i) {
        EXPECT_EQ(sealed->sealed[i], all[sealed->ledgers[i].first]) << "row " << row;
      }
    }
    if (row % 9 == 0) life.restart(keys(plan));
  }
  for (const auto& [key, state] : life.engine->inputs()) EXPECT_EQ(all[key], state.ledger.aggregated) << key;
}

TEST(EdgeLosses, InputsThatShareGroupsAreExactTogether) {
  const model::Plan plan = make_test_plan(2);
  Life life(plan, SealScope::kEverything, keys(plan));
  std::vector<Sample> samples;
  for (int i = 0; i < 100; ++i) samples.push_back({0, plug("load", 1, 1), at(1), 1});
  life.apply(samples, 1);
  life.commit(SealWhen::kSomethingNew, true);
  life.apply(samples, 2);
  life.apply({{1, plug("load", 1, 1), at(2), 1}}, 3);
  const Sealed sealed = *life.engine->seal(SealScope::kEverything, SealWhen::kAlways);
  EXPECT_EQ(counted(sealed), (Counts{{"e/0", 101}})) << "those of the first of its inputs";
  EXPECT_EQ(sealed.sealed[0] + sealed.sealed[1], 201U);
  life.engine->lose(list(counted(sealed)), "damaged");
  const auto inputs = life.engine->inputs();
  EXPECT_EQ(inputs[0].second.ledger.aggregated + inputs[1].second.ledger.aggregated, 100U);
  EXPECT_EQ(inputs[0].second.ledger.dropped_total() + inputs[1].second.ledger.dropped_total(), 101U);
  for (const auto& [key, state] : inputs) EXPECT_EQ(state.ledger.unaccounted(), 0) << key;
  life.engine->regain(list(counted(sealed)), "damaged");
  for (const auto& [key, state] : life.engine->inputs()) {
    EXPECT_EQ(state.ledger.dropped_total(), 0U) << key;
    EXPECT_EQ(state.ledger.unaccounted(), 0) << key;
  }
  EXPECT_EQ(life.engine->inputs()[0].second.ledger.aggregated, 200U);
}

TEST(EdgeLosses, ALossIsPartOfTheState) {
  const model::Plan plan = make_test_plan(1);
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(1), 1}, {0, plug("load", 1, 1), at(2), 1}, {0, plug("load", 1, 1), at(3), 1}},
             1);
  life.commit(SealWhen::kSomethingNew, true);
  life.engine->lose({{"e/0", 2}, {"gone", 0}}, "drop_oldest");
  life.commit(SealWhen::kSomethingNew, false);
  life.restart(keys(plan));
  model::Ledger ledger = life.engine->input(0).ledger;
  EXPECT_EQ(ledger.aggregated, 1U);
  EXPECT_EQ(ledger.dropped, (model::ReasonCounts{{"drop_oldest", 2}}));
  life.engine->regain({{"e/0", 2}}, "drop_oldest");
  life.commit(SealWhen::kSomethingNew, false);
  life.restart(keys(plan));
  ledger = life.engine->input(0).ledger;
  EXPECT_EQ(ledger.aggregated, 3U);
  EXPECT_TRUE(ledger.dropped.empty());
}

TEST(EdgeLosses, ARefusedBatchIsCountedAndItsNamesAreKnown) {
  const model::Plan plan = make_test_plan(1);
  EdgeEngine engine(plan, keys(plan));
  Feed feed;
  InputBatch batch = feed.batch({{0, plug("load", 1, 1), at(1), 1}, {0, plug("load", 1, 2), at(1), 1}}, 3);
  batch.received = 3;
  batch.rejected = {{"malformed", 1}};
  batch.rejected_set.add(7);
  ASSERT_TRUE(engine.refuse(0, batch, "outbox_full").ok());
  EXPECT_EQ(engine.open_rows(), 0U);
  model::Ledger ledger = engine.input(0).ledger;
  EXPECT_EQ(ledger.received, 3U);
  EXPECT_EQ(ledger.dropped, (model::ReasonCounts{{"outbox_full", 2}}));
  EXPECT_EQ(ledger.unaccounted(), 0);
  EXPECT_EQ(engine.input(0).position.row, 3U);
  ASSERT_TRUE(engine.apply(0, feed.batch({{0, plug("load", 1, 2), at(2), 5}}, 4), Time{}).ok());
  ledger = engine.input(0).ledger;
  EXPECT_EQ(ledger.aggregated, 1U);
  EXPECT_EQ(ledger.unaccounted(), 0);
}

}  // namespace
}  // namespace orla::stream::edge_tests
