// Reading what an edge has on disk, whatever happened to it. Nothing is changed here: the store puts in order what was
// found, and `orla outbox` shows it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/disk.h"
#include "store/edge_image.h"

namespace orla::store {

// A file, for a person.
struct EdgeFileReport {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;  // sound ones
};

struct EdgeReading {
  EdgeImage image;
  std::optional<ChunkFacts> without_journal;
  std::vector<EdgeDamage> damage;
  std::vector<EdgeFileReport> files;  // those that were read, sorted by name

  // For the store, to go on.
  std::uint64_t generation = 0;      // in force; 0: none
  std::uint64_t last_change = 0;     // number of the newest change in force
  std::uint64_t end = 0;             // of the changes in force, in the first copy
  std::uint64_t snapshot_bytes = 0;  // of the first change, in one copy, without the states that followed a snapshot
  std::uint64_t copied = 0;          // of them, in the second copy
  bool rewrite = false;              // nothing can be appended: a copy is damaged, a generation was not finished, or
                                     // something was decided that is not in the journal
  bool unsynced = false;             // what was read may be in the machine's cache only
  model::Sequence unsynced_from = UINT64_MAX;  // then: chunks that were not certainly durable when they were committed
  std::uint64_t last_generation = 0;           // the highest number among the files
  std::map<std::uint64_t, std::uint64_t> segments;  // sizes
  std::vector<std::string> journals;                // files of other generations
};

struct EdgeReadingOptions {
  enum class Rows : std::uint8_t { kWhenSent, kNow };
  Rows rows = Rows::kWhenSent;  // when the checksums of rows are compared
  EdgeStore::Progress progress;
};

// Errors: of the disk, or files of another version. Damage is none.
absl::StatusOr<EdgeReading> read_edge_files(const base::Disk& disk, const EdgeFormat& format,
                                            const EdgeReadingOptions& options);

// What a store tells its owner. Facts of entries are without inputs.
absl::StatusOr<EdgeRecovery> recovery_of(const EdgeReading& reading, const EdgeFormat& format);

}  // namespace orla::store
