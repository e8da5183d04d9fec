#include "store/segment_edge_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/hash.h"
#include "store/edge_files.h"
#include "store/edge_store_for_tests.h"

namespace orla::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(SegmentEdgeStoreTest, AFreshStoreKnowsNothing) {
  const EdgeRecovery recovery = start();
  EXPECT_EQ(recovery.meta.epoch, model::Epoch{});
  EXPECT_THAT(recovery.journal, IsEmpty());
  EXPECT_THAT(recovery.outbox, IsEmpty());
  EXPECT_THAT(recovery.damage, IsEmpty());
  EXPECT_FALSE(recovery.without_journal.has_value());
  EXPECT_FALSE(recovery.newest.has_value());
  EXPECT_FALSE(recovery.reopen);
}

// Also when the cloud has it and it is gone.
TEST_F(SegmentEdgeStoreTest, SaysWhatTheNewestChunkSaidOfTheInputs) {
  fill(3, 100);
  EXPECT_EQ(restart().newest.value().inputs, chunk_for_tests(3, 0).facts.inputs);
  ASSERT_TRUE(store_->trim(3).ok());
  EXPECT_EQ(restart().newest.value().inputs, chunk_for_tests(3, 0).facts.inputs);
}

TEST_F(SegmentEdgeStoreTest, KeepsWhatWasCommitted) {
  start();
  ASSERT_TRUE(commit("S", {}, true).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 50), chunk_for_tests(2, 0)}).ok());
  ASSERT_TRUE(commit("b").ok());
  const EdgeRecovery recovery = restart();
  EXPECT_EQ(recovery.meta.node, "edge-1");
  EXPECT_EQ(recovery.meta.epoch, kEpochForTests);
  EXPECT_EQ(recovery.meta.next_sequence, 3U);
  EXPECT_EQ(recovery.meta.chain, (base::Digest{3, 1}));
  EXPECT_THAT(recovery.journal, ElementsAre("S", "a", "b"));
  ASSERT_EQ(recovery.outbox.size(), 2U);
  EXPECT_EQ(recovery.outbox[0].sequence, 1U);
  EXPECT_EQ(recovery.outbox[0].facts.samples, chunk_for_tests(1, 0).facts.samples);
  EXPECT_EQ(recovery.outbox[0].facts.to, model::from_ns(2000));
  EXPECT_FALSE(recovery.outbox[0].lost || recovery.outbox[0].tombstone);
  EXPECT_THAT(recovery.damage, IsEmpty());
  EXPECT_FALSE(recovery.reopen);
  EXPECT_EQ(store_->load(1).value(), chunk_for_tests(1, 50));
  EXPECT_EQ(store_->load(2).value(), chunk_for_tests(2, 0));
  EXPECT_EQ(store_->load(3).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SegmentEdgeStoreTest, ASnapshotReplacesTheJournalAndLeavesTheOutbox) {
  fill(3, 100);
  ASSERT_TRUE(commit("T", {chunk_for_tests(4, 10)}, true).ok());
  ASSERT_TRUE(commit("x").ok());
  const EdgeRecovery recovery = restart();
  EXPECT_THAT(recovery.journal, ElementsAre("T", "x"));
  EXPECT_EQ(recovery.outbox.size(), 4U);
  for (model::Sequence s = 1; s <= 3; ++s) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 100));
  std::size_t journals = 0;
  for (const auto& [name, bytes] : disk_.contents()) journals += name.starts_with("journal") ? 1 : 0;
  EXPECT_EQ(journals, 2U);
}

