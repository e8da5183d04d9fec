// The EdgeStore on append-only files: a journal kept twice, and an outbox in segments. edge_files.h has the format,
// docs/decisions/0004-nothing-lost.md the reasons.
//
// Dead space is bounded: a segment goes once none of its chunks is kept, so that at most the oldest segment and the
// newest one hold acknowledged chunks (twice segment_bytes and a commit), beside the rows of tombstones between live
// ones. The journal is as long as its owner lets it grow between two snapshots, twice.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "base/file_lock.h"
#include "store/edge_image.h"
#include "store/edge_journal.h"
#include "store/edge_outbox.h"
#include "store/edge_store.h"

namespace orla::store {

struct EdgeStoreOptions {
  // kOn: a commit survives power loss. kDelayed: once `fsync_delay` has passed. kOff: once a new generation of the
  // journal has begun. In all of them it survives the process. After a start of the machine that lost something,
  // recover() says `reopen`.
  FsyncMode fsync = FsyncMode::kOn;
  std::chrono::nanoseconds fsync_delay = std::chrono::seconds(1);
  std::uint64_t segment_bytes = 8 << 20;
  std::uint64_t reserve_bytes = 64 << 10;  // given back when a full disk would keep the outbox from being trimmed
};

class SegmentEdgeStore final : public EdgeStore {
 public:
  // Both outlive the store; nobody else writes there.
  SegmentEdgeStore(base::Disk& disk, const base::Clock& clock, EdgeFormat format, EdgeStoreOptions options);

  // In a folder that exists and that one process at a time may use. FailedPrecondition when another does, or when the
  // edge of an earlier version has left its state there. `clock` outlives the store.
  static absl::StatusOr<std::unique_ptr<SegmentEdgeStore>> open(const std::string& directory, const base::Clock& clock,
                                                                EdgeFormat format, EdgeStoreOptions options);

  absl::StatusOr<EdgeRecovery> recover(const Progress& progress) override;
  absl::Status commit(const EdgeCommit& commit) override;
  absl::Status trim(model::Sequence through) override;
  absl::Status renumber(const EdgeMeta& meta, const std::vector<StoredChunk>& outbox) override;
  absl::StatusOr<StoredChunk> load(model::Sequence sequence) override;
  std::vector<model::Tombstone> lost() const override;
  std::uint64_t bytes() const override;
  JournalBytes journal_bytes() const override;
  absl::Status maintain() override;
  absl::Status close() override;

 private:
  // Records of many chunk heads are cut at about this size.
  static constexpr std::size_t kPartBytes = 1 << 20;
  absl::Status settle();
  absl::Status prepare_write();
  absl::Status announce();
  absl::Status rewrite(EdgeImage image, std::vector<std::string> states);
  absl::Status move_doubtful(EdgeImage& image, std::vector<model::Sequence>& lost);
  absl::Status heal();
  std::vector<std::string> known_parts(const EdgeImage& image) const;
  std::string segment_start(const Change::Groups& new_groups);
  Change::Opened opened() const;
  absl::Status write_chunks(std::uint64_t number, const std::vector<StoredChunk>& chunks,
                            const Change::Groups& new_groups, std::vector<std::string>& headers,
                            std::vector<Change::Chunk>& out);
  std::uint64_t groups_with(const Change::Groups& new_groups) const;
  absl::Status give_up(absl::Status why);
  bool in_doubt() const { return outbox_.in_doubt() || journal_.in_doubt(); }
  EdgeJournal::Durable durable() const;
  absl::Status sync();
  absl::Status drop_dead();
  void changed();
  absl::Status ensure_reserve();
  void release_reserve();
  std::string where() const { return disk_.where(); }

  std::unique_ptr<base::FileLock> lock_;  // of open()
  std::unique_ptr<base::Disk> own_disk_;  // likewise
  base::Disk& disk_;
  const base::Clock& clock_;
  const EdgeFormat format_;
  const EdgeStoreOptions options_;
  EdgeJournal journal_;
  EdgeOutbox outbox_;
  EdgeImage image_;
  std::uint64_t last_change_ = 0;
  std::uint64_t last_generation_ = 0;
  bool recovered_ = false;
  bool rewrite_due_ = false;  // the journal on disk is damaged, or not certainly durable: image_ has everything,
                              // states included
  bool appendable_ = false;   // ... but what is there is whole
  model::Sequence unsynced_from_ = UINT64_MAX;  // ... and these chunks are not sent before
  bool announce_due_ = false;                   // the journal does not say yet how this process writes
  bool trim_owed_ = false;                      // the journal does not say yet what is acknowledged
  bool reserve_ = false;                        // it is there
  std::uint64_t snapshot_bytes_ = 0;            // see journal_bytes()
  std::uint64_t outbox_groups_ = 0;             // so many of the groups are in the newest segment
  std::set<model::Sequence> found_lost_;        // since recover()
  std::optional<base::SteadyTime> unsynced_since_;
};

}  // namespace orla::store
