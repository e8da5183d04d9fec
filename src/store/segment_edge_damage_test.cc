// Damage of an edge's files, one kind at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/edge_files.h"
#include "store/edge_store_for_tests.h"

namespace orla::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using SegmentEdgeDamageTest = SegmentEdgeStoreTest;

TEST_F(SegmentEdgeDamageTest, AFlippedBitInRowsCostsThatChunk) {
  fill(4, 100);
  const std::string name = segment_name(1);
  const std::size_t at = disk_.contents().at(name).find(chunk_for_tests(2, 100).rows);
  ASSERT_NE(at, std::string::npos);
  disk_.flip_bit(name, (at + 50) * 8 + 3);
  const EdgeRecovery recovery = restart();
  EXPECT_EQ(recovery.outbox.size(), 4U);
  EXPECT_THAT(store_->lost(), IsEmpty());
  EXPECT_EQ(store_->load(2).value(), tombstone_for_tests(chunk_for_tests(2, 100), "damaged"));
  ASSERT_EQ(store_->lost().size(), 1U);
  EXPECT_EQ(store_->lost()[0], tombstone_of(2, "damaged", chunk_for_tests(2, 0).facts));
  for (const model::Sequence s : {1, 3, 4}) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 100));
  // Once a commit says so, it is a tombstone as any other.
  EdgeCommit commit;
  commit.meta = meta_for_tests(5);
  commit.entry.state = "t";
  commit.tombstones = store_->lost();
  ASSERT_TRUE(store_->commit(commit).ok());
  EXPECT_THAT(store_->lost(), IsEmpty());
  EXPECT_TRUE(restart().outbox[1].tombstone);
}

TEST_F(SegmentEdgeDamageTest, ACutOrMissingSegmentCostsItsChunks) {
  fill(12, 300);  // two to a segment
  const std::string newest = only("6");
  ASSERT_EQ(newest, segment_name(6));
  disk_.cut(newest, disk_.contents().at(newest).size() - 30);
  disk_.erase(segment_name(2));
  const EdgeRecovery recovery = restart();
  std::vector<model::Sequence> lost;
  for (const OutboxEntry& entry : recovery.outbox) {
    if (entry.lost) lost.push_back(entry.sequence);
    EXPECT_EQ(store_->load(entry.sequence).value(),
              entry.lost ? tombstone_for_tests(chunk_for_tests(entry.sequence, 300), "damaged")
                         : chunk_for_tests(entry.sequence, 300));
  }
  EXPECT_THAT(lost, ElementsAre(3U, 4U, 12U));
  ASSERT_EQ(recovery.damage.size(), 2U);
  EXPECT_THAT(recovery.damage[0].what, HasSubstr("gone"));
  EXPECT_THAT(recovery.damage[1].what, HasSubstr("cut"));
  EXPECT_FALSE(recovery.reopen || recovery.without_journal);
  // It goes on beside what was cut.
  next_ = 13;
  ASSERT_TRUE(commit("n", {chunk_for_tests(13, 300)}).ok());
  EXPECT_EQ(restart().outbox.size(), 13U);
  EXPECT_EQ(store_->load(13).value(), chunk_for_tests(13, 300));
}

TEST_F(SegmentEdgeDamageTest, OneCopyOfTheJournalIsEnough) {
  for (const char* end : {".a", ".b"}) {
    for (int kind = 0; kind < 3; ++kind) {
      store_.reset();
      for (const auto& [file, bytes] : disk_.contents()) disk_.erase(file);
      next_ = 1;
      fill(5, 100);
      const std::string name = only(end);
      const std::size_t size = disk_.contents().at(name).size();
      if (kind == 0) disk_.erase(name);
      if (kind == 1) disk_.cut(name, size / 2);
      if (kind == 2) disk_.flip_bit(name, size / 2 * 8);
      const EdgeRecovery recovery = restart();
      EXPECT_THAT(recovery.journal, ElementsAre("S", "c1", "c2", "c3", "c4", "c5")) << end << kind;
      EXPECT_FALSE(recovery.reopen || recovery.without_journal);
      for (model::Sequence s = 1; s <= 5; ++s) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 100));
      // A second copy that is shorter, or not there, is only behind.
      EXPECT_EQ(recovery.damage.empty(), std::string(end) == ".b" && kind != 2) << end << kind;
      // Both are whole again.
      disk_.erase(only(end));
      EXPECT_THAT(restart().journal, ElementsAre("S", "c1", "c2", "c3", "c4", "c5"));
    }
  }
}

