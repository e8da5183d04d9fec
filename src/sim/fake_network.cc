#include "sim/fake_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::sim {

using std::chrono::milliseconds;

std::chrono::nanoseconds FakeNetwork::delay() { return milliseconds(1 + random_.below(healed_ ? 10 : 60)); }

std::shared_ptr<Wire> FakeNetwork::open(FakeUplink& uplink, const std::string& address) {
  auto wire = std::make_shared<Wire>();
  wire->id = link::ConnectionId{++last_id_};
  wire->up = &uplink;
  const auto listener = listeners_.find(address);
  if (listener == listeners_.end() || (!healed_ && random_.below(8) == 0)) {
    wire->cut = true;
    tell_up(wire);
    return wire;
  }
  ++counters_.connections;
  wire->last_up = wire->last_down = queue_.now() + delay();
  FakeDownlink* down = listener->second;
  queue_.at(wire->last_up, [this, wire, address, down] {
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

void FakeNetwork::send_up(const std::shared_ptr<Wire>& wire, link::UpMessage message) {
  if (wire->cut) return;
  ++counters_.messages;
  // More than carriers do: a frame that arrives twice.
  if (!healed_ && std::holds_alternative<link::FrameMessage>(message) && random_.below(40) == 0) {
    ++counters_.doubled;
    const link::UpMessage copy = message;
    deliver_up(wire, copy);
  }
  deliver_up(wire, std::move(message));
}

void FakeNetwork::deliver_up(const std::shared_ptr<Wire>& wire, link::UpMessage message) {
  wire->last_up = std::max(wire->last_up, queue_.now() + delay());
  // What has arrived is in the receiver's buffers, whatever becomes of the connection.
  queue_.at(wire->last_up, [this, wire, message = std::move(message)] {
    if (wire->cut || wire->down == nullptr) {
      ++counters_.lost;
      return;
    }
    wire->down->loop_.post([wire, message] {
      if (wire->down != nullptr && wire->down->events_.message) wire->down->events_.message(wire->id, message);
    });
  });
}

void FakeNetwork::send_down(const std::shared_ptr<Wire>& wire, link::DownMessage message) {
  if (wire->cut) return;
  ++counters_.messages;
  wire->last_down = std::max(wire->last_down, queue_.now() + delay());
  queue_.at(wire->last_down, [this, wire, message = std::move(message)] {
    if (wire->cut || wire->up == nullptr) {
      ++counters_.lost;
      return;
    }
    wire->up->loop_.post([wire, message] {
      if (wire->up != nullptr && wire->up->events_.message) wire->up->events_.message(wire->id, message);
    });
  });
}

void FakeNetwork::tell_up(const std::shared_ptr<Wire>& wire) {
  queue_.after(delay(), [wire] {
    if (wire->up == nullptr) return;
    wire->up->loop_.post([wire] {
      FakeUplink* up = std::exchange(wire->up, nullptr);
      if (up == nullptr) return;
      up->wires_.erase(wire->id);
      if (up->events_.closed) up->events_.closed(wire->id, absl::UnavailableError("the connection was cut"));
    });
  });
}

void FakeNetwork::tell_down(const std::shared_ptr<Wire>& wire) {
  queue_.after(delay(), [wire] {
    if (wire->down == nullptr) return;
    wire->down->loop_.post([wire] {
      FakeDownlink* down = std::exchange(wire->down, nullptr);
      if (down == nullptr) return;
      down->wires_.erase(wire->id);
      if (down->events_.closed) down->events_.closed(wire->id, absl::UnavailableError("the connection was cut"));
    });
  });
}

void FakeNetwork::cut(const std::shared_ptr<Wire>& wire, Notice notice) {
  if (wire->cut) return;
  wire->cut = true;
  ++counters_.cuts;
  if (notice == Notice::kAll || random_.below(2) == 0) tell_up(wire);
  if (notice == Notice::kAll || random_.below(2) == 0) tell_down(wire);
}

int FakeNetwork::cut(FakeUplink& uplink) {
  const auto wires = uplink.wires_;
  for (const auto& [id, wire] : wires) cut(wire, Notice::kSome);
  return static_cast<int>(wires.size());
}

bool FakeNetwork::inject(FakeUplink& uplink, link::UpMessage message) {
  if (uplink.wires_.empty()) return false;
  const std::shared_ptr<Wire> wire = uplink.wires_.rbegin()->second;
  if (wire->cut || wire->down == nullptr) return false;
  send_up(wire, std::move(message));
  return true;
}

FakeUplink::~FakeUplink() {
  for (const auto& [id, wire] : wires_) {
    wire->up = nullptr;
    network_.cut(wire, network_.healed_ ? FakeNetwork::Notice::kAll : FakeNetwork::Notice::kSome);
  }
}

link::ConnectionId FakeUplink::connect(const std::string& address, const std::string&) {
  const std::shared_ptr<Wire> wire = network_.open(*this, address);
  wires_[wire->id] = wire;
  return wire->id;
}

void FakeUplink::send(link::ConnectionId connection, link::UpMessage message) {
  const auto found = wires_.find(connection);
  if (found != wires_.end()) network_.send_up(found->second, std::move(message));
}

void FakeUplink::close(link::ConnectionId connection) {
  const auto found = wires_.find(connection);
  if (found == wires_.end()) return;
  const std::shared_ptr<Wire> wire = found->second;
  wires_.erase(found);
  wire->up = nullptr;
  network_.queue_.at(wire->last_up, [&network = network_, wire] { network.cut(wire, FakeNetwork::Notice::kAll); });
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
  const std::shared_ptr<Wire> wire = found->second;
  wires_.erase(found);
  wire->down = nullptr;
  network_.queue_.at(wire->last_down, [&network = network_, wire] { network.cut(wire, FakeNetwork::Notice::kAll); });
}

void FakeDownlink::shutdown() {
  if (!address_.empty()) network_.listeners_.erase(address_);
  address_.clear();
}

}  // namespace orla::sim
