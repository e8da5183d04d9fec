#include "store/edge_rebuild.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "store/edge_files.h"

namespace orla::store {

absl::Status scan_segment(const base::Disk& disk, const EdgeFormat& format, std::uint64_t number, std::uint64_t bytes,
                          std::uint64_t from, OutboxScan& into, const std::function<void(std::uint64_t)>& progress) {
  RecordScanner scanner(disk, segment_name(number), bytes, number, RecordScanner::Rows::kSkip);
  scanner.seek(from);
  std::uint64_t told = from;
  std::optional<model::Sequence> open;  // a head whose rows have to follow
  while (true) {
    const absl::StatusOr<std::optional<RecordScanner::Found>> found = scanner.next();
    if (!found.ok()) return found.status();
    progress(scanner.position() - std::min(scanner.position(), told));
    told = std::max(told, scanner.position());
    if (!*found) return absl::OkStatus();
    ++into.records;
    const RecordScanner::Found& record = **found;
    if (record.head.kind == RecordKind::kSegment) {
      const absl::StatusOr<Change> start = decode_change(record.payload);
      if (start.ok() && start->latest) into.latest = std::string(*start->latest);
      if (start.ok() && start->meta) into.meta = *start->meta;
      if (!start.ok()) continue;
      for (const Change::Groups& piece : start->groups) into.groups.add(piece.first, piece.bytes, format);
    } else if (record.head.kind == RecordKind::kChunk) {
      open.reset();
      base::ByteReader payload(record.payload);
      OutboxScan::Head head;
      head.change = payload.varint();
      head.durable = payload.varint();
      head.header = std::string(payload.text());
      const std::uint64_t groups = payload.varint();
      while (payload.left() > 0) {
        const std::uint64_t first = payload.varint();
        const std::string_view piece = payload.text();
        if (!payload.failed()) into.groups.add(first, piece, format);
      }
      head.readable = groups <= into.groups.count();
      const absl::StatusOr<ChunkHeader> decoded = decode_header(head.header);
      if (!payload.finished() || !decoded.ok() || decoded->sequence != record.head.number) continue;
      open = decoded->sequence;
      into.heads.push_back(std::move(head));
    } else if (record.head.kind == RecordKind::kRows && open == record.head.number) {
      into.heads.back().place = {number, record.offset, record.head.bytes, record.head.checksum};
      open.reset();
    }
  }
}

namespace {

constexpr model::Sequence kMostMissing = 1'000'000;

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

std::uint64_t count_of(const Counts& counts, const std::string& key) {
  for (const auto& [k, n] : counts) {
    if (k == key) return n;
  }
  return 0;
}

class Rebuilder {
 public:
  Rebuilder(EdgeImage& image, const OutboxScan& scan, const JournalKnown& known, const EdgeFormat& format)
      : image_(image), scan_(scan), known_(known), format_(format) {}

  std::uint64_t run() {
    choose_epoch();
    tell();
    EdgeMeta meta = numbers();
    fill(meta);
    image_.meta = std::move(meta);
    image_.groups = scan_.groups;
    image_.states.clear();
    image_.lost = true;
    image_.reopen = true;  // numbers may be missing, and publications start anew
    std::uint64_t newest = known_.last_change;
    for (const OutboxScan::Head& head : scan_.heads) newest = std::max(newest, head.change);
    return newest;
  }

 private:
  // A change that was just being written is not in force, unless nobody can tell.
  bool counts(const OutboxScan::Head& head) const { return known_.tail_lost || head.change <= known_.last_change; }

  void choose_epoch() {
    epoch_ = image_.meta.epoch;
    if (!known_.meta && scan_.meta) epoch_ = scan_.meta->epoch;
    if (known_.meta && !known_.tail_lost) return;
    for (const OutboxScan::Head& head : scan_.heads) {
      if (counts(head)) epoch_ = decode_header(head.header)->epoch;
    }
  }

  // A number that comes again replaces what was there from it on.
  void tell() {
    for (const OutboxScan::Head& head : scan_.heads) {
      const absl::StatusOr<ChunkHeader> header = decode_header(head.header);
      if (!counts(head) || header->epoch != epoch_ || !format_.decode_note(header->note).ok()) continue;
      told_.erase(told_.lower_bound(header->sequence), told_.end());
      told_.emplace(header->sequence, &head);
    }
    if (known_.meta && !known_.tail_lost) told_.erase(told_.lower_bound(image_.meta.next_sequence), told_.end());
    std::erase_if(image_.kept, [&](const auto& kept) { return decode_header(kept.second.header)->epoch != epoch_; });
  }

  EdgeMeta numbers() {
    EdgeMeta meta = image_.meta;
    if (!known_.meta || epoch_ != image_.meta.epoch) {
      meta = scan_.meta && scan_.meta->epoch == epoch_ ? *scan_.meta : EdgeMeta{};
      meta.epoch = epoch_;
      meta.next_sequence = std::max<model::Sequence>(meta.next_sequence, 1);
      meta.acknowledged = meta.next_sequence - 1;
      if (!told_.empty()) {
        meta.node = std::string(decode_header(told_.begin()->second->header)->node);
        meta.acknowledged = told_.begin()->first - 1;
      }
    }
    if (!told_.empty() && told_.rbegin()->first >= meta.next_sequence) {
      const absl::StatusOr<ChunkHeader> newest = decode_header(told_.rbegin()->second->header);
      meta.next_sequence = newest->sequence + 1;
      meta.chain = newest->chain_after;
    }
    bound_gaps(meta);
    if (image_.latest.empty()) image_.latest = scan_.latest;
    if (!told_.empty() && told_.rbegin()->first + 1 == meta.next_sequence) {
      image_.latest = std::string(decode_header(told_.rbegin()->second->header)->facts);
    }
    return meta;
  }

