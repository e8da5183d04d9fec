// UplinkCore on an UplinkCarrier: the thin shell that does what the core says.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "link/carrier.h"
#include "link/uplink_core.h"

namespace orla::link {

// Lives on the node's loop; the owner calls tick() about every 50 ms. Callbacks run inside the methods and inside the
// carrier's callbacks; they may call send() but must not destroy the Uplink.
class Uplink {
 public:
  struct Callbacks {
    std::function<void(const UplinkCore::SessionUp&)> session_up;
    std::function<void(const UplinkCore::SessionDown&)> session_down;
    std::function<void(DownMessage)> message;         // Acknowledge, Refused, Opened
    std::function<void(const std::string&)> trouble;  // to log
  };

  // All outlive the Uplink. Takes over the carrier's events.
  Uplink(UplinkSettings settings, UplinkCarrier& carrier, const base::Clock& clock, base::Random& random,
         Callbacks callbacks);
  ~Uplink();
  Uplink(const Uplink&) = delete;
  Uplink& operator=(const Uplink&) = delete;

  void start();
  void tick();
  // Dropped without a session.
  void send(UpMessage message);
  // Ends the session and begins a new one: numbers of the dictionary are defined once per connection.
  void reconnect(std::string reason);
  // See UplinkCore.
  void progressed() { core_.progressed(); }
  void stop();

  const UplinkCore& core() const { return core_; }

 private:
  void run();

  UplinkCore core_;
  UplinkCarrier& carrier_;
  const base::Clock& clock_;
  Callbacks callbacks_;
  std::map<UplinkCore::Attempt, ConnectionId> connections_;
  std::map<ConnectionId, UplinkCore::Attempt> attempts_;
  std::optional<base::SteadyTime> ticked_;
  bool running_ = false;
};

}  // namespace orla::link
