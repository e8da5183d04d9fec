// What an edge does when it loses something, when its outbox is full, and when it has to begin a new epoch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/one_edge_world.h"

namespace orla::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void expect_accounts(const model::Ledger& ledger) { EXPECT_EQ(ledger.unaccounted(), 0); }

// The cloud has heard the same, and its windows hold what the edge says was aggregated, but for what is still open.
void expect_agreement(const OneEdgeWorld& world, std::uint64_t open) {
  const model::Ledger ledger = world.ledger();
  expect_accounts(ledger);
  EXPECT_EQ(world.counted() + open, ledger.aggregated);
  const store::OriginRow& origin = world.cloud_disk.origins.at("edge");
  ASSERT_EQ(origin.ledgers.size(), 1U);
  EXPECT_EQ(origin.ledgers[0].second, ledger);
  std::uint64_t lost = 0;
  for (const model::Loss& loss : origin.losses) lost += model::lost_samples(loss);
  EXPECT_LE(lost, ledger.dropped_total());
}

std::uint64_t dropped(const model::Ledger& ledger, const std::string& reason) {
  const auto found = ledger.dropped.find(reason);
  return found == ledger.dropped.end() ? 0 : found->second;
}

TEST(OneEdge, ACleanRestartSendsNothingAgain) {
  OneEdgeWorld world;
  world.start_cloud();
  world.start_edge();
  for (int minute = 0; minute < 20; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  EXPECT_GT(world.edge().uplink->frames_sent, 10U);
  world.stop_edge();
  const std::uint64_t commits = world.disk.commits;
  world.start_edge();
  world.run(seconds(5));
  EXPECT_TRUE(world.edge().uplink->connected);
  EXPECT_EQ(world.edge().uplink->frames_sent, 0U);
  EXPECT_EQ(world.disk.commits, commits);
  EXPECT_TRUE(world.reading());
  world.feed(20, 10);
  ASSERT_TRUE(world.drain());
  expect_agreement(world, 10);
}

TEST(OneEdge, ADamagedChunkCostsItselfAndIsCounted) {
  OneEdgeWorld world;
  world.start_edge();
  for (int minute = 0; minute < 12; ++minute) world.feed(minute, 10);
  ASSERT_GE(world.disk.chunks.size(), 8U);
  world.disk.damaged = {3, 4, 6};
  std::uint64_t lost = 0;
  for (const model::Sequence s : world.disk.damaged) lost += world.disk.chunks.at(s).facts.samples.at(0).second;
  ASSERT_GT(lost, 0U);
  EXPECT_EQ(dropped(world.ledger(), model::kDamaged), 0U) << "nobody has looked yet";
  world.start_cloud();
  ASSERT_TRUE(world.drain());
  EXPECT_EQ(dropped(world.ledger(), model::kDamaged), lost);
  expect_agreement(world, 10);
  const store::OriginRow& origin = world.cloud_disk.origins.at("edge");
  EXPECT_EQ(origin.losses, (std::vector<model::Loss>{{"damaged", 3, {{"edge/0", lost}}}}));
  EXPECT_EQ(origin.cursor.tombstones, (std::vector<model::SequenceRange>{{3, 4}, {6, 6}}));
  EXPECT_EQ(world.cloud().alarms.size(), 1U) << "one for a reason, not for a chunk";
  EXPECT_EQ(world.cloud().cloud->origins.at(0).losses, origin.losses);
}

TEST(OneEdge, ALossFoundAtTheStartIsCountedOnceWhateverCrashes) {
  OneEdgeWorld world;
  world.start_edge();
  for (int minute = 0; minute < 12; ++minute) world.feed(minute, 10);
  world.crash_edge();
  world.disk.damaged = {2, 5};
  const std::uint64_t lost =
      world.disk.chunks.at(2).facts.samples.at(0).second + world.disk.chunks.at(5).facts.samples.at(0).second;
  world.disk.fail_commits = 3;
  world.start_edge();
  EXPECT_EQ(world.edge().ready, "cannot write its state");
  world.crash_edge();  // before it could say so
  for (int life = 0; life < 3; ++life) {
    world.start_edge();
    world.run(seconds(1));
    EXPECT_EQ(dropped(world.ledger(), model::kDamaged), lost) << "life " << life;
    EXPECT_EQ(world.edge().outbox->tombstones, 2U);
    world.crash_edge();
  }
  world.start_cloud();
  world.start_edge();
  ASSERT_TRUE(world.drain());
  EXPECT_EQ(dropped(world.ledger(), model::kDamaged), lost);
  expect_agreement(world, 10);
}

TEST(OneEdge, NothingOfALostChunkIsSentBeforeTheDiskSaysSo) {
  OneEdgeWorld world;
  world.start_edge();
  for (int minute = 0; minute < 6; ++minute) world.feed(minute, 10);
  world.disk.damaged = {1};
  world.disk.full = true;
  world.start_cloud();
  world.run(seconds(5));
  EXPECT_TRUE(world.edge().uplink->connected);
  EXPECT_EQ(world.edge().outbox->acknowledged, 0U);
  EXPECT_EQ(world.role().intake(), node::EdgeRole::Intake::kBlocked);
  world.disk.full = false;
  ASSERT_TRUE(world.drain());
  expect_agreement(world, 10);
}

TEST(OneEdge, AnOriginalThatGotThroughIsTakenBack) {
  for (const bool crash : {false, true}) {
    OneEdgeWorld world;
    world.start_cloud();
    world.start_edge();
    world.run(seconds(1));
    for (int minute = 0; minute < 4; ++minute) world.feed(minute, 10);
    ASSERT_TRUE(world.drain());
    const model::Sequence before = world.edge().outbox->acknowledged;
    // Folded in; the answer is lost with the cloud.
    world.feed(4, 10);
    for (int i = 0; i < 200 && world.cloud_disk.origins.at("edge").cursor.last == before; ++i) {
      world.run(milliseconds(1));
    }
    ASSERT_GT(world.cloud_disk.origins.at("edge").cursor.last, before);
    world.crash_cloud();
    if (world.edge().outbox->acknowledged != before) continue;  // it was told already
    world.disk.damaged = {before + 1};
    world.crash_edge();
    world.start_edge();  // finds it, and says so
    world.run(seconds(1));
    const std::uint64_t lost = dropped(world.ledger(), model::kDamaged);
    EXPECT_EQ(lost, 10U);
    if (crash) world.disk.fail_commits = 2;
    world.start_cloud();
    if (crash) {
      // The answer comes while the disk does not take what it means.
      for (int i = 0; i < 3000 && world.disk.fail_commits == 2; ++i) world.run(milliseconds(1));
      ASSERT_LT(world.disk.fail_commits, 2);
      world.disk.fail_commits = 0;
      world.crash_edge();
      world.start_edge();
    }
    ASSERT_TRUE(world.drain());
    world.run(seconds(2));
    EXPECT_EQ(dropped(world.ledger(), model::kDamaged), 0U);
    EXPECT_EQ(world.ledger().aggregated, 50U);
    EXPECT_TRUE(world.cloud_disk.origins.at("edge").losses.empty());
    world.feed(5, 10);
    world.feed(6, 10);
    ASSERT_TRUE(world.drain());
    const store::OriginRow& origin = world.cloud_disk.origins.at("edge");
    EXPECT_EQ(origin.ledgers.at(0).second.dropped_total(), 0U);
  }
}

struct Bound {
  const char* durability;
  const char* at_bound;
};
class AtTheBound : public testing::TestWithParam<Bound> {};

TEST_P(AtTheBound, TheOutboxIsBoundedAndEverySampleIsAccountedFor) {
  const auto [durability, at_bound] = GetParam();
  const std::string mode = at_bound;
  OneEdgeWorld world(fmt::format("durability = \"{}\"\noutbox_full = \"{}\"", durability, at_bound));
  constexpr std::uint64_t kBound = 20'000;
  world.plan.fleet.limits["outbox_bytes"] = kBound;
  world.start_cloud();
  world.start_edge();
  world.run(seconds(1));  // a memory edge opens its epoch
  world.feed(0, 50);
  world.crash_cloud();
  std::uint64_t most = 0;
  for (int minute = 1; minute < 150; ++minute) {
    world.feed(minute, 50);
    most = std::max(most, world.edge().outbox->bytes);
  }
  EXPECT_GT(most, kBound / 2);
  EXPECT_LT(most, kBound + 8'000) << "the bound, and what was read meanwhile";
  const node::EdgeRole::Intake intake = world.role().intake();
  if (mode == "block") {
    EXPECT_EQ(intake, node::EdgeRole::Intake::kBlocked);
    EXPECT_EQ(world.edge().outbox->intake, "blocked");
    EXPECT_LT(world.delivered(), 150U * 50U) << "it has stopped reading";
    EXPECT_EQ(world.ledger().dropped_total(), 0U);
  } else if (mode == "reject") {
    EXPECT_EQ(intake, node::EdgeRole::Intake::kRefusing);
    EXPECT_GT(dropped(world.ledger(), "outbox_full"), 0U);
    EXPECT_EQ(world.edge().outbox->tombstones, 0U);
  } else {
    EXPECT_GT(dropped(world.ledger(), model::kDropOldest), 0U);
    EXPECT_GT(world.edge().outbox->tombstones, 0U);
  }
  EXPECT_EQ(world.ledger().received, world.delivered());
  expect_accounts(world.ledger());
  world.start_cloud();
  ASSERT_TRUE(world.drain());
  EXPECT_EQ(world.role().intake(), node::EdgeRole::Intake::kOpen);
  world.feed(150, 50);
  world.feed(151, 50);
  ASSERT_TRUE(world.drain());
  world.run(seconds(2));
  const model::Ledger ledger = world.ledger();
  EXPECT_EQ(ledger.received, world.delivered());
  expect_accounts(ledger);
  const std::uint64_t open = std::string(durability) == "disk" ? 50 : 0;  // the last minute is not published
  EXPECT_EQ(world.counted() + open, ledger.aggregated);
  std::uint64_t lost = 0;
  for (const model::Loss& loss : world.cloud_disk.origins.at("edge").losses) lost += model::lost_samples(loss);
  EXPECT_EQ(lost, dropped(ledger, model::kDropOldest)) << "what stands as tombstones, and nothing else";
}

INSTANTIATE_TEST_SUITE_P(OneEdge, AtTheBound,
                         testing::Values(Bound{"disk", "block"}, Bound{"disk", "reject"}, Bound{"disk", "drop_oldest"},
                                         Bound{"memory", "block"}, Bound{"memory", "reject"},
                                         Bound{"memory", "drop_oldest"}),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.durability, info.param.at_bound);
                         });

