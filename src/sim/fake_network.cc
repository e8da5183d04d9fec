#include "sim/fake_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// A piece is what the link carries in this time: as long may a heartbeat wait behind one.
constexpr milliseconds kPiece{50};
constexpr std::uint64_t kLeastPiece = 64;
// How long what is queued may take once an end has closed.
constexpr milliseconds kLinger{500};

}  // namespace

nanoseconds FakeNetwork::delay(const Link& link) {
  const auto range = static_cast<std::uint64_t>((link.delay_max - link.delay_min).count());
  return link.delay_min + nanoseconds(range == 0 ? 0 : random_.below(range));
}

std::vector<WirePtr> FakeNetwork::wires() const {
  std::vector<WirePtr> all;
  for (const auto& [id, weak] : wires_) {
    if (WirePtr wire = weak.lock(); wire && (wire->up != nullptr || wire->down != nullptr)) {
      all.push_back(std::move(wire));
    }
  }
  return all;
}

WirePtr FakeNetwork::open(FakeUplink& uplink, const std::string& address) {
  auto wire = std::make_shared<Wire>();
  wire->id = link::ConnectionId{++last_id_};
  wire->up = &uplink;
  wire->child = uplink.node_;
  wire->link = &uplink.link_;
  wire->began = wire->to_parent.said = wire->to_child.said = queue_.now();
  ++uplink.link_.connects;
  const auto listener = listeners_.find(address);
  if (listener == listeners_.end() || uplink.link_.refuse) {
    wire->cut = true;
    tell_up(wire);
    return wire;
  }
  wires_[last_id_] = wire;
  std::erase_if(wires_, [](const auto& item) { return item.second.expired(); });
  ++counters_.connections;
  wire->parent = listener->second->node_;
  wire->to_parent.last = wire->to_child.last = queue_.now() + delay(*wire->link);
  FakeDownlink* down = listener->second;
  queue_.at(wire->to_parent.last, [this, wire, address, down] {
    // The one that listened may be gone by now, and another one may be there.
    const auto still = listeners_.find(address);
    if (wire->cut || still == listeners_.end() || still->second != down) {
      if (!wire->cut) cut(wire, Notice::kAll);
      return;
    }
    wire->down = down;
    down->wires_[wire->id] = wire;
    down->loop_.post([wire] {
      if (wire->down != nullptr && wire->down->events_.opened) wire->down->events_.opened(wire->id);
    });
    if (wire->up == nullptr) return;
    wire->up->loop_.post([wire] {
      if (wire->up != nullptr && wire->up->events_.connected) wire->up->events_.connected(wire->id);
    });
  });
  return wire;
}

template <typename Message>
void FakeNetwork::send(const WirePtr& wire, Lane<Message>& lane, Message message) {
  if (wire->cut) return;
  const std::uint64_t bytes = link::wire_bytes(message);
  ++counters_.messages;
  counters_.bytes += bytes;
  lane.said = queue_.now();
  if (wire->link->bytes_per_s == 0 && lane.queue.empty() && !lane.heartbeat && !lane.busy)
    return deliver(wire, std::move(message));
  ++counters_.queued;
  typename Lane<Message>::Item item{std::move(message), bytes};
  if (link::precedence(item.message) != link::Precedence::kHeartbeat || starve_) {
    lane.queue.push_back(std::move(item));
  } else if (!lane.heartbeat) {
    lane.heartbeat = std::move(item);
  } else {
    return;
  }
  lane.bytes += bytes;
  pump(wire, lane);
}