TEST_F(SegmentEdgeStoreTest, TrimmedChunksAreGoneAndTheirSegmentsToo) {
  fill(40, 200);
  std::uint64_t largest = 0;
  for (model::Sequence s = 1; s <= 40; ++s) {
    ASSERT_TRUE(store_->trim(s).ok());
    // Dead space: the oldest segment in part, and the newest.
    std::uint64_t segments = 0;
    for (const auto& [name, bytes] : disk_.contents()) segments += name.starts_with("outbox-") ? bytes.size() : 0;
    const std::uint64_t kept_rows = (40 - s) * 200;
    const std::uint64_t heads = (40 - s) * 300;  // heads and facts of a chunk, generously
    largest = std::max(largest, segments - std::min(segments, kept_rows + heads));
    EXPECT_EQ(store_->load(s).status().code(), absl::StatusCode::kNotFound);
  }
  EXPECT_LE(largest, 2 * (1000 + 600U));
  const EdgeRecovery recovery = restart();
  EXPECT_EQ(recovery.meta.acknowledged, 40U);
  EXPECT_THAT(recovery.outbox, IsEmpty());
  EXPECT_FALSE(disk_.contents().contains(segment_name(1)));
  EXPECT_TRUE(store_->trim(3).ok());  // what is acknowledged stays so
  EXPECT_EQ(restart().meta.acknowledged, 40U);
}

TEST_F(SegmentEdgeStoreTest, BytesAreThoseOfTheFiles) {
  fill(20, 200);
  ASSERT_TRUE(store_->trim(10).ok());
  EXPECT_EQ(store_->bytes(), disk_.used());
  restart({.segment_bytes = 1000});
  EXPECT_EQ(store_->bytes(), disk_.used());
}

TEST_F(SegmentEdgeStoreTest, RenumberReplacesTheOutbox) {
  fill(5, 100);
  EdgeMeta meta = meta_for_tests(3, 0, model::Epoch(8));
  const std::vector<StoredChunk> outbox = {chunk_for_tests(1, 70, model::Epoch(8)),
                                           chunk_for_tests(2, 80, model::Epoch(8))};
  ASSERT_TRUE(store_->renumber(meta, outbox).ok());
  EXPECT_EQ(store_->load(2).value(), outbox[1]);
  const EdgeRecovery recovery = restart();
  EXPECT_EQ(recovery.meta.epoch, model::Epoch(8));
  EXPECT_EQ(recovery.meta.acknowledged, 0U);
  ASSERT_EQ(recovery.outbox.size(), 2U);
  EXPECT_EQ(store_->load(1).value(), outbox[0]);
  EXPECT_THAT(recovery.journal, ElementsAre("S", "c1", "c2", "c3", "c4", "c5"));
}

TEST_F(SegmentEdgeStoreTest, ATombstoneTakesThePlaceOfItsChunks) {
  fill(4, 100);
  EdgeCommit commit;
  commit.meta = meta_for_tests(5);
  commit.entry.state = "t";
  commit.tombstones = {{2, 3, "outbox_full", {{"in", 20}}, model::from_ns(2000), model::from_ns(4000)}};
  ASSERT_TRUE(store_->commit(commit).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(store_->load(1).value(), chunk_for_tests(1, 100));
    EXPECT_EQ(store_->load(2).value(), tombstone_for_tests(chunk_for_tests(2, 100), "outbox_full"));
    EXPECT_EQ(store_->load(3).value(), tombstone_for_tests(chunk_for_tests(3, 100), "outbox_full"));
    EXPECT_THAT(store_->lost(), IsEmpty());
    const EdgeRecovery recovery = restart();
    ASSERT_EQ(recovery.outbox.size(), 4U);
    EXPECT_TRUE(recovery.outbox[1].tombstone && recovery.outbox[2].tombstone);
    EXPECT_FALSE(recovery.outbox[0].tombstone || recovery.outbox[3].tombstone || recovery.outbox[1].lost);
  }
}

