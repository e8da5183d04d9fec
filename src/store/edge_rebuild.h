// When changes of an edge's journal are missing: what its outbox says of the chunks by itself.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/disk.h"
#include "store/edge_image.h"

namespace orla::store {

// What is in segments, in the order in which it was written.
struct OutboxScan {
  struct Head {
    std::uint64_t change = 0;   // number of the change that brings the chunk
    std::uint64_t durable = 0;  // number of a change that was durable before
    std::string header;         // a sound ChunkHeader
    Place place;                // of its rows; segment 0: they are not there
    bool readable = true;       // all groups that its rows may name are known
  };
  std::vector<Head> heads;
  std::string latest;            // of the newest segment's begin
  std::optional<EdgeMeta> meta;  // likewise
  GroupPieces groups;
  std::uint64_t records = 0;  // sound ones
};

// Adds the records of a segment from an offset on; rows are not read. `progress` is told of bytes passed.
absl::Status scan_segment(const base::Disk& disk, const EdgeFormat& format, std::uint64_t number, std::uint64_t bytes,
                          std::uint64_t from, OutboxScan& into, const std::function<void(std::uint64_t)>& progress);

struct JournalKnown {
  bool meta = false;              // identity and numbers were in it
  bool tail_lost = false;         // there were changes after the newest that is known
  std::uint64_t last_change = 0;  // number of the newest that is known
};

// `image` is what the changes that could be read say; afterwards it has every chunk that the cloud may not have yet.
// One of which nothing is left is kept as lost, with the samples that follow from the totals around it. The newest
// number of a change that was seen comes back.
std::uint64_t rebuild_from_outbox(EdgeImage& image, const OutboxScan& scan, const JournalKnown& known,
                                  const EdgeFormat& format);

}  // namespace orla::store
