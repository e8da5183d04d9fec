#include "node/cloud_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"
#include "codec/content.h"
#include "forecast/model.h"
#include "node/uplink_settings.h"

namespace orla::node {

namespace {

constexpr std::chrono::milliseconds kTick{10};
constexpr std::chrono::milliseconds kRetryCommit{200};
// Forecast steps of one length that one commit publishes; the rest follows in the next, at once. Few, since heartbeats
// and the status page wait for a commit.
constexpr std::size_t kStepsPerCommit = 300;
// Changed rows a commit is started for before its time.
constexpr std::size_t kChangedRows = 200'000;
// Likewise raw samples.
constexpr std::uint64_t kPendingSamples = 4'000'000;
constexpr std::uint32_t kNoNumber = UINT32_MAX;

stream::CloudLimits cloud_limits(const model::Fleet& fleet) {
  stream::CloudLimits limits;
  limits.cached_window_rows = static_cast<std::size_t>(limit(fleet, "cached_window_rows"));
  limits.hopping_sums = static_cast<std::size_t>(limit(fleet, "hopping_sums"));
  limits.groups = static_cast<std::size_t>(limit(fleet, "groups"));
  limits.parked_rows = static_cast<std::size_t>(limit(fleet, "parked_rows"));
  limits.steps_per_change = kStepsPerCommit;
  return limits;
}

// Absolute, by key: what is said replaces what was said before.
template <typename Item, typename Key>
void replace(std::vector<Item>& into, const std::vector<Item>& from, Key key) {
  for (const Item& item : from) {
    const auto found = std::find_if(into.begin(), into.end(), [&](const Item& i) { return key(i) == key(item); });
    if (found == into.end()) {
      into.push_back(item);
    } else {
      *found = item;
    }
  }
}

}  // namespace

CloudRole::CloudRole(const model::Plan& plan, const model::NodeSpec& node, World world, store::CloudStore& store,
                     link::DownlinkCarrier& below)
    : plan_(plan),
      node_(node),
      world_(world),
      store_(store),
      alarms_(world.log),
      windows_(store),
      downlink_(downlink_settings(plan.fleet, node), below, world.clock,
                {.child_up =
                     [this](const link::DownlinkCore::ChildUp& up) {
                       world_.log.info("child {} is connected", up.node);
                       children_[up.child] = Child{up.node, up.layer, world_.clock.steady_now(), {}, 0, 0};
                     },
                 .child_down =
                     [this](const link::DownlinkCore::ChildDown& down) {
                       world_.log.info("child {} is gone: {}", down.node, down.reason);
                       children_.erase(down.child);
                       root_->child_down(down.child);
                       pump_root();
                     },
                 .message = [this](link::ConnectionId child,
                                   link::UpMessage message) { on_child_message(child, std::move(message)); }}) {}

absl::Status CloudRole::start() {
  if (absl::Status status = restore(); !status.ok()) return status;
  absl::StatusOr<std::string> address = downlink_.listen(node_.listen);
  if (!address.ok()) return address.status();
  listen_ = *std::move(address);
  ticker_ = std::make_unique<Ticker>(world_.loop, kTick, [this] { tick(); });
  return absl::OkStatus();
}

absl::Status CloudRole::restore() {
  absl::StatusOr<store::CloudRecovery> recovery = store_.recover();
  if (!recovery.ok()) return recovery.status();
  std::vector<model::Cursor> cursors;
  std::vector<link::ClosedOrigin> closed;
  for (const store::OriginRow& origin : recovery->origins) {
    cursors.push_back(origin.cursor);
    origins_.emplace(origin.cursor.node, origin);
  }
  for (const store::ClosedEpoch& epoch : recovery->closed) {
    closed.push_back({epoch.node, epoch.epoch, epoch.last, epoch.tombstones});
  }
  if (!cursors.empty()) world_.log.info("goes on where it stopped: {} origins", cursors.size());
  root_ = std::make_unique<link::RootCore>(cursors, closed);
  absl::StatusOr<std::unique_ptr<stream::CloudEngine>> engine = stream::CloudEngine::create(
      plan_, windows_, cloud_limits(plan_.fleet), past_of(*recovery), world_.clock.steady_now());
  if (!engine.ok()) return engine.status();
  engine_ = *std::move(engine);
  last_commit_ = world_.clock.steady_now();
  return absl::OkStatus();
}

void CloudRole::on_child_message(link::ConnectionId connection, link::UpMessage message) {
  const auto found = children_.find(connection);
  if (found == children_.end()) return;
  Child& child = found->second;
  if (auto* dictionary = std::get_if<link::Dictionary>(&message)) {
    const absl::Status status =
        child.groups.define(*dictionary, [this](const model::GroupDef& group) { return intern(group); });
    // What cannot be defined shows again at the frame that uses it, and is refused there.
    if (!status.ok()) alarms_.raise(fmt::format("child {}: {}", child.node, base::message(status)));
  } else if (auto* frame = std::get_if<link::FrameMessage>(&message)) {
    on_frame(connection, child, std::move(*frame));
  } else if (auto* open = std::get_if<link::OpenEpoch>(&message)) {
    root_->open(connection, *open);
  }
  pump_root();
}

absl::StatusOr<model::GroupId> CloudRole::intern(const model::GroupDef& group) {
  absl::StatusOr<model::GroupId> id = engine_->intern(group);
  if (!id.ok()) return id;
  const std::size_t at = model::index(*id);
  if (at >= raw_groups_.size()) {
    raw_groups_.resize(at + 1);
    raw_numbers_.resize(at + 1, kNoNumber);
  }
  if (!raw_groups_[at]) raw_groups_[at] = model::raw_series(group);
  return id;
}

// Of a frame's blocks. Runs keep the numbers they have there.
absl::StatusOr<std::vector<model::Batch>> CloudRole::samples_of(const std::vector<model::SampleBlock>& blocks) {
  std::vector<model::Batch> out;
  out.reserve(blocks.size());
  for (const model::SampleBlock& block : blocks) {
    for (const model::SampleBlock::Run& run : block.runs) {
      if (model::index(run.group) >= raw_groups_.size() || !raw_groups_[model::index(run.group)]) {
        return absl::InvalidArgumentError(
            fmt::format("samples of group {}, which is of no raw stream", model::index(run.group)));
      }
    }
    if (absl::Status status = codec::decode_block(decoder_, block, out.emplace_back()); !status.ok()) return status;
  }
  return out;
}

void CloudRole::keep(const std::vector<model::SampleBlock>& blocks, std::vector<model::Batch> samples) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t r = 0; r < blocks[i].runs.size(); ++r) {
      const model::GroupId group = blocks[i].runs[r].group;
      std::uint32_t& number = raw_numbers_[model::index(group)];
      if (number == kNoNumber) {
        number = static_cast<std::uint32_t>(new_series_.size());
        new_series_.push_back(*raw_groups_[model::index(group)]);
        numbered_.push_back(group);
      }
      samples[i].runs[r].series = model::SeriesId{number};
    }
    pending_samples_ += samples[i].size();
    new_samples_.push_back(std::move(samples[i]));
  }
}

