#include "node/edge_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"
#include "codec/edge_state.h"
#include "codec/rows.h"
#include "link/ranges.h"
#include "node/edge_disk.h"
#include "node/group_table.h"
#include "node/uplink_settings.h"

namespace orla::node {

namespace {

constexpr std::chrono::milliseconds kTick{20};
constexpr std::chrono::milliseconds kRetryCommit{200};
constexpr std::chrono::seconds kTellProgress{1};
constexpr std::size_t kShownRejections = 8;
// Why samples are dropped before they are accepted, with outbox_full = "reject".
constexpr char kOutboxFull[] = "outbox_full";

link::OriginSettings origin_settings(const model::NodeSpec& node) {
  link::OriginSettings settings;
  settings.node = node.name;
  settings.durability = node.durability;
  return settings;
}

std::vector<std::string> keys_of(const model::Plan& plan, const model::NodeSpec& node) {
  std::vector<std::string> keys;
  for (const model::InputSpec& input : plan.fleet.inputs)
    if (input.node == node.name) keys.push_back(input.key);
  return keys;
}

}  // namespace

EdgeRole::EdgeRole(const model::Plan& plan, const model::NodeSpec& node, World world, store::EdgeStore* store,
                   link::UplinkCarrier& carrier, InputPump& pump, stream::ShardWorkers* shards)
    : plan_(plan),
      node_(node),
      world_(world),
      store_(store),
      pump_(pump),
      shards_(shards),
      alarms_(world.log),
      origin_(origin_settings(node), world.random),
      uplink_(uplink_settings(plan.fleet, node), carrier, world.clock, world.random,
              {.session_up =
                   [this](const link::UplinkCore::SessionUp& up) {
                     ++connects_;
                     uplink_error_.clear();
                     dictionary_sent_ = 0;
                     world_.log.info("connected to parent {}", up.parent);
                     origin_.session_up(world_.clock.steady_now(), up.credit_bytes);
                     pump_origin();
                   },
               .session_down =
                   [this](const link::UplinkCore::SessionDown& down) {
                     uplink_error_ = down.reason;
                     world_.log.warn("lost parent {}: {}", down.parent, down.reason);
                     origin_.session_down();
                     pump_origin();
                   },
               .message =
                   [this](link::DownMessage message) {
                     origin_.received(world_.clock.steady_now(), message);
                     pump_origin();
                   },
               .trouble =
                   [this](const std::string& text) {
                     uplink_error_ = text;
                     world_.log.warn("{}", text);
                   }}),
      desk_(world.loop, world.clock, desk_limits(plan.fleet), [this] { commit(); }) {
  for (const model::InputSpec& spec : plan.fleet.inputs) {
    if (spec.node == node.name) inputs_.emplace_back().spec = &spec;
    live_ = live_ || (spec.node == node.name && model::is_live(spec.kind));
  }
  owed_.resize(inputs_.size());
  pump_.set_events({.batch = [this](std::size_t input, const model::InputBatch& batch,
                                    model::Time paced_now) { on_batch(input, batch, paced_now); },
                    .failed = [this](std::size_t input, absl::Status why) { on_input_failed(input, why); }});
  new_engine();
}

EdgeRole::~EdgeRole() {
  pump_.set_events(
      {.batch = [](std::size_t, const model::InputBatch&, model::Time) {}, .failed = [](std::size_t, absl::Status) {}});
}

void EdgeRole::new_engine() {
  stream::EngineLimits limits;
  limits.series = static_cast<std::size_t>(limit(plan_.fleet, "series"));
  limits.groups = static_cast<std::size_t>(limit(plan_.fleet, "groups"));
  limits.open_rows = static_cast<std::size_t>(limit(plan_.fleet, "open_rows"));
  limits.producers = static_cast<std::size_t>(limit(plan_.fleet, "producers"));
  engine_ = std::make_unique<stream::EdgeEngine>(plan_, keys_of(plan_, node_), limits, shards_);
}

absl::Status EdgeRole::start() {
  if (on_disk()) {
    if (absl::Status status = restore(); !status.ok()) return status;
  } else {
    origin_.start({});
  }
  pump_origin();
  // Accounts that changed with what was lost go into a chunk before anything of it can be acknowledged.
  if (force_chunk_) commit();
  ticker_ = std::make_unique<Ticker>(world_.loop, kTick, [this] { tick(); });
  if (const auto period = maintain_period(node_); on_disk() && period < kTick) {
    sync_ticker_ = std::make_unique<Ticker>(world_.loop, period, [this] { maintain(); });
  }
  uplink_.start();
  // An edge that has to open a new epoch first would not know where to put what it reads.
  if (on_disk() && origin_.ready()) start_inputs();
  return absl::OkStatus();
}

absl::Status EdgeRole::restore() {
  base::SteadyTime told = world_.clock.steady_now();
  absl::StatusOr<store::EdgeRecovery> recovery = store_->recover([&](std::uint64_t done, std::uint64_t all) {
    if (watch_recovery_) watch_recovery_(done, all);
    if (world_.clock.steady_now() - told < kTellProgress) return;
    told = world_.clock.steady_now();
    world_.log.info("reads its state: {} of {} MiB", done >> 20, all >> 20);
  });
  if (!recovery.ok()) return recovery.status();
  for (const std::string& bytes : recovery->journal) {
    absl::StatusOr<model::EdgeState> state = codec::decode_edge_state(bytes);
    if (!state.ok()) return state.status();
    if (absl::Status status = engine_->restore(*state); !status.ok()) return status;
  }
  for (const store::EdgeDamage& damage : recovery->damage) {
    world_.log.error("{}: {} bytes at {} are damaged: {}", damage.file, damage.bytes, damage.offset, damage.what);
  }
  const store::EdgeMeta& meta = recovery->meta;
  if (meta.epoch != model::Epoch{} && meta.node != node_.name) {
    return absl::FailedPreconditionError(absl::StrCat("this state belongs to node \"", meta.node, "\", not to \"",
                                                      node_.name, "\": give every node its own state directory"));
  }
  if (!recovery->journal.empty()) {
    world_.log.info("goes on where it stopped: {} journal entries, {} chunks not yet acknowledged",
                    recovery->journal.size(), recovery->outbox.size());
  }
  link::OriginState origin{meta.epoch, meta.next_sequence, meta.acknowledged, meta.chain, {}, recovery->reopen};
  model::Range bare;
  bare.node = node_.name;
  const std::size_t bare_bytes = link::wire_bytes(bare);
  for (const store::OutboxEntry& entry : recovery->outbox) {
    origin.outbox.emplace_back(entry.sequence, entry.bytes + bare_bytes);
  }
  origin_.start(origin);
  acknowledged_ = trimmed_ = meta.acknowledged;
  if (recovery->without_journal) {
    if (absl::Status status = restore_without_journal(*recovery); !status.ok()) return status;
  }
  need_snapshot_ = recovery->journal.empty();
  if (absl::Status status = restore_outbox(*recovery); !status.ok()) return status;
  // Until it is durable nothing is taken, and no duplicate acknowledged.
  if (recovery->unsettled) write_losses();
  for (const auto& [key, state] : engine_->inputs()) samples_in_ += state.ledger.received;
  return absl::OkStatus();
}

void EdgeRole::start_inputs() {
  inputs_started_ = true;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const model::InputState& state = engine_->input(i);
    if (state.ended) {
      inputs_[i].done = true;
      continue;
    }
    if (stop_requested_) {
      inputs_[i].done = inputs_[i].stopped = true;
      continue;
    }
    inputs_[i].running = true;
    inputs_[i].done = false;
    if (!model::is_live(inputs_[i].spec->kind)) pump_.start(i, *inputs_[i].spec, state.position);
  }
}

