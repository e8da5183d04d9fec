#include "store/edge_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/absl_view.h"
#include "store/edge_files.h"
#include "store/edge_rebuild.h"

namespace orla::store {

namespace {

// One record of the journal, where it is sound.
struct Ref {
  RecordKind kind{};
  bool last_part = false;
  JournalCopy copy{};
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return offset + kHeadBytes + bytes; }
};

struct Copy {
  bool there = false;
  std::uint64_t bytes = 0;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Ref> records;  // by (number, part)
  std::vector<EdgeDamage> damage;
};

struct Generation {
  std::uint64_t number = 0;
  Copy a, b;
  // Number -> its parts, if all of them are sound in one copy or the other.
  std::map<std::uint64_t, std::vector<Ref>> changes;
  std::optional<std::uint64_t> newest_seen;  // highest number of any sound record

  bool begun_soundly() const {
    return !changes.empty() && changes.begin()->second.front().kind == RecordKind::kGeneration;
  }
  // The second copy is begun once the first is durable: a beginning that is cut off is damage then.
  bool was_in_force() const { return b.there || !changes.empty(); }
};

class Reader {
 public:
  Reader(const base::Disk& disk, const EdgeFormat& format, const EdgeReadingOptions& options)
      : disk_(disk), format_(format), options_(options) {}

  absl::StatusOr<EdgeReading> read() {
    absl::Status status = list();
    if (status.ok()) status = read_journals();
    if (status.ok()) status = choose();
    if (status.ok()) status = replay();
    if (status.ok()) status = look_beyond();
    if (status.ok() && broken_) status = rebuild();
    if (status.ok()) status = check_rows();
    if (!status.ok()) return status;
    finish();
    return std::move(out_);
  }

 private:
  absl::Status list() {
    absl::StatusOr<std::vector<base::Disk::Entry>> entries = disk_.list();
    if (!entries.ok()) return entries.status();
    for (const base::Disk::Entry& entry : *entries) {
      const std::optional<EdgeFileName> name = parse_edge_file_name(entry.name);
      if (!name) continue;
      out_.files.push_back({entry.name, entry.bytes, 0});
      if (name->kind == EdgeFileName::Kind::kSegment) {
        out_.segments[name->number] = entry.bytes;
        if (options_.rows == EdgeReadingOptions::Rows::kNow) all_bytes_ += entry.bytes;
      } else if (name->kind == EdgeFileName::Kind::kJournal) {
        Generation& generation = generations_[name->number];
        generation.number = name->number;
        Copy& copy = name->copy == JournalCopy::kA ? generation.a : generation.b;
        copy.there = true;
        copy.bytes = entry.bytes;
        all_bytes_ += entry.bytes;
        out_.last_generation = std::max(out_.last_generation, name->number);
      }
    }
    return absl::OkStatus();
  }

  void progress(std::uint64_t bytes) {
    done_bytes_ += bytes;
    if (options_.progress) options_.progress(std::min(done_bytes_, all_bytes_), all_bytes_);
  }

  void count(const std::string& name, std::uint64_t records) {
    for (EdgeFileReport& file : out_.files) {
      if (file.name == name) file.records = records;
    }
  }

  absl::Status read_journals() {
    for (auto& [number, generation] : generations_) {
      for (const JournalCopy which : {JournalCopy::kA, JournalCopy::kB}) {
        Copy& copy = which == JournalCopy::kA ? generation.a : generation.b;
        if (!copy.there) continue;
        const std::string name = journal_name(number, which);
        RecordScanner scanner(disk_, name, copy.bytes, number, RecordScanner::Rows::kVerify);
        std::uint64_t before = 0;
        while (true) {
          absl::StatusOr<std::optional<RecordScanner::Found>> found = scanner.next();
          if (!found.ok()) return found.status();
          progress(std::min(scanner.position(), copy.bytes) - before);
          before = std::min(scanner.position(), copy.bytes);
          if (!*found) break;
          const RecordHead& head = (*found)->head;
          if (head.kind != RecordKind::kGeneration && head.kind != RecordKind::kChange) continue;
          copy.records[{head.number, head.part}] = {head.kind, head.last_part, which, (*found)->offset, head.bytes};
          if (!generation.newest_seen || *generation.newest_seen < head.number) generation.newest_seen = head.number;
        }
        copy.damage = scanner.damage();
        count(name, copy.records.size());
      }
      merge(generation);
    }
    return absl::OkStatus();
  }

