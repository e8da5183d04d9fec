// EdgeRole's way up: what the outbox's core says is done here.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"
#include "codec/edge_state.h"
#include "codec/rows.h"
#include "link/ranges.h"
#include "node/edge_role.h"
#include "node/group_table.h"

namespace orla::node {

namespace {

constexpr std::chrono::milliseconds kRetryTrim{500};

struct EncodedState : stream::StateSink {
  void series(std::vector<model::SeriesState>& piece) override { encoded.add_series(piece); }
  void open(model::PartialRows& piece) override { encoded.add_open(piece); }
  codec::StatePieces encoded;
};

struct Nowhere : stream::StateSink {
  void series(std::vector<model::SeriesState>&) override {}
  void open(model::PartialRows&) override {}
};

}  // namespace

// What an action does may raise further ones: they follow it.
void EdgeRole::pump_origin() {
  if (std::exchange(pumping_, true)) return;
  for (std::vector<link::OriginCore::Action> actions = origin_.take_actions(); !actions.empty();
       actions = origin_.take_actions()) {
    for (const link::OriginCore::Action& action : actions) act(action);
  }
  pumping_ = false;
}

void EdgeRole::act(const link::OriginCore::Action& action) {
  if (const auto* send = std::get_if<link::OriginCore::SendChunk>(&action)) {
    send_chunk(*send);
  } else if (const auto* open = std::get_if<link::OriginCore::SendOpen>(&action)) {
    uplink_.send(open->message);
  } else if (const auto* cut = std::get_if<link::OriginCore::Trim>(&action)) {
    trim(*cut);
  } else if (const auto* again = std::get_if<link::OriginCore::Renumber>(&action)) {
    renumber(*again);
  } else if (const auto* begin = std::get_if<link::OriginCore::Started>(&action)) {
    started(*begin);
  } else if (const auto* lost = std::get_if<link::OriginCore::EpochLost>(&action)) {
    world_.log.warn("starts again from what the cloud has: {}", lost->reason);
    pump_.stop();
    kept_.clear();
    pending_.clear();
    new_tombstones_.clear();
    regained_.reset();
    tombstones_ = drop_from_ = acknowledged_ = 0;
    nothing_to_drop_ = false;
    sealed_at_.clear();
    inputs_started_ = false;
    for (Input& input : inputs_) input.running = input.done = false;
    std::fill(owed_.begin(), owed_.end(), 0);
    desk_.give_up("this node's epoch was closed by another start of it; it starts again from what the cloud has");
    new_engine();
    dirty_ = false;
  } else if (const auto* alarm = std::get_if<link::OriginCore::Alarm>(&action)) {
    alarms_.raise(alarm->text);
  }
}

void EdgeRole::started(const link::OriginCore::Started& action) {
  new_engine();
  // The new engine numbers its groups anew.
  if (dictionary_sent_ > 0) uplink_.reconnect("groups are numbered anew");
  for (const model::StateEntry& entry : action.states) {
    absl::StatusOr<model::EdgeState> state = codec::decode_edge_state(entry.bytes);
    absl::Status status = state.ok() ? engine_->restore(*state) : state.status();
    if (!status.ok()) {
      alarms_.raise(fmt::format("the state the cloud keeps of this node is unusable: {}", base::message(status)));
      return;
    }
  }
  // Chunks that were dropped after the state was sealed, or were folded in before they were dropped: the cloud knows
  // which.
  for (const auto& [key, state] : engine_->inputs()) {
    const auto had = state.ledger.dropped.find(model::kDropOldest);
    const std::uint64_t told = had == state.ledger.dropped.end() ? 0 : had->second;
    std::uint64_t stands = 0;
    for (const model::Loss& loss : action.losses) {
      if (loss.reason != model::kDropOldest) continue;
      for (const auto& [input, count] : loss.samples) stands += input == key ? count : 0;
    }
    if (stands == told) continue;
    if (stands > told)
      engine_->lose({{key, stands - told}}, model::kDropOldest);
    else
      engine_->regain({{key, told - stands}}, model::kDropOldest);
    dirty_ = force_chunk_ = true;  // the accounts that the cloud has are those of the state
  }
  samples_in_ = 0;
  for (const auto& [key, state] : engine_->inputs()) samples_in_ += state.ledger.received;
  samples_at_seal_ = samples_in_;
  need_snapshot_ = true;
  world_.log.info("epoch opened at the cloud, {} state entries", action.states.size());
  start_inputs();
}

absl::StatusOr<EdgeRole::Commit> EdgeRole::make_commit(const stream::Sealed* sealed, ChunkMaker& chunks) {
  // A snapshot is due at the first commit, and when the journal has outgrown its bound and the snapshot before it.
  const store::JournalBytes journal =
      on_disk() ? store_->journal_bytes() : store::JournalBytes{snapshot_bytes_, journal_bytes_};
  const auto bound = static_cast<std::uint64_t>(limit(plan_.fleet, "journal_bytes"));
  const bool snapshot = need_snapshot_ || journal.since > std::max(bound, 2 * journal.snapshot);
  model::EdgeState state;
  EncodedState pieces;
  if (snapshot) {
    Nowhere contained;  // in the snapshot
    engine_->take_changes(contained);
    state = engine_->snapshot(pieces);
  } else {
    state = engine_->take_changes(pieces);
  }
  Commit commit;
  commit.entry.snapshot = snapshot;
  commit.entry.state = codec::encode_edge_state_of(state, pieces.encoded);
  if (!state.new_groups.empty()) {
    model::EdgeState groups;
    groups.new_groups = std::move(state.new_groups);
    commit.groups = codec::encode_edge_state(groups);
  }
  if (sealed != nullptr) {
    absl::StatusOr<std::vector<store::StoredChunk>> made = chunks.finish(*sealed);
    if (!made.ok()) return made.status();
    commit.chunks = *std::move(made);
    number(commit.chunks, *sealed);
    if (!on_disk()) commit.chunks.back().range.note.states.push_back({snapshot, commit.entry.state});
  }
  commit.tombstones = std::exchange(new_tombstones_, {});
  commit.meta = meta_after(commit.chunks);
  desk_.taken(commit.meta.next_sequence - 1);
  dirty_ = false;
  samples_since_commit_ = 0;
  need_snapshot_ = false;
  journal_bytes_ = snapshot ? 0 : journal_bytes_ + commit.entry.state.size();
  if (snapshot) snapshot_bytes_ = commit.entry.state.size();
  return commit;
}

// Numbers and chains them. Publication and accounts are true only once all rows of the seal are there: they ride in the
// last chunk.
void EdgeRole::number(std::vector<store::StoredChunk>& chunks, const stream::Sealed& sealed) {
  model::Sequence sequence = origin_.next_sequence();
  base::Digest chain = origin_.chain();
  for (store::StoredChunk& chunk : chunks) {
    chunk.facts.raw_sealed = raw_sealed_ += chunk.facts.raw_samples;
    chunk.range.node = node_.name;
    chunk.range.epoch = origin_.epoch();
    chunk.range.first = chunk.range.last = sequence;
    chunk.range.chain_before = chain;
    chunk.range.chain_after = chain = link::chunk_chain(chain, sequence, chunk.rows);
    ++sequence;
  }
  chunks.back().range.note.publications = sealed.publications;
  chunks.back().range.note.ledgers = sealed.ledgers;
}

store::EdgeMeta EdgeRole::meta_after(const std::vector<store::StoredChunk>& chunks) const {
  store::EdgeMeta meta;
  meta.node = node_.name;
  meta.epoch = origin_.epoch();
  meta.next_sequence = origin_.next_sequence() + chunks.size();
  meta.acknowledged = acknowledged_;
  meta.chain = chunks.empty() ? origin_.chain() : chunks.back().range.chain_after;
  return meta;
}

absl::StatusOr<store::StoredChunk> EdgeRole::load(model::Sequence sequence) {
  if (on_disk()) return store_->load(sequence);
  const auto found = kept_.find(sequence);
  if (found == kept_.end()) return absl::NotFoundError(fmt::format("chunk {} is not kept", sequence));
  return found->second;
}

void EdgeRole::send_chunk(const link::OriginCore::SendChunk& action) {
  absl::StatusOr<store::StoredChunk> chunk = load(action.sequence);
  if (!chunk.ok()) {
    origin_.unreadable(world_.clock.steady_now(), action.sequence, base::message(chunk.status()));
    return;
  }
  const auto dropped = pending_.find(action.sequence);
  if (chunk->range.note.tombstones.empty() && dropped != pending_.end() && !dropped->second.lost.empty() &&
      !dropped->second.durable) {
    // Its credit is that of the tombstone, which a commit still has to write.
    origin_.unreadable(world_.clock.steady_now(), action.sequence, "its loss is not written down yet");
    return;
  }
  if (!chunk->range.note.tombstones.empty()) {
    // It may be acknowledged, and forgotten, from here on: what is lost has to be in the accounts before.
    take_up_losses();
    const auto pending = pending_.find(action.sequence);
    const bool told = pending == pending_.end() || pending->second.durable || write_losses();
    if (!told) {
      origin_.unreadable(world_.clock.steady_now(), action.sequence, "its loss cannot be written down");
      return;
    }
    if (chunk->rows.empty()) chunk->rows = codec::encode_rows({});
  }
  send_dictionary(
      dictionary_sent_, engine_->group_count(),
      [this](std::size_t i) { return engine_->group(static_cast<model::GroupId>(i)); },
      [this](link::Dictionary message) { uplink_.send(std::move(message)); });
  link::FrameMessage frame{action.frame, {std::move(chunk->range)}, std::move(chunk->rows)};
  ++frames_sent_;
  bytes_sent_ += link::wire_bytes(link::UpMessage(frame));
  uplink_.send(std::move(frame));
}

void EdgeRole::trim(const link::OriginCore::Trim& action) {
  uplink_.progressed();
  sealed_at_.erase(sealed_at_.begin(), sealed_at_.upper_bound(action.through));
  bool regained = false;
  const auto end = pending_.upper_bound(action.through);
  for (auto it = pending_.begin(); it != end; ++it) {
    const Pending& chunk = it->second;
    if (chunk.lost.empty()) continue;
    --tombstones_;
    if (link::contains(action.tombstones, it->first)) continue;
    // The original got through before its tombstone.
    engine_->regain(chunk.samples, chunk.lost);
    regained = regained || !chunk.samples.empty();
  }
  pending_.erase(pending_.begin(), end);
  acknowledged_ = action.through;
  nothing_to_drop_ = false;
  if (regained) {
    dirty_ = force_chunk_ = true;
    if (on_disk()) regained_ = action.through;
  }
  if (!on_disk()) {
    kept_.erase(kept_.begin(), kept_.upper_bound(action.through));
    desk_.acknowledged(action.through);
  } else if (regained_) {
    write_losses();
  } else {
    settle();
  }
}

// Drops what is acknowledged from the disk. Not before the accounts there say what stands.
void EdgeRole::settle() {
  absl::Status status = store_->trim(acknowledged_);
  trim_owed_ = !status.ok();
  if (status.ok()) {
    trimmed_ = acknowledged_;
  } else {
    retry_trim_at_ = world_.clock.steady_now() + kRetryTrim;
    world_.log.warn("cannot trim the outbox yet: {}", base::message(status));
  }
}

void EdgeRole::renumber(const link::OriginCore::Renumber& action) {
  const base::SteadyTime now = world_.clock.steady_now();
  // A commit that waits for the disk is numbered in the closed epoch: it has to be through first. What is lost has to
  // be in the accounts before the chunk is a tombstone of the new outbox.
  take_up_losses();
  if (failed_commit_ || given_up_ || ((regained_ || !new_tombstones_.empty()) && !write_losses())) {
    return origin_.renumber_failed(now);
  }
  std::map<model::Sequence, Pending> renumbered;
  std::vector<store::StoredChunk> outbox;
  link::OriginState state;
  state.epoch = action.epoch;
  for (model::Sequence s = action.folded + 1; s < origin_.next_sequence(); ++s) {
    absl::StatusOr<store::StoredChunk> chunk = load(s);
    if (!chunk.ok()) {
      alarms_.raise(fmt::format("cannot renumber chunk {}: {}", s, base::message(chunk.status())));
      return origin_.renumber_failed(now);
    }
    const auto pending = pending_.find(s);
    if (!chunk->range.note.tombstones.empty()) {
      if (pending != pending_.end() && !pending->second.durable) {
        take_up_losses();
        if (!write_losses()) return origin_.renumber_failed(now);
      }
      model::Tombstone& tombstone = chunk->range.note.tombstones.front();
      tombstone.first = tombstone.last = state.next_sequence;
    }
    if (pending != pending_.end()) renumbered.emplace(state.next_sequence, pending->second);
    model::Range& range = chunk->range;
    range.epoch = action.epoch;
    range.first = range.last = state.next_sequence;
    range.chain_before = state.chain;
    range.chain_after = state.chain = link::chunk_chain(state.chain, range.first, chunk->rows);
    state.outbox.emplace_back(state.next_sequence, chunk->rows.size() + link::wire_bytes(range));
    ++state.next_sequence;
    outbox.push_back(*std::move(chunk));
  }
  store::EdgeMeta meta;
  meta.node = node_.name;
  meta.epoch = state.epoch;
  meta.next_sequence = state.next_sequence;
  meta.chain = state.chain;
  if (absl::Status status = store_->renumber(meta, outbox); !status.ok()) {
    world_.log.error("cannot renumber the outbox yet: {}", base::message(status));
    return origin_.renumber_failed(now);
  }
  world_.log.warn("its epoch was closed at the cloud: {} chunks go on in a new one", outbox.size());
  sealed_at_.clear();
  pending_ = std::move(renumbered);
  acknowledged_ = trimmed_ = drop_from_ = 0;
  trim_owed_ = false;
  origin_.renumbered(now, state);
  if (!inputs_started_) start_inputs();
}

}  // namespace orla::node