void EdgeRole::on_batch(std::size_t i, const model::InputBatch& batch, model::Time paced_now) {
  Input& input = inputs_[i];
  if (!input.running) return;
  const absl::Status status = intake() == Intake::kRefusing ? engine_->refuse(i, batch, kOutboxFull)
                                                            : engine_->apply(i, batch, world_.clock.wall_now());
  if (!status.ok()) return on_input_failed(i, status);
  if (paced_now != model::kMinTime) engine_->tick(i, paced_now);
  count_in(i, batch);
  if (batch.end_of_input) {
    input.running = false;
    input.done = true;
    force_chunk_ = true;
    world_.log.info("input {} has ended", input.spec->key);
  }
  ++owed_[i];
  if (commit_due() || inputs_done()) commit();
  release();
}

bool EdgeRole::commit_due() const {
  return samples_since_commit_ >= static_cast<std::uint64_t>(limit(plan_.fleet, "commit_samples")) ||
         (!on_disk() && (engine_->open_rows() >= kOpenRows || engine_->raw_samples() >= kOpenRawSamples));
}

void EdgeRole::count_in(std::size_t i, const model::InputBatch& batch) {
  Input& input = inputs_[i];
  samples_in_ += batch.received;
  samples_since_commit_ += batch.received;
  for (const model::Rejection& rejection : batch.rejections) {
    if (input.rejections.empty()) {
      world_.log.warn("{} line {}: {} ({})", input.spec->path.empty() ? input.spec->key : input.spec->path,
                      rejection.row, rejection.message, rejection.reason);
    }
    if (input.rejections.size() == kShownRejections) input.rejections.erase(input.rejections.begin());
    input.rejections.push_back(rejection);
  }
  dirty_ = true;
}