void CloudRole::on_frame(link::ConnectionId connection, Child& child, link::FrameMessage frame) {
  const std::size_t bytes = link::wire_bytes(link::UpMessage(frame));
  ++frames_in_;
  bytes_in_ += bytes;
  ++child.frames;
  child.bytes += bytes;
  // Neither a commit that failed nor one half prepared may have cursors moved on under it.
  if (failed_commit_ || taken_) {
    root_->refuse(connection, frame.id, frame.ranges, link::RefusalReason::kFull,
                  "the cloud cannot write its store at the moment");
    return;
  }
  absl::StatusOr<model::Content> content = codec::decode_content(frame.rows);
  absl::Status status = content.ok() ? child.groups.translate(*content) : content.status();
  std::vector<model::Batch> samples;
  if (status.ok()) {
    absl::StatusOr<std::vector<model::Batch>> decoded = samples_of(content->samples);
    if (decoded.ok()) samples = *std::move(decoded);
    status = decoded.status();
  }
  if (!status.ok()) {
    alarms_.raise(fmt::format("frame of child {} refused: {}", child.node, base::message(status)));
    root_->refuse(connection, frame.id, frame.ranges, link::RefusalReason::kMalformed, base::message(status));
    return;
  }
  if (root_->offer(connection, frame.id, frame.ranges) != link::RootCore::Verdict::kFold) return;
  if (status = engine_->fold(content->rows); !status.ok()) {
    const bool later = status.code() != absl::StatusCode::kInvalidArgument;
    if (!later) alarms_.raise(fmt::format("frame of child {} refused: {}", child.node, base::message(status)));
    root_->refuse(connection, frame.id, frame.ranges,
                  later ? link::RefusalReason::kFull : link::RefusalReason::kMalformed, base::message(status));
    return;
  }
  keep(content->samples, std::move(samples));
  rows_folded_ += content->rows.size();
  bytes_since_commit_ += bytes;
  root_->folded(connection, frame.id, frame.ranges);
  for (const model::Range& range : frame.ranges) note(range);
  if (bytes_since_commit_ >= static_cast<std::uint64_t>(limit(plan_.fleet, "commit_bytes")) ||
      engine_->changed_rows() >= kChangedRows || pending_samples_ >= kPendingSamples) {
    commit();
  }
}

