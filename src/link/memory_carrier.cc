#include "link/memory_carrier.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "link/proto_codec.h"
#include "link/send_queue.h"
#include "model/address.h"

namespace orla::link {

namespace {

// A carrier as others see it: a loop to post to, as long as the carrier lives.
class Mailbox {
 public:
  explicit Mailbox(base::Loop& loop) : loop_(&loop) {}
  // False: the carrier is gone, and the task is dropped.
  bool post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) loop_->post(std::move(task));
    return loop_ != nullptr;
  }
  // After it nothing is posted: the loop may go.
  void shut() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }

 private:
  std::mutex mutex_;
  base::Loop* loop_;
};

template <typename Message>
struct Lane {
  std::mutex mutex;
  SendQueue<Message> queue;
};

class UpSide;
class DownSide;

// One connection, shared by its two ends.
struct Wire {
  std::weak_ptr<UpSide> child;
  std::weak_ptr<DownSide> parent;
  ConnectionId child_id{};
  ConnectionId parent_id{};
  Lane<UpMessage> up;
  Lane<DownMessage> down;
};

// What the receiver gets of a message that goes over the wire as bytes.
template <typename Message, typename Decode>
absl::StatusOr<std::vector<Message>> through_bytes(Message message, Decode decode) {
  absl::StatusOr<std::vector<std::string>> encoded = encode(std::move(message));
  if (!encoded.ok()) return encoded.status();
  std::vector<Message> out;
  for (const std::string& bytes : *encoded) {
    absl::StatusOr<std::optional<Message>> decoded = decode(bytes);
    if (!decoded.ok()) return decoded.status();
    if (decoded->has_value()) out.push_back(**std::move(decoded));
  }
  return out;
}

absl::StatusOr<std::vector<UpMessage>> marshal(UpMessage message, Marshalling how) {
  if (how == Marshalling::kProto) return through_bytes(std::move(message), decode_up);
  std::vector<UpMessage> one;
  one.push_back(std::move(message));
  return one;
}

absl::StatusOr<std::vector<DownMessage>> marshal(DownMessage message, Marshalling how) {
  if (how == Marshalling::kProto) return through_bytes(std::move(message), decode_down);
  std::vector<DownMessage> one;
  one.push_back(std::move(message));
  return one;
}

}  // namespace

class MemoryNetwork {
 public:
  absl::StatusOr<std::string> add(const std::string& address, std::weak_ptr<DownSide> listener) {
    absl::StatusOr<model::Address> parsed = model::parse_address(address);
    if (!parsed.ok()) return parsed.status();
    const std::lock_guard lock(mutex_);
    while (parsed->port == 0 || (address.ends_with(":0") && listeners_.contains(name(*parsed)))) {
      parsed->port = next_port_++;
    }
    const std::string real = name(*parsed);
    if (!listeners_.try_emplace(real, std::move(listener)).second) {
      return absl::AlreadyExistsError(fmt::format("address {} is in use", real));
    }
    return real;
  }
  void remove(const std::string& address) {
    const std::lock_guard lock(mutex_);
    listeners_.erase(address);
  }
  std::shared_ptr<DownSide> find(const std::string& address) {
    const absl::StatusOr<model::Address> parsed = model::parse_address(address);
    if (!parsed.ok()) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(name(*parsed));
    return found == listeners_.end() ? nullptr : found->second.lock();
  }

 private:
  static std::string name(const model::Address& address) {
    return address.host == "::1" ? fmt::format("[::1]:{}", address.port)
                                 : fmt::format("{}:{}", address.host, address.port);
  }
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<DownSide>> listeners_;
  std::uint16_t next_port_ = 20'000;
};

namespace {

// What both sides do alike. Events is UplinkCarrier::Events or DownlinkCarrier::Events; Out and In are what this side
// sends and receives. Everything runs on this side's loop.
template <typename Self, typename Events, typename Out, typename In>
class Side : public std::enable_shared_from_this<Self> {
 public:
  Side(base::Loop& loop, Marshalling marshalling)
      : mailbox(std::make_shared<Mailbox>(loop)), marshalling_(marshalling) {}

