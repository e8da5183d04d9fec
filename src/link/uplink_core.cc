#include "link/uplink_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace orla::link {

namespace {

std::uint64_t rendezvous(const model::NodeName& child, const model::NodeName& parent) {
  return base::hash64(parent, base::hash64(child));
}

}  // namespace

UplinkCore::UplinkCore(UplinkSettings settings, base::Random& random)
    : settings_(std::move(settings)), random_(random) {
  for (std::vector<ParentCandidate>& group : settings_.parents) {
    std::sort(group.begin(), group.end(), [&](const ParentCandidate& a, const ParentCandidate& b) {
      const std::uint64_t x = rendezvous(settings_.node, a.node);
      const std::uint64_t y = rendezvous(settings_.node, b.node);
      return x != y ? x > y : a.node < b.node;
    });
    preference_.insert(preference_.end(), group.begin(), group.end());
  }
  health_.resize(preference_.size());
}

model::NodeName UplinkCore::parent() const { return session_ ? preference_[session_->candidate].node : ""; }

std::chrono::nanoseconds UplinkCore::jittered(std::chrono::nanoseconds d) {
  // 75 % .. 125 %
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(d.count()) * (0.75 + random_.unit() / 2)));
}

void UplinkCore::start(base::SteadyTime now) {
  started_ = true;
  dial_next(now);
}

void UplinkCore::stop() {
  started_ = false;
  if (dialing_) actions_.emplace_back(Close{dialing_->attempt});
  if (session_) actions_.emplace_back(Close{session_->attempt});
  dialing_.reset();
  session_.reset();
}

void UplinkCore::reconnect(base::SteadyTime now, std::string reason) {
  if (!session_) return;
  const Attempt old = session_->attempt;
  end_session(now, std::move(reason));
  actions_.emplace_back(Close{old});
  dial_next(now);
}

void UplinkCore::dial(base::SteadyTime now, std::size_t candidate) {
  dialing_ = Connection{Attempt{++last_attempt_}, candidate, now, false};
  lost_.reset();
  ++counters_.attempts;
  actions_.emplace_back(Connect{dialing_->attempt, preference_[candidate]});
}

void UplinkCore::dial_next(base::SteadyTime now) {
  if (!started_ || dialing_ || session_ || now < dial_not_before_) return;
  const auto may = [&](std::size_t i) { return health_[i].not_before <= now; };
  for (std::size_t i = 0; i < preference_.size(); ++i) {
    if (may(i) && lost_ != i) return dial(now, i);
  }
  // One that is frozen takes a connection and says nothing.
  if (lost_ && may(*lost_)) dial(now, *lost_);
}

void UplinkCore::failed(base::SteadyTime now, std::size_t candidate) {
  Health& health = health_[candidate];
  health.backoff = std::clamp(health.backoff * 2, settings_.backoff_min, settings_.backoff_max);
  health.not_before = now + jittered(health.backoff);
}

void UplinkCore::connected(Attempt attempt) {
  if (!dialing_ || dialing_->attempt != attempt || dialing_->greeted) return;
  dialing_->greeted = true;
  actions_.emplace_back(
      Send{attempt, Hello{kProtocolMajor, kProtocolMinor, settings_.fleet, settings_.node, settings_.layer}});
}

void UplinkCore::welcome(base::SteadyTime now, const Connection& connection, const Welcome& message) {
  const ParentCandidate& parent = preference_[connection.candidate];
  if (session_) {  // a better parent has answered
    const Attempt old = session_->attempt;
    end_session(now, fmt::format("moving to the preferred parent \"{}\"", parent.node));
    actions_.emplace_back(Close{old});
  }
  Session session{connection.attempt, connection.candidate, now, now, now, settings_.heartbeat, {}, false};
  if (message.heartbeat_ms > 0) {
    session.heartbeat =
        std::min(session.heartbeat, std::chrono::nanoseconds(std::chrono::milliseconds(message.heartbeat_ms)));
  }
  const std::chrono::nanoseconds spread(
      static_cast<std::int64_t>(static_cast<double>(settings_.return_first.count()) * (1 + 8 * random_.unit())));
  session.next_return = now + std::min(spread, jittered(settings_.return_after));
  session_ = session;
  ++counters_.sessions;
  if (!last_parent_.empty() && last_parent_ != parent.node) ++counters_.failovers;
  last_parent_ = parent.node;
  actions_.emplace_back(SessionUp{parent.node, message.credit_bytes});
}

void UplinkCore::end_session(base::SteadyTime now, std::string reason) {
  const std::size_t candidate = session_->candidate;
  if (session_->progressed || now - session_->since >= settings_.stable_after) health_[candidate].backoff = {};
  session_.reset();
  actions_.emplace_back(SessionDown{preference_[candidate].node, std::move(reason)});
}

