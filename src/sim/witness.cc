#include "sim/witness.h"

#include "codec/edge_state.h"
#include "sim/forwarding_edge_store.h"

namespace orla::sim {

// Looks before the store does: the process may die in a commit that is durable.
class Witness::Store final : public ForwardingEdgeStore {
 public:
  Store(Node& seen, std::unique_ptr<store::EdgeStore> inner) : ForwardingEdgeStore(std::move(inner)), seen_(seen) {}

  absl::Status commit(const store::EdgeCommit& commit) override {
    const absl::StatusOr<model::EdgeState> state = codec::decode_edge_state(commit.entry.state);
    if (!state.ok()) return state.status();
    // The same group may come again after a commit that failed; numbers of groups never change.
    if (commit.entry.snapshot) seen_.groups.clear();
    for (const model::GroupDef& group : state->new_groups) seen_.groups.push_back(group);
    for (const store::StoredChunk& chunk : commit.chunks) {
      seen_.chunks[{chunk.range.epoch, chunk.range.first}] = {chunk.rows, chunk.facts};
    }
    seen_.epoch = commit.meta.epoch;
    absl::Status status = inner().commit(commit);
    if (status.ok()) seen_.next = commit.meta.next_sequence;
    if (!status.ok() && !commit.entry.snapshot) seen_.groups.resize(seen_.groups.size() - state->new_groups.size());
    return status;
  }
  absl::Status renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) override {
    // The newest chunks of the closed epoch, in order.
    const model::Sequence before = seen_.next - outbox.size();
    for (std::size_t i = 0; i < outbox.size(); ++i) {
      const auto old = seen_.chunks.find({seen_.epoch, before + i});
      if (old != seen_.chunks.end()) seen_.chunks[{meta.epoch, outbox[i].range.first}] = Chunk(old->second);
    }
    absl::Status status = inner().renumber(meta, outbox);
    if (status.ok()) {
      seen_.epoch = meta.epoch;
      seen_.next = meta.next_sequence;
    }
    return status;
  }
  absl::StatusOr<store::EdgeRecovery> recover(const Progress& progress) override {
    absl::StatusOr<store::EdgeRecovery> found = inner().recover(progress);
    if (!found.ok()) return found;
    seen_.epoch = found->meta.epoch;
    seen_.next = found->meta.next_sequence;
    // A commit in which the process died may have been durable or not: the journal knows.
    seen_.groups.clear();
    for (const std::string& bytes : found->journal) {
      const absl::StatusOr<model::EdgeState> state = codec::decode_edge_state(bytes);
      if (!state.ok()) return state.status();
      if (state->snapshot) seen_.groups.clear();
      for (const model::GroupDef& group : state->new_groups) seen_.groups.push_back(group);
    }
    return found;
  }

 private:
  Node& seen_;
};

const Witness::Chunk* Witness::find(const model::NodeName& node, model::Epoch epoch, model::Sequence sequence) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  const auto chunk = found->second.chunks.find({epoch, sequence});
  return chunk == found->second.chunks.end() ? nullptr : &chunk->second;
}

std::unique_ptr<store::EdgeStore> Witness::watch(model::NodeName node, std::unique_ptr<store::EdgeStore> store) {
  return std::make_unique<Store>(nodes_[node], std::move(store));
}

}  // namespace orla::sim
