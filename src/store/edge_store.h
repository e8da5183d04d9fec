// What an edge keeps on disk: its identity, the journal of its state, and the outbox of chunks not yet acknowledged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/chunk.h"

namespace orla::store {

// A chunk as kept: the range with its note, and the encoded rows.
struct StoredChunk {
  model::Range range;
  std::string rows;  // codec::encode_rows
};

// Identity and numbering of the edge, one record.
struct EdgeMeta {
  model::NodeName node;
  model::Epoch epoch{};
  model::Sequence next_sequence = 1;  // of the next chunk to seal
  model::Sequence acknowledged = 0;   // everything up to it is folded in at the cloud
  base::Digest chain;                 // after chunk next_sequence-1
};

// One journal entry: an encoded model::EdgeState.
struct JournalEntry {
  bool snapshot = false;  // entries before it are deleted in the same transaction
  std::string state;
};

struct EdgeRecovery {
  EdgeMeta meta;                     // epoch 0: a fresh store
  std::vector<std::string> journal;  // encoded states in order, starting with the newest snapshot
  std::vector<std::pair<model::Sequence, std::size_t>> outbox;  // sequence and bytes of the chunks kept, ascending
};

// Not thread-safe: called on the owning node's loop. Every method that changes something is one transaction: on an
// error nothing of it happened. When it returns OK the change survives SIGKILL and power loss.
class EdgeStore {
 public:
  virtual ~EdgeStore() = default;
  virtual absl::StatusOr<EdgeRecovery> recover() = 0;
  // meta.next_sequence etc. as after the chunks.
  virtual absl::Status commit(const EdgeMeta& meta, const JournalEntry& entry,
                              const std::vector<StoredChunk>& chunks) = 0;
  // Everything up to `through` has been folded in: drops it. A failure is harmless (chunks are dropped at the next).
  virtual absl::Status trim(model::Sequence through) = 0;
  // A new epoch: the chunks beyond the old one's cursor, renumbered from 1, replace the outbox.
  virtual absl::Status renumber(const EdgeMeta& meta, const std::vector<StoredChunk>& outbox) = 0;
  virtual absl::StatusOr<StoredChunk> load(model::Sequence sequence) = 0;
};

}  // namespace orla::store
