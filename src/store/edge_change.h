// The payloads of an edge's files: what a change says, as bytes (edge_files.h has the records around them).
//
// A payload is a list of sections, each a tag byte and its fields; unknown tags make it unreadable. Fields:
//
//    1 meta       text node, u64 epoch, varint next_sequence, varint acknowledged, u64 u64 chain
//    2 state      u8 snapshot, text encoded EdgeState
//    3 chunk      place (varint segment, varint offset, varint bytes, u64 checksum), text ChunkHeader
//    4 tombstone  varint first, varint last, text reason, samples, u64 from, u64 to
//    5 trim       varint through
//    6 replace    no fields: all chunks before are gone
//    7 opened     text boot, u8 fsync (0 on, 1 off, 2 delayed), u8 reopen
//    8 closed     no fields: everything before is on disk
//    9 latest     text ChunkFacts of the newest chunk sealed
//   14 tombstone  as 4, then varint raw samples, > 0
//   10 tail       varint segment, varint bytes: where the outbox ends
//   13 synced     varint segment, varint bytes: as far as that the outbox was durable (fsync on: all of it)
//   12 groups     varint number of the first, text encoded EdgeState with nothing but groups; first 0 replaces all
//   before 11 lost       no fields: the journal before was lost; no state until the next snapshot
//
//   ChunkHeader   varint sequence, u64 epoch, text node, 2x u64 chain_before, 2x u64 chain_after, u8 lost,
//                 text ChunkFacts, text OriginNote (encoded by EdgeFormat)
//   ChunkFacts    samples, u64 from, u64 to, varint rows, varint n, n varints sealed, text inputs (an encoded EdgeState
//                 with nothing but them); when a metric is kept raw: varint raw_samples, varint raw_sealed
//   samples       varint n, n times: text key, varint count
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "store/edge_store.h"

namespace orla::store {

// The formats of what is codec's.
struct EdgeFormat {
  std::function<std::string(const model::OriginNote&)> encode_note;
  std::function<absl::StatusOr<model::OriginNote>(std::string_view)> decode_note;
  std::function<std::string(const model::EdgeState&)> encode_state;
  std::function<absl::StatusOr<model::EdgeState>(std::string_view)> decode_state;
};

enum class FsyncMode : std::uint8_t { kOn, kOff, kDelayed };

// Where rows are: the record kRows in a segment. Segment 0: nowhere (a tombstone, or they are lost).
struct Place {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;    // of the record's head
  std::uint64_t bytes = 0;     // of the rows
  std::uint64_t checksum = 0;  // of the rows
  friend bool operator==(const Place&, const Place&) = default;
};

// All views point into the payload that was decoded, or into what is to be encoded.
struct Change {
  struct State {
    bool snapshot = false;
    std::string_view bytes;
  };
  struct Chunk {
    Place place;
    std::string_view header;
  };
  struct Opened {
    std::string_view boot;
    FsyncMode fsync = FsyncMode::kOn;
    bool reopen = false;
  };
  struct Tail {
    std::uint64_t segment = 0;
    std::uint64_t bytes = 0;
  };
  struct Groups {
    std::uint64_t first = 0;
    std::string_view bytes;
  };
  // In the order in which they are applied.
  std::optional<Opened> opened;
  bool lost = false;
  bool replace = false;
  std::optional<std::string_view> latest;
  std::vector<Chunk> chunks;
  std::optional<Tail> tail;
  std::optional<Tail> synced;
  std::vector<model::Tombstone> tombstones;
  std::optional<EdgeMeta> meta;
  std::optional<model::Sequence> trim;
  std::vector<State> states;
  std::vector<Groups> groups;
  bool closed = false;
};

std::string encode_change(const Change& change);
absl::StatusOr<Change> decode_change(std::string_view payload);

// A chunk but its rows. Views as in Change.
struct ChunkHeader {
  model::Sequence sequence = 0;
  model::Epoch epoch{};
  std::string_view node;
  base::Digest chain_before;
  base::Digest chain_after;
  bool lost = false;  // nothing is known of it but what the facts say: its header is gone as well
  std::string_view facts;
  std::string_view note;
};

std::string encode_header(const ChunkHeader& header);
std::string encode_header(const StoredChunk& chunk, const EdgeFormat& format);
absl::StatusOr<ChunkHeader> decode_header(std::string_view bytes);
// Rows are left empty.
absl::StatusOr<StoredChunk> decode_chunk(const ChunkHeader& header, const EdgeFormat& format);

std::string encode_facts(const ChunkFacts& facts, const EdgeFormat& format);
enum class FactsPart : std::uint8_t { kRowsOnly, kAll };  // kRowsOnly: without inputs and sealed
absl::StatusOr<ChunkFacts> decode_facts(std::string_view bytes, const EdgeFormat& format, FactsPart part);

// The tombstone of one chunk.
model::Tombstone tombstone_of(model::Sequence sequence, std::string reason, const ChunkFacts& facts);

}  // namespace orla::store
