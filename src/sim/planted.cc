#include "sim/planted.h"

#include <array>
#include <set>
#include <utility>

#include "codec/edge_state.h"
#include "link/ranges.h"
#include "sim/forwarding_edge_store.h"

namespace orla::sim {

namespace {

constexpr std::array kBugs{
    BugInfo{Bug::kLostWrite, "lost-write", "a commit says it is durable and is not, until the next one"},
    BugInfo{Bug::kForgetJournal, "forget-journal", "an edge restores everything but its newest journal entry"},
    BugInfo{Bug::kForgetOpen, "forget-open", "an edge restores everything but its open slices"},
    BugInfo{Bug::kForgetAcceptance, "forget-acceptance", "an edge restores everything but its acceptance state"},
    BugInfo{Bug::kCursorsApart, "cursors-apart", "the cloud commits cursors, and the windows in a second transaction"},
    BugInfo{Bug::kTrimOnRead, "trim-on-read", "an edge drops a chunk once it was read to be sent"},
    BugInfo{Bug::kSkipRows, "skip-rows", "an input loses a row"},
    BugInfo{Bug::kAcknowledgeEarly, "acknowledge-early", "the cloud acknowledges before its commit"},
    BugInfo{Bug::kTrimOnRelay, "trim-on-relay", "an aggregator acknowledges, and the edge trims"},
    BugInfo{Bug::kRenumber, "renumber", "after a restart a chunk is sent again under a new number"},
    BugInfo{Bug::kMergeDefinitions, "merge-definitions", "partials of another definition are merged"},
    BugInfo{Bug::kAcceptOverlap, "accept-overlap", "the cloud folds in a frame that begins at or before its cursor"},
    BugInfo{Bug::kBlockOnLost, "block-on-lost", "a chunk lost on disk is waited for"},
    BugInfo{Bug::kStarve, "starve", "heartbeats wait behind data"},
    BugInfo{Bug::kLoseState, "lose-state", "a memory edge's acceptance state is lost on the way"},
    BugInfo{Bug::kNoSnapshot, "no-snapshot", "an edge's journal is never replaced by a snapshot again"},
    BugInfo{Bug::kForgetLate, "forget-late", "the cloud is told of late samples without their set"},
    BugInfo{Bug::kKeepFailedSamples, "keep-failed-samples", "raw samples of a commit that failed are kept"},
};

bool of_edge_store(Bug bug) {
  switch (bug) {
    case Bug::kForgetJournal:
    case Bug::kForgetOpen:
    case Bug::kForgetAcceptance:
    case Bug::kTrimOnRead:
    case Bug::kRenumber:
    case Bug::kBlockOnLost:
    case Bug::kNoSnapshot:
      return true;
    default:
      return false;
  }
}

class PlantedEdgeStore final : public ForwardingEdgeStore {
 public:
  PlantedEdgeStore(Bug bug, std::unique_ptr<store::EdgeStore> inner)
      : ForwardingEdgeStore(std::move(inner)), bug_(bug) {}

  absl::StatusOr<store::EdgeRecovery> recover(const Progress& progress) override {
    absl::StatusOr<store::EdgeRecovery> found = inner().recover(progress);
    if (!found.ok()) return found;
    if (bug_ == Bug::kForgetJournal && found->journal.size() > 1) found->journal.pop_back();
    if (bug_ == Bug::kForgetOpen || bug_ == Bug::kForgetAcceptance) {
      for (std::string& bytes : found->journal) {
        absl::StatusOr<model::EdgeState> state = codec::decode_edge_state(bytes);
        if (!state.ok()) return state.status();
        if (bug_ == Bug::kForgetOpen) state->open.clear();
        if (bug_ == Bug::kForgetAcceptance) state->series.clear();
        bytes = codec::encode_edge_state(*state);
      }
    }
    if (bug_ == Bug::kRenumber && !found->outbox.empty()) return renumbered(*std::move(found), progress);
    if (bug_ == Bug::kBlockOnLost) {
      for (store::OutboxEntry& entry : found->outbox) {
        if (std::exchange(entry.lost, false)) blocked_.insert(entry.sequence);
      }
    }
    return found;
  }
  absl::StatusOr<store::StoredChunk> load(model::Sequence sequence) override {
    absl::StatusOr<store::StoredChunk> chunk = inner().load(sequence);
    if (bug_ == Bug::kTrimOnRead && chunk.ok()) {
      if (absl::Status status = inner().trim(sequence); !status.ok()) return status;
    }
    if (bug_ == Bug::kBlockOnLost && (blocked_.contains(sequence) || !inner().lost().empty())) {
      return absl::DataLossError("the chunk is damaged");
    }
    return chunk;
  }
  std::vector<model::Tombstone> lost() const override {
    return bug_ == Bug::kBlockOnLost ? std::vector<model::Tombstone>{} : inner().lost();
  }

  store::JournalBytes journal_bytes() const override {
    return bug_ == Bug::kNoSnapshot ? store::JournalBytes{} : inner().journal_bytes();
  }

 private:
  // The newest chunk of the outbox once more, under the next number.
  absl::StatusOr<store::EdgeRecovery> renumbered(store::EdgeRecovery found, const Progress& progress) {
    absl::StatusOr<store::StoredChunk> chunk = inner().load(found.outbox.back().sequence);
    if (!chunk.ok() || chunk->rows.empty()) return found;
    store::EdgeCommit again;
    again.meta = found.meta;
    model::Range& range = chunk->range;
    range.first = range.last = again.meta.next_sequence++;
    range.chain_before = again.meta.chain;
    range.chain_after = again.meta.chain = link::chunk_chain(again.meta.chain, range.first, chunk->rows);
    again.entry.state = codec::encode_edge_state({});
    again.chunks.push_back(*std::move(chunk));
    if (absl::Status status = inner().commit(again); !status.ok()) return found;
    return inner().recover(progress);
  }

  const Bug bug_;
  std::set<model::Sequence> blocked_;
};

}  // namespace

std::span<const BugInfo> bugs() { return kBugs; }

std::string_view to_string(Bug bug) {
  for (const BugInfo& info : kBugs) {
    if (info.bug == bug) return info.name;
  }
  return "none";
}

std::unique_ptr<store::EdgeStore> plant(Bug bug, std::unique_ptr<store::EdgeStore> store) {
  if (!of_edge_store(bug)) return store;
  return std::make_unique<PlantedEdgeStore>(bug, std::move(store));
}

}  // namespace orla::sim
