// What carries messages between two nodes: gRPC in production, memory in tests and in the simulator. A carrier delivers
// the messages of one connection in order, each at most once, until the connection ends; nothing else is promised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "link/messages.h"

namespace orla::link {

// Names one connection of a carrier, on either side; never reused.
enum class ConnectionId : std::uint64_t {};

// The child's side: a few connections at a time (a session, and a try at a better parent). All methods are called on
// the node's loop, and every callback is run there (posted, never from inside a method).
class UplinkCarrier {
 public:
  struct Events {
    std::function<void(ConnectionId)> connected;
    std::function<void(ConnectionId, DownMessage)> message;
    // Ends the connection (also one that never connected). Nothing of it follows.
    std::function<void(ConnectionId, absl::Status)> closed;
  };
  virtual ~UplinkCarrier() = default;
  virtual void set_events(Events events) = 0;
  // Starts connecting. `peer` names the node at the address, for logs.
  virtual ConnectionId connect(const std::string& address, const std::string& peer) = 0;
  // Queued in order. Heartbeats overtake queued messages. Dropped when the connection has ended.
  virtual void send(ConnectionId connection, UpMessage message) = 0;
  // Bytes accepted by send() and not yet handed to the network.
  virtual std::size_t queued_bytes(ConnectionId connection) const = 0;
  virtual void close(ConnectionId connection) = 0;
};

// The parent's side.
class DownlinkCarrier {
 public:
  struct Events {
    std::function<void(ConnectionId)> opened;
    std::function<void(ConnectionId, UpMessage)> message;
    std::function<void(ConnectionId, absl::Status)> closed;
  };
  virtual ~DownlinkCarrier() = default;
  virtual void set_events(Events events) = 0;
  // Starts accepting; returns the address with the real port. An address in use is an error that names it.
  virtual absl::StatusOr<std::string> listen(const std::string& address) = 0;
  virtual void send(ConnectionId connection, DownMessage message) = 0;
  // Sends what is queued, then ends the connection.
  virtual void close(ConnectionId connection) = 0;
  virtual void shutdown() = 0;
};

}  // namespace orla::link
