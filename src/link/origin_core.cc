#include "link/origin_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::link {

namespace {

// An epoch that stood this many times retry_max was not part of a fight.
constexpr int kPeace = 10;
// How often an epoch is asked for at once; then with pauses.
constexpr int kQuickAsks = 4;

}  // namespace

OriginCore::OriginCore(OriginSettings settings, base::Random& random)
    : settings_(std::move(settings)), random_(random) {}

std::string OriginCore::name() const { return fmt::format("edge \"{}\"", settings_.node); }

model::Epoch OriginCore::new_epoch() {
  std::uint64_t number = 0;
  while (number == 0) number = random_.next();
  return model::Epoch{number};
}

void OriginCore::adopt(const OriginState& state) {
  epoch_ = state.epoch;
  next_sequence_ = state.next_sequence;
  acknowledged_ = state.acknowledged;
  chain_ = state.chain;
  outbox_.clear();
  pending_bytes_ = 0;
  for (const auto& [sequence, bytes] : state.outbox) {
    if (sequence <= acknowledged_ || sequence >= next_sequence_) continue;
    outbox_[sequence] = Kept{bytes, std::nullopt};
    pending_bytes_ += bytes;
  }
  in_flight_.clear();
  in_flight_bytes_ = 0;
  next_to_send_ = acknowledged_ + 1;
  rewinding_ = false;
  pause_ = false;
  rewound_at_.reset();
  confirmed_ = false;
}

void OriginCore::start(const OriginState& state) {
  adopt(state);
  first_unsent_ = next_sequence_;  // what is kept may have been sent before
  if (settings_.durability == model::Durability::kDisk) {
    reopen_ = state.reopen;
    phase_ = reopen_ ? Phase::kOpening : Phase::kReady;
    if (epoch_ == model::Epoch{}) epoch_ = new_epoch();
    if (reopen_) {
      wanted_ = new_epoch();
      replaces_ = epoch_;
    }
  } else {
    phase_ = Phase::kOpening;
    wanted_ = new_epoch();
    replaces_ = model::Epoch{};
    asks_ = 0;
  }
}

void OriginCore::sealed(base::SteadyTime now, std::size_t bytes, const base::Digest& chain_after) {
  outbox_[next_sequence_] = Kept{bytes, chain_after};
  pending_bytes_ += bytes;
  chain_ = chain_after;
  ++next_sequence_;
  pump(now);
}

void OriginCore::lost(model::Sequence sequence, std::size_t bytes) {
  const auto kept = outbox_.find(sequence);
  if (kept == outbox_.end()) return;
  pending_bytes_ = pending_bytes_ - kept->second.bytes + bytes;
  kept->second.bytes = bytes;
}

void OriginCore::session_up(base::SteadyTime now, std::uint64_t credit_bytes) {
  session_down();
  session_ = true;
  credit_ = credit_bytes;
  tick(now);
}

void OriginCore::session_down() {
  session_ = false;
  last_frame_ = 0;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  next_to_send_ = acknowledged_ + 1;
  rewinding_ = false;
  pause_ = false;
  confirmed_ = false;
  asked_ = false;
}

void OriginCore::tick(base::SteadyTime now) {
  switch (phase_) {
    case Phase::kReady:
      pump(now);
      break;
    case Phase::kOpening:
      if (asked_ ? now - asked_at_ >= settings_.open_timeout : now >= not_before_) ask(now);
      break;
    case Phase::kRenumbering:
      if (now >= not_before_) {
        not_before_ = now + settings_.retry_max;
        actions_.emplace_back(Renumber{wanted_, renumber_after_});
      }
      break;
  }
}

void OriginCore::pump(base::SteadyTime now) {
  if (phase_ != Phase::kReady || !session_ || rewinding_ || now < not_before_) return;
  while (next_to_send_ < next_sequence_) {
    if (!in_flight_.empty() && !confirmed_) return;
    const auto kept = outbox_.find(next_to_send_);
    // A chunk that is not there: the owner finds out when it reads it, and says unreadable().
    const std::size_t bytes = kept == outbox_.end() ? 0 : kept->second.bytes;
    if (!in_flight_.empty() && in_flight_bytes_ + bytes > credit_) return;
    ++(next_to_send_ < first_unsent_ ? counters_.chunks_resent : counters_.chunks_sent);
    in_flight_.push_back(InFlight{++last_frame_, next_to_send_, bytes});
    in_flight_bytes_ += bytes;
    actions_.emplace_back(SendChunk{last_frame_, next_to_send_});
    ++next_to_send_;
    first_unsent_ = std::max(first_unsent_, next_to_send_);
  }
}