TEST(OneEdge, AMemoryEdgeThatDiesAfterItDroppedLearnsWhatStands) {
  OneEdgeWorld world("durability = \"memory\"\noutbox_full = \"drop_oldest\"");
  world.plan.fleet.limits["outbox_bytes"] = 20'000;
  world.start_cloud();
  world.start_edge();
  world.run(seconds(1));
  for (int minute = 0; minute < 3; ++minute) world.feed(minute, 50);
  ASSERT_TRUE(world.drain());
  world.crash_cloud();
  for (int minute = 3; minute < 100; ++minute) world.feed(minute, 50);
  ASSERT_GT(world.edge().outbox->tombstones, 0U);
  world.start_cloud();
  // Some are folded in, then the edge dies.
  for (int i = 0; i < 5000 && world.cloud_disk.origins.at("edge").losses.empty(); ++i) world.run(milliseconds(1));
  ASSERT_FALSE(world.cloud_disk.origins.at("edge").losses.empty());
  world.crash_edge();
  world.run(seconds(1));
  world.start_edge();
  world.run(seconds(2));
  std::uint64_t lost = 0;
  for (const model::Loss& loss : world.cloud_disk.origins.at("edge").losses) lost += model::lost_samples(loss);
  const model::Ledger ledger = world.ledger();
  EXPECT_EQ(dropped(ledger, model::kDropOldest), lost);
  EXPECT_EQ(ledger.aggregated, world.counted());
  expect_accounts(ledger);
}