// Carries piece by piece what is queued. Between two pieces of a message a heartbeat goes first.
template <typename Message>
void FakeNetwork::pump(const WirePtr& wire, Lane<Message>& lane) {
  while (!lane.busy && !wire->cut && (lane.heartbeat || !lane.queue.empty())) {
    const bool greeting =
        !lane.queue.empty() && link::precedence(lane.queue.front().message) == link::Precedence::kGreeting;
    const bool beat = lane.heartbeat.has_value() && !greeting;
    typename Lane<Message>::Item& item = beat ? *lane.heartbeat : lane.queue.front();
    const std::uint64_t rate = wire->link->bytes_per_s;
    const auto most = std::max<std::uint64_t>(kLeastPiece, rate * static_cast<std::uint64_t>(kPiece.count()) / 1000);
    const std::uint64_t piece = rate == 0 ? item.left : std::min(item.left, most);
    const auto carried = [this, wire, &lane, beat, piece] {
      typename Lane<Message>::Item& now = beat ? *lane.heartbeat : lane.queue.front();
      now.left -= piece;
      lane.bytes -= piece;
      // What arrives of a large message is a sign of life.
      if (now.left > 0) {
        if (!starve_) deliver(wire, Message(link::Heartbeat{}));
        return;
      }
      Message whole = std::move(now.message);
      if (beat) {
        lane.heartbeat.reset();
      } else {
        lane.queue.pop_front();
      }
      deliver(wire, std::move(whole));
    };
    if (rate == 0) {
      carried();
      continue;
    }
    lane.busy = true;
    queue_.after(nanoseconds(piece * 1'000'000'000 / rate), [this, wire, &lane, carried] {
      lane.busy = false;
      if (wire->cut) return;
      carried();
      pump(wire, lane);
    });
  }
}

void FakeNetwork::send_up(const WirePtr& wire, link::UpMessage message) {
  if (wire->cut) return;
  if (hooks_.sent_up) hooks_.sent_up(*wire, message);
  wire->link->bytes_up += link::wire_bytes(message);
  // More than carriers do: a frame that arrives twice.
  if (wire->link->doubles_one_in > 0 && std::holds_alternative<link::FrameMessage>(message) &&
      random_.below(wire->link->doubles_one_in) == 0) {
    ++counters_.doubled;
    wire->doubled = true;
    send(wire, wire->to_parent, link::UpMessage(message));
  }
  send(wire, wire->to_parent, std::move(message));
}

void FakeNetwork::send_down(const WirePtr& wire, link::DownMessage message) {
  if (wire->cut) return;
  if (hooks_.sent_down) hooks_.sent_down(*wire, message);
  if (std::holds_alternative<link::Welcome>(message)) wire->welcomed = queue_.now();
  wire->link->bytes_down += link::wire_bytes(message);
  send(wire, wire->to_child, std::move(message));
}

void FakeNetwork::deliver_up(const WirePtr& wire, link::UpMessage message) {
  wire->to_parent.last = std::max(wire->to_parent.last, queue_.now() + delay(*wire->link));
  // What has arrived is in the receiver's buffers, whatever becomes of the connection.
  queue_.at(wire->to_parent.last, [this, wire, message = std::move(message)]() mutable {
    if (wire->cut || wire->down == nullptr) {
      ++counters_.lost;
      return;
    }
    if (hooks_.arrives_up) hooks_.arrives_up(wire, message);
    wire->down->loop_.post([this, wire, message = std::move(message)]() mutable {
      if (wire->down == nullptr || !wire->down->events_.message) return;
      if (hooks_.cost_up) wire->down->loop_.spend(hooks_.cost_up(*wire, message));
      wire->down->events_.message(wire->id, std::move(message));
    });
  });
}

void FakeNetwork::deliver_down(const WirePtr& wire, link::DownMessage message) {
  wire->to_child.last = std::max(wire->to_child.last, queue_.now() + delay(*wire->link));
  queue_.at(wire->to_child.last, [this, wire, message = std::move(message)]() mutable {
    if (wire->cut || wire->up == nullptr) {
      ++counters_.lost;
      return;
    }
    if (hooks_.arrives_down) hooks_.arrives_down(wire, message);
    wire->up->loop_.post([this, wire, message = std::move(message)]() mutable {
      if (wire->up == nullptr || !wire->up->events_.message) return;
      if (hooks_.cost_down) wire->up->loop_.spend(hooks_.cost_down(*wire, message));
      wire->up->events_.message(wire->id, std::move(message));
    });
  });
}

void FakeNetwork::tell_up(const WirePtr& wire) {
  queue_.after(delay(*wire->link), [wire] {
    if (wire->up == nullptr) return;
    wire->up->loop_.post([wire] {
      FakeUplink* up = std::exchange(wire->up, nullptr);
      if (up == nullptr) return;
      up->wires_.erase(wire->id);
      if (up->events_.closed) up->events_.closed(wire->id, absl::UnavailableError("the connection was cut"));
    });
  });
}

