#include "link/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "model/loss.h"

namespace orla::link {

namespace {

// Fixed parts of a message on the wire, roughly.
constexpr std::size_t kRangeBytes = 64;
constexpr std::size_t kLedgerBytes = 64;
constexpr std::size_t kReasonBytes = 16;
constexpr std::size_t kPublicationBytes = 12;
constexpr std::size_t kTombstoneBytes = 36;

std::size_t wire_bytes(const model::Ledger& ledger) {
  return kLedgerBytes + (ledger.rejected.size() + ledger.dropped.size()) * kReasonBytes;
}

// Replaces the entries of `into` that `newer` has too; both sorted by key, or not: order of `into` stays, new ones are
// added in order.
template <typename Entries, typename Key>
void overlay(Entries& into, Entries&& newer, Key key) {
  for (auto& entry : newer) {
    const auto same = std::find_if(into.begin(), into.end(), [&](const auto& old) { return key(old) == key(entry); });
    if (same != into.end()) {
      *same = std::move(entry);
    } else {
      into.push_back(std::move(entry));
    }
  }
  std::sort(into.begin(), into.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

absl::Status check_tombstones(const model::Range& range) {
  const std::vector<model::Tombstone>& all = range.note.tombstones;
  const auto wrong = [&](const model::Tombstone& t, std::string_view expected) {
    return absl::InvalidArgumentError(fmt::format("tombstone {}..{} in range {}..{} of node \"{}\"; expected {}",
                                                  t.first, t.last, range.first, range.last, range.node, expected));
  };
  if (all.size() > kMaxTombstonesPerRange) {
    return absl::InvalidArgumentError(fmt::format("range of node \"{}\" with {} tombstones; at most {} are accepted",
                                                  range.node, all.size(), kMaxTombstonesPerRange));
  }
  model::Sequence next = range.first;
  for (const model::Tombstone& t : all) {
    if (t.first < next) return wrong(t, "tombstones within the range, sorted, not overlapping");
    if (t.first > t.last || t.last > range.last) return wrong(t, "first <= last, both within the range");
    if (t.reason.empty()) return wrong(t, "a reason");
    if (t.samples.size() > kMaxTombstoneInputs) return wrong(t, fmt::format("at most {} inputs", kMaxTombstoneInputs));
    for (std::size_t i = 1; i < t.samples.size(); ++i) {
      if (t.samples[i - 1].first >= t.samples[i].first) return wrong(t, "samples sorted by input, each input once");
    }
    next = t.last + 1;
  }
  return absl::OkStatus();
}

void add_tombstone(std::vector<model::Tombstone>& into, model::Tombstone next) {
  if (!into.empty() && into.back().last + 1 == next.first && into.back().reason == next.reason &&
      into.back().samples.size() + next.samples.size() <= kMaxTombstoneInputs) {
    model::Tombstone& before = into.back();
    before.last = next.last;
    model::add_samples(before.samples, next.samples);
    before.from = std::min(before.from, next.from);
    before.to = std::max(before.to, next.to);
    before.raw_samples += next.raw_samples;
    return;
  }
  into.push_back(std::move(next));
}

}  // namespace

absl::Status check_ranges(const std::vector<model::Range>& ranges) {
  if (ranges.empty()) return absl::InvalidArgumentError("frame without a range; expected at least one");
  if (ranges.size() > kMaxRangesPerFrame) {
    return absl::InvalidArgumentError(
        fmt::format("frame with {} ranges; at most {} are accepted", ranges.size(), kMaxRangesPerFrame));
  }
  const model::NodeName* before = nullptr;
  for (const model::Range& range : ranges) {
    if (range.node.empty()) return absl::InvalidArgumentError("range without a node name");
    if (range.epoch == model::Epoch{}) {
      return absl::InvalidArgumentError(
          fmt::format("range of node \"{}\" with epoch 0; epochs are never 0", range.node));
    }
    if (range.first == 0 || range.first > range.last || range.last > kMaxSequence) {
      return absl::InvalidArgumentError(fmt::format("range {}..{} of node \"{}\"; expected 1 <= first <= last <= {}",
                                                    range.first, range.last, range.node, kMaxSequence));
    }
    if (before != nullptr && !(*before < range.node)) {
      return absl::InvalidArgumentError(
          fmt::format("range of node \"{}\" after one of \"{}\"; expected ranges sorted by node, each node once",
                      range.node, *before));
    }
    if (absl::Status status = check_tombstones(range); !status.ok()) return status;
    before = &range.node;
  }
  return absl::OkStatus();
}

bool continues(const model::Range& before, const model::Range& after) {
  return before.node == after.node && before.epoch == after.epoch && before.last + 1 == after.first &&
         before.chain_after == after.chain_before;
}

void append(model::Range& range, model::Range next) {
  range.last = next.last;
  range.chain_after = next.chain_after;
  overlay(
      range.note.publications, std::move(next.note.publications),
      [](const auto& p) -> const auto& { return p.metric; });
  overlay(
      range.note.ledgers, std::move(next.note.ledgers), [](const auto& l) -> const auto& { return l.first; });
  std::vector<model::StateEntry>& states = range.note.states;
  for (model::StateEntry& entry : next.note.states) {
    if (entry.snapshot) states.clear();
    states.push_back(std::move(entry));
  }
  for (model::Tombstone& t : next.note.tombstones) add_tombstone(range.note.tombstones, std::move(t));
}

void add_numbers(std::vector<model::SequenceRange>& ranges, const model::SequenceRange& more) {
  if (!ranges.empty() && ranges.back().last + 1 == more.first) {
    ranges.back().last = more.last;
    return;
  }
  ranges.push_back(more);
  if (ranges.size() > kMaxTombstoneRanges) {
    ranges[1].first = ranges[0].first;
    ranges.erase(ranges.begin());
  }
}

bool contains(const std::vector<model::SequenceRange>& ranges, model::Sequence number) {
  const auto at = std::lower_bound(ranges.begin(), ranges.end(), number,
                                   [](const model::SequenceRange& r, model::Sequence n) { return r.last < n; });
  return at != ranges.end() && at->first <= number;
}

bool covers(const model::Cursor& cursor, const model::Range& range) {
  return cursor.node == range.node && cursor.epoch == range.epoch && range.last <= cursor.last;
}

base::Digest chunk_chain(const base::Digest& before, model::Sequence sequence, std::string_view rows) {
  std::string number;
  base::ByteWriter(number).u64(sequence);
  return base::chain(base::chain(before, number), rows);
}

std::size_t wire_bytes(const model::Range& range) {
  std::size_t bytes = kRangeBytes + range.node.size();
  for (const model::Publication& p : range.note.publications) bytes += p.metric.size() + kPublicationBytes;
  for (const auto& [key, ledger] : range.note.ledgers) bytes += key.size() + wire_bytes(ledger);
  for (const model::StateEntry& entry : range.note.states) bytes += entry.bytes.size() + 4;
  for (const model::Tombstone& t : range.note.tombstones) {
    bytes += kTombstoneBytes + t.reason.size();
    for (const auto& [input, samples] : t.samples) bytes += input.size() + kPublicationBytes;
  }
  return bytes;
}

}  // namespace orla::link
