// SegmentEdgeStore's writing of chunks, and of all it knows when a new generation of the journal begins.
#include <fmt/format.h>

#include <utility>

#include "store/edge_files.h"
#include "store/edge_reading.h"
#include "store/segment_edge_store.h"

namespace orla::store {

// Everything known but the meta and the states, in parts.
std::vector<std::string> SegmentEdgeStore::known_parts(const EdgeImage& image) const {
  std::vector<std::string> parts;
  Change change;
  change.opened = {image.boot, options_.fsync, image.reopen};
  change.lost = image.lost;
  if (!image.latest.empty()) change.latest = image.latest;
  std::size_t bytes = 0;
  for (const auto& [sequence, kept] : image.kept) {
    change.chunks.push_back({kept.place, kept.header});
    bytes += kept.header.size() + sizeof(Place);
    if (bytes < kPartBytes) continue;
    parts.push_back(encode_change(change));
    change = {};
    bytes = 0;
  }
  change.latest = image.latest;  // of the newest chunk, acknowledged or not: the heads above have their own
  if (image.latest.empty()) change.latest.reset();
  for (const GroupPieces::Piece& piece : image.groups.pieces()) change.groups.push_back({piece.first, piece.bytes});
  change.tail = image.tail;
  if (options_.fsync != FsyncMode::kOn) change.synced = outbox_.synced_tail();
  parts.push_back(encode_change(change));
  return parts;
}

// A new generation with all of it, and a new segment with those rows that are not certainly durable.
absl::Status SegmentEdgeStore::rewrite(EdgeImage image, std::vector<std::string> states) {
  std::vector<model::Sequence> lost;
  absl::Status status = move_doubtful(image, lost);
  if (status.ok()) status = outbox_.sync();
  if (!status.ok()) return give_up(status);
  image.boot = disk_.boot();
  std::vector<std::string> parts = known_parts(image);
  Change change;
  if (image.meta.epoch != model::Epoch{}) change.meta = image.meta;
  for (std::size_t i = 0; i < states.size(); ++i) change.states.push_back({i == 0, states[i]});
  parts.push_back(encode_change(change));
  status = journal_.rotate(last_generation_ + 1, last_change_ + 1, parts);
  if (!status.ok()) return give_up(status);
  snapshot_bytes_ = journal_.first_copy_bytes();
  for (std::size_t i = 1; i < states.size(); ++i) snapshot_bytes_ -= states[i].size();
  ++last_generation_;
  ++last_change_;
  outbox_.keep();
  outbox_.settle();
  image.fsync = options_.fsync;
  image_ = std::move(image);
  image_.states.clear();
  for (const model::Sequence sequence : lost) {
    image_.lose(sequence);
    found_lost_.insert(sequence);
  }
  rewrite_due_ = announce_due_ = false;
  unsynced_since_.reset();
  changed();
  return absl::OkStatus();
}

absl::Status SegmentEdgeStore::move_doubtful(EdgeImage& image, std::vector<model::Sequence>& lost) {
  if (!outbox_.in_doubt()) return absl::OkStatus();
  outbox_.begin_segment();
  for (auto& [sequence, kept] : image.kept) {
    if (kept.place.segment == 0 || !outbox_.doubtful(kept.place)) continue;
    absl::StatusOr<std::string> rows = outbox_.read(sequence, kept.place);
    if (rows.status().code() == absl::StatusCode::kNotFound) {
      lost.push_back(sequence);
      continue;
    }
    if (!rows.ok()) return rows.status();
    absl::StatusOr<Place> place =
        outbox_.append({last_change_ + 1, journal_.durable(), sequence, kept.header, &*rows, image_.groups.count(), {}},
                       [this] { return segment_start({}); });
    if (!place.ok()) return place.status();
    kept.place = *place;
  }
  image.tail = outbox_.tail();
  image.live.clear();
  for (const auto& [sequence, kept] : image.kept) {
    if (kept.place.segment != 0) ++image.live[kept.place.segment];
  }
  return absl::OkStatus();
}

// A sync has failed: what was not durable then is written anew, elsewhere.
absl::Status SegmentEdgeStore::heal() {
  absl::StatusOr<EdgeReading> reading = read_edge_files(disk_, format_, {});
  if (!reading.ok()) return reading.status();
  if (reading->last_change != last_change_ || reading->image.lost != image_.lost) {
    return absl::DataLossError(fmt::format("{}: a sync has failed, and change {} cannot be read back: restart the node",
                                           where(), last_change_));
  }
  return rewrite(image_, std::move(reading->image.states));
}

// With all groups, those that are about to be committed included.
std::string SegmentEdgeStore::segment_start(const Change::Groups& new_groups) {
  Change change;
  change.meta = image_.meta;
  if (!image_.latest.empty()) change.latest = image_.latest;
  if (new_groups.first > 0 || new_groups.bytes.empty()) {
    for (const GroupPieces::Piece& piece : image_.groups.pieces()) change.groups.push_back({piece.first, piece.bytes});
  }
  if (!new_groups.bytes.empty()) change.groups.push_back(new_groups);
  outbox_groups_ = groups_with(new_groups);
  return encode_change(change);
}

std::uint64_t SegmentEdgeStore::groups_with(const Change::Groups& new_groups) const {
  if (new_groups.bytes.empty()) return image_.groups.count();
  GroupPieces all;
  return all.add(0, new_groups.bytes, format_) ? new_groups.first + all.count() : image_.groups.count();
}

absl::Status SegmentEdgeStore::write_chunks(std::uint64_t number, const std::vector<StoredChunk>& chunks,
                                            const Change::Groups& new_groups, std::vector<std::string>& headers,
                                            std::vector<Change::Chunk>& out) {
  headers.reserve(chunks.size());
  const std::uint64_t groups = chunks.empty() ? 0 : groups_with(new_groups);
  for (const StoredChunk& chunk : chunks) {
    const model::Range& range = chunk.range;
    if (range.first != range.last || range.first == 0) {
      return absl::InvalidArgumentError(
          fmt::format("{}: a chunk to keep has one number; found {} to {}", where(), range.first, range.last));
    }
    headers.push_back(encode_header(chunk, format_));
    const bool tombstone = !range.note.tombstones.empty();
    EdgeOutbox::Entry entry{
        number, journal_.durable(), range.first, headers.back(), tombstone ? nullptr : &chunk.rows, groups, {}};
    if (outbox_groups_ < groups) {
      for (const GroupPieces::Piece& piece : image_.groups.pieces()) {
        if (piece.first >= outbox_groups_ || outbox_groups_ == 0) entry.pieces.push_back({piece.first, piece.bytes});
      }
      if (!new_groups.bytes.empty()) entry.pieces.push_back(new_groups);
    }
    absl::StatusOr<Place> place = outbox_.append(entry, [&] { return segment_start(new_groups); });
    if (place.ok()) outbox_groups_ = groups;
    if (!place.ok()) return place.status();
    out.push_back({*place, headers.back()});
  }
  return absl::OkStatus();
}

}  // namespace orla::store
