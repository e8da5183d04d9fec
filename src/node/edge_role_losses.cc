// EdgeRole's losses: chunks whose rows are damaged or dropped, and what the accounts say of them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"
#include "codec/edge_state.h"
#include "link/ranges.h"
#include "node/edge_role.h"

namespace orla::node {

std::uint64_t EdgeRole::outbox_bytes() const { return static_cast<std::uint64_t>(limit(plan_.fleet, "outbox_bytes")); }

// The inputs go on where the newest chunk says they were. What was accepted by then and not sealed is lost.
absl::Status EdgeRole::restore_without_journal(const store::EdgeRecovery& recovery) {
  const store::ChunkFacts& facts = *recovery.without_journal;
  model::EdgeState state;
  state.snapshot = true;
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
    model::InputState& input = state.inputs.emplace_back(facts.inputs[i]);
    const std::uint64_t sealed = i < facts.sealed.size() ? facts.sealed[i] : 0;
    // Held samples were neither: they are gone with the journal as well.
    const std::uint64_t gone =
        (input.ledger.aggregated - std::min(sealed, input.ledger.aggregated)) + input.ledger.held;
    input.ledger.aggregated = std::min(sealed, input.ledger.aggregated);
    input.ledger.held = 0;
    if (gone > 0) input.ledger.dropped[model::kDamaged] += gone;
    lost += gone;
  }
  alarms_.raise(
      fmt::format("the journal of this edge is lost: it goes on from its newest chunk; {} samples that were in no "
                  "chunk are lost, and "
                  "series are accepted as if they were new",
                  lost));
  dirty_ = force_chunk_ = true;
  absl::Status status = engine_->restore(state);
  // Rows in the outbox name these groups by number.
  for (const std::string& bytes : recovery.groups) {
    absl::StatusOr<model::EdgeState> groups = codec::decode_edge_state(bytes);
    if (status.ok()) status = groups.ok() ? engine_->restore(*groups) : groups.status();
  }
  return status;
}

absl::Status EdgeRole::restore_outbox(const store::EdgeRecovery& recovery) {
  std::uint64_t damaged = 0;
  for (const store::OutboxEntry& entry : recovery.outbox) {
    if (entry.sequence <= acknowledged_) continue;
    Pending& chunk = pending_[entry.sequence];
    chunk.samples = entry.facts.samples;
    chunk.from = entry.facts.from;
    chunk.to = entry.facts.to;
    chunk.rows = entry.facts.rows;
    chunk.raw_samples = entry.facts.raw_samples;
    if (entry.tombstone) {
      absl::StatusOr<store::StoredChunk> stored = store_->load(entry.sequence);
      if (!stored.ok()) return stored.status();
      const std::vector<model::Tombstone>& said = stored->range.note.tombstones;
      chunk.lost = said.empty() ? model::kDamaged : said.front().reason;
      chunk.durable = true;
      ++tombstones_;
      // The process may have died before a chunk could tell the cloud of the accounts that belong to it.
      dirty_ = force_chunk_ = true;
    } else if (entry.lost) {
      lose(entry.sequence, model::kDamaged);
      ++damaged;
    }
  }
  if (damaged > 0) {
    alarms_.raise(fmt::format("{} chunks of the outbox are damaged: their rows are lost, and told to the cloud as lost",
                              damaged));
  }
  if (recovery.newest) raw_sealed_ = recovery.newest->raw_sealed;
  if (recovery.newest && !told_of_losses(*recovery.newest)) dirty_ = force_chunk_ = true;
  if (damaged > 0 || recovery.without_journal) write_losses();
  return absl::OkStatus();
}

// Whether the accounts of what is dropped are those that went into the newest chunk: the process may have died between
// the commit that changed them and the chunk that tells the cloud.
bool EdgeRole::told_of_losses(const store::ChunkFacts& newest) const {
  for (const auto& [key, state] : engine_->inputs()) {
    const auto told = std::find_if(newest.inputs.begin(), newest.inputs.end(),
                                   [&k = key](const model::InputState& input) { return input.key == k; });
    if (told != newest.inputs.end() && told->ledger.dropped != state.ledger.dropped) return false;
  }
  return true;
}