TEST_F(SegmentEdgeDamageTest, WithoutAJournalTheOutboxTellsAll) {
  fill(6, 300);
  ASSERT_TRUE(store_->trim(3).ok());
  disk_.erase(only(".a"));
  disk_.erase(only(".b"));
  for (int i = 0; i < 2; ++i) {
    const EdgeRecovery recovery = restart();
    EXPECT_TRUE(recovery.reopen);
    EXPECT_THAT(recovery.journal, IsEmpty());
    ASSERT_TRUE(recovery.without_journal.has_value());
    EXPECT_EQ(*recovery.without_journal, chunk_for_tests(6, 0).facts);
    EXPECT_EQ(recovery.meta.node, "edge-1");
    EXPECT_EQ(recovery.meta.epoch, kEpochForTests);
    EXPECT_EQ(recovery.meta.next_sequence, 7U);
    EXPECT_EQ(recovery.meta.chain, (base::Digest{7, 1}));
    EXPECT_LE(recovery.meta.acknowledged, 3U);
    for (model::Sequence s = 4; s <= 6; ++s) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 300));
  }
  // A snapshot and a new numbering end it.
  next_ = 7;
  ASSERT_TRUE(commit("N", {}, true).ok());
  EXPECT_TRUE(restart().reopen);
  ASSERT_TRUE(store_->renumber(meta_for_tests(1, 0, model::Epoch(9)), {}).ok());
  const EdgeRecovery recovery = restart();
  EXPECT_FALSE(recovery.reopen || recovery.without_journal);
  EXPECT_THAT(recovery.journal, ElementsAre("N"));
}

std::vector<std::string> names_of(const std::vector<std::string>& groups) {
  std::vector<std::string> out;
  for (const std::string& piece : groups) {
    const absl::StatusOr<model::EdgeState> state = format_for_tests().decode_state(piece);
    EXPECT_TRUE(state.ok()) << state.status();
    for (const model::GroupDef& group : state->new_groups) out.push_back(group.stream);
  }
  return out;
}

TEST_F(SegmentEdgeDamageTest, TheOutboxKnowsTheGroupsOfItsRows) {
  start({.segment_bytes = 2000});
  ASSERT_TRUE(commit("S", {}, true, {"g0", "g1"}).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 900)}, false, {"g2"}).ok());
  ASSERT_TRUE(commit("b", {}, false, {"g3", "g4"}).ok());
  ASSERT_TRUE(commit("c", {chunk_for_tests(2, 900)}).ok());
  ASSERT_TRUE(commit("d", {chunk_for_tests(3, 900)}, false, {"g5"}).ok());
  EXPECT_THAT(restart({.segment_bytes = 2000}).groups, IsEmpty());  // the journal has them
  ASSERT_TRUE(commit("T", {chunk_for_tests(4, 900)}, true, {"g0", "g1", "g2", "g3", "g4", "g5"}).ok());
  ASSERT_TRUE(commit("e", {chunk_for_tests(5, 900)}, false, {"g6"}).ok());
  disk_.erase(only(".a"));
  disk_.erase(only(".b"));
  for (int i = 0; i < 2; ++i) {
    const EdgeRecovery recovery = restart({.segment_bytes = 2000});
    EXPECT_THAT(names_of(recovery.groups), ElementsAre("g0", "g1", "g2", "g3", "g4", "g5", "g6"));
    for (model::Sequence s = 1; s <= 5; ++s) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 900));
  }
}

TEST_F(SegmentEdgeDamageTest, RowsOfGroupsThatNobodyKnowsAreLost) {
  start();
  ASSERT_TRUE(commit("S", {}, true, {"g0"}).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 100)}).ok());
  ASSERT_TRUE(commit("b", {chunk_for_tests(2, 100)}, false, {"the-one"}).ok());
  ASSERT_TRUE(commit("c", {chunk_for_tests(3, 100)}).ok());
  disk_.erase(only(".a"));
  disk_.erase(only(".b"));
  const std::string name = segment_name(1);
  disk_.flip_bit(name, disk_.contents().at(name).find("the-one") * 8);
  const EdgeRecovery recovery = restart();
  EXPECT_THAT(names_of(recovery.groups), ElementsAre("g0"));
  ASSERT_EQ(recovery.outbox.size(), 3U);
  EXPECT_FALSE(recovery.outbox[0].lost);
  EXPECT_TRUE(recovery.outbox[1].lost && recovery.outbox[2].lost);
}

TEST_F(SegmentEdgeDamageTest, BothCopiesCutAreNoticed) {
  fill(6, 300);
  for (const char* end : {".a", ".b"}) disk_.cut(only(end), disk_.contents().at(only(end)).size() / 2);
  const EdgeRecovery recovery = restart();
  EXPECT_TRUE(recovery.reopen);
  ASSERT_TRUE(recovery.without_journal.has_value());
  EXPECT_EQ(*recovery.without_journal, chunk_for_tests(6, 0).facts);
  EXPECT_EQ(recovery.outbox.size(), 6U);
  for (model::Sequence s = 1; s <= 6; ++s) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 300));
}

