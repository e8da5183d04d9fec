#include "store/edge_change.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"

namespace orla::store {

namespace {

enum Tag : std::uint8_t {
  kMeta = 1,
  kState,
  kChunk,
  kTombstone,
  kTrim,
  kReplace,
  kOpened,
  kClosed,
  kLatest,
  kTail,
  kLost,
  kGroups,
  kSynced,
  kRawTombstone
};

void put_digest(base::ByteWriter& to, const base::Digest& digest) {
  to.u64(digest.high);
  to.u64(digest.low);
}

base::Digest get_digest(base::ByteReader& from) {
  base::Digest digest;
  digest.high = from.u64();
  digest.low = from.u64();
  return digest;
}

void put_time(base::ByteWriter& to, model::Time time) { to.u64(static_cast<std::uint64_t>(model::to_ns(time))); }
model::Time get_time(base::ByteReader& from) { return model::from_ns(static_cast<std::int64_t>(from.u64())); }

using Samples = std::vector<std::pair<std::string, std::uint64_t>>;

void put_samples(base::ByteWriter& to, const Samples& samples) {
  to.varint(samples.size());
  for (const auto& [key, count] : samples) {
    to.text(key);
    to.varint(count);
  }
}

Samples get_samples(base::ByteReader& from) {
  Samples out;
  for (std::uint64_t n = from.varint(); n > 0 && !from.failed(); --n) {
    std::string key(from.text());
    const std::uint64_t count = from.varint();
    if (!from.failed()) out.emplace_back(std::move(key), count);
  }
  return out;
}

void put_tombstone(base::ByteWriter& to, const model::Tombstone& tombstone) {
  to.varint(tombstone.first);
  to.varint(tombstone.last);
  to.text(tombstone.reason);
  put_samples(to, tombstone.samples);
  put_time(to, tombstone.from);
  put_time(to, tombstone.to);
}

model::Tombstone get_tombstone(base::ByteReader& from) {
  model::Tombstone out;
  out.first = from.varint();
  out.last = from.varint();
  out.reason = std::string(from.text());
  out.samples = get_samples(from);
  out.from = get_time(from);
  out.to = get_time(from);
  return out;
}

void put_tail(base::ByteWriter& to, Tag tag, const Change::Tail& tail) {
  to.u8(tag);
  to.varint(tail.segment);
  to.varint(tail.bytes);
}

Change::Tail get_tail(base::ByteReader& from) {
  Change::Tail tail;
  tail.segment = from.varint();
  tail.bytes = from.varint();
  return tail;
}

// One section after its tag. False for an unknown tag.
bool get_section(Change& change, std::uint8_t tag, base::ByteReader& from) {
  switch (tag) {
    case kMeta: {
      EdgeMeta& meta = change.meta.emplace();
      meta.node = std::string(from.text());
      meta.epoch = model::Epoch(from.u64());
      meta.next_sequence = from.varint();
      meta.acknowledged = from.varint();
      meta.chain = get_digest(from);
      return true;
    }
    case kState: {
      const bool snapshot = from.u8() != 0;
      change.states.push_back({snapshot, from.text()});
      return true;
    }
    case kChunk: {
      Change::Chunk& chunk = change.chunks.emplace_back();
      chunk.place.segment = from.varint();
      chunk.place.offset = from.varint();
      chunk.place.bytes = from.varint();
      chunk.place.checksum = from.u64();
      chunk.header = from.text();
      return true;
    }
    case kTombstone:
      change.tombstones.push_back(get_tombstone(from));
      return true;
    case kRawTombstone:
      change.tombstones.push_back(get_tombstone(from));
      change.tombstones.back().raw_samples = from.varint();
      return true;
    case kTrim:
      change.trim = from.varint();
      return true;
    case kReplace:
      return change.replace = true;
    case kOpened: {
      Change::Opened opened;
      opened.boot = from.text();
      const std::uint8_t fsync = from.u8();
      if (fsync > static_cast<std::uint8_t>(FsyncMode::kDelayed)) return false;
      opened.fsync = static_cast<FsyncMode>(fsync);
      opened.reopen = from.u8() != 0;
      change.opened = std::move(opened);
      return true;
    }
    case kClosed:
      return change.closed = true;
    case kLatest:
      change.latest = from.text();
      return true;
    case kTail:
      change.tail = get_tail(from);
      return true;
    case kSynced:
      change.synced = get_tail(from);
      return true;
    case kLost:
      return change.lost = true;
    case kGroups: {
      const std::uint64_t first = from.varint();
      change.groups.push_back({first, from.text()});
      return true;
    }
    default:
      return false;
  }
}

absl::Status unreadable(std::string_view what) {
  return absl::DataLossError(fmt::format("{} that cannot be read although its checksum is right", what));
}

}  // namespace

std::string encode_change(const Change& change) {
  std::string out;
  std::size_t bytes = 256;
  for (const Change::State& state : change.states) bytes += state.bytes.size() + 16;
  for (const Change::Chunk& chunk : change.chunks) bytes += chunk.header.size() + 48;
  out.reserve(bytes);
  base::ByteWriter to(out);
  if (change.opened) {
    to.u8(kOpened);
    to.text(change.opened->boot);
    to.u8(static_cast<std::uint8_t>(change.opened->fsync));
    to.u8(change.opened->reopen ? 1 : 0);
  }
  if (change.lost) to.u8(kLost);
  if (change.replace) to.u8(kReplace);
  if (change.latest) {
    to.u8(kLatest);
    to.text(*change.latest);
  }
  for (const Change::Chunk& chunk : change.chunks) {
    to.u8(kChunk);
    to.varint(chunk.place.segment);
    to.varint(chunk.place.offset);
    to.varint(chunk.place.bytes);
    to.u64(chunk.place.checksum);
    to.text(chunk.header);
  }
  if (change.tail) put_tail(to, kTail, *change.tail);
  if (change.synced) put_tail(to, kSynced, *change.synced);
  for (const model::Tombstone& tombstone : change.tombstones) {
    to.u8(tombstone.raw_samples > 0 ? kRawTombstone : kTombstone);
    put_tombstone(to, tombstone);
    if (tombstone.raw_samples > 0) to.varint(tombstone.raw_samples);
  }
  if (change.meta) {
    to.u8(kMeta);
    to.text(change.meta->node);
    to.u64(static_cast<std::uint64_t>(change.meta->epoch));
    to.varint(change.meta->next_sequence);
    to.varint(change.meta->acknowledged);
    put_digest(to, change.meta->chain);
  }
  if (change.trim) {
    to.u8(kTrim);
    to.varint(*change.trim);
  }
  for (const Change::State& state : change.states) {
    to.u8(kState);
    to.u8(state.snapshot ? 1 : 0);
    to.text(state.bytes);
  }
  for (const Change::Groups& groups : change.groups) {
    to.u8(kGroups);
    to.varint(groups.first);
    to.text(groups.bytes);
  }
  if (change.closed) to.u8(kClosed);
  return out;
}

absl::StatusOr<Change> decode_change(std::string_view payload) {
  Change change;
  base::ByteReader from(payload);
  while (from.left() > 0) {
    if (!get_section(change, from.u8(), from)) return unreadable("a change");
  }
  if (!from.finished()) return unreadable("a change");
  return change;
}

std::string encode_header(const ChunkHeader& header) {
  std::string out;
  base::ByteWriter to(out);
  to.varint(header.sequence);
  to.u64(static_cast<std::uint64_t>(header.epoch));
  to.text(header.node);
  put_digest(to, header.chain_before);
  put_digest(to, header.chain_after);
  to.u8(header.lost ? 1 : 0);
  to.text(header.facts);
  to.text(header.note);
  return out;
}

std::string encode_header(const StoredChunk& chunk, const EdgeFormat& format) {
  const std::string facts = encode_facts(chunk.facts, format);
  const std::string note = format.encode_note(chunk.range.note);
  const model::Range& range = chunk.range;
  return encode_header(
      {range.first, range.epoch, range.node, range.chain_before, range.chain_after, false, facts, note});
}

absl::StatusOr<ChunkHeader> decode_header(std::string_view bytes) {
  base::ByteReader from(bytes);
  ChunkHeader out;
  out.sequence = from.varint();
  out.epoch = model::Epoch(from.u64());
  out.node = from.text();
  out.chain_before = get_digest(from);
  out.chain_after = get_digest(from);
  out.lost = from.u8() != 0;
  out.facts = from.text();
  out.note = from.text();
  if (!from.finished() || out.sequence == 0) return unreadable("the head of a chunk");
  return out;
}

absl::StatusOr<StoredChunk> decode_chunk(const ChunkHeader& header, const EdgeFormat& format) {
  StoredChunk out;
  out.range = {std::string(header.node),
               header.epoch,
               header.sequence,
               header.sequence,
               header.chain_before,
               header.chain_after,
               {}};
  absl::StatusOr<model::OriginNote> note = format.decode_note(header.note);
  if (!note.ok()) return note.status();
  out.range.note = *std::move(note);
  absl::StatusOr<ChunkFacts> facts = decode_facts(header.facts, format, FactsPart::kAll);
  if (!facts.ok()) return facts.status();
  out.facts = *std::move(facts);
  return out;
}

std::string encode_facts(const ChunkFacts& facts, const EdgeFormat& format) {
  std::string out;
  base::ByteWriter to(out);
  put_samples(to, facts.samples);
  put_time(to, facts.from);
  put_time(to, facts.to);
  to.varint(facts.rows);
  to.varint(facts.sealed.size());
  for (const std::uint64_t sealed : facts.sealed) to.varint(sealed);
  model::EdgeState inputs;
  inputs.inputs = facts.inputs;
  to.text(format.encode_state(inputs));
  if (facts.raw_sealed > 0) {
    to.varint(facts.raw_samples);
    to.varint(facts.raw_sealed);
  }
  return out;
}

absl::StatusOr<ChunkFacts> decode_facts(std::string_view bytes, const EdgeFormat& format, FactsPart part) {
  base::ByteReader from(bytes);
  ChunkFacts out;
  out.samples = get_samples(from);
  out.from = get_time(from);
  out.to = get_time(from);
  out.rows = from.varint();
  for (std::uint64_t n = from.varint(); n > 0 && !from.failed(); --n) out.sealed.push_back(from.varint());
  const std::string_view inputs = from.text();
  if (from.left() > 0) {
    out.raw_samples = from.varint();
    out.raw_sealed = from.varint();
  }
  if (!from.finished()) return unreadable("the facts of a chunk");
  if (part == FactsPart::kRowsOnly) {
    out.sealed.clear();
    out.raw_sealed = 0;
    return out;
  }
  absl::StatusOr<model::EdgeState> state = format.decode_state(inputs);
  if (!state.ok()) return state.status();
  out.inputs = std::move(state->inputs);
  return out;
}

model::Tombstone tombstone_of(model::Sequence sequence, std::string reason, const ChunkFacts& facts) {
  return {sequence, sequence, std::move(reason), facts.samples, facts.from, facts.to, facts.raw_samples};
}

}  // namespace orla::store
