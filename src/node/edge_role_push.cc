// EdgeRole's live input: what senders push.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"
#include "base/version.h"
#include "node/edge_role.h"

namespace orla::node {

PushDesk::Limits EdgeRole::desk_limits(const model::Fleet& fleet) {
  return {static_cast<std::size_t>(limit(fleet, "push_waiting_bytes")), limit_ms(fleet, "push_commit_ms"),
          limit_ms(fleet, "push_timeout_ms")};
}

// What keeps the role from taking a push now; its input is not `i` or does not run when there is no such thing.
std::optional<PushOutcome> EdgeRole::refuse_push(std::size_t i, std::size_t bytes) const {
  using Kind = PushOutcome::Kind;
  const auto busy = [](std::string why) { return PushOutcome{Kind::kBusy, std::move(why)}; };
  if (shutdown_done_ || !ticker_) return busy("this node is shutting down");
  if (i == inputs_.size()) return busy("this node has no push input");
  if (!inputs_started_) return busy("this node waits for the cloud to open its epoch");
  if (!inputs_[i].running) return busy("this input was stopped");
  if (given_up_) return busy("this node cannot encode what it accepted; see its alarms");
  if (failed_commit_) return busy("this node cannot write its state to disk; it tries again and again");
  const char* full = "the outbox is full ([limits] outbox_bytes): the cloud is away or slow";
  if (intake() == Intake::kBlocked) return busy(full);
  if (intake() == Intake::kRefusing) return PushOutcome{Kind::kTooMuch, full};
  if (!on_disk() && !uplink_.core().up())
    return busy("this node keeps nothing on disk (durability = \"memory\") and has no connection to a parent");
  if (!desk_.has_room(bytes))
    return PushOutcome{Kind::kTooMuch, "too much was pushed that is not durable yet ([limits] push_waiting_bytes)"};
  return std::nullopt;
}

void EdgeRole::push(Push push, PushDone done) {
  const auto found =
      std::find_if(inputs_.begin(), inputs_.end(), [](const Input& input) { return model::is_live(input.spec->kind); });
  const auto i = static_cast<std::size_t>(found - inputs_.begin());
  if (std::optional<PushOutcome> refusal = refuse_push(i, push.bytes)) {
    desk_.count_refusal();
    return done(*refusal);
  }
  const model::InputState& state = engine_->input(i);
  model::InputBatch& batch = push.batch;
  if (push.series) batch.new_series = push.series->since(engine_->input_series(i));
  batch.position.offset += state.position.offset;
  batch.position.row += state.position.row;
  const model::Ledger before = state.ledger;
  const absl::Status status = engine_->apply(i, batch, world_.clock.wall_now());
  if (absl::IsAlreadyExists(status)) return desk_.add_duplicate(push, std::move(done));
  if (!status.ok()) {
    desk_.count_refusal();
    return done({absl::IsResourceExhausted(status) ? PushOutcome::Kind::kTooMuch : PushOutcome::Kind::kBusy,
                 base::message(status)});
  }
  const model::Ledger& after = engine_->input(i).ledger;
  PushOutcome outcome;
  outcome.rejected = after.rejected_total() - before.rejected_total();
  for (const auto& [reason, count] : batch.rejected) outcome.rejected -= count;
  outcome.late = after.late.count - before.late.count;
  outcome.unmatched = after.unmatched - before.unmatched;
  outcome.dropped = after.dropped_total() - before.dropped_total();
  count_in(i, batch);
  desk_.add(push, outcome, std::move(done));
  if (commit_due()) commit();
}

// The clock of an input, in event time. Of a live one the node's own, but never further ahead than the newest sample
// with the time since it came: so a clock that jumps ahead makes nobody idle, and one that was never set is not asked.
model::Time EdgeRole::paced_now(std::size_t i) {
  if (!inputs_[i].running) return model::kMinTime;
  if (!model::is_live(inputs_[i].spec->kind)) return pump_.paced_now(i);
  const model::Time newest = engine_->input(i).newest;
  if (newest == model::kMinTime) return model::kMinTime;
  const base::SteadyTime now = world_.clock.steady_now();
  if (newest != live_newest_) {
    live_newest_ = newest;
    live_newest_at_ = now;
  }
  const model::Time by_samples = model::add_clamped(newest, now - live_newest_at_);
  return clock_is_set() ? std::min(by_samples, world_.clock.wall_now()) : by_samples;
}

bool EdgeRole::clock_is_set() const { return world_.clock.wall_now() >= base::BuildTime(); }

// Says so when a clock that live samples are measured by was not set, and when it is.
void EdgeRole::watch_clock() {
  const bool set = clock_is_set();
  if (set == clock_was_set_) return;
  clock_was_set_ = set;
  if (set) {
    world_.log.info("this node's clock is set now: samples further ahead of it than `future` are rejected");
  } else {
    world_.log.warn(
        "this node's clock was never set (it is before this program was built): nothing that is pushed counts as "
        "`future`, and lines without a timestamp get that time");
  }
}

}  // namespace orla::node