void OriginCore::received(base::SteadyTime now, const DownMessage& message) {
  if (const auto* acknowledged = std::get_if<Acknowledge>(&message)) {
    for (const model::Cursor& cursor : acknowledged->cursors) {
      if (cursor.node == settings_.node) acknowledge(cursor);
    }
    finish_rewind(now);
    pump(now);
  } else if (const auto* refusal = std::get_if<Refused>(&message)) {
    refused(now, *refusal);
  } else if (const auto* answer = std::get_if<Opened>(&message)) {
    opened(now, *answer);
  }
}

bool OriginCore::contradicts(const model::Cursor& cursor) const {
  if (cursor.last >= next_sequence_) return true;
  if (cursor.last > 0 && cursor.last + 1 == next_sequence_) return cursor.chain != chain_;
  const auto kept = outbox_.find(cursor.last);
  return kept != outbox_.end() && kept->second.chain_after && *kept->second.chain_after != cursor.chain;
}

void OriginCore::acknowledge(const model::Cursor& cursor) {
  if (cursor.epoch != epoch_ || cursor.last <= acknowledged_) return;
  if (contradicts(cursor)) {
    alarm(
        Alarm::Kind::kClonedNode,
        fmt::format("{}: the cloud has chunks up to {} of this node's epoch, with other contents than the ones sealed "
                    "here (up to {}): a second node runs under this name with a copy of its state, or the state was "
                    "restored from an old copy. Nothing is dropped or sent; give the copy another name, or remove the "
                    "restored state",
                    name(), cursor.last, next_sequence_ - 1));
    while (!in_flight_.empty() && in_flight_.front().sequence <= cursor.last) {  // resolved, if not as it should be
      in_flight_bytes_ -= in_flight_.front().bytes;
      in_flight_.pop_front();
    }
    pause_ = rewinding_ = true;
    return;
  }
  trim(cursor.last, cursor.tombstones);
  confirmed_ = true;
  pause_ = false;
  backoff_ = {};
  if (phase_ == Phase::kReady) {
    alarmed_.reset();
    stalled_.clear();
  }
}

void OriginCore::trim(model::Sequence through, const std::vector<model::SequenceRange>& tombstones) {
  acknowledged_ = through;
  while (!outbox_.empty() && outbox_.begin()->first <= acknowledged_) {
    pending_bytes_ -= outbox_.begin()->second.bytes;
    outbox_.erase(outbox_.begin());
  }
  while (!in_flight_.empty() && in_flight_.front().sequence <= acknowledged_) {
    in_flight_bytes_ -= in_flight_.front().bytes;
    in_flight_.pop_front();
  }
  next_to_send_ = std::max(next_to_send_, acknowledged_ + 1);
  first_unsent_ = std::max(first_unsent_, next_to_send_);
  actions_.emplace_back(Trim{acknowledged_, tombstones});
}

void OriginCore::refused(base::SteadyTime now, const Refused& message) {
  const auto it = std::find_if(in_flight_.begin(), in_flight_.end(),
                               [&](const InFlight& frame) { return frame.frame == message.frame; });
  if (it == in_flight_.end()) return;
  const InFlight frame = *it;
  in_flight_.erase(it);
  in_flight_bytes_ -= frame.bytes;
  ++counters_.refused;
  rewinding_ = true;
  judge(now, message, frame);
  finish_rewind(now);
}

