#include "store/edge_image.h"

#include <algorithm>

#include "store/edge_files.h"

namespace orla::store {

bool GroupPieces::add(std::uint64_t first, std::string_view bytes, const EdgeFormat& format) {
  if (first > count_) return false;
  const absl::StatusOr<model::EdgeState> state = format.decode_state(bytes);
  if (!state.ok()) return false;
  if (first == 0) clear();
  while (!pieces_.empty() && pieces_.back().first >= first) pieces_.pop_back();  // told once more
  pieces_.push_back({first, std::string(bytes)});
  count_ = first + state->new_groups.size();
  return true;
}

void GroupPieces::clear() {
  pieces_.clear();
  count_ = 0;
}

absl::StatusOr<EdgeImage::Prepared> EdgeImage::prepare(const Change& change, const EdgeFormat& format) const {
  Prepared out{change, {}, {}, {}};
  for (const Change::Groups& piece : change.groups) {
    if (!out.groups) out.groups = groups;
    // A piece that does not fit is of a change that cannot be read: rows that need it are not either.
    out.groups->add(piece.first, piece.bytes, format);
  }
  if (change.latest) out.latest = std::string(*change.latest);
  std::map<model::Sequence, std::size_t> fresh;
  for (const Change::Chunk& chunk : change.chunks) {
    absl::StatusOr<ChunkHeader> header = decode_header(chunk.header);
    if (!header.ok()) return header.status();
    absl::StatusOr<model::OriginNote> note = format.decode_note(header->note);
    if (!note.ok()) return note.status();
    Kept kept{std::string(chunk.header), chunk.place, !note->tombstones.empty(), false, 0};
    kept.lost = chunk.place.segment == 0 && !kept.tombstone;
    fresh[header->sequence] = out.chunks.size();
    out.chunks.emplace_back(header->sequence, std::move(kept));
    if (!header->lost && !change.latest) out.latest = std::string(header->facts);
  }
  for (const model::Tombstone& tombstone : change.tombstones) {
    const auto bury = [&](model::Sequence sequence, const Kept& kept) -> absl::Status {
      absl::StatusOr<ChunkHeader> header = decode_header(kept.header);
      if (!header.ok()) return header.status();
      absl::StatusOr<model::OriginNote> note = format.decode_note(header->note);
      if (!note.ok()) return note.status();
      if (tombstone.first == tombstone.last) {
        note->tombstones = {tombstone};
      } else {
        absl::StatusOr<ChunkFacts> facts = decode_facts(header->facts, format, FactsPart::kRowsOnly);
        if (!facts.ok()) return facts.status();
        note->tombstones = {tombstone_of(sequence, tombstone.reason, *facts)};
      }
      const std::string encoded = format.encode_note(*note);
      header->note = encoded;
      Kept buried{encode_header(*header), {}, true, false, 0};
      if (const auto found = fresh.find(sequence); found != fresh.end()) {
        out.chunks[found->second].second = std::move(buried);
      } else {
        fresh[sequence] = out.chunks.size();
        out.chunks.emplace_back(sequence, std::move(buried));
      }
      return absl::OkStatus();
    };
    const auto in_range = [&](model::Sequence s) { return s >= tombstone.first && s <= tombstone.last; };
    for (std::size_t i = 0, n = out.chunks.size(); i < n; ++i) {
      if (!in_range(out.chunks[i].first)) continue;
      const Kept was = out.chunks[i].second;
      if (absl::Status status = bury(out.chunks[i].first, was); !status.ok()) return status;
    }
    if (change.replace) continue;
    for (auto at = kept.lower_bound(tombstone.first); at != kept.end() && in_range(at->first); ++at) {
      if (fresh.contains(at->first)) continue;
      if (absl::Status status = bury(at->first, at->second); !status.ok()) return status;
    }
  }
  return out;
}

void EdgeImage::apply(Prepared prepared, States keep_states) {
  const Change& change = prepared.change;
  closed = change.closed;
  if (change.opened) {
    boot = std::string(change.opened->boot);
    fsync = change.opened->fsync;
    reopen = change.opened->reopen;
  }
  if (change.lost) {
    lost = true;
    states.clear();
  }
  if (change.replace) {
    kept.clear();
    live.clear();
    reopen = false;
  }
  if (prepared.groups) groups = *std::move(prepared.groups);
  if (!prepared.latest.empty()) latest = std::move(prepared.latest);
  for (auto& [sequence, chunk] : prepared.chunks) {
    if (const auto found = kept.find(sequence); found != kept.end()) erase(found);
    if (chunk.place.segment != 0) {
      ++live[chunk.place.segment];
      const std::uint64_t end = chunk.place.offset + kHeadBytes + chunk.place.bytes;
      if (chunk.place.segment > tail.segment) tail = {chunk.place.segment, end};
      if (chunk.place.segment == tail.segment) tail.bytes = std::max(tail.bytes, end);
    }
    kept.emplace(sequence, std::move(chunk));
  }
  if (change.tail) tail = *change.tail;
  if (change.synced) synced = *change.synced;
  if (change.meta) {
    const model::Sequence acknowledged = change.meta->epoch == meta.epoch ? meta.acknowledged : 0;
    meta = *change.meta;
    trim(std::max(acknowledged, meta.acknowledged));
  }
  if (change.trim) trim(*change.trim);
  for (const Change::State& state : change.states) {
    if (state.snapshot) {
      states.clear();
      lost = false;
    }
    if (keep_states == States::kCollect) states.emplace_back(state.bytes);
  }
}

void EdgeImage::trim(model::Sequence through) {
  meta.acknowledged = std::max(meta.acknowledged, through);
  while (!kept.empty() && kept.begin()->first <= meta.acknowledged) erase(kept.begin());
}

void EdgeImage::lose(model::Sequence sequence) {
  const auto found = kept.find(sequence);
  if (found == kept.end() || found->second.tombstone) return;
  drop_live(found->second.place);
  found->second.place = {};
  found->second.lost = true;
}

void EdgeImage::erase(std::map<model::Sequence, Kept>::iterator chunk) {
  drop_live(chunk->second.place);
  kept.erase(chunk);
}

void EdgeImage::drop_live(const Place& place) {
  const auto found = live.find(place.segment);
  if (place.segment == 0 || found == live.end()) return;
  if (--found->second == 0) live.erase(found);
}

}  // namespace orla::store
