#include "sim/fake_edge_store.h"

#include <fmt/format.h>

#include "link/ranges.h"
#include "store/edge_change.h"

namespace orla::sim {

absl::StatusOr<store::EdgeRecovery> FakeEdgeStore::recover(const Progress& /*progress*/) {
  store::EdgeRecovery out;
  out.meta = kept_.meta;
  for (const store::JournalEntry& entry : kept_.journal) {
    if (entry.snapshot) out.journal.clear();
    out.journal.push_back(entry.state);
  }
  for (const auto& [sequence, chunk] : kept_.chunks) {
    store::OutboxEntry& entry = out.outbox.emplace_back();
    entry.sequence = sequence;
    entry.bytes = chunk.rows.size() + link::wire_bytes(chunk.range);
    entry.facts = chunk.facts;
    entry.tombstone = !chunk.range.note.tombstones.empty();
  }
  return out;
}

void FakeEdgeStore::make_durable() {
  // The planted bug: every second commit stays in a cache that a crash loses.
  if (disk_.bug == Bug::kLostWrite && ++commits_ % 2 == 0) return;
  kept_ = cache_;
}

absl::Status FakeEdgeStore::commit(const store::EdgeCommit& commit) {
  if (absl::Status status = disk_.before_write("a commit"); !status.ok()) return status;
  cache_.meta = commit.meta;
  if (commit.entry.snapshot) cache_.journal.clear();
  cache_.journal.push_back(commit.entry);
  for (const store::StoredChunk& chunk : commit.chunks) cache_.chunks[chunk.range.first] = chunk;
  for (const model::Tombstone& tombstone : commit.tombstones) {
    for (model::Sequence s = tombstone.first; s <= tombstone.last; ++s) {
      const auto found = cache_.chunks.find(s);
      if (found == cache_.chunks.end()) continue;
      found->second.rows.clear();
      found->second.range.note.tombstones = {store::tombstone_of(s, tombstone.reason, found->second.facts)};
    }
  }
  make_durable();
  disk_.after_write();
  return absl::OkStatus();
}

absl::Status FakeEdgeStore::trim(model::Sequence through) {
  if (absl::Status status = disk_.before_write("a trim"); !status.ok()) return status;
  cache_.chunks.erase(cache_.chunks.begin(), cache_.chunks.upper_bound(through));
  cache_.meta.acknowledged = std::max(cache_.meta.acknowledged, through);
  make_durable();
  disk_.after_write();
  return absl::OkStatus();
}

absl::Status FakeEdgeStore::renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) {
  if (absl::Status status = disk_.before_write("a new numbering"); !status.ok()) return status;
  cache_.meta = meta;
  cache_.chunks.clear();
  for (const store::StoredChunk& chunk : outbox) cache_.chunks[chunk.range.first] = chunk;
  make_durable();
  disk_.after_write();
  return absl::OkStatus();
}

absl::StatusOr<store::StoredChunk> FakeEdgeStore::load(model::Sequence sequence) {
  if (absl::Status status = disk_.before_read("a chunk"); !status.ok()) return status;
  const auto found = cache_.chunks.find(sequence);
  if (found == cache_.chunks.end()) return absl::NotFoundError(fmt::format("chunk {} is not in the outbox", sequence));
  return found->second;
}

store::JournalBytes FakeEdgeStore::journal_bytes() const {
  store::JournalBytes out;
  for (std::size_t i = 0; i < cache_.journal.size(); ++i) {
    (i == 0 ? out.snapshot : out.since) += cache_.journal[i].state.size();
  }
  return out;
}

}  // namespace orla::sim
