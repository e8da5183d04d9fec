#include "link/downlink.h"

#include <utility>

namespace orla::link {

Downlink::Downlink(DownlinkSettings settings, DownlinkCarrier& carrier, const base::Clock& clock, Callbacks callbacks)
    : core_(std::move(settings)), carrier_(carrier), clock_(clock), callbacks_(std::move(callbacks)) {
  carrier_.set_events({
      [this](ConnectionId connection) {
        core_.opened(clock_.steady_now(), connection);
        run();
      },
      [this](ConnectionId connection, UpMessage message) {
        core_.received(clock_.steady_now(), connection, std::move(message));
        run();
      },
      [this](ConnectionId connection, const absl::Status& why) {
        core_.closed(connection, std::string(why.message()));
        run();
      },
  });
}

Downlink::~Downlink() {
  callbacks_ = {};
  carrier_.set_events({});
}

absl::StatusOr<std::string> Downlink::listen(const std::string& address) { return carrier_.listen(address); }

void Downlink::tick() {
  const base::SteadyTime now = clock_.steady_now();
  if (ticked_.has_value() && now - *ticked_ >= kSleep) core_.slept(now, now - *ticked_);
  ticked_ = now;
  core_.tick(now);
  run();
}

void Downlink::send(ConnectionId child, DownMessage message) {
  core_.send(child, std::move(message));
  run();
}

void Downlink::stop() { carrier_.shutdown(); }

void Downlink::run() {
  if (running_) return;  // the outer run() goes on with what was added
  running_ = true;
  for (std::vector<DownlinkCore::Action> actions = core_.take_actions(); !actions.empty();
       actions = core_.take_actions()) {
    for (DownlinkCore::Action& action : actions) {
      if (auto* send = std::get_if<DownlinkCore::Send>(&action)) {
        carrier_.send(send->child, std::move(send->message));
      } else if (auto* close = std::get_if<DownlinkCore::Close>(&action)) {
        carrier_.close(close->child);
      } else if (auto* up = std::get_if<DownlinkCore::ChildUp>(&action)) {
        if (callbacks_.child_up) callbacks_.child_up(*up);
      } else if (auto* down = std::get_if<DownlinkCore::ChildDown>(&action)) {
        if (callbacks_.child_down) callbacks_.child_down(*down);
      } else if (auto* deliver = std::get_if<DownlinkCore::Deliver>(&action)) {
        if (callbacks_.message) callbacks_.message(deliver->child, std::move(deliver->message));
      }
    }
  }
  running_ = false;
}

}  // namespace orla::link