TEST_F(SegmentEdgeStoreTest, AFullDiskRefusesAndGoesOnOnceThereIsRoom) {
  fill(10, 300);
  disk_.capacity = disk_.used() + 200;
  EXPECT_EQ(commit("x", {chunk_for_tests(11, 300)}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(commit("x", {chunk_for_tests(11, 300)}).code(), absl::StatusCode::kResourceExhausted);
  disk_.capacity = disk_.used();  // not a byte
  EXPECT_EQ(commit("x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store_->load(10).value(), chunk_for_tests(10, 300));
  // What the cloud has makes room, even then.
  const std::uint64_t used = disk_.used();
  for (model::Sequence s = 1; s <= 8; ++s) store_->trim(s).IgnoreError();
  EXPECT_LT(disk_.used(), used);
  ASSERT_TRUE(commit("x", {chunk_for_tests(11, 300)}).ok());
  const EdgeRecovery recovery = restart();
  EXPECT_EQ(recovery.meta.next_sequence, 12U);
  EXPECT_EQ(recovery.meta.acknowledged, 8U);
  EXPECT_EQ(recovery.journal.back(), "x");
  EXPECT_EQ(store_->load(11).value(), chunk_for_tests(11, 300));
}

TEST_F(SegmentEdgeStoreTest, StartsOnAFullDisk) {
  fill(3, 300);
  disk_.erase(only(".b"));
  disk_.capacity = disk_.used();
  const EdgeRecovery recovery = restart();
  EXPECT_THAT(recovery.journal, ElementsAre("S", "c1", "c2", "c3"));
  EXPECT_TRUE(recovery.unsettled);
  EXPECT_EQ(store_->load(2).value(), chunk_for_tests(2, 300));
  // The newest may be in the machine's cache only: sent, and then lost with the power, its number would be used twice.
  EXPECT_EQ(store_->load(3).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(commit("x").code(), absl::StatusCode::kResourceExhausted);
  disk_.capacity = base::FaultyDisk::kNoLimit;
  ASSERT_TRUE(commit("x").ok());
  EXPECT_EQ(store_->load(3).value(), chunk_for_tests(3, 300));
  EXPECT_THAT(restart().journal, ElementsAre("S", "c1", "c2", "c3", "x"));
}

// Nothing else makes room: what is acknowledged goes, though nothing can be written anew.
TEST_F(SegmentEdgeStoreTest, WhatIsAcknowledgedMakesRoomOnAFullDisk) {
  fill(8, 300);
  disk_.capacity = disk_.used();
  EXPECT_TRUE(restart({.segment_bytes = 1000, .reserve_bytes = 500}).unsettled);
  const std::uint64_t before = disk_.used();
  ASSERT_TRUE(store_->trim(6).ok());
  EXPECT_LT(disk_.used(), before);
  ASSERT_TRUE(commit("x", {chunk_for_tests(9, 300)}).ok());
  const EdgeRecovery recovery = restart();
  EXPECT_EQ(recovery.meta.acknowledged, 6U);
  EXPECT_EQ(recovery.outbox.size(), 3U);
  EXPECT_EQ(recovery.journal.back(), "x");
}

TEST_F(SegmentEdgeStoreTest, WithoutFsyncPowerLossIsNoticed) {
  const EdgeStoreOptions off{.fsync = FsyncMode::kOff};
  start(off);
  ASSERT_TRUE(commit("S", {}, true).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 100)}).ok());
  EXPECT_FALSE(restart(off).reopen);  // the same machine: nothing is lost
  store_.reset();
  disk_.power_loss();
  EXPECT_TRUE(start(off).reopen);
  EXPECT_TRUE(restart(off).reopen);  // until it was done
  ASSERT_TRUE(store_->renumber(meta_for_tests(1, 0, model::Epoch(9)), {}).ok());
  EXPECT_FALSE(restart(off).reopen);
  // A clean end leaves nothing to be lost.
  ASSERT_TRUE(commit("b").ok());
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  disk_.power_loss();
  const EdgeRecovery recovery = start(off);
  EXPECT_FALSE(recovery.reopen);
  EXPECT_EQ(recovery.journal.back(), "b");
}

TEST_F(SegmentEdgeStoreTest, DelayedFsyncSyncsInTime) {
  const EdgeStoreOptions delayed{.fsync = FsyncMode::kDelayed, .fsync_delay = std::chrono::milliseconds(500)};
  start(delayed);
  ASSERT_TRUE(commit("S", {}, true).ok());
  const std::uint64_t syncs = disk_.counters().syncs;
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 100)}).ok());
  ASSERT_TRUE(store_->maintain().ok());
  EXPECT_EQ(disk_.counters().syncs, syncs);
  clock_.now += std::chrono::milliseconds(500);
  ASSERT_TRUE(store_->maintain().ok());
  EXPECT_GT(disk_.counters().syncs, syncs);
  store_.reset();
  disk_.power_loss();
  const EdgeRecovery recovery = start(delayed);
  EXPECT_THAT(recovery.journal, ElementsAre("S", "a"));
  EXPECT_EQ(store_->load(1).value(), chunk_for_tests(1, 100));
}

