#include "store/segment_edge_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/folder_disk.h"
#include "store/edge_files.h"
#include "store/edge_reading.h"

namespace orla::store {

namespace {

constexpr char kLockName[] = "lock";
constexpr char kOldFileName[] = "edge.sqlite";
// A medium that says so often in a row that it cannot give some bytes has lost them.
constexpr int kReadAttempts = 8;

}  // namespace

SegmentEdgeStore::SegmentEdgeStore(base::Disk& disk, const base::Clock& clock, EdgeFormat format,
                                   EdgeStoreOptions options)
    : disk_(disk),
      clock_(clock),
      format_(std::move(format)),
      options_(options),
      journal_(disk),
      outbox_(disk, options.segment_bytes) {}

absl::StatusOr<std::unique_ptr<SegmentEdgeStore>> SegmentEdgeStore::open(const std::string& directory,
                                                                         const base::Clock& clock, EdgeFormat format,
                                                                         EdgeStoreOptions options) {
  absl::StatusOr<base::FileLock> lock = base::FileLock::acquire(directory + "/" + kLockName);
  if (!lock.ok()) return lock.status();
  if (base::exists(directory + "/" + kOldFileName)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}/{} is the state of an edge of an earlier version, which this one cannot read: let the version that wrote "
        "it run until its outbox is empty and its inputs have ended, then remove the file",
        directory, kOldFileName));
  }
  auto disk = std::make_unique<base::FolderDisk>(directory);
  auto store = std::make_unique<SegmentEdgeStore>(*disk, clock, std::move(format), options);
  store->lock_ = std::make_unique<base::FileLock>(*std::move(lock));
  store->own_disk_ = std::move(disk);
  return store;
}

absl::StatusOr<EdgeRecovery> SegmentEdgeStore::recover(const Progress& progress) {
  absl::StatusOr<EdgeReading> reading =
      read_edge_files(disk_, format_, {EdgeReadingOptions::Rows::kWhenSent, progress});
  if (!reading.ok()) return reading.status();
  absl::StatusOr<EdgeRecovery> out = recovery_of(*reading, format_);
  if (!out.ok()) return out.status();

  image_ = std::move(reading->image);
  last_change_ = reading->last_change;
  last_generation_ = reading->last_generation;
  found_lost_.clear();
  outbox_groups_ = 0;
  trim_owed_ = false;
  // A closed journal is written behind an outbox that was synced.
  const bool all_synced = image_.fsync == FsyncMode::kOn || !reading->unsynced || image_.closed;
  outbox_.adopt(reading->segments, image_.tail, all_synced ? image_.tail : image_.synced);
  reserve_ = std::any_of(reading->files.begin(), reading->files.end(), [this](const EdgeFileReport& file) {
    return file.name == kReserveName && file.bytes >= options_.reserve_bytes;
  });
  journal_.adopt(reading->generation, reading->end, reading->copied, reading->journals);
  // After the process that wrote it died, a sync may have failed that nobody knows of any more: what may be in the
  // machine's cache only is written anew before anybody relies on it.
  rewrite_due_ = reading->rewrite || reading->unsynced;
  appendable_ = !reading->rewrite;
  unsynced_from_ = reading->unsynced_from;
  announce_due_ = image_.boot != disk_.boot() || image_.fsync != options_.fsync || image_.reopen;
  recovered_ = true;
  snapshot_bytes_ = reading->snapshot_bytes;
  // What is told here is acted upon: it must not vanish at the next power loss.
  absl::Status status;
  if (rewrite_due_) {
    status = rewrite(image_, image_.states);
    if (status.code() == absl::StatusCode::kResourceExhausted) {  // once there is room
      status = absl::OkStatus();
      out->unsettled = true;
    }
  } else if (reading->generation != 0) {
    status = outbox_.sync();
    if (status.ok()) status = journal_.sync();
    if (status.ok()) journal_.catch_up();
    if (status.ok()) status = disk_.sync_names();
  }
  if (!status.ok()) {
    recovered_ = false;
    return status;
  }
  if (!rewrite_due_) {
    image_.states.clear();
    outbox_.remove_dead(image_.live);
  }
  return out;
}

Change::Opened SegmentEdgeStore::opened() const { return {image_.boot, options_.fsync, image_.reopen}; }

absl::Status SegmentEdgeStore::announce() {
  image_.boot = disk_.boot();
  Change change;
  change.opened = opened();
  if (options_.fsync != FsyncMode::kOn) change.synced = outbox_.synced_tail();
  absl::Status status = journal_.append(last_change_ + 1, {encode_change(change)}, durable());
  if (!status.ok()) return give_up(status);
  ++last_change_;
  image_.fsync = options_.fsync;
  image_.closed = announce_due_ = false;
  return absl::OkStatus();
}

