#include "store/sqlite_edge_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace orla::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A note format for tests: only the publications' metrics.
NoteFormat note_format() {
  return {[](const model::OriginNote& note) {
            std::string out;
            for (const model::Publication& p : note.publications) out += p.metric + ",";
            return out;
          },
          [](std::string_view bytes) -> absl::StatusOr<model::OriginNote> {
            model::OriginNote note;
            std::string metric;
            for (const char c : bytes) {
              if (c != ',') {
                metric += c;
                continue;
              }
              note.publications.push_back({metric, model::kMinTime});
              metric.clear();
            }
            if (!metric.empty()) return absl::InvalidArgumentError("half a note");
            return note;
          }};
}

StoredChunk chunk(model::Sequence sequence, std::string rows, model::Epoch epoch = model::Epoch(7)) {
  StoredChunk out;
  out.range = {"edge-1", epoch, sequence, sequence, {sequence, 1}, {sequence + 1, 1}, {}};
  out.range.note.publications = {{"load", model::kMinTime}};
  out.rows = std::move(rows);
  return out;
}

std::vector<std::pair<model::Sequence, std::size_t>> sizes(const EdgeRecovery& recovery) {
  std::vector<std::pair<model::Sequence, std::size_t>> out;
  for (const OutboxEntry& entry : recovery.outbox) out.emplace_back(entry.sequence, entry.bytes);
  return out;
}

EdgeMeta meta(model::Sequence next, model::Sequence acknowledged = 0, model::Epoch epoch = model::Epoch(7)) {
  return {"edge-1", epoch, next, acknowledged, {next, 1}};
}