void CloudRole::note(const model::Range& range) {
  store::OriginRow& origin = origins_[range.node];
  replace(origin.publications, range.note.publications, [](const model::Publication& p) { return p.metric; });
  replace(origin.ledgers, range.note.ledgers, [](const auto& l) { return l.first; });
  for (const model::StateEntry& entry : range.note.states) new_states_.emplace_back(range.node, entry);
  for (const model::Tombstone& tombstone : range.note.tombstones) {
    if (!model::add_loss(origin.losses, tombstone)) continue;
    alarms_.raise(
        fmt::format("node \"{}\" lost data for good ({}): its chunks from {} on have no rows; how much is "
                    "counted in its losses",
                    range.node, tombstone.reason, tombstone.first));
  }
  engine_->heard(range.node, range.note.publications, world_.clock.steady_now());
}

void CloudRole::tick() {
  const base::SteadyTime now = world_.clock.steady_now();
  downlink_.tick();
  if (failed_commit_) {
    if (now >= retry_at_) commit();
    return;
  }
  // Forecasts that did not fit into the last commit do not wait. Publication may move by silence alone; then a look
  // every second is enough.
  std::chrono::nanoseconds due = std::chrono::seconds(1);
  if (root_->dirty()) due = limit_ms(plan_.fleet, "commit_interval_ms");
  if (commit_again_) due = due.zero();
  if (now - last_commit_ >= due) commit();
}

absl::StatusOr<store::CloudCommit> CloudRole::build_commit() {
  store::CloudCommit commit;
  if (!taken_) {
    absl::StatusOr<stream::CloudChanges> changes = engine_->take_changes(world_.clock.steady_now());
    if (!changes.ok()) return changes.status();
    taken_ = *std::move(changes);
  }
  if (absl::Status status = predict(*taken_, commit); !status.ok()) return status;
  commit_again_ = taken_->more;
  link::RootCore::Changes cursors = root_->changes();
  for (model::Cursor& cursor : cursors.cursors) {
    store::OriginRow& origin = origins_[cursor.node];
    origin.cursor = std::move(cursor);
    commit.origins.push_back(origin);
  }
  for (link::ClosedOrigin& closed : cursors.closed) {
    commit.closed.push_back({closed.node, closed.epoch, closed.last, std::move(closed.tombstones)});
  }
  commit.states = std::exchange(new_states_, {});
  commit.samples = std::exchange(new_samples_, {});
  commit.sample_series = std::exchange(new_series_, {});
  for (const model::GroupId group : numbered_) raw_numbers_[model::index(group)] = kNoNumber;
  numbered_.clear();
  pending_samples_ = 0;
  add_changes(plan_, *taken_, commit);
  taken_.reset();
  return commit;
}

absl::Status CloudRole::predict(const stream::CloudChanges& changes, store::CloudCommit& commit) {
  for (const stream::PublishedStep& step : changes.published) {
    const model::ForecastDef& forecast = plan_.forecasts[step.forecast];
    const forecast::LoadModel* model = forecast::find_model(forecast.model);
    if (model == nullptr) return absl::InternalError(fmt::format("there is no model \"{}\"", forecast.model));
    absl::StatusOr<std::vector<stream::StepInput>> inputs = engine_->step_inputs(step);
    if (!inputs.ok()) return inputs.status();
    for (const stream::StepInput& input : *inputs) {
      const forecast::Prediction prediction = model->predict(input.current, input.history);
      commit.forecasts.push_back({plan_.tables[forecast.table].name, forecast.steps[step.step].length.count(),
                                  *input.labels, step.start, step.target, prediction.value, prediction.reason,
                                  std::nullopt});
    }
  }
  return absl::OkStatus();
}