TEST_F(SegmentEdgeDamageTest, AChunkThatIsNowhereIsCountedFromTheTotals) {
  fill(6, 300);
  disk_.erase(only(".a"));
  disk_.erase(only(".b"));
  disk_.erase(segment_name(2));  // chunks 3 and 4
  const EdgeRecovery recovery = restart();
  ASSERT_EQ(recovery.outbox.size(), 6U);
  EXPECT_TRUE(recovery.outbox[2].lost && recovery.outbox[3].lost);
  EXPECT_EQ(recovery.outbox[2].facts.samples, (std::vector<std::pair<std::string, std::uint64_t>>{{"in", 20}}));
  EXPECT_THAT(recovery.outbox[3].facts.samples, IsEmpty());
  EXPECT_EQ(store_->load(3)->range.chain_before, (base::Digest{3, 1}));
  EXPECT_EQ(store_->load(4)->range.chain_after, (base::Digest{5, 1}));
  EXPECT_EQ(store_->load(3)->range.chain_after, store_->load(4)->range.chain_before);
}

TEST_F(SegmentEdgeDamageTest, AChangeMissingInTheMiddleMakesTheStateUnusable) {
  fill(6, 300);
  // The same change in both copies: "c3".
  for (const char* end : {".a", ".b"}) {
    const std::string name = only(end);
    const std::size_t at = disk_.contents().at(name).rfind("c3");
    ASSERT_NE(at, std::string::npos);
    disk_.flip_bit(name, at * 8);
  }
  const EdgeRecovery recovery = restart();
  ASSERT_TRUE(recovery.without_journal.has_value());
  EXPECT_EQ(*recovery.without_journal, chunk_for_tests(6, 0).facts);
  EXPECT_TRUE(recovery.reopen);
  EXPECT_EQ(recovery.meta.next_sequence, 7U);
  for (model::Sequence s = 1; s <= 6; ++s) EXPECT_EQ(store_->load(s).value(), chunk_for_tests(s, 300));
}

// It costs itself: the state before it goes on, and what was open there with it.
TEST_F(SegmentEdgeDamageTest, TheNewestChangeDamagedInBothCopiesCostsItself) {
  fill(3, 100);
  ASSERT_TRUE(commit("d").ok());
  ASSERT_TRUE(commit("the-newest").ok());
  for (const char* end : {".a", ".b"}) {
    const std::string name = only(end);
    disk_.flip_bit(name, disk_.contents().at(name).rfind("the-newest") * 8);
  }
  for (int i = 0; i < 2; ++i) {
    const EdgeRecovery recovery = restart();
    EXPECT_THAT(recovery.journal, ElementsAre("S", "c1", "c2", "c3", "d")) << i;
    EXPECT_FALSE(recovery.without_journal);
    EXPECT_TRUE(recovery.reopen);
    EXPECT_EQ(recovery.damage.empty(), i == 1);
    EXPECT_EQ(recovery.outbox.size(), 3U);
  }
  ASSERT_TRUE(store_->renumber(meta_for_tests(1, 0, model::Epoch(9)), {}).ok());
  EXPECT_FALSE(restart().reopen);
}

// It had brought a chunk, which may have left the edge: what that summarizes is not open any more.
TEST_F(SegmentEdgeDamageTest, TheNewestChangeWithAChunkDamagedInBothCopiesCostsWhatIsOpen) {
  fill(3, 100);
  for (const bool cut : {false, true}) {
    ASSERT_TRUE(commit("S", {}, true).ok());
    const model::Sequence sequence = next_;
    ASSERT_TRUE(commit("the-newest", {chunk_for_tests(sequence, 100)}).ok());
    for (const char* end : {".a", ".b"}) {
      const std::string name = only(end);
      disk_.flip_bit(name, disk_.contents().at(name).rfind("the-newest") * 8);
    }
    std::string newest;
    for (const auto& [name, bytes] : disk_.contents()) newest = name.starts_with("outbox-") ? name : newest;
    if (cut) disk_.cut(newest, disk_.contents().at(newest).size() / 2);
    const EdgeRecovery recovery = restart({.segment_bytes = 1000});
    EXPECT_TRUE(recovery.without_journal.has_value());
    EXPECT_TRUE(recovery.reopen);
    if (!cut) {
      EXPECT_EQ(recovery.meta.next_sequence, sequence + 1);
      EXPECT_EQ(store_->load(sequence).value(), chunk_for_tests(sequence, 100));
    }
  }
}

TEST_F(SegmentEdgeDamageTest, ATornTailIsACommitThatNeverWas) {
  fill(3, 100);
  const std::string name = only(".a");
  std::string bytes = disk_.contents().at(name);
  const std::string whole = bytes;
  append_record(bytes, {RecordKind::kChange, true, 0, 2, 99, 0, 0}, "whatever it is");
  for (std::size_t cut = whole.size() + 1; cut < bytes.size(); cut += 7) {
    disk_.put(name, bytes.substr(0, cut));
    const EdgeRecovery recovery = restart();
    EXPECT_THAT(recovery.journal, ElementsAre("S", "c1", "c2", "c3"));
    EXPECT_THAT(recovery.damage, IsEmpty());
    EXPECT_FALSE(recovery.reopen || recovery.without_journal);
  }
}

}  // namespace
}  // namespace orla::store
