// What travels from edges to the cloud: chunks, and the frames they are merged into (docs/protocol.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "model/ledger.h"
#include "model/partial.h"
#include "model/time.h"

namespace orla::model {

using NodeName = std::string;
// Names one life of an origin's numbering. Random, never 0.
enum class Epoch : std::uint64_t {};
// Number of a chunk within an epoch: 1, 2, 3, ... 0 = before the first.
using Sequence = std::uint64_t;

// Numbers first..last.
struct SequenceRange {
  Sequence first = 0;
  Sequence last = 0;
  friend bool operator==(const SequenceRange&, const SequenceRange&) = default;
};

// An edge's publication time for one metric: every slice of it ending at or before `time` is published there.
struct Publication {
  std::string metric;
  Time time = kMinTime;
  friend bool operator==(const Publication&, const Publication&) = default;
};

// A piece of a memory-only edge's acceptance state (positions, watermarks, held samples), opaque above the edge.
// Applied in order; a `snapshot` replaces all before it.
struct StateEntry {
  bool snapshot = false;
  std::string bytes;
  friend bool operator==(const StateEntry&, const StateEntry&) = default;
};

// Why rows are lost.
inline constexpr char kDamaged[] = "damaged";         // on the edge's disk
inline constexpr char kDropOldest[] = "drop_oldest";  // the outbox was full, and its setting is to drop the oldest

// Chunks first..last of an origin whose rows are lost for good, and what is known of them. It travels in the place of
// the chunks, under their numbers and with their chain.
struct Tombstone {
  Sequence first = 0;
  Sequence last = 0;
  std::string reason;                                          // kDamaged, kDropOldest: a metric label
  std::vector<std::pair<std::string, std::uint64_t>> samples;  // by input key, sorted; accepted samples that are lost
  Time from = kMaxTime;                                        // the slices of the rows lie in [from, to);
  Time to = kMinTime;                                          // from > to: unknown, or there were none
  std::uint64_t raw_samples = 0;                               // lost ones of raw streams, whose rows may be elsewhere
  friend bool operator==(const Tombstone&, const Tombstone&) = default;
};

// What an origin says beside its partials. In a range of several chunks: the newest publications and ledgers, all
// states and tombstones.
struct OriginNote {
  std::vector<Publication> publications;                // sorted by metric; times never go back within an epoch
  std::vector<std::pair<std::string, Ledger>> ledgers;  // by input key; totals, not increments
  std::vector<StateEntry> states;                       // memory-only edges; else empty
  std::vector<Tombstone> tombstones;                    // sorted by `first`, not overlapping, within the range
  friend bool operator==(const OriginNote&, const OriginNote&) = default;
};

// Chunks first..last of one origin. Chain digests: before `first` and after `last` (base::chain over the chunks' bytes,
// from a zero digest before chunk 1 of an epoch).
struct Range {
  NodeName node;
  Epoch epoch{};
  Sequence first = 0;
  Sequence last = 0;
  base::Digest chain_before;
  base::Digest chain_after;
  OriginNote note;
  friend bool operator==(const Range&, const Range&) = default;
};

// Samples of raw streams, as they travel.
struct SampleBlock {
  struct Run {
    GroupId group{};
    std::uint32_t count = 0;  // > 0
    friend bool operator==(const Run&, const Run&) = default;
  };
  std::vector<Run> runs;  // of the payload's runs, in order; a group may have several
  std::string payload;    // `packed`; its runs have the series numbers 0, 1, 2, ...
  friend bool operator==(const SampleBlock&, const SampleBlock&) = default;
};

// What a chunk or frame holds, beside what its ranges say: exactly the samples an edge accepted for these cells since
// the chunk before, and of raw streams these samples themselves, in order of acceptance within each group.
struct Content {
  PartialRows rows;
  std::vector<SampleBlock> samples;
  friend bool operator==(const Content&, const Content&) = default;
};
inline std::uint64_t sample_count(const std::vector<SampleBlock>& blocks) {
  std::uint64_t n = 0;
  for (const SampleBlock& block : blocks) {
    for (const SampleBlock::Run& run : block.runs) n += run.count;
  }
  return n;
}

// How far the cloud has folded one origin in.
struct Cursor {
  NodeName node;
  Epoch epoch{};  // the current one
  Sequence last = 0;
  base::Digest chain;  // after `last`
  // Which of the epoch's numbers were folded in as tombstones. Sorted, not overlapping. At link::kMaxTombstoneRanges
  // the oldest two become one, with all between them: to be asked only of numbers that are tombstones at the edge.
  std::vector<SequenceRange> tombstones = {};
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

}  // namespace orla::model