  // More chunks than an outbox ever holds cannot be missing: numbers that far off are of no chunk that is kept.
  void bound_gaps(EdgeMeta& meta) const {
    model::Sequence next = meta.next_sequence;
    while (next > meta.acknowledged + 1) {
      model::Sequence before = meta.acknowledged;
      if (const auto at = told_.lower_bound(next); at != told_.begin()) before = std::max(before, std::prev(at)->first);
      if (const auto at = image_.kept.lower_bound(next); at != image_.kept.begin()) {
        before = std::max(before, std::prev(at)->first);
      }
      if (next - before > kMostMissing) {
        meta.acknowledged = next - 1;
        return;
      }
      next = before;
    }
  }

  // Accepted samples of each input in all chunks up to the one with these facts.
  Counts totals(std::string_view bytes) const {
    Counts out;
    const absl::StatusOr<ChunkFacts> facts = decode_facts(bytes, format_, FactsPart::kAll);
    if (!facts.ok()) return out;
    for (std::size_t i = 0; i < facts->inputs.size() && i < facts->sealed.size(); ++i) {
      out.emplace_back(facts->inputs[i].key, facts->sealed[i]);
    }
    return out;
  }

  // Chunks acknowledged+1 .. next-1: from the journal, else from the outbox, else lost.
  void fill(const EdgeMeta& meta) {
    std::map<model::Sequence, EdgeImage::Kept> before = std::exchange(image_.kept, {});
    image_.live.clear();
    for (model::Sequence s = meta.acknowledged + 1; s < meta.next_sequence; ++s) {
      EdgeImage::Kept chunk;
      const auto found = told_.find(s);
      if (const auto known = before.find(s); known != before.end()) {
        chunk = std::move(known->second);
        if (found != told_.end() && !found->second->readable) {
          chunk.lost = !chunk.tombstone;
          chunk.place = {};
        }
      } else if (found != told_.end()) {
        chunk.header = found->second->header;
        if (found->second->readable) chunk.place = found->second->place;
        chunk.tombstone = !format_.decode_note(decode_header(chunk.header)->note)->tombstones.empty();
        chunk.lost = chunk.place.segment == 0 && !chunk.tombstone;
      } else {
        gap_.push_back(s);
        continue;
      }
      const absl::StatusOr<ChunkHeader> header = decode_header(chunk.header);
      if (!gap_.empty()) invent(meta, header->facts, header->chain_before);
      chain_ = header->chain_after;
      sealed_ = totals(header->facts);
      if (const absl::StatusOr<ChunkFacts> all = decode_facts(header->facts, format_, FactsPart::kAll); all.ok()) {
        raw_sealed_ = all->raw_sealed;
      }
      sealed_known_ = true;
      if (chunk.place.segment != 0) ++image_.live[chunk.place.segment];
      image_.kept.emplace(s, std::move(chunk));
    }
    if (!gap_.empty()) invent(meta, {}, meta.chain);
  }

  // `next`: facts of the chunk after the gap; empty: there is none.
  void invent(const EdgeMeta& meta, std::string_view next, const base::Digest& until) {
    ChunkFacts facts;
    const absl::StatusOr<ChunkFacts> own = decode_facts(next, format_, FactsPart::kRowsOnly);
    if (sealed_known_ && own.ok()) {
      for (const auto& [key, total] : totals(next)) {
        const std::uint64_t elsewhere = count_of(sealed_, key) + count_of(own->samples, key);
        if (total > elsewhere) facts.samples.emplace_back(key, total - elsewhere);
      }
      std::sort(facts.samples.begin(), facts.samples.end());
      if (const absl::StatusOr<ChunkFacts> all = decode_facts(next, format_, FactsPart::kAll); all.ok()) {
        const std::uint64_t elsewhere = raw_sealed_ + own->raw_samples;
        facts.raw_samples = all->raw_sealed - std::min(all->raw_sealed, elsewhere);
        facts.raw_sealed = facts.raw_samples;
      }
    }
    for (std::size_t i = 0; i < gap_.size(); ++i) {
      const base::Digest after = i + 1 == gap_.size() ? until : base::chain(chain_, "lost");
      const std::string encoded = encode_facts(i == 0 ? facts : ChunkFacts{}, format_);
      const std::string note = format_.encode_note({});
      EdgeImage::Kept lost;
      lost.header = encode_header({gap_[i], meta.epoch, meta.node, chain_, after, true, encoded, note});
      lost.lost = true;
      image_.kept.emplace(gap_[i], std::move(lost));
      chain_ = after;
    }
    gap_.clear();
  }

  EdgeImage& image_;
  const OutboxScan& scan_;
  const JournalKnown& known_;
  const EdgeFormat& format_;
  model::Epoch epoch_{};
  std::map<model::Sequence, const OutboxScan::Head*> told_;
  std::vector<model::Sequence> gap_;
  base::Digest chain_;
  Counts sealed_;
  std::uint64_t raw_sealed_ = 0;
  bool sealed_known_ = false;
};

}  // namespace

std::uint64_t rebuild_from_outbox(EdgeImage& image, const OutboxScan& scan, const JournalKnown& known,
                                  const EdgeFormat& format) {
  return Rebuilder(image, scan, known, format).run();
}

}  // namespace orla::store
