#include "link/uplink.h"

#include <utility>

namespace orla::link {

Uplink::Uplink(UplinkSettings settings, UplinkCarrier& carrier, const base::Clock& clock, base::Random& random,
               Callbacks callbacks)
    : core_(std::move(settings), random), carrier_(carrier), clock_(clock), callbacks_(std::move(callbacks)) {
  carrier_.set_events({
      [this](ConnectionId connection) {
        const auto it = attempts_.find(connection);
        if (it == attempts_.end()) return;
        core_.connected(it->second);
        run();
      },
      [this](ConnectionId connection, DownMessage message) {
        const auto it = attempts_.find(connection);
        if (it == attempts_.end()) return;
        core_.received(clock_.steady_now(), it->second, std::move(message));
        run();
      },
      [this](ConnectionId connection, const absl::Status& why) {
        const auto it = attempts_.find(connection);
        if (it == attempts_.end()) return;
        const UplinkCore::Attempt attempt = it->second;
        attempts_.erase(it);
        connections_.erase(attempt);
        core_.closed(clock_.steady_now(), attempt, why);
        run();
      },
  });
}

Uplink::~Uplink() {
  callbacks_ = {};
  stop();
  carrier_.set_events({});
}

void Uplink::start() {
  core_.start(clock_.steady_now());
  run();
}

void Uplink::tick() {
  const base::SteadyTime now = clock_.steady_now();
  if (ticked_.has_value() && now - *ticked_ >= kSleep) core_.slept(now, now - *ticked_);
  ticked_ = now;
  core_.tick(now);
  run();
}

void Uplink::send(UpMessage message) {
  core_.send(std::move(message));
  run();
}

void Uplink::reconnect(std::string reason) {
  core_.reconnect(clock_.steady_now(), std::move(reason));
  run();
}

void Uplink::stop() {
  core_.stop();
  run();
}

void Uplink::run() {
  if (running_) return;  // the outer run() goes on with what was added
  running_ = true;
  for (std::vector<UplinkCore::Action> actions = core_.take_actions(); !actions.empty();
       actions = core_.take_actions()) {
    for (UplinkCore::Action& action : actions) {
      if (auto* connect = std::get_if<UplinkCore::Connect>(&action)) {
        const ConnectionId id = carrier_.connect(connect->to.address, connect->to.node);
        connections_[connect->attempt] = id;
        attempts_[id] = connect->attempt;
      } else if (auto* send = std::get_if<UplinkCore::Send>(&action)) {
        const auto it = connections_.find(send->attempt);
        if (it != connections_.end()) carrier_.send(it->second, std::move(send->message));
      } else if (auto* close = std::get_if<UplinkCore::Close>(&action)) {
        const auto it = connections_.find(close->attempt);
        if (it == connections_.end()) continue;
        const ConnectionId id = it->second;
        connections_.erase(it);
        attempts_.erase(id);
        carrier_.close(id);
      } else if (auto* up = std::get_if<UplinkCore::SessionUp>(&action)) {
        if (callbacks_.session_up) callbacks_.session_up(*up);
      } else if (auto* down = std::get_if<UplinkCore::SessionDown>(&action)) {
        if (callbacks_.session_down) callbacks_.session_down(*down);
      } else if (auto* deliver = std::get_if<UplinkCore::Deliver>(&action)) {
        if (callbacks_.message) callbacks_.message(std::move(deliver->message));
      } else if (auto* trouble = std::get_if<UplinkCore::Trouble>(&action)) {
        if (callbacks_.trouble) callbacks_.trouble(trouble->text);
      }
    }
  }
  running_ = false;
}

}  // namespace orla::link