TEST_F(SegmentEdgeStoreTest, AMediumThatDoesNotGiveTheBytesLosesThem) {
  fill(3, 100);
  disk_.hook = [](const base::FaultyDisk::Step& step) {
    return step.kind == base::FaultyDisk::Step::Kind::kRead ? absl::DataLossError("bad sector") : absl::OkStatus();
  };
  int errors = 0;
  absl::StatusOr<StoredChunk> chunk = store_->load(2);
  for (; !chunk.ok() && errors < 100; ++errors) chunk = store_->load(2);
  EXPECT_GT(errors, 0);  // it may pass
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(*chunk, tombstone_for_tests(chunk_for_tests(2, 100), "damaged"));
  disk_.hook = nullptr;
  EXPECT_EQ(store_->load(1).value(), chunk_for_tests(1, 100));
}

TEST_F(SegmentEdgeStoreTest, AnotherVersionIsAnError) {
  fill(1, 10);
  std::string bytes = disk_.contents().at(only(".a"));
  std::string record;
  append_record(record, {RecordKind::kGeneration, true, 0, 1, 1, 0, 0}, "later");
  record[8] = 2;  // the version, then the checksum of the head again
  const std::uint64_t checksum = base::hash64(std::string_view(record).substr(0, kHeadBytes - 8));
  std::memcpy(record.data() + kHeadBytes - 8, &checksum, sizeof checksum);
  disk_.put(journal_name(99, JournalCopy::kA), record);
  store_ = std::make_unique<SegmentEdgeStore>(disk_, clock_, format_for_tests(), EdgeStoreOptions{});
  const absl::Status status = store_->recover({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 2"));
}

TEST(SegmentEdgeStoreFolder, OneProcessAtATimeAndNoOldState) {
  const base::TemporaryDirectory directory = base::TemporaryDirectory::create("edge").value();
  const std::string path = directory.path().string();
  const ClockForTests clock;
  {
    const auto store = SegmentEdgeStore::open(path, clock, format_for_tests(), {});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(SegmentEdgeStore::open(path, clock, format_for_tests(), {}).status().code(),
              absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE((*store)->recover({}).ok());
    EdgeCommit commit;
    commit.meta = meta_for_tests(2);
    commit.entry = {true, "S"};
    commit.chunks = {chunk_for_tests(1, 5000)};
    ASSERT_TRUE((*store)->commit(commit).ok());
  }
  {
    const auto store = SegmentEdgeStore::open(path, clock, format_for_tests(), {});
    ASSERT_TRUE(store.ok());
    std::uint64_t done = 0;
    std::uint64_t all = 0;
    ASSERT_TRUE((*store)
                    ->recover([&](std::uint64_t d, std::uint64_t a) {
                      EXPECT_GE(d, done);
                      done = d;
                      all = a;
                    })
                    .ok());
    EXPECT_EQ(done, all);
    EXPECT_GT(all, 0U);
    EXPECT_EQ((*store)->load(1).value(), chunk_for_tests(1, 5000));
  }
  ASSERT_TRUE(base::write_file_atomically(directory.path() / "edge.sqlite", "old").ok());
  const absl::Status status = SegmentEdgeStore::open(path, clock, format_for_tests(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("earlier version"));
}

}  // namespace
}  // namespace orla::store