// Lets the inputs go on, unless what they would deliver has nowhere to go.
void EdgeRole::release() {
  if (intake() == Intake::kBlocked) return;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (; owed_[i] > 0; --owed_[i]) pump_.consumed(i);
  }
}

bool EdgeRole::outbox_full() const { return origin_.pending_bytes() >= outbox_bytes(); }

EdgeRole::Intake EdgeRole::intake() const {
  if (failed_commit_ || given_up_ || !origin_.ready() || !inputs_started_) return Intake::kBlocked;
  if (!outbox_full()) return Intake::kOpen;
  switch (at_bound()) {
    case model::OutboxFull::kBlock:
      return Intake::kBlocked;
    case model::OutboxFull::kReject:
      return Intake::kRefusing;
    case model::OutboxFull::kDropOldest:
      return nothing_to_drop_ ? Intake::kRefusing : Intake::kOpen;
  }
  return Intake::kBlocked;
}

void EdgeRole::on_input_failed(std::size_t i, const absl::Status& why) {
  Input& input = inputs_[i];
  if (!input.running) return;
  input.running = false;
  input.done = true;
  input.error = base::message(why);
  alarms_.raise(fmt::format("input {} cannot go on: {}", input.spec->key, input.error));
  engine_->publish_open();
  dirty_ = force_chunk_ = true;
  commit();
}

void EdgeRole::stop_inputs() {
  if (stop_requested_) return;
  stop_requested_ = true;
  pump_.stop();
  for (Input& input : inputs_) {
    if (!input.running) continue;
    input.running = false;
    input.done = input.stopped = true;
  }
  if (!inputs_started_) return;
  engine_->publish_open();
  dirty_ = force_chunk_ = true;
  commit();
}

bool EdgeRole::inputs_done() const {
  return inputs_started_ && std::all_of(inputs_.begin(), inputs_.end(), [](const Input& i) { return i.done; });
}

