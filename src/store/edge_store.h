// What an edge keeps on disk: its identity, the journal of its state, and the outbox of chunks not yet acknowledged.
//
// A damaged record costs that record. A chunk whose rows are lost is a tombstone from then on: it keeps its number and
// its chain, and is sent in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/chunk.h"
#include "model/edge_state.h"

namespace orla::store {

// What is kept of a chunk apart from its rows.
struct ChunkFacts {
  std::vector<std::pair<std::string, std::uint64_t>> samples;  // by input key, sorted: accepted samples in the rows
  model::Time from = model::kMaxTime;                          // the slices of the rows lie in [from, to)
  model::Time to = model::kMinTime;
  std::uint64_t rows = 0;
  std::uint64_t raw_samples = 0;  // of raw streams
  std::uint64_t raw_sealed = 0;   // the same of all chunks up to and including it
  // The edge's inputs as of the chunk, and how many accepted samples of each are in chunks up to and including it: what
  // is gone on from when the whole journal is lost.
  std::vector<model::InputState> inputs;
  std::vector<std::uint64_t> sealed;  // parallel to inputs
  friend bool operator==(const ChunkFacts&, const ChunkFacts&) = default;
};

// A chunk as kept: the range with its note, and the encoded content. A tombstone has none, and says so in its note.
struct StoredChunk {
  model::Range range;
  std::string rows;  // codec::encode_content: rows, and raw samples
  ChunkFacts facts;
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
  bool snapshot = false;  // entries before it are not needed any more
  std::string state;
};

struct EdgeCommit {
  EdgeMeta meta;  // as after the chunks
  JournalEntry entry;
  // The groups that `entry` defines (a snapshot: all), as an encoded model::EdgeState with nothing else; empty: none.
  // Rows name groups by number: the outbox keeps what it takes to read them without the journal.
  std::string groups;
  std::vector<StoredChunk> chunks;
  // The rows of these kept chunks go for good; their tombstones stand in their place. Also of chunks that recover() or
  // load() found lost, once their samples are accounted for in `entry`.
  std::vector<model::Tombstone> tombstones;
};

struct OutboxEntry {
  model::Sequence sequence = 0;
  std::size_t bytes = 0;  // about what it takes on the wire
  ChunkFacts facts;       // without inputs and what is sealed
  // The rows are lost, found now, and no commit has said so yet: "damaged".
  bool lost = false;
  bool tombstone = false;  // committed as one
};

// Something that could not be read, for a person.
struct EdgeDamage {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string what;
};

struct EdgeRecovery {
  EdgeMeta meta;                     // epoch 0: a fresh store
  std::vector<std::string> journal;  // encoded states in order, starting with the newest snapshot
  // The journal is lost: what the newest chunk says of the inputs. Samples accepted by then and not sealed are lost.
  std::optional<ChunkFacts> without_journal;
  // ... and the groups of the rows in the outbox: encoded states with nothing else, in order.
  std::vector<std::string> groups;
  // What the newest chunk says of the inputs; none was ever sealed: nothing. What the journal says beyond it is not
  // told to the cloud yet.
  std::optional<ChunkFacts> newest;
  std::vector<OutboxEntry> outbox;  // meta.acknowledged+1 .. meta.next_sequence-1, ascending, no gaps
  std::vector<EdgeDamage> damage;
  // Chunks that were sent may be missing at the end (numbers could be used twice): a new epoch has to be opened before
  // anything is sealed.
  bool reopen = false;
  // The disk is full, and what is told here is not certainly durable yet: a commit has to succeed before anything is
  // acknowledged that depends on it.
  bool unsettled = false;
};

// Of the journal, one copy: what a snapshot would take, as the newest one did, and what has followed it.
struct JournalBytes {
  std::uint64_t snapshot = 0;
  std::uint64_t since = 0;
};

// Not thread-safe: called on the owning node's loop. Every method that changes something is one transaction: on an
// error nothing of it happened. When it returns OK the change survives SIGKILL and, unless fsync is off, power loss.
class EdgeStore {
 public:
  // Bytes read and bytes to read, now and then during recover().
  using Progress = std::function<void(std::uint64_t done, std::uint64_t all)>;

  virtual ~EdgeStore() = default;
  virtual absl::StatusOr<EdgeRecovery> recover(const Progress& progress) = 0;
  virtual absl::Status commit(const EdgeCommit& commit) = 0;
  // Everything up to `through` has been folded in: drops it. Failure, and power loss soon after, are harmless: chunks
  // come back, and are dropped at the next.
  virtual absl::Status trim(model::Sequence through) = 0;
  // A new epoch: the chunks beyond the old one's cursor, renumbered from 1, replace the outbox.
  virtual absl::Status renumber(const EdgeMeta& meta, const std::vector<StoredChunk>& outbox) = 0;
  // A chunk kept, or the tombstone in its place: also when its rows turn out to be damaged only now (lost() rises).
  // Errors are of the disk, and may pass.
  virtual absl::StatusOr<StoredChunk> load(model::Sequence sequence) = 0;
  // Chunks found damaged since recover() that no commit has taken up as tombstones yet.
  virtual std::vector<model::Tombstone> lost() const = 0;
  // On disk, dead space included.
  virtual std::uint64_t bytes() const = 0;
  virtual JournalBytes journal_bytes() const = 0;
  // Called now and then: syncs what is due when commits are not synced at once.
  virtual absl::Status maintain() { return absl::OkStatus(); }
  // The last call, at a clean end: everything is durable, whatever the mode of fsync.
  virtual absl::Status close() { return absl::OkStatus(); }
};

}  // namespace orla::store
