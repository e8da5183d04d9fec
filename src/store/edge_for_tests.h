// Formats, a clock and chunks for tests of the edge's store.
#pragma once

#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "store/edge_change.h"
#include "store/edge_store.h"

namespace orla::store {

// Stands for codec's: publications by metric alone, tombstones whole, inputs by key, offset and what was received.
inline EdgeFormat format_for_tests() {
  EdgeFormat out;
  out.encode_note = [](const model::OriginNote& note) {
    std::string bytes;
    base::ByteWriter to(bytes);
    to.varint(note.publications.size());
    for (const model::Publication& p : note.publications) to.text(p.metric);
    to.varint(note.tombstones.size());
    for (const model::Tombstone& t : note.tombstones) {
      to.varint(t.first);
      to.varint(t.last);
      to.text(t.reason);
      to.varint(t.samples.size());
      for (const auto& [key, n] : t.samples) {
        to.text(key);
        to.varint(n);
      }
      to.u64(static_cast<std::uint64_t>(model::to_ns(t.from)));
      to.u64(static_cast<std::uint64_t>(model::to_ns(t.to)));
    }
    return bytes;
  };
  out.decode_note = [](std::string_view bytes) -> absl::StatusOr<model::OriginNote> {
    base::ByteReader from(bytes);
    model::OriginNote note;
    for (std::uint64_t n = from.varint(); n > 0 && !from.failed(); --n) {
      note.publications.push_back({std::string(from.text()), model::kMinTime});
    }
    for (std::uint64_t n = from.varint(); n > 0 && !from.failed(); --n) {
      model::Tombstone& t = note.tombstones.emplace_back();
      t.first = from.varint();
      t.last = from.varint();
      t.reason = std::string(from.text());
      for (std::uint64_t m = from.varint(); m > 0 && !from.failed(); --m) {
        std::string key(from.text());
        const std::uint64_t count = from.varint();
        t.samples.emplace_back(std::move(key), count);
      }
      t.from = model::from_ns(static_cast<std::int64_t>(from.u64()));
      t.to = model::from_ns(static_cast<std::int64_t>(from.u64()));
    }
    if (!from.finished()) return absl::InvalidArgumentError("no note");
    return note;
  };
  out.encode_state = [](const model::EdgeState& state) {
    std::string bytes;
    base::ByteWriter to(bytes);
    to.varint(state.inputs.size());
    for (const model::InputState& input : state.inputs) {
      to.text(input.key);
      to.varint(input.position.offset);
      to.varint(input.ledger.received);
    }
    to.varint(state.new_groups.size());
    for (const model::GroupDef& group : state.new_groups) to.text(group.stream);
    return bytes;
  };
  out.decode_state = [](std::string_view bytes) -> absl::StatusOr<model::EdgeState> {
    base::ByteReader from(bytes);
    model::EdgeState state;
    for (std::uint64_t n = from.varint(); n > 0 && !from.failed(); --n) {
      model::InputState& input = state.inputs.emplace_back();
      input.key = std::string(from.text());
      input.position.offset = from.varint();
      input.ledger.received = from.varint();
    }
    for (std::uint64_t n = from.varint(); n > 0 && !from.failed(); --n) {
      state.new_groups.emplace_back().stream = std::string(from.text());
    }
    if (!from.finished()) return absl::InvalidArgumentError("no state");
    return state;
  };
  return out;
}

class ClockForTests final : public base::Clock {
 public:
  model::Time wall_now() const override { return model::from_ns(now.time_since_epoch().count()); }
  base::SteadyTime steady_now() const override { return now; }
  base::SteadyTime now{std::chrono::seconds(1)};
};

inline constexpr model::Epoch kEpochForTests{7};

// Chunk `sequence` with 10 accepted samples of input "in", of 10 * sequence in all; its rows are about so long.
inline StoredChunk chunk_for_tests(model::Sequence sequence, std::size_t bytes, model::Epoch epoch = kEpochForTests,
                                   std::uint64_t sealed_before = 0) {
  StoredChunk out;
  out.range = {"edge-1", epoch, sequence, sequence, {sequence, 1}, {sequence + 1, 1}, {}};
  out.range.note.publications = {{"load", model::kMinTime}};
  out.rows = std::to_string(sequence) + ":";
  while (out.rows.size() < bytes) out.rows += static_cast<char>('a' + (out.rows.size() * 7 + sequence) % 26);
  out.facts.samples = {{"in", 10}};
  out.facts.from = model::from_ns(static_cast<std::int64_t>(sequence) * 1000);
  out.facts.to = model::from_ns(static_cast<std::int64_t>(sequence) * 1000 + 1000);
  out.facts.rows = 3;
  out.facts.inputs.resize(1);
  out.facts.inputs[0].key = "in";
  out.facts.inputs[0].position.offset = 100 * sequence;
  out.facts.inputs[0].ledger.received = 10 * sequence + 5;
  out.facts.sealed = {sealed_before + 10 * sequence};
  return out;
}

inline EdgeMeta meta_for_tests(model::Sequence next, model::Sequence acknowledged = 0,
                               model::Epoch epoch = kEpochForTests) {
  return {"edge-1", epoch, next, acknowledged, {next, 1}};
}

inline bool operator==(const StoredChunk& a, const StoredChunk& b) {
  return a.range == b.range && a.rows == b.rows && a.facts == b.facts;
}

// What is sent in the place of a chunk whose rows are damaged.
inline StoredChunk tombstone_for_tests(StoredChunk chunk, const std::string& reason) {
  chunk.rows.clear();
  chunk.range.note.tombstones = {tombstone_of(chunk.range.first, reason, chunk.facts)};
  return chunk;
}

}  // namespace orla::store
