// The format of an edge's files, byte for byte: what this version writes, and that it reads what was written once.
#include <gtest/gtest.h>

#include "base/faulty_disk.h"
#include "base/files.h"
#include "store/edge_files.h"
#include "store/edge_for_tests.h"
#include "store/segment_edge_store.h"

namespace orla::store {
namespace {

constexpr char kFolder[] = "tests/data/edge_store/";

std::map<std::string, std::string> written_now() {
  base::SeededRandom random(1);
  base::FaultyDisk disk(random);
  const ClockForTests clock;
  SegmentEdgeStore store(disk, clock, format_for_tests(), {.segment_bytes = 600, .reserve_bytes = 0});
  EXPECT_TRUE(store.recover({}).ok());
  const auto commit = [&](model::Sequence next, std::string state, std::vector<StoredChunk> chunks,
                          std::vector<model::Tombstone> tombstones, bool snapshot) {
    EdgeCommit out;
    out.meta = meta_for_tests(next);
    out.entry = {snapshot, std::move(state)};
    out.chunks = std::move(chunks);
    out.tombstones = std::move(tombstones);
    EXPECT_TRUE(store.commit(out).ok());
  };
  commit(1, "snapshot", {}, {}, true);
  commit(3, "change", {chunk_for_tests(1, 20), chunk_for_tests(2, 30)}, {}, false);
  EXPECT_TRUE(store.trim(1).ok());
  commit(4, "tombstone", {chunk_for_tests(3, 40)}, {tombstone_of(2, "drop_oldest", chunk_for_tests(2, 0).facts)},
         false);
  EXPECT_TRUE(store.close().ok());
  return disk.contents();
}

TEST(EdgeGolden, WritesTheBytesOfTheFormat) {
  for (const auto& [name, bytes] : written_now()) {
    const absl::StatusOr<std::string> golden = base::read_file(kFolder + name, 1 << 20);
    ASSERT_TRUE(golden.ok()) << golden.status();
    EXPECT_TRUE(*golden == bytes) << name << " is written otherwise than before: a new format needs a new version, and "
                                  << "new files in " << kFolder;
  }
}

TEST(EdgeGolden, ReadsTheBytesOfTheFormat) {
  base::SeededRandom random(1);
  base::FaultyDisk disk(random);
  for (const std::string& name :
       {journal_name(2, JournalCopy::kA), journal_name(2, JournalCopy::kB), segment_name(1)}) {
    const absl::StatusOr<std::string> golden = base::read_file(kFolder + name, 1 << 20);
    ASSERT_TRUE(golden.ok()) << golden.status();
    disk.put(name, *golden);
  }
  const ClockForTests clock;
  SegmentEdgeStore store(disk, clock, format_for_tests(), {});
  const absl::StatusOr<EdgeRecovery> recovery = store.recover({});
  ASSERT_TRUE(recovery.ok()) << recovery.status();
  EXPECT_EQ(recovery->meta.epoch, kEpochForTests);
  EXPECT_EQ(recovery->meta.acknowledged, 1U);
  EXPECT_EQ(recovery->meta.next_sequence, 4U);
  EXPECT_EQ(recovery->journal, (std::vector<std::string>{"snapshot", "change", "tombstone"}));
  EXPECT_TRUE(recovery->damage.empty());
  ASSERT_EQ(recovery->outbox.size(), 2U);
  EXPECT_TRUE(recovery->outbox[0].tombstone);
  EXPECT_EQ(store.load(2).value(), tombstone_for_tests(chunk_for_tests(2, 0), "drop_oldest"));
  EXPECT_EQ(store.load(3).value(), chunk_for_tests(3, 40));
}

// The head, written out by hand after the table of edge_files.h.
TEST(EdgeGolden, TheHeadIsAsDescribed) {
  std::string record;
  append_record(record, {RecordKind::kRows, true, 3, 5, 7, 0, 0}, "ab");
  ASSERT_EQ(record.size(), 58U);
  const unsigned char head[40] = {0x9d, 'O', 'r', 'l', 'a', 'R', 'e', 'c', 1, 5, 1, 0, 3, 0, 0, 0, 5, 0, 0, 0,
                                  0,    0,   0,   0,   7,   0,   0,   0,   0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(record.substr(0, 40), std::string(reinterpret_cast<const char*>(head), sizeof head));
  const absl::StatusOr<std::optional<RecordHead>> read = read_head(record);
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_EQ((*read)->number, 7U);
  EXPECT_EQ((*read)->checksum, payload_checksum("ab", 7));
  for (std::size_t bit = 0; bit < kHeadBytes * 8; ++bit) {
    std::string flipped = record;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const absl::StatusOr<std::optional<RecordHead>> bad = read_head(flipped);
    EXPECT_TRUE(bad.ok() && !bad->has_value()) << bit;
  }
}

}  // namespace
}  // namespace orla::store
