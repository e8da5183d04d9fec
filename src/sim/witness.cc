#include "sim/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "codec/edge_state.h"
#include "sim/forwarding_edge_store.h"

namespace orla::sim {

namespace {
constexpr std::chrono::minutes kCoarsestSlice{5};  // of the simulated fleets' rollups
}  // namespace

// Looks before the store does: the process may die in a commit that is durable.
class Witness::Store final : public ForwardingEdgeStore {
 public:
  Store(Witness& witness, Node& seen, std::unique_ptr<store::EdgeStore> inner)
      : ForwardingEdgeStore(std::move(inner)), witness_(witness), seen_(seen) {}

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
    if (status.ok()) {
      seen_.next = commit.meta.next_sequence;
      follow(seen_, *state);
      if (!commit.chunks.empty()) witness_.look_at_publications(seen_, commit.chunks.back());
    }
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
    seen_.watermarks.clear();
    seen_.starts_anew = seen_.starts_anew || found->without_journal.has_value();
    for (const std::string& bytes : found->journal) {
      const absl::StatusOr<model::EdgeState> state = codec::decode_edge_state(bytes);
      if (!state.ok()) return state.status();
      follow(seen_, *state);
      if (state->snapshot) seen_.groups.clear();
      for (const model::GroupDef& group : state->new_groups) seen_.groups.push_back(group);
    }
    return found;
  }

 private:
  Witness& witness_;
  Node& seen_;
};

void Witness::expect_publications(const model::Plan& plan, std::function<void(const std::string&)> problem) {
  plan_ = &plan;
  problem_ = std::move(problem);
}

void Witness::follow(Node& node, const model::EdgeState& state) {
  if (state.snapshot) node.watermarks.clear();
  for (const model::SeriesState& series : state.series)
    node.watermarks[series.series] = {series.watermark, series.input};
}

// What holds a publication is at most `allowed_lateness` behind the newest of its input, and the publication `disorder`
// behind that; it is told by whole slices.
void Witness::look_at_publications(Node& node, const store::StoredChunk& chunk) {
  if (plan_ == nullptr || node.starts_anew) return;
  for (const model::Publication& publication : chunk.range.note.publications) {
    const auto metric = std::find_if(plan_->fleet.metrics.begin(), plan_->fleet.metrics.end(),
                                     [&](const auto& m) { return m.name == publication.metric; });
    if (metric == plan_->fleet.metrics.end()) continue;
    model::Time newest = model::kMaxTime;
    for (const model::InputState& input : chunk.facts.inputs) {
      if (!input.ended && input.newest != model::kMinTime) newest = std::min(newest, input.newest);
    }
    if (newest == model::kMaxTime) continue;
    const model::Time least = newest - metric->allowed_lateness - metric->disorder - kCoarsestSlice;
    if (publication.time < least) {
      problem_(fmt::format(
          "{} publishes {} up to {} ns with chunk {}: its inputs have come to {} ns, and no series may "
          "hold it back for longer than {} s",
          chunk.range.node, publication.metric, model::to_ns(publication.time), chunk.range.first, model::to_ns(newest),
          std::chrono::duration<double>(metric->allowed_lateness + metric->disorder).count()));
    }
    const bool lags = std::any_of(node.watermarks.begin(), node.watermarks.end(), [&](const auto& series) {
      const auto& [watermark, input] = series.second;
      return input < chunk.facts.inputs.size() && !chunk.facts.inputs[input].ended &&
             watermark < model::add_clamped(chunk.facts.inputs[input].newest, -metric->allowed_lateness);
    });
    lagging_ += lags ? 1 : 0;
  }
}

const Witness::Chunk* Witness::find(const model::NodeName& node, model::Epoch epoch, model::Sequence sequence) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  const auto chunk = found->second.chunks.find({epoch, sequence});
  return chunk == found->second.chunks.end() ? nullptr : &chunk->second;
}

std::unique_ptr<store::EdgeStore> Witness::watch(model::NodeName node, std::unique_ptr<store::EdgeStore> store) {
  return std::make_unique<Store>(*this, nodes_[node], std::move(store));
}

}  // namespace orla::sim