  static void merge(Generation& generation) {
    auto all = generation.a.records;
    all.insert(generation.b.records.begin(), generation.b.records.end());
    for (auto at = all.begin(); at != all.end();) {
      const std::uint64_t number = at->first.first;
      std::vector<Ref> parts;
      bool whole = false;
      for (; at != all.end() && at->first.first == number; ++at) {
        if (whole || at->first.second != parts.size()) continue;
        parts.push_back(at->second);
        whole = at->second.last_part;
      }
      if (whole) generation.changes[number] = std::move(parts);
    }
  }

  // The newest generation that was in force. One of which there is nothing but a beginning that is cut off leaves the
  // one before in force, and so would one that was given up. Any other that cannot be read is lost: an older one in its
  // place would forget what came since, and use numbers twice.
  absl::Status choose() {
    for (auto at = generations_.rbegin(); at != generations_.rend(); ++at) {
      Generation& generation = at->second;
      bool given_up = false;
      for (const auto& [number, older] : generations_) {
        if (number >= generation.number || older.changes.empty() || generation.changes.empty()) continue;
        given_up = given_up || older.changes.rbegin()->first > generation.changes.rbegin()->first;
      }
      if (given_up) continue;
      const bool last_resort = at == std::prev(generations_.rend());
      if (generation.was_in_force() || last_resort) {
        chosen_ = &generation;
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> payload(const Ref& ref) const {
    return read_what_there_is(disk_, journal_name(chosen_->number, ref.copy), ref.offset + kHeadBytes,
                              static_cast<std::size_t>(ref.bytes));
  }

  absl::Status replay() {
    if (chosen_ == nullptr) return absl::OkStatus();
    broken_ = !chosen_->begun_soundly();
    tail_lost_ = chosen_->changes.empty() && chosen_->b.there;
    std::uint64_t expected = chosen_->changes.empty() ? 0 : chosen_->changes.begin()->first;
    for (const auto& [number, parts] : chosen_->changes) {
      model::Sequence brought = UINT64_MAX;
      if (number != expected) broken_ = true;
      expected = number + 1;
      for (const Ref& ref : parts) {
        absl::StatusOr<std::string> bytes = payload(ref);
        if (!bytes.ok()) return bytes.status();
        absl::StatusOr<Change> change = decode_change(*bytes);
        absl::StatusOr<EdgeImage::Prepared> prepared =
            change.ok() ? out_.image.prepare(*change, format_) : absl::StatusOr<EdgeImage::Prepared>(change.status());
        if (!prepared.ok()) {
          out_.damage.push_back({journal_name(chosen_->number, ref.copy), ref.offset, ref.end() - ref.offset,
                                 base::message(prepared.status())});
          broken_ = true;
          continue;
        }
        if (change->meta) journal_has_meta_ = true;
        if (number == chosen_->changes.begin()->first) {
          out_.snapshot_bytes += kHeadBytes + ref.bytes;
          for (const Change::State& state : change->states) {
            if (!state.snapshot) out_.snapshot_bytes -= state.bytes.size();
          }
        }
        for (const auto& [sequence, chunk] : prepared->chunks) brought = std::min(brought, sequence);
        out_.image.apply(*std::move(prepared), EdgeImage::States::kCollect);
      }
      out_.last_change = number;
      end_of_changes_ = parts.back().end();
      // A generation's first change is durable once there is no other any more.
      const bool first = parts.front().kind == RecordKind::kGeneration;
      if (brought != UINT64_MAX && (!first || generations_.size() > 1)) out_.unsynced_from = brought;
    }
    out_.generation = chosen_->number;
    return absl::OkStatus();
  }

  // Signs that the journal once went further than what can be read of it.
  absl::Status look_beyond() {
    // What was not synced when the machine stopped may be missing in one copy, or both, or be garbage.
    const bool same_boot = !disk_.boot().empty() && out_.image.boot == disk_.boot();
    if (chosen_ != nullptr) {
      if (chosen_->newest_seen && *chosen_->newest_seen > out_.last_change) {
        // The second copy is written after the first is complete; the first may end in a change that never was.
        const bool in_b = std::any_of(chosen_->b.records.begin(), chosen_->b.records.end(),
                                      [&](const auto& r) { return r.first.first > out_.last_change; });
        const bool further = *chosen_->newest_seen > out_.last_change + 1;
        tail_lost_ = (in_b || further) && same_boot;
      }
      if (chosen_->b.there && chosen_->b.bytes > end_of_changes_ && same_boot) tail_lost_ = true;
    }
    // Chunks of changes that the journal does not know, apart from the one that was just being written.
    OutboxScan beyond;
    for (const auto& [number, bytes] : out_.segments) {
      if (number < out_.image.tail.segment) continue;
      const std::uint64_t from = number == out_.image.tail.segment ? std::min(out_.image.tail.bytes, bytes) : 0;
      if (absl::Status status = scan(number, bytes, from, beyond); !status.ok()) return status;
    }
    for (const OutboxScan::Head& head : beyond.heads) {
      if (head.durable > out_.last_change || (same_boot && head.change > out_.last_change + 1)) tail_lost_ = true;
    }
    if (chosen_ == nullptr || chosen_->changes.empty()) {
      // Nothing is in force: either the first change of all was just being written, before any chunk, or all is lost.
      broken_ = tail_lost_ = tail_lost_ || !beyond.heads.empty();
    }
    if (!tail_lost_) return absl::OkStatus();
    // Rows are written before their change: where the outbox ends as the state before says, the changes that are
    // missing brought no chunk. Nothing of them has left the edge, and that state goes on.
    const Change::Tail& tail = out_.image.tail;
    const Change::Tail end = out_.segments.empty()
                                 ? Change::Tail{}
                                 : Change::Tail{out_.segments.rbegin()->first, out_.segments.rbegin()->second};
    const bool no_rows = end.segment == tail.segment && end.bytes == tail.bytes;
    if (!broken_ && same_boot && no_rows) {
      out_.image.reopen = out_.rewrite = true;
      for (const auto& [number, generation] : generations_) {
        out_.last_change = std::max(out_.last_change, generation.newest_seen.value_or(0));
      }
      out_.damage.push_back(
          {journal_name(chosen_->number, JournalCopy::kA), end_of_changes_, 0,
           "the newest changes are damaged in both copies: inputs are read again from the state before "
           "them; what was pushed with them is lost, and it is not known how much that was"});
    } else {
      broken_ = true;
    }
    return absl::OkStatus();
  }

  // Records of the segments from where the journal says the outbox ends (all: from their beginnings).
  absl::Status scan(std::uint64_t number, std::uint64_t bytes, std::uint64_t from, OutboxScan& into) {
    const std::uint64_t records = into.records;
    absl::Status status =
        scan_segment(disk_, format_, number, bytes, from, into, [this](std::uint64_t n) { progress(n); });
    if (from == 0) count(segment_name(number), into.records - records);
    return status;
  }

  // A change is missing: what the outbox says of its chunks fills the gap, and the state is that of the newest chunk.
  absl::Status rebuild() {
    for (const auto& [number, bytes] : out_.segments) all_bytes_ += bytes;
    OutboxScan scan_of_all;
    for (const auto& [number, bytes] : out_.segments) {
      if (absl::Status status = scan(number, bytes, 0, scan_of_all); !status.ok()) return status;
    }
    const JournalKnown known{journal_has_meta_, tail_lost_, out_.last_change};
    out_.last_change = rebuild_from_outbox(out_.image, scan_of_all, known, format_);
    for (const auto& [number, generation] : generations_) {
      out_.last_change = std::max(out_.last_change, generation.newest_seen.value_or(0));
    }
    for (const auto& [number, bytes] : out_.segments) out_.image.tail = {number, bytes};
    out_.rewrite = true;
    return absl::OkStatus();
  }

  // Rows that are not where they should be.
  absl::Status check_rows() {
    std::map<std::uint64_t, std::uint64_t> missing;  // by segment: chunks
    std::vector<model::Sequence> lost;
    for (const auto& [sequence, chunk] : out_.image.kept) {
      const Place& place = chunk.place;
      if (place.segment == 0) continue;
      const auto found = out_.segments.find(place.segment);
      if (found == out_.segments.end() || found->second < place.offset + kHeadBytes + place.bytes) {
        ++missing[place.segment];
        lost.push_back(sequence);
        continue;
      }
      if (options_.rows != EdgeReadingOptions::Rows::kNow) continue;
      const absl::StatusOr<std::string> rows = read_what_there_is(
          disk_, segment_name(place.segment), place.offset + kHeadBytes, static_cast<std::size_t>(place.bytes));
      if (!rows.ok()) return rows.status();
      if (payload_checksum(*rows, sequence) != place.checksum) lost.push_back(sequence);
    }
    if (options_.rows == EdgeReadingOptions::Rows::kNow) {
      if (absl::Status status = verify_segments(); !status.ok()) return status;
    }
    for (const model::Sequence sequence : lost) out_.image.lose(sequence);
    for (const auto& [number, chunks] : missing) {
      const auto found = out_.segments.find(number);
      const std::uint64_t bytes = found == out_.segments.end() ? 0 : found->second;
      out_.damage.push_back({segment_name(number), bytes, 0,
                             found == out_.segments.end()
                                 ? fmt::format("the file is gone, and the rows of {} chunks with it", chunks)
                                 : fmt::format("the file was cut, and the rows of {} chunks with it", chunks)});
    }
    return absl::OkStatus();
  }

  absl::Status verify_segments() {
    for (const auto& [number, bytes] : out_.segments) {
      const Change::Tail& tail = out_.image.tail;
      if (number > tail.segment) continue;
      const std::uint64_t end = number == tail.segment ? std::min(tail.bytes, bytes) : bytes;
      RecordScanner scanner(disk_, segment_name(number), end, number, RecordScanner::Rows::kVerify);
      std::uint64_t records = 0;
      std::uint64_t before = 0;
      while (true) {
        const absl::StatusOr<std::optional<RecordScanner::Found>> found = scanner.next();
        if (!found.ok()) return found.status();
        progress(scanner.position() - before);
        before = scanner.position();
        if (!*found) break;
        ++records;
      }
      count(segment_name(number), records);
      out_.damage.insert(out_.damage.end(), scanner.damage().begin(), scanner.damage().end());
    }
    return absl::OkStatus();
  }

  void finish() {
    EdgeImage& image = out_.image;
    if (chosen_ != nullptr) {
      report_journal();
      for (const auto& [number, generation] : generations_) {
        if (number == chosen_->number) continue;
        if (generation.a.there) out_.journals.push_back(journal_name(number, JournalCopy::kA));
        if (generation.b.there) out_.journals.push_back(journal_name(number, JournalCopy::kB));
        // It was to follow, or to be followed by, the one in force: which is begun anew, twice, before it goes.
        out_.rewrite = true;
      }
      const auto& changes = chosen_->changes;
      const Copy& b = chosen_->b;
      const auto in_b = [&](const auto& change) {
        for (std::uint32_t part = 0; part < change.second.size(); ++part) {
          if (!b.records.contains({change.first, part})) return false;
        }
        return true;
      };
      if (!changes.empty() && !in_b(*changes.begin())) out_.rewrite = true;
      // What was read after a start of the machine is on the disk, but for what was written since. That a journal says
      // it was closed does not say that the sync of that very record succeeded.
      const bool cached = disk_.boot().empty() || image.boot == disk_.boot();
      out_.unsynced = !changes.empty() && cached;
    }
    const bool unclean = !image.closed && image.fsync != FsyncMode::kOn && !image.boot.empty();
    if (image.meta.epoch == model::Epoch{}) image.lost = image.reopen = false;
    if (unclean && image.boot != disk_.boot() && image.meta.epoch != model::Epoch{}) image.reopen = true;
    if (image.lost) {
      absl::StatusOr<ChunkFacts> facts = decode_facts(image.latest, format_, FactsPart::kAll);
      out_.without_journal = image.latest.empty() || !facts.ok() ? ChunkFacts{} : *std::move(facts);
    }
  }

  void report_journal() {
    const Generation& generation = *chosen_;
    const std::string name_a = journal_name(generation.number, JournalCopy::kA);
    const std::string name_b = journal_name(generation.number, JournalCopy::kB);
    // Before `end` everything has to be there twice; what is beyond never was in force.
    for (const Copy* copy : {&generation.a, &generation.b}) {
      const std::string& name = copy == &generation.a ? name_a : name_b;
      for (const EdgeDamage& damage : copy->damage) {
        if (damage.offset >= end_of_changes_ && !tail_lost_) continue;
        // The second copy may have been left behind in the middle of a record.
        if (copy == &generation.b && damage.offset + damage.bytes >= copy->bytes && !tail_lost_) continue;
        out_.damage.push_back(damage);
        out_.rewrite = true;
      }
      // The second copy is made after the first.
      if (!copy->there && copy == &generation.a && end_of_changes_ > 0) {
        out_.damage.push_back({name, 0, 0, "the file is gone"});
        out_.rewrite = true;
      }
    }
    const auto sound_end = [&](const Copy& copy) {
      return copy.records.empty() ? 0 : std::min(copy.records.rbegin()->second.end(), end_of_changes_);
    };
    out_.end = end_of_changes_;
    out_.copied = sound_end(generation.b);
    if (sound_end(generation.a) < end_of_changes_ && !out_.rewrite) {
      out_.damage.push_back({name_a, sound_end(generation.a), 0, "the file was cut"});
      out_.rewrite = true;
    }
    if (broken_ && end_of_changes_ == 0) out_.damage.push_back({name_a, 0, 0, "nothing of the journal can be read"});
  }

  const base::Disk& disk_;
  const EdgeFormat& format_;
  const EdgeReadingOptions& options_;
  EdgeReading out_;
  std::map<std::uint64_t, Generation> generations_;
  const Generation* chosen_ = nullptr;
  std::uint64_t all_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t end_of_changes_ = 0;
  bool journal_has_meta_ = false;
  bool broken_ = false;     // a change that was in force cannot be read
  bool tail_lost_ = false;  // ... and it is not known how many there were
};

}  // namespace

absl::StatusOr<EdgeReading> read_edge_files(const base::Disk& disk, const EdgeFormat& format,
                                            const EdgeReadingOptions& options) {
  return Reader(disk, format, options).read();
}

absl::StatusOr<EdgeRecovery> recovery_of(const EdgeReading& reading, const EdgeFormat& format) {
  EdgeRecovery out;
  const EdgeImage& image = reading.image;
  out.meta = image.meta;
  out.journal = image.states;
  out.without_journal = reading.without_journal;
  if (image.lost) {
    for (const GroupPieces::Piece& piece : image.groups.pieces()) out.groups.push_back(piece.bytes);
  }
  if (absl::StatusOr<ChunkFacts> newest = decode_facts(image.latest, format, FactsPart::kAll);
      !image.latest.empty() && newest.ok()) {
    out.newest = *std::move(newest);
  }
  out.damage = reading.damage;
  out.reopen = image.reopen;
  out.outbox.reserve(image.kept.size());
  for (const auto& [sequence, chunk] : image.kept) {
    const absl::StatusOr<ChunkHeader> header = decode_header(chunk.header);
    if (!header.ok()) return header.status();
    absl::StatusOr<ChunkFacts> facts = decode_facts(header->facts, format, FactsPart::kRowsOnly);
    if (!facts.ok()) return facts.status();
    OutboxEntry& entry = out.outbox.emplace_back();
    entry.sequence = sequence;
    entry.bytes = static_cast<std::size_t>(chunk.place.bytes) + header->note.size();
    entry.facts = *std::move(facts);
    entry.lost = chunk.lost;
    entry.tombstone = chunk.tombstone;
  }
  return out;
}

}  // namespace orla::store