// The chunk's rows are gone: so say the accounts, and the next commit.
void EdgeRole::lose(model::Sequence sequence, const std::string& reason) {
  const auto found = pending_.find(sequence);
  if (found == pending_.end() || !found->second.lost.empty()) return;
  Pending& chunk = found->second;
  chunk.lost = reason;
  ++tombstones_;
  engine_->lose(chunk.samples, reason);
  const model::Tombstone tombstone{sequence, sequence, reason, chunk.samples, chunk.from, chunk.to, chunk.raw_samples};
  dirty_ = force_chunk_ = true;  // the cloud has to hear of it
  model::Range range;
  range.node = node_.name;
  range.note.tombstones = {tombstone};
  std::size_t bytes = link::wire_bytes(range);
  if (on_disk()) {
    new_tombstones_.push_back(tombstone);
  } else if (const auto kept = kept_.find(sequence); kept != kept_.end()) {
    kept->second.rows.clear();
    kept->second.rows.shrink_to_fit();
    kept->second.range.note.tombstones = {tombstone};
    bytes = link::wire_bytes(kept->second.range);
    chunk.durable = true;
    desk_.lost(sequence, "dropped at the bound of the outbox");
  }
  origin_.lost(sequence, bytes);
}

// What the store found damaged since.
void EdgeRole::take_up_losses() {
  if (!on_disk()) return;
  const std::uint64_t before = tombstones_;
  for (const model::Tombstone& tombstone : store_->lost()) {
    for (model::Sequence s = tombstone.first; s <= tombstone.last; ++s) lose(s, tombstone.reason);
  }
  if (tombstones_ == before) return;
  alarms_.raise(fmt::format("{} chunks of the outbox are damaged: their rows are lost, and told to the cloud as lost",
                            tombstones_ - before));
}

// A commit, now: there is something in the accounts that must not wait. False when it has to. Without chunks, but for
// raw samples: what a commit says was accepted is in chunks.
bool EdgeRole::write_losses() {
  if (failed_commit_ || given_up_) return false;
  ChunkMaker chunks = chunk_maker();
  std::optional<stream::Sealed> sealed;
  if (engine_->raw_samples() > 0) {
    sealed = engine_->seal(stream::SealScope::kPublished, stream::SealWhen::kAlways,
                           [&](stream::SealedRows& rows) { chunks.add(rows); });
  }
  absl::StatusOr<Commit> commit = make_commit(sealed ? &*sealed : nullptr, chunks);
  if (!commit.ok()) return give_up(commit.status());
  dirty_ = true;  // force_chunk_ stands: the accounts have to be told
  return write(*commit);
}

bool EdgeRole::give_up(const absl::Status& why) {
  given_up_ = true;
  alarms_.raise(fmt::format(
      "what was accepted cannot be encoded, nothing is taken or committed until this node is started again, "
      "which goes on from the last commit: {}",
      base::message(why)));
  desk_.give_up("this node cannot encode what it accepted");
  return false;
}

// At the bound, the oldest chunks become tombstones until an eighth of it is free.
void EdgeRole::drop_oldest() {
  if (at_bound() != model::OutboxFull::kDropOldest || !outbox_full()) return;
  const std::uint64_t enough = outbox_bytes() - outbox_bytes() / 8;
  model::Sequence s = std::max(drop_from_, acknowledged_) + 1;
  std::uint64_t dropped = 0;
  for (; s < origin_.next_sequence() && origin_.pending_bytes() > enough; ++s) {
    const auto chunk = pending_.find(s);
    const std::uint64_t before = tombstones_;
    if (chunk != pending_.end() && chunk->second.rows + chunk->second.raw_samples > 0)
      lose(s, model::kDropOldest);  // else there is nothing to gain
    dropped += tombstones_ - before;
    drop_from_ = s;
  }
  nothing_to_drop_ = outbox_full();
  if (dropped == 0) return;
  alarms_.raise(
      fmt::format("the outbox has reached its bound of {} bytes: the oldest chunks are dropped, and told to the "
                  "cloud as lost",
                  outbox_bytes()));
  if (nothing_to_drop_) {
    alarms_.raise("the outbox is full of chunks that are dropped already: samples that come in are dropped");
  }
}

}  // namespace orla::node
