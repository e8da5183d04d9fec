// The EdgeStore on one SQLite file, `edge.sqlite` in a state directory that one process at a time may use.
//
// Tables (version in PRAGMA user_version):
//   meta     one row: node, epoch, next_sequence, acknowledged, chain digest
//   journal  number (rising), snapshot 0/1, state (encoded EdgeState), checksum
//   outbox   sequence, epoch, chain digests, note (encoded), rows (encoded), checksum
// A checksum is hash64 over everything else in its row. A journal entry that fails it is an error of recover(), since
// what follows builds on it; a chunk that fails it is DataLoss of load(), for that chunk alone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/file_lock.h"
#include "store/edge_store.h"
#include "store/sqlite.h"

namespace orla::store {

// How an OriginNote is written; the formats are codec's.
struct NoteFormat {
  std::function<std::string(const model::OriginNote&)> encode;
  std::function<absl::StatusOr<model::OriginNote>(std::string_view)> decode;
};

struct EdgeStoreOptions {
  Fsync fsync = Fsync::kOn;
  std::int64_t max_bytes = 0;  // of the file; a commit beyond it is ResourceExhausted. 0 = until the disk is full
};

class SqliteEdgeStore final : public EdgeStore {
 public:
  static constexpr char kFileName[] = "edge.sqlite";

  // `directory` exists. FailedPrecondition when another process has it open, or when the file is of another version.
  static absl::StatusOr<std::unique_ptr<SqliteEdgeStore>> open(const std::string& directory, NoteFormat notes,
                                                               EdgeStoreOptions options);

  absl::StatusOr<EdgeRecovery> recover(const Progress& progress) override;
  absl::Status commit(const EdgeCommit& commit) override;
  absl::Status trim(model::Sequence through) override;
  absl::Status renumber(const EdgeMeta& meta, const std::vector<StoredChunk>& outbox) override;
  absl::StatusOr<StoredChunk> load(model::Sequence sequence) override;
  std::vector<model::Tombstone> lost() const override { return {}; }
  std::uint64_t bytes() const override { return 0; }

 private:
  SqliteEdgeStore(base::FileLock lock, std::unique_ptr<Database> database, NoteFormat notes)
      : lock_(std::move(lock)), database_(std::move(database)), notes_(std::move(notes)) {}
  absl::Status prepare();
  absl::Status write_meta(const EdgeMeta& meta);
  absl::Status write_chunk(const StoredChunk& chunk);
  absl::Status damaged(std::string_view what, std::string_view consequence) const;

  base::FileLock lock_;
  std::unique_ptr<Database> database_;
  NoteFormat notes_;
  Statement put_meta_, put_entry_, drop_entries_, put_chunk_, drop_chunks_, acknowledge_, get_chunk_;
};

}  // namespace orla::store