absl::Status SegmentEdgeStore::settle() {
  if (journal_.settled()) return absl::OkStatus();
  const bool torn = journal_.torn();
  absl::Status status = journal_.settle();
  if (torn && !journal_.torn()) outbox_.give_up();
  return status;
}

absl::Status SegmentEdgeStore::prepare_write() {
  if (!recovered_) return absl::FailedPreconditionError(fmt::format("{}: recover() comes first", where()));
  if (absl::Status status = settle(); !status.ok()) return status;
  if (absl::Status status = ensure_reserve(); !status.ok()) return status;
  if (journal_.generation() == 0 || rewrite_due_) {
    if (absl::Status status = rewrite(image_, image_.states); !status.ok()) return status;
  }
  if (in_doubt()) {
    if (absl::Status status = heal(); !status.ok()) return status;
  }
  if (announce_due_) return announce();
  return absl::OkStatus();
}

EdgeJournal::Durable SegmentEdgeStore::durable() const {
  return options_.fsync == FsyncMode::kOn ? EdgeJournal::Durable::kNow : EdgeJournal::Durable::kLater;
}

absl::Status SegmentEdgeStore::give_up(absl::Status why) {
  outbox_groups_ = 0;  // told once more
  // As long as the change may be in the journal, its rows have to stay.
  if (!journal_.torn()) outbox_.give_up();
  return why;
}

absl::Status SegmentEdgeStore::commit(const EdgeCommit& commit) {
  if (absl::Status status = prepare_write(); !status.ok()) return status;
  const std::uint64_t number = last_change_ + 1;
  Change change;
  std::vector<std::string> headers;
  // A snapshot names all groups, under the numbers they have.
  const Change::Groups groups{commit.entry.snapshot ? 0 : image_.groups.count(), commit.groups};
  absl::Status status = write_chunks(number, commit.chunks, groups, headers, change.chunks);
  const bool now = options_.fsync == FsyncMode::kOn || commit.entry.snapshot;
  if (status.ok() && now && (!commit.chunks.empty() || commit.entry.snapshot)) status = outbox_.sync();
  if (!status.ok()) return give_up(status);
  if (!commit.chunks.empty()) change.tail = outbox_.tail();
  if (options_.fsync != FsyncMode::kOn) change.synced = outbox_.synced_tail();
  change.tombstones = commit.tombstones;
  change.meta = commit.meta;
  if (commit.meta.epoch == image_.meta.epoch) {
    change.meta->acknowledged = std::max(commit.meta.acknowledged, image_.meta.acknowledged);
  }
  change.states.push_back({commit.entry.snapshot, commit.entry.state});
  if (!commit.groups.empty()) change.groups.push_back(groups);
  absl::StatusOr<EdgeImage::Prepared> prepared = image_.prepare(change, format_);
  if (!prepared.ok()) return give_up(prepared.status());
  if (commit.entry.snapshot) {
    std::vector<std::string> parts = known_parts(image_);
    parts.push_back(encode_change(change));
    status = journal_.rotate(last_generation_ + 1, number, parts);
    if (status.ok()) {
      ++last_generation_;
      snapshot_bytes_ = journal_.first_copy_bytes();
    }
  } else {
    status = journal_.append(number, {encode_change(change)}, durable());
  }
  if (!status.ok()) return give_up(status);
  last_change_ = number;
  outbox_.keep();
  trim_owed_ = false;  // the meta says it
  image_.apply(*std::move(prepared), EdgeImage::States::kForget);
  changed();
  drop_dead().IgnoreError();  // tried again at the next trim
  return absl::OkStatus();
}

