#include "store/edge_outbox.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace orla::store {

void EdgeOutbox::adopt(const std::map<std::uint64_t, std::uint64_t>& segments, Change::Tail tail, Change::Tail synced) {
  segments_.clear();
  file_.reset();
  last_ = tail.segment;
  full_ = true;
  for (const auto& [number, bytes] : segments) {
    Segment& segment = segments_[number];
    segment.kept = bytes;
    if (number == tail.segment && bytes >= tail.bytes) {
      segment.kept = tail.bytes;
      full_ = false;
    }
    segment.written = segment.synced = segment.kept;
    const std::uint64_t sound = number < synced.segment ? UINT64_MAX : number == synced.segment ? synced.bytes : 0;
    if (sound < segment.kept && number <= tail.segment) segment.sound = sound;
  }
}

absl::Status EdgeOutbox::begin(const std::function<std::string()>& start) {
  const std::uint64_t number = last_ + 1;
  file_.reset();
  names_synced_ = false;
  absl::StatusOr<std::unique_ptr<base::AppendFile>> file = disk_.append(segment_name(number), 0);
  if (!file.ok()) return file.status();
  last_ = number;
  full_ = false;
  Segment& segment = segments_[number] = {};  // there may be one that never was in force
  segment.fresh = true;
  std::string record;
  append_record(record, {RecordKind::kSegment, true, 0, number, 0, 0, 0}, start());
  if (absl::Status status = (*file)->append(record); !status.ok()) return status;
  segment.written = record.size();
  file_ = *std::move(file);
  return absl::OkStatus();
}

absl::StatusOr<Place> EdgeOutbox::append(const Entry& entry, const std::function<std::string()>& start) {
  if (full_ || !segments_.contains(last_) || segments_[last_].written >= segment_bytes_) {
    if (absl::Status status = begin(start); !status.ok()) return status;
  }
  Segment& segment = segments_[last_];
  if (file_ == nullptr) {
    absl::StatusOr<std::unique_ptr<base::AppendFile>> file = disk_.append(segment_name(last_), segment.written);
    if (file.status().code() == absl::StatusCode::kDataLoss) {  // something has cut it: go on elsewhere
      if (absl::Status status = begin(start); !status.ok()) return status;
      return append(entry, start);
    }
    if (!file.ok()) return file.status();
    file_ = *std::move(file);
  }
  std::string head;
  base::ByteWriter to(head);
  to.varint(entry.change);
  to.varint(entry.durable);
  to.text(entry.header);
  to.varint(entry.groups);
  for (const Change::Groups& piece : entry.pieces) {
    to.varint(piece.first);
    to.text(piece.bytes);
  }
  const std::string* rows = entry.rows;
  const model::Sequence sequence = entry.sequence;
  std::string records;
  records.reserve(2 * kHeadBytes + head.size() + (rows == nullptr ? 0 : rows->size()));
  append_record(records, {RecordKind::kChunk, true, 0, last_, sequence, 0, 0}, head);
  Place place;
  if (rows != nullptr) {
    place = {last_, segment.written + records.size(), rows->size(), payload_checksum(*rows, sequence)};
    append_record(records, {RecordKind::kRows, true, 0, last_, sequence, 0, 0}, *rows);
  }
  if (absl::Status status = file_->append(records); !status.ok()) return status;
  segment.written += records.size();
  return place;
}

absl::Status EdgeOutbox::sync() {
  for (auto& [number, segment] : segments_) {
    if (segment.synced >= segment.written) continue;
    std::unique_ptr<base::AppendFile> other;
    base::AppendFile* file = number == last_ ? file_.get() : nullptr;
    if (file == nullptr) {
      absl::StatusOr<std::unique_ptr<base::AppendFile>> opened = disk_.append(segment_name(number), segment.written);
      if (!opened.ok()) return opened.status();
      other = *std::move(opened);
      file = other.get();
    }
    if (absl::Status status = file->sync(); !status.ok()) {
      segment.sound = std::min(segment.sound, segment.synced);
      return status;
    }
    segment.synced = segment.written;
  }
  if (names_synced_) return absl::OkStatus();
  if (absl::Status status = disk_.sync_names(); !status.ok()) return status;
  names_synced_ = true;
  return absl::OkStatus();
}

