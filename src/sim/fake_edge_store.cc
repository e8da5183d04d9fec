#include "sim/fake_edge_store.h"

#include <fmt/format.h>

namespace orla::sim {

absl::StatusOr<store::EdgeRecovery> FakeEdgeStore::recover() {
  store::EdgeRecovery out;
  out.meta = kept_.meta;
  for (const store::JournalEntry& entry : kept_.journal) {
    if (entry.snapshot) out.journal.clear();
    out.journal.push_back(entry.state);
  }
  if (disk_.bug == Bug::kForgetJournal && out.journal.size() > 1) out.journal.resize(out.journal.size() - 1);
  for (const auto& [sequence, chunk] : kept_.chunks) {
    out.outbox.emplace_back(sequence, chunk.rows.size());
  }
  return out;
}

void FakeEdgeStore::make_durable() {
  // The planted bug: every second commit stays in a cache that a crash loses.
  if (disk_.bug == Bug::kLostWrite && ++commits_ % 2 == 0) return;
  kept_ = cache_;
}

absl::Status FakeEdgeStore::commit(const store::EdgeMeta& meta, const store::JournalEntry& entry,
                                   const std::vector<store::StoredChunk>& chunks) {
  if (absl::Status status = disk_.before_write("a commit"); !status.ok()) return status;
  cache_.meta = meta;
  if (entry.snapshot) cache_.journal.clear();
  cache_.journal.push_back(entry);
  for (const store::StoredChunk& chunk : chunks) cache_.chunks[chunk.range.first] = chunk;
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
  store::StoredChunk chunk = found->second;
  if (disk_.bug == Bug::kTrimOnRead) {
    cache_.chunks.erase(found);
    cache_.meta.acknowledged = sequence;
    kept_ = cache_;
  }
  return chunk;
}

}  // namespace orla::sim
