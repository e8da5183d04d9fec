// Carriers over a simulated network: messages take time and keep their order, a link carries so many bytes a second,
// heartbeats overtake what is queued; connections are cut, on both sides at once, one after the other, or so that one
// side never hears of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "link/carrier.h"
#include "link/send_queue.h"
#include "sim/event_queue.h"
#include "sim/fake_loop.h"

namespace orla::sim {

class FakeUplink;
class FakeDownlink;

// What a node's way up is like. Lives as long as the machine; connections follow it as it changes.
struct Link {
  std::chrono::nanoseconds delay_min = std::chrono::milliseconds(1);
  std::chrono::nanoseconds delay_max = std::chrono::milliseconds(10);
  std::uint64_t bytes_per_s = 0;     // in each direction; 0: no bound
  bool refuse = false;               // connecting fails
  std::uint64_t doubles_one_in = 0;  // frames that arrive twice; 0: none
  std::uint64_t connects = 0;        // tried
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
};

// The messages of one direction of a connection that the link has not carried yet.
template <typename Message>
struct Lane {
  struct Item {
    Message message;
    std::uint64_t left = 0;  // bytes
  };
  std::optional<Item> heartbeat;  // goes between two pieces of the others; one is enough
  std::deque<Item> queue;
  std::uint64_t bytes = 0;  // of what waits
  bool busy = false;        // a piece is under way
  base::SteadyTime last{};  // when the newest message arrives
  base::SteadyTime said{};  // when the end sent its newest message
};

// One connection. Shared by its ends, the network and the messages under way.
struct Wire {
  FakeUplink* up = nullptr;  // null: that end has closed, or died
  FakeDownlink* down = nullptr;
  std::string child;  // names of the nodes
  std::string parent;
  Link* link = nullptr;
  link::ConnectionId id{};
  bool cut = false;             // nothing arrives any more
  base::SteadyTime welcomed{};  // when the parent said Welcome; 0: not yet
  bool doubled = false;         // a frame arrived twice
  base::SteadyTime began{};
  Lane<link::UpMessage> to_parent;
  Lane<link::DownMessage> to_child;
};
using WirePtr = std::shared_ptr<Wire>;

class FakeNetwork {
 public:
  // Who looks at what nodes say, and who changes what they are told. All may be empty.
  struct Hooks {
    std::function<void(const Wire&, const link::UpMessage&)> sent_up;
    std::function<void(const Wire&, const link::DownMessage&)> sent_down;
    std::function<void(const WirePtr&, link::UpMessage&)> arrives_up;
    std::function<void(const WirePtr&, link::DownMessage&)> arrives_down;
    // Before a message is handed to the node: what handling it costs there.
    std::function<std::chrono::nanoseconds(const Wire&, const link::UpMessage&)> cost_up;
    std::function<std::chrono::nanoseconds(const Wire&, const link::DownMessage&)> cost_down;
  };

  // Both outlive the network.
  FakeNetwork(EventQueue& queue, base::Random& random) : queue_(queue), random_(random) {}
  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

  enum class Notice : std::uint8_t { kAll, kSome, kNone };  // who hears of a cut
  // Cuts what `uplink` has open. Returns how many connections that were.
  int cut(FakeUplink& uplink, Notice notice = Notice::kSome);
  // Sends a message on the newest connection of `uplink`, as if its node had. False when there is none.
  bool inject(FakeUplink& uplink, link::UpMessage message);
  void inject_down(const WirePtr& wire, link::DownMessage message) { deliver_down(wire, std::move(message)); }
  // Whoever dies from now on, its peers hear of it.
  void heal() { healed_ = true; }
  // Heartbeats do not overtake (a planted bug).
  void starve() { starve_ = true; }
  // Connections of which an end is left.
  std::vector<WirePtr> wires() const;

  struct Counters {
    std::uint64_t connections = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;  // messages under way when their connection was cut
    std::uint64_t doubled = 0;
    std::uint64_t cuts = 0;
    std::uint64_t queued = 0;  // messages that waited for a slow link
  };
  const Counters& counters() const { return counters_; }

 private:
  friend class FakeUplink;
  friend class FakeDownlink;

  std::chrono::nanoseconds delay(const Link& link);
  WirePtr open(FakeUplink& uplink, const std::string& address);
  void send_up(const WirePtr& wire, link::UpMessage message);
  void send_down(const WirePtr& wire, link::DownMessage message);
  template <typename Message>
  void send(const WirePtr& wire, Lane<Message>& lane, Message message);
  template <typename Message>
  void pump(const WirePtr& wire, Lane<Message>& lane);
  void deliver(const WirePtr& wire, link::UpMessage message) { deliver_up(wire, std::move(message)); }
  void deliver(const WirePtr& wire, link::DownMessage message) { deliver_down(wire, std::move(message)); }
  void deliver_up(const WirePtr& wire, link::UpMessage message);
  void deliver_down(const WirePtr& wire, link::DownMessage message);
  void cut(const WirePtr& wire, Notice notice);
  void close(const WirePtr& wire, base::SteadyTime last, bool queued);
  void tell_up(const WirePtr& wire);
  void tell_down(const WirePtr& wire);

  EventQueue& queue_;
  base::Random& random_;
  Hooks hooks_;
  bool healed_ = false;
  bool starve_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::string, FakeDownlink*> listeners_;
  std::map<std::uint64_t, std::weak_ptr<Wire>> wires_;
  Counters counters_;
};

// Belongs to one life of a node, as its loop does. Destroying it is the end of the process: connections end.
class FakeUplink final : public link::UplinkCarrier {
 public:
  // All outlive it.
  FakeUplink(FakeNetwork& network, FakeLoop& loop, Link& link, std::string node)
      : network_(network), loop_(loop), link_(link), node_(std::move(node)) {}
  ~FakeUplink() override;
  void set_events(Events events) override { events_ = std::move(events); }
  link::ConnectionId connect(const std::string& address, const std::string& peer) override;
  void send(link::ConnectionId connection, link::UpMessage message) override;
  std::size_t queued_bytes(link::ConnectionId connection) const override;
  void close(link::ConnectionId connection) override;

 private:
  friend class FakeNetwork;
  FakeNetwork& network_;
  FakeLoop& loop_;
  Link& link_;
  const std::string node_;
  Events events_;
  std::map<link::ConnectionId, WirePtr> wires_;
};

class FakeDownlink final : public link::DownlinkCarrier {
 public:
  FakeDownlink(FakeNetwork& network, FakeLoop& loop, std::string node)
      : network_(network), loop_(loop), node_(std::move(node)) {}
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
  const std::string node_;
  Events events_;
  std::string address_;
  std::map<link::ConnectionId, WirePtr> wires_;
};

}  // namespace orla::sim
