// DownlinkCore on a DownlinkCarrier: the thin shell that does what the core says.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "link/carrier.h"
#include "link/downlink_core.h"

namespace orla::link {

// Lives on the node's loop; the owner calls tick() about every 50 ms. Callbacks run inside the methods and inside the
// carrier's callbacks; they may call send() but must not destroy the Downlink.
class Downlink {
 public:
  struct Callbacks {
    std::function<void(const DownlinkCore::ChildUp&)> child_up;
    std::function<void(const DownlinkCore::ChildDown&)> child_down;
    std::function<void(ConnectionId, UpMessage)> message;  // Dictionary, FrameMessage, OpenEpoch
  };

  // All outlive the Downlink. Takes over the carrier's events.
  Downlink(DownlinkSettings settings, DownlinkCarrier& carrier, const base::Clock& clock, Callbacks callbacks);
  ~Downlink();
  Downlink(const Downlink&) = delete;
  Downlink& operator=(const Downlink&) = delete;

  // Returns the address with the real port.
  absl::StatusOr<std::string> listen(const std::string& address);
  void tick();
  void send(ConnectionId child, DownMessage message);
  void stop();

  const DownlinkCore& core() const { return core_; }

 private:
  void run();

  DownlinkCore core_;
  DownlinkCarrier& carrier_;
  const base::Clock& clock_;
  Callbacks callbacks_;
  std::optional<base::SteadyTime> ticked_;
  bool running_ = false;
};

}  // namespace orla::link