  void send(ConnectionId id, Out message) {
    const auto found = wires_.find(id);
    if (found == wires_.end()) return;
    const std::shared_ptr<Wire> wire = found->second;
    absl::StatusOr<std::vector<Out>> messages = marshal(std::move(message), marshalling_);
    if (!messages.ok()) return end(id, messages.status(), messages.status());
    for (Out& one : *messages) {
      const std::size_t bytes = wire_bytes(one);
      const Precedence first = precedence(one);
      Lane<Out>& lane = Self::out(*wire);
      {
        const std::lock_guard lock(lane.mutex);
        if (!lane.queue.push(std::move(one), bytes, first)) continue;
        if (lane.queue.bytes() <= kMaxQueuedBytes) {
          post_to_peer(*wire, [](auto& peer, ConnectionId peer_id) { peer.deliver_next(peer_id); });
          continue;
        }
      }
      const absl::Status full = absl::ResourceExhaustedError("the peer does not take what is sent");
      return end(id, full, full);
    }
  }

  // Ends a connection from this side.
  void end(ConnectionId id, const absl::Status& here, const absl::Status& there) {
    const auto found = wires_.find(id);
    if (found == wires_.end()) return;
    const std::shared_ptr<Wire> wire = std::move(found->second);
    wires_.erase(found);
    post_to_peer(*wire, [there](auto& peer, ConnectionId peer_id) { peer.ended_by_peer(peer_id, there); });
    post_closed(id, here);
  }

  void end_all(const absl::Status& here, const absl::Status& there) {
    while (!wires_.empty()) end(wires_.begin()->first, here, there);
  }

  void deliver_next(ConnectionId id) {
    const auto found = wires_.find(id);
    if (found == wires_.end()) return;
    Lane<In>& lane = Self::in(*found->second);
    In message;
    {
      const std::lock_guard lock(lane.mutex);
      message = lane.queue.pop();
    }
    if (events.message) events.message(id, std::move(message));
  }

  void ended_by_peer(ConnectionId id, const absl::Status& status) {
    if (wires_.erase(id) > 0 && events.closed) events.closed(id, status);
  }

  void post_closed(ConnectionId id, absl::Status status) {
    mailbox->post([weak = this->weak_from_this(), id, status = std::move(status)] {
      const std::shared_ptr<Self> self = weak.lock();
      if (self && self->events.closed) self->events.closed(id, status);
    });
  }

  Events events;
  const std::shared_ptr<Mailbox> mailbox;

 protected:
  // Runs `task` with the other end, on its loop, if it is there then.
  template <typename Task>
  static void post_to_peer(Wire& wire, Task task) {
    const auto& weak = Self::peer(wire);
    const ConnectionId peer_id = Self::peer_id(wire);
    if (const auto peer = weak.lock()) {
      peer->mailbox->post([weak, peer_id, task] {
        if (const auto still = weak.lock()) task(*still, peer_id);
      });
    }
  }

  // Called on any thread: a child's connect() names both ends.
  ConnectionId new_id() { return ConnectionId{next_id_++}; }

  std::map<ConnectionId, std::shared_ptr<Wire>> wires_;

 private:
  const Marshalling marshalling_;
  std::atomic<std::uint64_t> next_id_ = 1;
};

class DownSide final : public Side<DownSide, DownlinkCarrier::Events, DownMessage, UpMessage> {
 public:
  using Side::Side;
  static Lane<DownMessage>& out(Wire& wire) { return wire.down; }
  static Lane<UpMessage>& in(Wire& wire) { return wire.up; }
  static const std::weak_ptr<UpSide>& peer(Wire& wire) { return wire.child; }
  static ConnectionId peer_id(Wire& wire) { return wire.child_id; }

  // On this side's loop, for a child that connects.
  void accept(const std::shared_ptr<Wire>& wire);
  // On any thread: the child's connection ends.
  static void refuse(Wire& wire);

  using Side::new_id;
  bool listening = false;
};

class UpSide final : public Side<UpSide, UplinkCarrier::Events, UpMessage, DownMessage> {
 public:
  using Side::Side;
  static Lane<UpMessage>& out(Wire& wire) { return wire.up; }
  static Lane<DownMessage>& in(Wire& wire) { return wire.down; }
  static const std::weak_ptr<DownSide>& peer(Wire& wire) { return wire.parent; }
  static ConnectionId peer_id(Wire& wire) { return wire.parent_id; }