class EdgeStoreTest : public testing::Test {
 protected:
  std::unique_ptr<SqliteEdgeStore> open(EdgeStoreOptions options = {Fsync::kOff, 0}) {
    absl::StatusOr<std::unique_ptr<SqliteEdgeStore>> store = SqliteEdgeStore::open(path(), note_format(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string path() const { return directory_.path().string(); }
  void edit(const std::string& sql) {
    const auto database = Database::open(path() + "/" + SqliteEdgeStore::kFileName, OpenMode::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status status = (*database)->execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }

  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("edge-store").value();
};

TEST_F(EdgeStoreTest, AFreshStoreHasNoEpoch) {
  const EdgeRecovery recovery = open()->recover({}).value();
  EXPECT_EQ(recovery.meta.epoch, model::Epoch(0));
  EXPECT_EQ(recovery.meta.next_sequence, 1u);
  EXPECT_TRUE(recovery.journal.empty());
  EXPECT_TRUE(recovery.outbox.empty());
}

TEST_F(EdgeStoreTest, WhatWasCommittedIsRecovered) {
  const model::Epoch epoch{UINT64_MAX - 3};  // more than a signed column
  {
    const auto store = open({Fsync::kOn, 0});
    ASSERT_TRUE(
        store->commit({meta(3, 0, epoch), {true, "snapshot"}, {chunk(1, "a", epoch), chunk(2, "bb", epoch)}, {}}).ok());
    ASSERT_TRUE(store->commit({meta(3, 0, epoch), {false, std::string("delta\0one", 9)}, {}, {}}).ok());
  }
  const auto store = open();
  const EdgeRecovery recovery = store->recover({}).value();
  EXPECT_EQ(recovery.meta.node, "edge-1");
  EXPECT_EQ(recovery.meta.epoch, epoch);
  EXPECT_EQ(recovery.meta.next_sequence, 3u);
  EXPECT_EQ(recovery.meta.chain, (base::Digest{3, 1}));
  EXPECT_THAT(recovery.journal, ElementsAre("snapshot", std::string("delta\0one", 9)));
  EXPECT_THAT(sizes(recovery), ElementsAre(Pair(1, 6), Pair(2, 7)));  // rows and the note "load,"
  const StoredChunk loaded = store->load(2).value();
  EXPECT_EQ(loaded.range, chunk(2, "bb", epoch).range);
  EXPECT_EQ(loaded.rows, "bb");
  EXPECT_EQ(store->load(3).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EdgeStoreTest, ASnapshotReplacesTheJournal) {
  const auto store = open();
  ASSERT_TRUE(store->commit({meta(1), {true, "s1"}, {}, {}}).ok());
  ASSERT_TRUE(store->commit({meta(1), {false, "d1"}, {}, {}}).ok());
  ASSERT_TRUE(store->commit({meta(1), {true, "s2"}, {}, {}}).ok());
  ASSERT_TRUE(store->commit({meta(1), {false, "d2"}, {}, {}}).ok());
  EXPECT_THAT(store->recover({})->journal, ElementsAre("s2", "d2"));
}

TEST_F(EdgeStoreTest, TrimDropsWhatWasAcknowledged) {
  const auto store = open();
  ASSERT_TRUE(store->commit({meta(4), {true, "s"}, {chunk(1, "a"), chunk(2, "b"), chunk(3, "c")}, {}}).ok());
  ASSERT_TRUE(store->trim(2).ok());
  ASSERT_TRUE(store->trim(1).ok());  // older news changes nothing
  const EdgeRecovery recovery = store->recover({}).value();
  EXPECT_EQ(recovery.meta.acknowledged, 2u);
  EXPECT_THAT(sizes(recovery), ElementsAre(Pair(3, 6)));
}

TEST_F(EdgeStoreTest, RenumberReplacesTheOutbox) {
  const auto store = open();
  ASSERT_TRUE(store->commit({meta(4), {true, "s"}, {chunk(1, "a"), chunk(2, "b"), chunk(3, "c")}, {}}).ok());
  const model::Epoch next{8};
  ASSERT_TRUE(store->renumber(meta(2, 0, next), {chunk(1, "c", next)}).ok());
  const EdgeRecovery recovery = store->recover({}).value();
  EXPECT_EQ(recovery.meta.epoch, next);
  EXPECT_EQ(recovery.meta.next_sequence, 2u);
  EXPECT_THAT(sizes(recovery), ElementsAre(Pair(1, 6)));
  EXPECT_EQ(store->load(1)->range.epoch, next);
  EXPECT_THAT(recovery.journal, ElementsAre("s"));
}

TEST_F(EdgeStoreTest, OneProcessPerDirectory) {
  const auto store = open();
  const absl::Status second = SqliteEdgeStore::open(path(), note_format(), {}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr("another process uses this state directory"));
}

TEST_F(EdgeStoreTest, TheLockEndsWithItsHolder) {
  open();
  EXPECT_NE(open(), nullptr);
}

TEST_F(EdgeStoreTest, AMissingDirectoryIsNamed) {
  const absl::Status status = SqliteEdgeStore::open(path() + "/nothing", note_format(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nothing/lock"));
}

TEST_F(EdgeStoreTest, AnotherVersionIsRefused) {
  open();
  edit("PRAGMA user_version=99");
  const absl::Status status = SqliteEdgeStore::open(path(), note_format(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("found schema version 99, expected 1"));
}

TEST_F(EdgeStoreTest, AFileThatIsNoDatabaseIsRefused) {
  ASSERT_TRUE(base::write_file_atomically(directory_.path() / SqliteEdgeStore::kFileName, std::string(9000, 'x')).ok());
  const absl::Status status = SqliteEdgeStore::open(path(), note_format(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

TEST_F(EdgeStoreTest, ADamagedChunkIsLostAlone) {
  {
    const auto store = open();
    ASSERT_TRUE(store->commit({meta(4), {true, "s"}, {chunk(1, "aaaa"), chunk(2, "bbbb"), chunk(3, "cccc")}, {}}).ok());
  }
  edit("UPDATE outbox SET rows=x'62626261' WHERE sequence=2");
  const auto store = open();
  const EdgeRecovery recovery = store->recover({}).value();
  EXPECT_EQ(recovery.outbox.size(), 3u);
  EXPECT_EQ(store->load(1)->rows, "aaaa");
  EXPECT_EQ(store->load(2).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store->load(2).status().message()), HasSubstr("chunk 2 of the outbox is damaged"));
  EXPECT_EQ(store->load(3)->rows, "cccc");
}

TEST_F(EdgeStoreTest, EveryFieldOfAChunkIsCovered) {
  for (const char* change : {"node='edge-2'", "epoch=epoch+1", "chain_before=chain_after", "chain_after=chain_before",
                             "note=CAST('work,' AS BLOB)", "rows=x''", "checksum=checksum+1", "sequence=9"}) {
    {
      const auto store = open();
      ASSERT_TRUE(store->renumber(meta(2), {chunk(1, "a")}).ok());
    }
    edit(std::string("UPDATE outbox SET ") + change);
    const model::Sequence at = std::string_view(change) == "sequence=9" ? 9 : 1;
    EXPECT_EQ(open()->load(at).status().code(), absl::StatusCode::kDataLoss) << change;
  }
}

TEST_F(EdgeStoreTest, ADamagedJournalIsAnError) {
  for (const char* change : {"state=x'00'", "snapshot=0"}) {
    {
      const auto store = open();
      ASSERT_TRUE(store->commit({meta(1), {true, "s"}, {}, {}}).ok());
    }
    edit(std::string("UPDATE journal SET ") + change);
    const absl::Status status = open()->recover({}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << change;
    EXPECT_THAT(std::string(status.message()), HasSubstr("journal entry"));
  }
}

TEST_F(EdgeStoreTest, ACommitThatDoesNotFitChangesNothingAndIsTriedAgain) {
  const auto store = open({Fsync::kOff, 200 << 10});
  ASSERT_TRUE(store->commit({meta(2), {true, "s"}, {chunk(1, std::string(60 << 10, 'a'))}, {}}).ok());
  const absl::Status full =
      store->commit({meta(4), {false, "d"}, {chunk(2, "b"), chunk(3, std::string(200 << 10, 'c'))}, {}});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("edge.sqlite"));
  EXPECT_THAT(std::string(full.message()), HasSubstr("free space"));
  EdgeRecovery recovery = store->recover({}).value();
  EXPECT_EQ(recovery.meta.next_sequence, 2u);
  EXPECT_THAT(recovery.journal, ElementsAre("s"));
  EXPECT_EQ(recovery.outbox.size(), 1u);
  // Once room has been made, the same store goes on.
  ASSERT_TRUE(store->trim(1).ok());
  EXPECT_TRUE(store->commit({meta(4), {false, "d"}, {chunk(2, "b"), chunk(3, std::string(60 << 10, 'c'))}, {}}).ok());
  recovery = store->recover({}).value();
  EXPECT_EQ(recovery.meta.next_sequence, 4u);
  EXPECT_EQ(recovery.outbox.size(), 2u);
}

TEST_F(EdgeStoreTest, ASequenceIsSealedOnce) {
  const auto store = open();
  ASSERT_TRUE(store->commit({meta(2), {true, "s"}, {chunk(1, "a")}, {}}).ok());
  EXPECT_FALSE(store->commit({meta(2), {false, "d"}, {chunk(1, "b")}, {}}).ok());
  EXPECT_EQ(store->load(1)->rows, "a");
  EXPECT_THAT(store->recover({})->journal, ElementsAre("s"));
}

}  // namespace
}  // namespace orla::store