absl::Status SegmentEdgeStore::trim(model::Sequence through) {
  if (!recovered_) return absl::FailedPreconditionError(fmt::format("{}: recover() comes first", where()));
  through = std::max(std::min(through, image_.meta.next_sequence - 1), image_.meta.acknowledged);
  if (through == image_.meta.acknowledged && !trim_owed_) return absl::OkStatus();
  trim_owed_ = true;
  Change change;
  change.trim = through;
  absl::StatusOr<EdgeImage::Prepared> prepared = image_.prepare(change, format_);
  if (!prepared.ok()) return prepared.status();
  image_.apply(*std::move(prepared), EdgeImage::States::kForget);
  found_lost_.erase(found_lost_.begin(), found_lost_.upper_bound(through));
  if (journal_.generation() == 0 || rewrite_due_ || in_doubt() || announce_due_) {
    absl::Status status = prepare_write();
    // There is no room for a new generation as long as nothing is trimmed: that has to do with what there is. Should
    // the power fail now, what is trimmed may look lost, until the cloud says that it has it.
    const bool full = status.code() == absl::StatusCode::kResourceExhausted;
    if (!status.ok() && !(full && journal_.generation() != 0 && (!rewrite_due_ || appendable_))) return status;
    if (announce_due_) {
      image_.boot = disk_.boot();
      change.opened = opened();
      if (options_.fsync != FsyncMode::kOn) change.synced = outbox_.synced_tail();
    }
  }
  const std::vector<std::string> parts = {encode_change(change)};
  const auto write = [&] {
    const absl::Status settled = settle();
    return settled.ok() ? journal_.append(last_change_ + 1, parts, EdgeJournal::Durable::kLater) : settled;
  };
  absl::Status status = write();
  if (!status.ok() && outbox_.has_dead(image_.live)) {
    release_reserve();
    status = write();
  }
  if (!status.ok()) return status;
  ++last_change_;
  trim_owed_ = false;
  if (change.opened) {
    image_.fsync = options_.fsync;
    announce_due_ = false;
  }
  changed();
  return drop_dead();
}

absl::Status SegmentEdgeStore::renumber(const EdgeMeta& meta, const std::vector<StoredChunk>& outbox) {
  if (absl::Status status = prepare_write(); !status.ok()) return status;
  const std::uint64_t number = last_change_ + 1;
  outbox_.begin_segment();
  std::vector<std::string> headers;
  std::vector<Change::Chunk> chunks;
  absl::Status status = write_chunks(number, outbox, {}, headers, chunks);
  if (status.ok() && options_.fsync == FsyncMode::kOn) status = outbox_.sync();
  if (!status.ok()) return give_up(status);
  std::vector<Change> changes(1);
  changes[0].replace = true;
  std::size_t bytes = 0;
  for (const Change::Chunk& chunk : chunks) {
    if (bytes >= kPartBytes) {
      changes.emplace_back();
      bytes = 0;
    }
    changes.back().chunks.push_back(chunk);
    bytes += chunk.header.size() + sizeof(Place);
  }
  if (!chunks.empty()) changes.back().tail = outbox_.tail();
  if (options_.fsync != FsyncMode::kOn) changes.back().synced = outbox_.synced_tail();
  changes.back().meta = meta;
  std::vector<std::string> parts;
  std::vector<EdgeImage::Prepared> prepared;
  for (const Change& change : changes) {
    absl::StatusOr<EdgeImage::Prepared> one = image_.prepare(change, format_);
    if (!one.ok()) return give_up(one.status());
    prepared.push_back(*std::move(one));
    parts.push_back(encode_change(change));
  }
  status = journal_.append(number, parts, durable());
  if (!status.ok()) return give_up(status);
  last_change_ = number;
  outbox_.keep();
  found_lost_.clear();
  for (EdgeImage::Prepared& one : prepared) image_.apply(std::move(one), EdgeImage::States::kForget);
  changed();
  drop_dead().IgnoreError();  // tried again at the next trim
  return absl::OkStatus();
}

absl::StatusOr<StoredChunk> SegmentEdgeStore::load(model::Sequence sequence) {
  const auto found = image_.kept.find(sequence);
  if (found == image_.kept.end()) {
    return absl::NotFoundError(fmt::format("{}: chunk {} is not in the outbox", where(), sequence));
  }
  EdgeImage::Kept& kept = found->second;
  if (rewrite_due_ && sequence >= unsynced_from_ && !kept.tombstone) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: chunk {} is not certainly durable, and there is no room yet to write it anew", where(), sequence));
  }
  std::string rows;
  if (!kept.tombstone && !kept.lost) {
    absl::StatusOr<std::string> read = outbox_.read(sequence, kept.place);
    const bool given_up = read.status().code() == absl::StatusCode::kDataLoss && ++kept.failed_reads >= kReadAttempts;
    if (read.ok()) {
      rows = *std::move(read);
      kept.failed_reads = 0;
    } else if (read.status().code() == absl::StatusCode::kNotFound || given_up) {
      image_.lose(sequence);
      found_lost_.insert(sequence);
    } else {
      return read.status();
    }
  }
  const absl::StatusOr<ChunkHeader> header = decode_header(kept.header);
  if (!header.ok()) return header.status();
  absl::StatusOr<StoredChunk> out = decode_chunk(*header, format_);
  if (!out.ok()) return out;
  out->rows = std::move(rows);
  if (kept.lost) out->range.note.tombstones = {tombstone_of(sequence, model::kDamaged, out->facts)};
  return out;
}