void EdgeOutbox::keep() {
  for (auto& [number, segment] : segments_) {
    segment.kept = segment.written;
    segment.fresh = false;
  }
}

// What cannot be cut or removed now is cut when the file is next opened.
void EdgeOutbox::give_up() {
  for (auto at = segments_.begin(); at != segments_.end();) {
    auto& [number, segment] = *at;
    if (segment.fresh) {
      file_.reset();
      disk_.remove(segment_name(number)).IgnoreError();
      last_ = std::min(last_, number - 1);
      at = segments_.erase(at);
      continue;
    }
    if (segment.written > segment.kept || (number == last_ && file_ != nullptr)) {
      if (number == last_) file_.reset();
      disk_.append(segment_name(number), segment.kept).IgnoreError();
      segment.written = segment.kept;
      segment.synced = std::min(segment.synced, segment.kept);
    }
    if (segment.sound >= segment.kept) segment.sound = UINT64_MAX;  // all that was in doubt is cut off
    ++at;
  }
}

absl::StatusOr<std::string> EdgeOutbox::read(model::Sequence sequence, const Place& place) const {
  const std::string name = segment_name(place.segment);
  const auto lost = [&](std::string_view why) {
    return absl::NotFoundError(
        fmt::format("{}/{} at {}: the rows of chunk {} {}", disk_.where(), name, place.offset, sequence, why));
  };
  absl::StatusOr<std::string> rows = disk_.read(name, place.offset + kHeadBytes, static_cast<std::size_t>(place.bytes));
  if (!rows.ok()) {
    return rows.status().code() == absl::StatusCode::kNotFound ? lost("are gone: there is no such file")
                                                               : rows.status();
  }
  if (rows->size() != place.bytes) {
    return lost(fmt::format("are cut off: {} of {} bytes are there", rows->size(), place.bytes));
  }
  if (payload_checksum(*rows, sequence) != place.checksum) return lost("are damaged: their checksum differs");
  return rows;
}

bool EdgeOutbox::has_dead(const std::map<std::uint64_t, std::uint64_t>& live) const {
  for (const auto& [number, segment] : segments_) {
    if (number != last_ && !live.contains(number)) return true;
  }
  return false;
}

void EdgeOutbox::remove_dead(const std::map<std::uint64_t, std::uint64_t>& live) {
  for (auto at = segments_.begin(); at != segments_.end();) {
    if (at->first == last_ || live.contains(at->first) || !disk_.remove(segment_name(at->first)).ok()) {
      ++at;
    } else {
      at = segments_.erase(at);
    }
  }
}

bool EdgeOutbox::in_doubt() const {
  return std::any_of(segments_.begin(), segments_.end(), [](const auto& s) { return s.second.sound != UINT64_MAX; });
}

bool EdgeOutbox::doubtful(const Place& place) const {
  const auto found = segments_.find(place.segment);
  return found != segments_.end() && place.offset + kHeadBytes + place.bytes > found->second.sound;
}

void EdgeOutbox::settle() {
  for (auto& [number, segment] : segments_) segment.sound = UINT64_MAX;
}

bool EdgeOutbox::synced() const {
  for (const auto& [number, segment] : segments_) {
    if (segment.synced < segment.written) return false;
  }
  return names_synced_;
}

std::uint64_t EdgeOutbox::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, segment] : segments_) bytes += segment.written;
  return bytes;
}

Change::Tail EdgeOutbox::tail() const {
  const auto found = segments_.find(last_);
  return {last_, found == segments_.end() ? 0 : found->second.written};
}

Change::Tail EdgeOutbox::synced_tail() const {
  if (!names_synced_) return {};
  for (const auto& [number, segment] : segments_) {
    const std::uint64_t synced = std::min(segment.synced, segment.sound);
    if (synced < segment.written) return {number, synced};
  }
  return tail();
}

}  // namespace orla::store