void OriginCore::judge(base::SteadyTime now, const Refused& message, const InFlight& frame) {
  const auto cursor = std::find_if(message.cursors.begin(), message.cursors.end(),
                                   [&](const model::Cursor& c) { return c.node == settings_.node; });
  const bool known = cursor != message.cursors.end();
  if (known && cursor->epoch != epoch_ && cursor->epoch != model::Epoch{}) {
    epoch_closed(now, *cursor);
    return;
  }
  if (known && (cursor->epoch == model::Epoch{} ? acknowledged_ > 0 : cursor->last < acknowledged_)) {
    alarm(Alarm::Kind::kCloudLostData,
          fmt::format("{}: the cloud lost data: it had acknowledged chunks up to {}, now it has them up to {}; was it "
                      "restored from an old copy? {} chunks are kept here",
                      name(), acknowledged_, cursor->last, pending_chunks()));
    pause_ = true;
    return;
  }
  if (known && cursor->epoch == epoch_) {
    const model::Sequence before = acknowledged_;
    acknowledge(*cursor);
    if (acknowledged_ != before && acknowledged_ >= frame.sequence) return;  // it was a resend
  }
  switch (message.reason) {
    case RefusalReason::kCursor:
      // A gap: again from the cursor. Twice at the same place, or a frame that fits: not at once.
      if (rewound_at_ == acknowledged_ || acknowledged_ + 1 == frame.sequence) pause_ = true;
      break;
    case RefusalReason::kFull:
      stalled_ = message.message;
      pause_ = true;
      break;
    case RefusalReason::kDigest:
      alarm(Alarm::Kind::kClonedNode,
            fmt::format("{}: chunk {} does not continue what the cloud has of this node: {}. A second node runs under "
                        "this name with a copy of its state, or the state was restored from an old copy",
                        name(), frame.sequence, message.message));
      pause_ = true;
      break;
    case RefusalReason::kMalformed:
      alarm(Alarm::Kind::kMalformed,
            fmt::format("{}: chunk {} is refused as malformed: {}", name(), frame.sequence, message.message));
      pause_ = true;
      break;
  }
}

void OriginCore::finish_rewind(base::SteadyTime now) {
  if (!rewinding_ || !in_flight_.empty()) return;
  rewinding_ = false;
  next_to_send_ = acknowledged_ + 1;
  rewound_at_ = acknowledged_;
  if (std::exchange(pause_, false)) {
    confirmed_ = false;
    back_off(now);
  }
  pump(now);
}

std::chrono::nanoseconds OriginCore::jittered(std::chrono::nanoseconds d) {
  // 75 % .. 125 %
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(d.count()) * (0.75 + random_.unit() / 2)));
}

void OriginCore::back_off(base::SteadyTime now) {
  backoff_ = std::clamp(backoff_ * 2, settings_.retry_min, settings_.retry_max);
  not_before_ = now + jittered(backoff_);
}

void OriginCore::epoch_closed(base::SteadyTime now, const model::Cursor& current) {
  if (phase_ != Phase::kReady) return;
  const std::string text = fmt::format(
      "{}: the cloud has another epoch of this node than this process: another start of the node, or another node of "
      "this name, has taken over; opening a new epoch",
      name());
  alarm(Alarm::Kind::kEpochClosed, text);
  // Two that take over from each other do it ever more rarely.
  if (!closed_at_ || now - *closed_at_ > settings_.retry_max * kPeace) takeover_backoff_ = {};
  const bool fight = takeover_backoff_ > std::chrono::nanoseconds{};
  takeover_backoff_ = std::clamp(takeover_backoff_ * 2, settings_.retry_min, settings_.retry_max);
  closed_at_ = now;
  if (fight) not_before_ = now + jittered(takeover_backoff_);

  phase_ = Phase::kOpening;
  wanted_ = new_epoch();
  asks_ = 0;
  asked_ = false;
  folded_known_ = false;
  folded_.reset();
  folded_tombstones_.clear();
  if (settings_.durability == model::Durability::kDisk) {
    replaces_ = epoch_;
  } else {
    replaces_ = current.epoch;
    adopt(OriginState{});
    actions_.emplace_back(EpochLost{text});
  }
  if (now >= not_before_) ask(now);
}

void OriginCore::ask(base::SteadyTime now) {
  asked_ = session_;
  if (!session_) return;
  asked_at_ = now;
  ++asks_;
  actions_.emplace_back(SendOpen{OpenEpoch{++last_request_, settings_.node, wanted_, replaces_}});
}