void FakeNetwork::tell_down(const WirePtr& wire) {
  queue_.after(delay(*wire->link), [wire] {
    if (wire->down == nullptr) return;
    wire->down->loop_.post([wire] {
      FakeDownlink* down = std::exchange(wire->down, nullptr);
      if (down == nullptr) return;
      down->wires_.erase(wire->id);
      if (down->events_.closed) down->events_.closed(wire->id, absl::UnavailableError("the connection was cut"));
    });
  });
}

void FakeNetwork::cut(const WirePtr& wire, Notice notice) {
  if (wire->cut) return;
  wire->cut = true;
  ++counters_.cuts;
  if (notice == Notice::kNone) return;
  if (notice == Notice::kAll || random_.below(2) == 0) tell_up(wire);
  if (notice == Notice::kAll || random_.below(2) == 0) tell_down(wire);
}

int FakeNetwork::cut(FakeUplink& uplink, Notice notice) {
  const auto wires = uplink.wires_;
  for (const auto& [id, wire] : wires) cut(wire, notice);
  return static_cast<int>(wires.size());
}

bool FakeNetwork::inject(FakeUplink& uplink, link::UpMessage message) {
  if (uplink.wires_.empty()) return false;
  const WirePtr wire = uplink.wires_.rbegin()->second;
  if (wire->cut || wire->down == nullptr) return false;
  send(wire, wire->to_parent, std::move(message));
  return true;
}

void FakeNetwork::close(const WirePtr& wire, base::SteadyTime last, bool queued) {
  const base::SteadyTime when = queued ? std::max(last, queue_.now() + kLinger) : last;
  queue_.at(when, [this, wire] { cut(wire, Notice::kAll); });
}

FakeUplink::~FakeUplink() {
  for (const auto& [id, wire] : wires_) {
    wire->up = nullptr;
    network_.cut(wire, network_.healed_ ? FakeNetwork::Notice::kAll : FakeNetwork::Notice::kSome);
  }
}

link::ConnectionId FakeUplink::connect(const std::string& address, const std::string&) {
  const WirePtr wire = network_.open(*this, address);
  wires_[wire->id] = wire;
  return wire->id;
}

void FakeUplink::send(link::ConnectionId connection, link::UpMessage message) {
  const auto found = wires_.find(connection);
  if (found != wires_.end()) network_.send_up(found->second, std::move(message));
}

std::size_t FakeUplink::queued_bytes(link::ConnectionId connection) const {
  const auto found = wires_.find(connection);
  if (found == wires_.end()) return 0;
  return found->second->to_parent.bytes;
}

void FakeUplink::close(link::ConnectionId connection) {
  const auto found = wires_.find(connection);
  if (found == wires_.end()) return;
  const WirePtr wire = found->second;
  wires_.erase(found);
  wire->up = nullptr;
  network_.close(wire, wire->to_parent.last, wire->to_parent.bytes > 0);
}

FakeDownlink::~FakeDownlink() {
  shutdown();
  for (const auto& [id, wire] : wires_) {
    wire->down = nullptr;
    network_.cut(wire, network_.healed_ ? FakeNetwork::Notice::kAll : FakeNetwork::Notice::kSome);
  }
}

absl::StatusOr<std::string> FakeDownlink::listen(const std::string& address) {
  if (!network_.listeners_.try_emplace(address, this).second) {
    return absl::AlreadyExistsError(fmt::format("address {} is in use", address));
  }
  address_ = address;
  return address;
}

void FakeDownlink::send(link::ConnectionId connection, link::DownMessage message) {
  const auto found = wires_.find(connection);
  if (found != wires_.end()) network_.send_down(found->second, std::move(message));
}

void FakeDownlink::close(link::ConnectionId connection) {
  const auto found = wires_.find(connection);
  if (found == wires_.end()) return;
  const WirePtr wire = found->second;
  wires_.erase(found);
  wire->down = nullptr;
  network_.close(wire, wire->to_child.last, wire->to_child.bytes > 0);
}

void FakeDownlink::shutdown() {
  if (!address_.empty()) network_.listeners_.erase(address_);
  address_.clear();
}

}  // namespace orla::sim