  ConnectionId connect(MemoryNetwork& network, const std::string& address);
  void accepted(ConnectionId id) {
    if (wires_.contains(id) && events.connected) events.connected(id);
  }
  std::size_t queued_bytes(ConnectionId id) const {
    const auto found = wires_.find(id);
    if (found == wires_.end()) return 0;
    const std::lock_guard lock(found->second->up.mutex);
    return found->second->up.queue.bytes();
  }
};

void DownSide::refuse(Wire& wire) {
  post_to_peer(wire, [](UpSide& child, ConnectionId id) {
    child.ended_by_peer(id, absl::UnavailableError("the parent has stopped listening"));
  });
}

void DownSide::accept(const std::shared_ptr<Wire>& wire) {
  if (!listening) return refuse(*wire);
  wires_.emplace(wire->parent_id, wire);
  post_to_peer(*wire, [](UpSide& child, ConnectionId id) { child.accepted(id); });
  if (events.opened) events.opened(wire->parent_id);
}

ConnectionId UpSide::connect(MemoryNetwork& network, const std::string& address) {
  const ConnectionId id = new_id();
  const std::shared_ptr<DownSide> parent = network.find(address);
  if (parent == nullptr) {
    post_closed(id, absl::UnavailableError(fmt::format("nobody listens at {}", address)));
    return id;
  }
  auto wire = std::make_shared<Wire>();
  wire->child = weak_from_this();
  wire->parent = parent;
  wire->child_id = id;
  wire->parent_id = parent->new_id();
  wires_.emplace(id, wire);
  const bool posted = parent->mailbox->post([weak = std::weak_ptr<DownSide>(parent), wire] {
    if (const std::shared_ptr<DownSide> still = weak.lock()) {
      still->accept(wire);
    } else {
      DownSide::refuse(*wire);
    }
  });
  if (!posted) DownSide::refuse(*wire);
  return id;
}

absl::Status gone() { return absl::UnavailableError("the peer is gone"); }

class MemoryUplink final : public UplinkCarrier {
 public:
  MemoryUplink(std::shared_ptr<MemoryNetwork> network, base::Loop& loop, Marshalling marshalling)
      : network_(std::move(network)), side_(std::make_shared<UpSide>(loop, marshalling)) {}
  ~MemoryUplink() override {
    side_->mailbox->shut();
    side_->events = {};
    side_->end_all(gone(), gone());
  }
  void set_events(Events events) override { side_->events = std::move(events); }
  ConnectionId connect(const std::string& address, const std::string&) override {
    return side_->connect(*network_, address);
  }
  void send(ConnectionId connection, UpMessage message) override { side_->send(connection, std::move(message)); }
  std::size_t queued_bytes(ConnectionId connection) const override { return side_->queued_bytes(connection); }
  void close(ConnectionId connection) override { side_->end(connection, absl::OkStatus(), absl::OkStatus()); }

 private:
  const std::shared_ptr<MemoryNetwork> network_;
  const std::shared_ptr<UpSide> side_;  // others hold it only while they post to it
};

class MemoryDownlink final : public DownlinkCarrier {
 public:
  MemoryDownlink(std::shared_ptr<MemoryNetwork> network, base::Loop& loop, Marshalling marshalling)
      : network_(std::move(network)), side_(std::make_shared<DownSide>(loop, marshalling)) {}
  ~MemoryDownlink() override {
    side_->mailbox->shut();
    side_->events = {};
    stop();
  }
  void set_events(Events events) override { side_->events = std::move(events); }
  absl::StatusOr<std::string> listen(const std::string& address) override {
    if (side_->listening) return absl::FailedPreconditionError(fmt::format("already listening at {}", address_));
    absl::StatusOr<std::string> real = network_->add(address, side_);
    if (real.ok()) {
      address_ = *real;
      side_->listening = true;
    }
    return real;
  }
  void send(ConnectionId connection, DownMessage message) override { side_->send(connection, std::move(message)); }
  void close(ConnectionId connection) override { side_->end(connection, absl::OkStatus(), absl::OkStatus()); }
  void shutdown() override { stop(); }

 private:
  void stop() {
    if (side_->listening) network_->remove(address_);
    side_->listening = false;
    side_->end_all(absl::OkStatus(), gone());
  }
  const std::shared_ptr<MemoryNetwork> network_;
  const std::shared_ptr<DownSide> side_;  // others hold it only while they post to it
  std::string address_;
};

}  // namespace

std::shared_ptr<MemoryNetwork> make_memory_network() { return std::make_shared<MemoryNetwork>(); }

std::unique_ptr<UplinkCarrier> make_memory_uplink(std::shared_ptr<MemoryNetwork> network, base::Loop& loop,
                                                  Marshalling marshalling) {
  return std::make_unique<MemoryUplink>(std::move(network), loop, marshalling);
}

std::unique_ptr<DownlinkCarrier> make_memory_downlink(std::shared_ptr<MemoryNetwork> network, base::Loop& loop,
                                                      Marshalling marshalling) {
  return std::make_unique<MemoryDownlink>(std::move(network), loop, marshalling);
}

}  // namespace orla::link
