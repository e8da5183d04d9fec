// Writing and reading the segments of an edge's outbox.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/disk.h"
#include "store/edge_change.h"
#include "store/edge_files.h"

namespace orla::store {

// Rows are appended, then kept or given up together: keep() once the journal has the change they belong to, give_up()
// otherwise.
class EdgeOutbox {
 public:
  // `disk` outlives the outbox.
  EdgeOutbox(base::Disk& disk, std::uint64_t segment_bytes) : disk_(disk), segment_bytes_(segment_bytes) {}

  // Segments that are there, with their sizes, where the outbox ends, and as far as that it is durable: the rest is in
  // doubt. A last one that is shorter is not gone on with.
  void adopt(const std::map<std::uint64_t, std::uint64_t>& segments, Change::Tail tail, Change::Tail synced);

  struct Entry {
    std::uint64_t change = 0;   // number of the change that brings the chunk
    std::uint64_t durable = 0;  // number of the newest change that is durable
    model::Sequence sequence = 0;
    const std::string& header;
    const std::string* rows = nullptr;   // null for a tombstone, which lies nowhere
    std::uint64_t groups = 0;            // the rows may name groups below this number
    std::vector<Change::Groups> pieces;  // of groups that the segment does not have yet
  };
  // `start` gives the payload of kSegment, should a new segment begin.
  absl::StatusOr<Place> append(const Entry& entry, const std::function<std::string()>& start);
  // What was appended is durable. On an error what is kept and was not synced is in doubt.
  absl::Status sync();
  void keep();
  void give_up();
  // The next append begins a new segment.
  void begin_segment() { full_ = true; }

  // NotFound: the rows are gone or damaged. Other errors are the disk's, and may pass.
  absl::StatusOr<std::string> read(model::Sequence sequence, const Place& place) const;

  // Segments without live chunks, apart from the last.
  bool has_dead(const std::map<std::uint64_t, std::uint64_t>& live) const;
  void remove_dead(const std::map<std::uint64_t, std::uint64_t>& live);

  // A sync has failed: what was kept and not durable by then may be lost, whatever later syncs say. It has to be
  // written anew; then the doubt is settled.
  bool in_doubt() const;
  bool doubtful(const Place& place) const;
  void settle();
  bool synced() const;
  std::uint64_t bytes() const;
  // Where it ends, with what was appended since the last keep().
  Change::Tail tail() const;
  // As far as that it is durable.
  Change::Tail synced_tail() const;

 private:
  struct Segment {
    std::uint64_t kept = 0;
    std::uint64_t written = 0;  // what was appended since included
    std::uint64_t synced = 0;
    std::uint64_t sound = UINT64_MAX;  // what lies beyond is in doubt
    bool fresh = false;                // begun since the last keep() or give_up()
  };
  absl::Status begin(const std::function<std::string()>& start);

  base::Disk& disk_;
  const std::uint64_t segment_bytes_;
  std::map<std::uint64_t, Segment> segments_;
  std::uint64_t last_ = 0;                  // number of the newest segment, whether or not it is still there
  std::unique_ptr<base::AppendFile> file_;  // of last_; null: to be opened
  bool full_ = true;
  bool names_synced_ = true;
};

}  // namespace orla::store