void EdgeRole::tick() {
  const base::SteadyTime now = world_.clock.steady_now();
  uplink_.tick();
  origin_.tick(now);
  pump_origin();
  if (trim_owed_ && !regained_ && now >= retry_trim_at_) settle();
  if (failed_commit_) {
    if (now >= retry_at_) commit();
  } else if (now - last_commit_ >= limit_ms(plan_.fleet, "commit_interval_ms")) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const model::Time paced = paced_now(i);
      if (paced != model::kMinTime && engine_->tick(i, paced)) dirty_ = true;
    }
    commit();
  }
  release();
  if (live_) watch_clock();
  desk_.tick();
  if (on_disk()) maintain();
  if (shutdown_done_) finish_shutdown();
}

void EdgeRole::maintain() {
  const absl::Status status = store_->maintain();
  if (!status.ok() && !maintain_failed_) world_.log.error("cannot sync the state: {}", base::message(status));
  maintain_failed_ = !status.ok();
}

bool EdgeRole::commit() {
  last_commit_ = world_.clock.steady_now();
  if (given_up_) return false;
  if (failed_commit_) {
    Commit again = *std::move(failed_commit_);
    failed_commit_.reset();
    if (!write(again)) return false;
  }
  if (engine_->emission_due(world_.clock.wall_now())) dirty_ = true;
  if (!dirty_ || !origin_.ready()) return true;
  drop_oldest();
  const stream::SealScope scope = on_disk() ? stream::SealScope::kPublished : stream::SealScope::kEverything;
  // Memory: senders wait for the chunk that holds what they pushed, whatever became of it.
  const stream::SealWhen when =
      force_chunk_ || (!on_disk() && desk_.untaken()) ? stream::SealWhen::kAlways : stream::SealWhen::kSomethingNew;
  ChunkMaker chunks = chunk_maker();
  const std::optional<stream::Sealed> sealed =
      engine_->seal(scope, when, [&](stream::SealedRows& rows) { chunks.add(rows); });
  // Memory: a change of state travels with the next chunk.
  if (!on_disk() && !sealed) return true;
  absl::StatusOr<Commit> commit = make_commit(sealed ? &*sealed : nullptr, chunks);
  if (!commit.ok()) return give_up(commit.status());
  force_chunk_ = false;
  return write(*commit);
}

bool EdgeRole::write(Commit& commit) {
  if (on_disk()) {
    // A commit that waited is older than what was acknowledged, and dropped, meanwhile.
    commit.meta.acknowledged = std::max(commit.meta.acknowledged, trimmed_);
    if (absl::Status status = store_->commit(commit); !status.ok()) {
      ++commit_failures_;
      if (commit_failures_ == 1 || commit_failures_ % 50 == 0) {
        world_.log.error("commit failed, inputs wait until it succeeds: {}", base::message(status));
      }
      retry_at_ = world_.clock.steady_now() + kRetryCommit;
      failed_commit_ = std::move(commit);
      return false;
    }
  }
  const base::SteadyTime now = world_.clock.steady_now();
  for (const model::Tombstone& tombstone : commit.tombstones) {
    for (model::Sequence s = tombstone.first; s <= tombstone.last; ++s) {
      if (const auto found = pending_.find(s); found != pending_.end()) found->second.durable = true;
    }
  }
  if (regained_ && commit.meta.acknowledged >= *regained_) {
    regained_.reset();
    settle();
  }
  for (store::StoredChunk& chunk : commit.chunks) {
    const model::Sequence sequence = chunk.range.first;
    const base::Digest chain = chunk.range.chain_after;
    const std::size_t bytes = chunk.rows.size() + link::wire_bytes(chunk.range);
    sealed_at_[sequence] = {now, samples_in_ - samples_at_seal_};
    samples_at_seal_ = samples_in_;
    pending_[sequence] = Pending{
        chunk.facts.samples, chunk.facts.from, chunk.facts.to, chunk.facts.rows, chunk.facts.raw_samples, "", false};
    if (!on_disk()) kept_.emplace(sequence, std::move(chunk));
    origin_.sealed(now, bytes, chain);
  }
  if (on_disk()) desk_.committed();
  pump_origin();
  return true;
}