std::vector<model::Tombstone> SegmentEdgeStore::lost() const {
  std::vector<model::Tombstone> out;
  for (const model::Sequence sequence : found_lost_) {
    const auto found = image_.kept.find(sequence);
    if (found == image_.kept.end() || !found->second.lost) continue;
    const absl::StatusOr<ChunkHeader> header = decode_header(found->second.header);
    if (!header.ok()) continue;
    const absl::StatusOr<ChunkFacts> facts = decode_facts(header->facts, format_, FactsPart::kRowsOnly);
    out.push_back(tombstone_of(sequence, model::kDamaged, facts.ok() ? *facts : ChunkFacts{}));
  }
  return out;
}

std::uint64_t SegmentEdgeStore::bytes() const {
  return journal_.bytes() + outbox_.bytes() + (reserve_ ? options_.reserve_bytes : 0);
}

JournalBytes SegmentEdgeStore::journal_bytes() const {
  const std::uint64_t all = journal_.first_copy_bytes();
  return {std::min(snapshot_bytes_, all), all - std::min(snapshot_bytes_, all)};
}

void SegmentEdgeStore::changed() {
  image_.closed = false;
  if (options_.fsync != FsyncMode::kDelayed || (outbox_.synced() && journal_.synced())) {
    unsynced_since_.reset();
  } else if (!unsynced_since_) {
    unsynced_since_ = clock_.steady_now();
  }
}

absl::Status SegmentEdgeStore::sync() {
  absl::Status status = outbox_.sync();
  if (status.ok()) status = journal_.sync();
  if (!status.ok()) return status;
  unsynced_since_.reset();
  return absl::OkStatus();
}

// A trim that vanished with the power would make the chunks of removed segments look lost.
absl::Status SegmentEdgeStore::drop_dead() {
  if (!outbox_.has_dead(image_.live)) return absl::OkStatus();
  if (absl::Status status = journal_.sync(); !status.ok()) return status;
  outbox_.remove_dead(image_.live);
  return absl::OkStatus();
}

absl::Status SegmentEdgeStore::maintain() {
  if (!recovered_) return absl::OkStatus();
  if (in_doubt() || !journal_.settled()) return prepare_write();
  if (!unsynced_since_ || clock_.steady_now() - *unsynced_since_ < options_.fsync_delay) return absl::OkStatus();
  return sync();
}

absl::Status SegmentEdgeStore::close() {
  if (!recovered_ || image_.closed || journal_.generation() == 0) return absl::OkStatus();
  if (absl::Status status = prepare_write(); !status.ok()) return status;
  if (trim_owed_) {
    if (absl::Status status = trim(image_.meta.acknowledged); !status.ok()) return status;
  }
  // That all is durable is not said before it is: the next process believes it.
  absl::Status status = outbox_.sync();
  if (status.ok()) status = journal_.sync();
  if (!status.ok()) return give_up(status);
  Change change;
  if (image_.meta.epoch != model::Epoch{}) change.trim = image_.meta.acknowledged;
  change.closed = true;
  status = journal_.append(last_change_ + 1, {encode_change(change)}, EdgeJournal::Durable::kNow);
  if (!status.ok()) {
    status = give_up(status);
    // The next process must not find it: it would write behind it, and it may be gone with the power.
    settle().IgnoreError();
    return status;
  }
  ++last_change_;
  image_.closed = true;
  journal_.sync_copy();
  return absl::OkStatus();
}

absl::Status SegmentEdgeStore::ensure_reserve() {
  if (reserve_ || options_.reserve_bytes == 0) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<base::AppendFile>> file = disk_.append(kReserveName, 0);
  if (!file.ok()) return file.status();
  // No zeros, which some file systems do not store.
  std::string bytes;
  for (std::uint64_t i = 0; bytes.size() < options_.reserve_bytes; ++i) bytes += fmt::format("{:016x}\n", i * i);
  bytes.resize(options_.reserve_bytes);
  if (absl::Status status = (*file)->append(bytes); !status.ok()) {
    disk_.remove(kReserveName).IgnoreError();
    return status;
  }
  reserve_ = true;
  return absl::OkStatus();
}

void SegmentEdgeStore::release_reserve() {
  if (disk_.remove(kReserveName).ok()) reserve_ = false;
}

}  // namespace orla::store