void OriginCore::opened(base::SteadyTime now, const Opened& message) {
  if (phase_ != Phase::kOpening || !asked_ || message.request != last_request_) return;
  asked_ = false;
  if (!message.opened) {
    not_opened(now, message);
    return;
  }
  if (message.current.last > 0) {  // a number that nobody else can have drawn is in use
    alarm(Alarm::Kind::kClonedNode,
          fmt::format("{}: the epoch just opened has chunks already; trying another one", name()));
    not_opened(now, message);
    return;
  }
  ++counters_.epochs_opened;
  backoff_ = {};
  if (settings_.durability == model::Durability::kMemory) {
    OriginState fresh;
    fresh.epoch = wanted_;
    adopt(fresh);
    first_unsent_ = 1;
    phase_ = Phase::kReady;
    alarmed_.reset();
    stalled_.clear();
    actions_.emplace_back(Started{epoch_, message.states, message.losses});
    return;
  }
  std::optional<model::Sequence> folded = folded_;
  if (replaces_ == epoch_) {  // closed by this very request
    folded = message.replaced_last;
    folded_tombstones_ = message.replaced_tombstones;
  }
  if (replaces_ == model::Epoch{}) folded.reset();  // the cloud had nothing of this node
  if (folded.value_or(0) < acknowledged_) {
    alarm(
        Alarm::Kind::kCloudLostData,
        fmt::format("{}: the cloud lost data: of the epoch closed it has chunks up to {}, and had acknowledged them up "
                    "to {}",
                    name(), folded.value_or(0), acknowledged_));
  } else if (folded.value_or(0) >= next_sequence_ && reopen_) {
    alarm(Alarm::Kind::kLostChunks,
          fmt::format("{}: the cloud has chunks up to {}; of those after {} nothing is on this disk any more. What was "
                      "read again since is counted twice",
                      name(), *folded, next_sequence_ - 1));
  } else if (folded.value_or(0) >= next_sequence_) {
    alarm(Alarm::Kind::kClonedNode, fmt::format("{}: of the epoch closed the cloud has chunks up to {}, here they were "
                                                "sealed up to {}: the state was restored from an old copy",
                                                name(), *folded, next_sequence_ - 1));
  }
  renumber_after_ = std::clamp(folded.value_or(0), acknowledged_, next_sequence_ - 1);
  if (renumber_after_ > acknowledged_) trim(renumber_after_, folded_tombstones_);
  phase_ = Phase::kRenumbering;
  not_before_ = now;
  tick(now);
}

void OriginCore::not_opened(base::SteadyTime now, const Opened& message) {
  const bool disk = settings_.durability == model::Durability::kDisk;
  const model::Epoch current = message.current.epoch;
  // While the node has another epoch, its own can never become current again: what is folded of it stays so.
  if (disk && replaces_ == epoch_ && current != model::Epoch{} && current != epoch_) {
    folded_known_ = true;
    folded_ = message.replaced_last;
    folded_tombstones_ = message.replaced_tombstones;
  }
  if (current == replaces_ || current == wanted_) wanted_ = new_epoch();  // it was refused for itself
  if (!disk || folded_known_ || current == model::Epoch{}) {
    replaces_ = current;
  } else {
    replaces_ = epoch_;
  }
  if (asks_ < kQuickAsks) {
    ask(now);
  } else {
    back_off(now);
  }
}

void OriginCore::renumbered(base::SteadyTime now, const OriginState& state) {
  if (phase_ != Phase::kRenumbering) return;
  adopt(state);
  first_unsent_ = acknowledged_ + 1;
  phase_ = Phase::kReady;
  reopen_ = false;
  not_before_ = now;
  backoff_ = {};
  pump(now);
}

void OriginCore::renumber_failed(base::SteadyTime now) {
  if (phase_ == Phase::kRenumbering) back_off(now);
}

void OriginCore::unreadable(base::SteadyTime now, model::Sequence sequence, const std::string& why) {
  const auto it = std::find_if(in_flight_.begin(), in_flight_.end(),
                               [&](const InFlight& frame) { return frame.sequence == sequence; });
  if (it == in_flight_.end()) return;
  in_flight_bytes_ -= it->bytes;
  in_flight_.erase(it);
  alarm(Alarm::Kind::kUnreadable,
        fmt::format("{}: chunk {} cannot be read from the outbox now: {}. It is tried again; nothing beyond it is sent",
                    name(), sequence, why));
  rewinding_ = pause_ = true;
  finish_rewind(now);
}

void OriginCore::alarm(Alarm::Kind kind, std::string text) {
  stalled_ = text;
  if (alarmed_ == kind) return;
  alarmed_ = kind;
  ++counters_.alarms;
  actions_.emplace_back(Alarm{kind, std::move(text)});
}

std::vector<OriginCore::Action> OriginCore::take_actions() { return std::exchange(actions_, {}); }

}  // namespace orla::link