void CloudRole::commit() {
  last_commit_ = world_.clock.steady_now();
  if (!failed_commit_) {
    absl::StatusOr<store::CloudCommit> commit = build_commit();
    if (!commit.ok()) {
      // Reading the store failed: the next try starts from the same changes.
      ++commit_failures_;
      alarms_.raise(fmt::format("cannot prepare a commit: {}", base::message(commit.status())));
      return;
    }
    const bool empty = commit->origins.empty() && commit->closed.empty() && commit->windows.empty() &&
                       commit->forecasts.empty() && commit->actuals.empty() && commit->publication.empty() &&
                       commit->steps.empty() && commit->anchors.empty() && commit->parked.empty() &&
                       commit->unparked.empty() && commit->states.empty() && commit->samples.empty();
    if (empty) {
      engine_->committed();
      root_->committed();
      pump_root();
      return;
    }
    failed_commit_ = *std::move(commit);
  }
  if (absl::Status status = store_.commit(*failed_commit_); !status.ok()) {
    ++commit_failures_;
    if (commit_failures_ == 1 || commit_failures_ % 50 == 0) {
      world_.log.error("commit failed, edges wait until it succeeds: {}", base::message(status));
    }
    retry_at_ = world_.clock.steady_now() + kRetryCommit;
    return;
  }
  ++commits_;
  for (const model::Batch& batch : failed_commit_->samples) samples_kept_ += batch.size();
  windows_written_ += failed_commit_->windows.size();
  forecasts_written_ += failed_commit_->forecasts.size();
  failed_commit_.reset();
  bytes_since_commit_ = 0;
  engine_->committed();
  root_->committed();
  pump_root();
}

void CloudRole::pump_root() {
  for (std::vector<link::RootCore::Action> actions = root_->take_actions(); !actions.empty();
       actions = root_->take_actions()) {
    for (link::RootCore::Action& action : actions) {
      if (auto* down = std::get_if<link::RootCore::ToChild>(&action)) {
        downlink_.send(down->child, std::move(down->message));
      } else if (auto* answer = std::get_if<link::RootCore::AnswerOpen>(&action)) {
        if (answer->message.opened) {
          absl::StatusOr<std::vector<model::StateEntry>> states = store_.load_states(answer->node);
          if (!states.ok()) {
            // Without its state the node would start from nothing: no answer, it asks again.
            alarms_.raise(
                fmt::format("cannot read the state kept of {}: {}", answer->node, base::message(states.status())));
            continue;
          }
          answer->message.states = *std::move(states);
          if (const auto origin = origins_.find(answer->node); origin != origins_.end()) {
            answer->message.losses = origin->second.losses;
          }
        }
        downlink_.send(answer->child, std::move(answer->message));
      } else if (auto* alarm = std::get_if<link::RootCore::Alarm>(&action)) {
        alarms_.raise(alarm->text);
      }
    }
  }
}

void CloudRole::shutdown(std::function<void(StopReport)> done) {
  ticker_.reset();
  commit();
  downlink_.stop();
  done({});
}

void CloudRole::fill(NodeStatus& status) const {
  status.listen = listen_;
  status.frames_in = frames_in_;
  status.bytes_in = bytes_in_;
  status.commit_failures = commit_failures_;
  status.alarms = alarms_.latest();
  const base::SteadyTime now = world_.clock.steady_now();
  for (const auto& [connection, child] : children_) {
    status.children.push_back({child.node, std::string(model::to_string(child.layer)),
                               std::chrono::duration<double>(now - child.since).count(), child.frames, child.bytes});
  }
  const link::RootCore::Counters& c = root_->counters();
  // What was refused comes again and is then counted anew: for this node it was a duplicate.
  status.chunks = ChunkAccount{c.received, c.applied, c.duplicate + c.refused, c.pending};
  CloudStatus& cloud = status.cloud.emplace();
  for (const auto& [node, origin] : origins_) {
    const model::Cursor cursor = root_->cursor(node);
    cloud.origins.push_back({node, cursor.epoch, cursor.last, origin.publications, origin.ledgers, origin.losses});
  }
  for (std::size_t i = 0; i < plan_.tables.size(); ++i) {
    if (plan_.tables[i].hidden) continue;
    cloud.tables.push_back({plan_.tables[i].name, engine_->publication(i)});
  }
  cloud.rows_folded = rows_folded_;
  cloud.samples_kept = samples_kept_;
  cloud.windows_written = windows_written_;
  cloud.forecasts_written = forecasts_written_;
  cloud.commits = commits_;
  cloud.parked_rows = engine_->parked_rows();
  status.drained = !root_->dirty() && !failed_commit_ && !commit_again_;
  if (failed_commit_) status.ready = "cannot write its store";
}

}  // namespace orla::node