TEST(OneEdge, AFullDiskStopsTheInputsAndRecoversByItself) {
  OneEdgeWorld world;
  world.start_cloud();
  world.start_edge();
  for (int minute = 0; minute < 5; ++minute) world.feed(minute, 10);
  world.disk.full = true;
  for (int minute = 5; minute < 30; ++minute) world.feed(minute, 10);
  EXPECT_EQ(world.role().intake(), node::EdgeRole::Intake::kBlocked);
  EXPECT_LE(world.delivered(), 50U + 10U * (node::InputPump::kMaxOutstanding + 1));
  EXPECT_GT(world.edge().commit_failures, 0U);
  EXPECT_FALSE(world.edge().ready.empty());
  world.disk.full = false;
  world.run(seconds(1));
  EXPECT_EQ(world.role().intake(), node::EdgeRole::Intake::kOpen);
  EXPECT_TRUE(world.edge().ready.empty());
  for (int minute = 30; minute < 35; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  EXPECT_EQ(world.ledger().received, world.delivered());
  EXPECT_EQ(world.counted() + 10, world.ledger().aggregated);
}

TEST(OneEdge, AnEpochInDoubtIsOpenedAnewBeforeAnythingIsRead) {
  OneEdgeWorld world;
  world.start_cloud();
  world.start_edge();
  for (int minute = 0; minute < 5; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  world.crash_cloud();
  for (int minute = 5; minute < 9; ++minute) world.feed(minute, 10);
  world.crash_edge();
  const model::Epoch before = world.disk.meta.epoch;
  world.disk.reopen = true;
  world.disk.damaged = {world.disk.meta.acknowledged + 2};
  world.start_edge();
  world.run(seconds(3));
  EXPECT_FALSE(world.reading());
  EXPECT_EQ(world.role().intake(), node::EdgeRole::Intake::kBlocked);
  EXPECT_EQ(world.edge().ready, "waits for the cloud to open its epoch");
  world.start_cloud();
  world.run(seconds(3));
  EXPECT_TRUE(world.reading());
  EXPECT_NE(world.disk.meta.epoch, before);
  for (int minute = 9; minute < 12; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  EXPECT_EQ(dropped(world.ledger(), model::kDamaged), 10U);
  EXPECT_EQ(world.counted() + 10, world.ledger().aggregated);
  EXPECT_EQ(world.cloud_disk.origins.at("edge").cursor.epoch, world.disk.meta.epoch);
}

TEST(OneEdge, AnEpochClosedByAnotherDoesNotStopTheInputs) {
  OneEdgeWorld world;
  world.start_cloud();
  world.start_edge();
  for (int minute = 0; minute < 5; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  world.take_over();
  world.run(seconds(1));
  world.feed(5, 10);
  world.crash_cloud();  // before or while it asks for a new one
  for (int minute = 6; minute < 12; ++minute) world.feed(minute, 10);
  EXPECT_TRUE(world.reading());
  EXPECT_EQ(world.ledger().received, world.delivered());
  EXPECT_EQ(world.delivered(), 120U);
  world.start_cloud();
  ASSERT_TRUE(world.drain());
  EXPECT_EQ(world.counted() + 10, world.ledger().aggregated);
  EXPECT_EQ(world.ledger().dropped_total(), 0U);
}

TEST(OneEdge, WithoutItsJournalItGoesOnFromTheNewestChunk) {
  OneEdgeWorld world;
  world.start_cloud();
  world.start_edge();
  for (int minute = 0; minute < 5; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  world.crash_cloud();
  for (int minute = 5; minute < 9; ++minute) world.feed(minute, 10);
  world.crash_edge();
  const store::ChunkFacts facts = world.disk.chunks.rbegin()->second.facts;
  EXPECT_EQ(facts.inputs.at(0).ledger.received, 90U);
  EXPECT_EQ(facts.sealed, (std::vector<std::uint64_t>{80}));
  world.disk.journal_lost = world.disk.reopen = true;
  world.start_edge();
  world.start_cloud();
  world.run(seconds(3));
  EXPECT_TRUE(world.reading());
  ASSERT_TRUE(world.drain());
  model::Ledger ledger = world.ledger();
  EXPECT_EQ(ledger.received, 90U);
  EXPECT_EQ(ledger.aggregated, 80U) << "what was in chunks";
  EXPECT_EQ(world.counted(), 80U);
  EXPECT_EQ(dropped(ledger, model::kDamaged), 10U) << "what was open";
  for (int minute = 20; minute < 24; ++minute) world.feed(minute, 10);
  ASSERT_TRUE(world.drain());
  ledger = world.ledger();
  expect_accounts(ledger);
  EXPECT_EQ(world.counted() + 10, ledger.aggregated);
}

}  // namespace
}  // namespace orla::sim