void UplinkCore::received(base::SteadyTime now, Attempt attempt, DownMessage message) {
  if (dialing_ && dialing_->attempt == attempt) {
    const Connection connection = *dialing_;
    const ParentCandidate& parent = preference_[connection.candidate];
    if (const auto* welcomed = std::get_if<Welcome>(&message)) {
      dialing_.reset();
      if (welcomed->major != kProtocolMajor) {
        ++counters_.rejections;
        health_[connection.candidate].not_before = now + jittered(settings_.rejected_backoff);
        actions_.emplace_back(Close{attempt});
        actions_.emplace_back(Trouble{fmt::format(
            "parent \"{}\" at {} speaks protocol {}.{}; this node speaks {}.{}: bring both to the same major version",
            parent.node, parent.address, welcomed->major, welcomed->minor, kProtocolMajor, kProtocolMinor)});
      } else {
        welcome(now, connection, *welcomed);
      }
    } else if (const auto* rejected = std::get_if<Rejected>(&message)) {
      dialing_.reset();
      ++counters_.rejections;
      health_[connection.candidate].not_before = now + jittered(settings_.rejected_backoff);
      actions_.emplace_back(Close{attempt});
      actions_.emplace_back(Trouble{
          fmt::format("parent \"{}\" at {} rejects this node: {}", parent.node, parent.address, rejected->message)});
    }
    dial_next(now);
    return;
  }
  if (!session_ || session_->attempt != attempt) return;  // of a connection already given up
  session_->heard = now;
  if (const auto* rejected = std::get_if<Rejected>(&message)) {
    const std::size_t candidate = session_->candidate;
    ++counters_.rejections;
    const std::string text = fmt::format("parent \"{}\" at {} ends the session: {}", preference_[candidate].node,
                                         preference_[candidate].address, rejected->message);
    end_session(now, text);
    actions_.emplace_back(Close{attempt});
    actions_.emplace_back(Trouble{text});
    failed(now, candidate);
    dial_next(now);
  } else if (!std::holds_alternative<Heartbeat>(message) && !std::holds_alternative<Welcome>(message)) {
    if (const auto* acknowledged = std::get_if<Acknowledge>(&message)) {
      if (!acknowledged->cursors.empty()) session_->progressed = true;
    }
    actions_.emplace_back(Deliver{std::move(message)});
  }
}

void UplinkCore::progressed() {
  if (session_) session_->progressed = true;
}

void UplinkCore::closed(base::SteadyTime now, Attempt attempt, const absl::Status& why) {
  if (dialing_ && dialing_->attempt == attempt) {
    const std::size_t candidate = dialing_->candidate;
    dialing_.reset();
    failed(now, candidate);
  } else if (session_ && session_->attempt == attempt) {
    const std::size_t candidate = session_->candidate;
    end_session(now, fmt::format("connection ended: {}", std::string(why.message())));
    failed(now, candidate);
    lost_ = candidate;
    // The children of a dead parent do not all move in the same instant.
    dial_not_before_ = now + std::chrono::nanoseconds(static_cast<std::int64_t>(
                                 random_.unit() * static_cast<double>(settings_.backoff_min.count())));
  } else {
    return;
  }
  dial_next(now);
}

void UplinkCore::tick(base::SteadyTime now) {
  if (!started_) return;
  if (dialing_ && now - dialing_->started >= settings_.connect_timeout) {
    const Connection late = *dialing_;
    dialing_.reset();
    ++counters_.timeouts;
    failed(now, late.candidate);
    actions_.emplace_back(Close{late.attempt});
  }
  if (session_ && now - session_->heard >= settings_.parent_timeout) {
    const Session dead = *session_;
    ++counters_.timeouts;
    end_session(now, fmt::format("nothing heard for {} ms",
                                 std::chrono::duration_cast<std::chrono::milliseconds>(now - dead.heard).count()));
    actions_.emplace_back(Close{dead.attempt});
    failed(now, dead.candidate);
    lost_ = dead.candidate;
    dial_not_before_ = now + std::chrono::nanoseconds(static_cast<std::int64_t>(
                                 random_.unit() * static_cast<double>(settings_.backoff_min.count())));
  }
  if (session_) {
    // Beside data too: a large message may take longer than the parent's patience.
    if (now - session_->sent >= session_->heartbeat) {
      session_->sent = now;
      actions_.emplace_back(Send{session_->attempt, Heartbeat{}});
    }
    if (session_->candidate > 0 && !dialing_ && now >= session_->next_return) {
      session_->next_return = now + jittered(settings_.return_after);
      for (std::size_t i = 0; i < session_->candidate; ++i) {
        if (health_[i].not_before <= now) {
          dial(now, i);
          break;
        }
      }
    }
  }
  dial_next(now);
}

void UplinkCore::slept(base::SteadyTime now, std::chrono::nanoseconds time) {
  if (dialing_) dialing_->started = std::min(now, dialing_->started + time);
  if (session_) session_->heard = std::min(now, session_->heard + time);
}

void UplinkCore::send(UpMessage message) {
  if (session_) actions_.emplace_back(Send{session_->attempt, std::move(message)});
}

std::vector<UplinkCore::Action> UplinkCore::take_actions() { return std::exchange(actions_, {}); }

}  // namespace orla::link
