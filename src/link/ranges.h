// What can be said about ranges and cursors without looking at rows: are they well formed, do they continue each other,
// are they covered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/hash.h"
#include "link/messages.h"
#include "model/chunk.h"

namespace orla::link {

inline constexpr std::size_t kMaxRangesPerFrame = 65'536;                   // origins
inline constexpr model::Sequence kMaxSequence = model::Sequence{1} << 62U;  // chunks of one epoch

// Of one range; a relay does not merge beyond it.
inline constexpr std::size_t kMaxTombstonesPerRange = 4096;
inline constexpr std::size_t kMaxTombstoneInputs = 1024;  // input keys of one tombstone
// Of one cursor (model::Cursor::tombstones).
inline constexpr std::size_t kMaxTombstoneRanges = 64;

// InvalidArgument unless there is at least one range, sorted by node, each node once, and in each: a node, an epoch,
// 1 <= first <= last <= kMaxSequence, and its tombstones have a reason, lie within it, sorted, not overlapping, each
// input once. At most kMaxRangesPerFrame.
absl::Status check_ranges(const std::vector<model::Range>& ranges);

// `after` starts where `before` ends: same origin, the next number, the same chain.
bool continues(const model::Range& before, const model::Range& after);
// Extends `range` by `next`, which continues it. Of the notes: the newest publications and ledgers, all states since
// the newest snapshot, all tombstones: those that follow each other for one reason become one.
void append(model::Range& range, model::Range next);

// Adds numbers beyond those that are there, and keeps kMaxTombstoneRanges.
void add_numbers(std::vector<model::SequenceRange>& ranges, const model::SequenceRange& more);
bool contains(const std::vector<model::SequenceRange>& ranges, model::Sequence number);

// Everything of `range` has been folded in: same origin and last <= cursor.last.
bool covers(const model::Cursor& cursor, const model::Range& range);

// The chain after a chunk (model::Range::chain_after). Rows are the encoded ones.
base::Digest chunk_chain(const base::Digest& before, model::Sequence sequence, std::string_view rows);

// How many chunks a range holds.
inline std::uint64_t chunks(const model::Range& range) { return range.last - range.first + 1; }

// Approximate bytes on the wire.
std::size_t wire_bytes(const model::Range& range);

}  // namespace orla::link