void EdgeRole::shutdown(std::function<void(StopReport)> done) {
  pump_.stop();
  for (Input& input : inputs_) input.running = false;
  commit();
  shutdown_done_ = std::move(done);
  shutdown_deadline_ = world_.clock.steady_now() + kShutdown;
  finish_shutdown();
}

// Disk: done once the last commit is through. Memory: waits for the cloud, as long as there is time.
void EdgeRole::finish_shutdown() {
  const bool late = world_.clock.steady_now() >= shutdown_deadline_;
  const bool settled = on_disk() ? !failed_commit_ : origin_.drained();
  if (!settled && !late) return;
  StopReport report;
  if (!on_disk()) {
    for (const auto& [sequence, sealed] : sealed_at_) report.unacknowledged_samples += sealed.second;
    report.unacknowledged_samples += samples_in_ - samples_at_seal_;
  }
  if (on_disk()) {
    if (absl::Status status = store_->close(); !status.ok()) {
      world_.log.warn("cannot sync the state at the end: {}", base::message(status));
    }
  }
  ticker_.reset();
  sync_ticker_.reset();
  desk_.give_up("this node is shutting down");
  uplink_.stop();
  std::exchange(shutdown_done_, nullptr)(report);
}

void EdgeRole::fill(NodeStatus& status) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const model::InputState& state = engine_->input(i);
    InputStatus& out = status.inputs.emplace_back();
    out.key = inputs_[i].spec->key;
    out.position = state.position;
    out.ended = state.ended;
    out.stopped = inputs_[i].stopped;
    out.error = inputs_[i].error;
    out.progress = state.ended ? 1 : inputs_[i].running ? pump_.progress(i) : -1;
    out.ledger = state.ledger;
    out.newest = state.newest;
    out.rejections = inputs_[i].rejections;
  }
  if (live_) {
    desk_.fill(status.push.emplace());
    status.push->producers = engine_->producer_count();
    status.push->clock_set = clock_is_set();
  }
  status.samples_in = samples_in_;
  status.commit_failures = commit_failures_;
  status.alarms = alarms_.latest();
  UplinkStatus& up = status.uplink.emplace();
  up.connected = uplink_.core().up();
  up.parent = uplink_.core().parent();
  up.connects = connects_;
  up.frames_sent = frames_sent_;
  up.bytes_sent = bytes_sent_;
  up.refusals = origin_.counters().refused;
  up.error = uplink_error_.empty() ? origin_.stalled() : uplink_error_;
  OutboxStatus& outbox = status.outbox.emplace();
  outbox.chunks = origin_.pending_chunks();
  outbox.bytes = origin_.pending_bytes();
  outbox.acknowledged = origin_.acknowledged();
  outbox.last = origin_.next_sequence() - 1;
  outbox.disk_bytes = on_disk() ? store_->bytes() : 0;
  outbox.tombstones = tombstones_;
  switch (intake()) {
    case Intake::kOpen:
      outbox.intake = "open";
      break;
    case Intake::kBlocked:
      outbox.intake = "blocked";
      break;
    case Intake::kRefusing:
      outbox.intake = "refusing";
      break;
  }
  status.lag_s = 0;
  if (!sealed_at_.empty()) {
    status.lag_s = std::chrono::duration<double>(world_.clock.steady_now() - sealed_at_.begin()->second.first).count();
  }
  status.drained = inputs_done() && !dirty_ && !failed_commit_ && !given_up_ && !regained_ && origin_.drained();
  if (!origin_.ready() || !inputs_started_) status.ready = "waits for the cloud to open its epoch";
  if (failed_commit_ || given_up_) status.ready = given_up_ ? "cannot encode what it took" : "cannot write its state";
}

}  // namespace orla::node
