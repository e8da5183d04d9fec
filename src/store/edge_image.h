// What an edge's files say, in memory: the result of applying the changes of its journal in order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "store/edge_change.h"

namespace orla::store {

// The groups that rows may name, as pieces in the order of their numbers.
class GroupPieces {
 public:
  // False, and nothing is added, when there are others missing before them. First 0 replaces all.
  bool add(std::uint64_t first, std::string_view bytes, const EdgeFormat& format);
  void clear();
  std::uint64_t count() const { return count_; }
  struct Piece {
    std::uint64_t first = 0;
    std::string bytes;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  std::uint64_t count_ = 0;
};

// A plain value. A change is prepared, which may fail, then applied, which cannot: the store writes in between.
class EdgeImage {
 public:
  struct Kept {
    std::string header;  // encoded ChunkHeader
    Place place;
    bool tombstone = false;
    bool lost = false;  // its rows cannot be had; not yet a tombstone
    int failed_reads = 0;
  };
  struct Prepared {
    Change change;
    std::vector<std::pair<model::Sequence, Kept>> chunks;
    std::string latest;  // empty: as before
    std::optional<GroupPieces> groups;
  };

  // The change's views live until it is applied.
  absl::StatusOr<Prepared> prepare(const Change& change, const EdgeFormat& format) const;
  // States are kept only `kCollect`: a running store does not need them.
  enum class States : std::uint8_t { kCollect, kForget };
  void apply(Prepared prepared, States states);
  // The rows of a kept chunk are gone.
  void lose(model::Sequence sequence);

  EdgeMeta meta;
  std::map<model::Sequence, Kept> kept;         // chunks not acknowledged
  std::map<std::uint64_t, std::uint64_t> live;  // by segment: kept chunks whose rows are in it
  std::string latest;                           // encoded ChunkFacts of the newest chunk; empty: none was sealed
  std::vector<std::string> states;              // the newest snapshot and what follows it
  GroupPieces groups;
  Change::Tail tail;    // where the outbox ends
  Change::Tail synced;  // as far as that it was durable; fsync on: all of it
  std::string boot;     // as of the newest `opened`
  FsyncMode fsync = FsyncMode::kOn;
  bool reopen = false;
  bool closed = false;  // nothing was changed since everything was made durable
  bool lost = false;    // the journal was lost, and there was no snapshot since

 private:
  void erase(std::map<model::Sequence, Kept>::iterator chunk);
  void drop_live(const Place& place);
  void trim(model::Sequence through);
};

}  // namespace orla::store
