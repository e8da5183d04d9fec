// Carriers over a simulated network: messages take time and keep their order; connections are cut, on both sides at
// once, one after the other, or so that one side never hears of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "link/carrier.h"
#include "sim/event_queue.h"
#include "sim/fake_loop.h"

namespace orla::sim {

class FakeUplink;
class FakeDownlink;

// One connection. Shared by its ends, the network and the messages under way.
struct Wire {
  FakeUplink* up = nullptr;  // null: that end has closed, or died
  FakeDownlink* down = nullptr;
  link::ConnectionId id{};
  bool cut = false;  // nothing arrives any more
  base::SteadyTime last_up{};
  base::SteadyTime last_down{};
};

class FakeNetwork {
 public:
  // Both outlive the network.
  FakeNetwork(EventQueue& queue, base::Random& random) : queue_(queue), random_(random) {}

  // Cuts what `uplink` has open. Returns how many connections that were.
  int cut(FakeUplink& uplink);
  // Sends a message on the newest connection of `uplink`, as if its node had. False when there is none.
  bool inject(FakeUplink& uplink, link::UpMessage message);
  // From now on every connect succeeds, if somebody listens.
  void heal() { healed_ = true; }

  struct Counters {
    std::uint64_t connections = 0;
    std::uint64_t messages = 0;
    std::uint64_t lost = 0;  // messages under way when their connection was cut
    std::uint64_t doubled = 0;
    std::uint64_t cuts = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  friend class FakeUplink;
  friend class FakeDownlink;
  enum class Notice : std::uint8_t { kAll, kSome };  // who hears of a cut

  std::chrono::nanoseconds delay();
  std::shared_ptr<Wire> open(FakeUplink& uplink, const std::string& address);
  void send_up(const std::shared_ptr<Wire>& wire, link::UpMessage message);
  void deliver_up(const std::shared_ptr<Wire>& wire, link::UpMessage message);
  void send_down(const std::shared_ptr<Wire>& wire, link::DownMessage message);
  void cut(const std::shared_ptr<Wire>& wire, Notice notice);
  void tell_up(const std::shared_ptr<Wire>& wire);
  void tell_down(const std::shared_ptr<Wire>& wire);

  EventQueue& queue_;
  base::Random& random_;
  bool healed_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::string, FakeDownlink*> listeners_;
  Counters counters_;
};

// Belongs to one life of a node, as its loop does. Destroying it is the end of the process: connections end.
class FakeUplink final : public link::UplinkCarrier {
 public:
  FakeUplink(FakeNetwork& network, FakeLoop& loop) : network_(network), loop_(loop) {}
  ~FakeUplink() override;
  void set_events(Events events) override { events_ = std::move(events); }
  link::ConnectionId connect(const std::string& address, const std::string& peer) override;
  void send(link::ConnectionId connection, link::UpMessage message) override;
  std::size_t queued_bytes(link::ConnectionId) const override { return 0; }
  void close(link::ConnectionId connection) override;

 private:
  friend class FakeNetwork;
  FakeNetwork& network_;
  FakeLoop& loop_;
  Events events_;
  std::map<link::ConnectionId, std::shared_ptr<Wire>> wires_;
};

class FakeDownlink final : public link::DownlinkCarrier {
 public:
  FakeDownlink(FakeNetwork& network, FakeLoop& loop) : network_(network), loop_(loop) {}
  ~FakeDownlink() override;
  void set_events(Events events) override { events_ = std::move(events); }
  absl::StatusOr<std::string> listen(const std::string& address) override;
  void send(link::ConnectionId connection, link::DownMessage message) override;
  void close(link::ConnectionId connection) override;
  void shutdown() override;

 private:
  friend class FakeNetwork;
  FakeNetwork& network_;
  FakeLoop& loop_;
  Events events_;
  std::string address_;
  std::map<link::ConnectionId, std::shared_ptr<Wire>> wires_;
};

}  // namespace orla::sim
