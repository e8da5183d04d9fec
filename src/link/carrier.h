// What carries messages between two nodes: gRPC in production, memory in tests and in the simulator. A carrier delivers
// the messages of one connection in order, each at most once, until the connection ends; nothing else is promised.
#pragma once

#include <chrono>
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

// Rules of both sides
//   All methods are called, and the carrier is destroyed, on the node's loop, or while that loop runs nothing; every
//   callback is run there (posted, never from inside a method). Callbacks may call every method but set_events(), and
//   do not destroy the carrier.
//   Each connection ends with exactly one `closed`, also after close() on this side (then with OK; messages that arrive
//   meanwhile are dropped), except when the carrier is destroyed, which ends its connections without a word here.
//   A callback that is not set is not called.
//   Part of a large message that arrives is a sign of life: a Heartbeat is delivered for it. A carrier may send
//   Heartbeats of its own, so that a peer does not take a node with a busy loop for a dead one.
//   What a peer gets wrong (bytes that are no message, a send queue that it does not empty) ends its connection with a
//   status that says so.

// Ticks of a session that are so far apart: this node itself was busy, or stopped, meanwhile.
inline constexpr std::chrono::milliseconds kSleep{250};

// The child's side: a few connections at a time (a session, and a try at a better parent).
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
  // Queued in order, also before `connected`. Heartbeats overtake what is queued, except Hello. Dropped when the
  // connection has ended.
  virtual void send(ConnectionId connection, UpMessage message) = 0;
  // Bytes accepted by send() and not yet handed to the network.
  virtual std::size_t queued_bytes(ConnectionId connection) const = 0;
  // Sends what is queued, if that does not take long, then ends the connection.
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
  // As on the other side; heartbeats do not overtake Welcome or Rejected.
  virtual void send(ConnectionId connection, DownMessage message) = 0;
  // Sends what is queued, if that does not take long, then ends the connection.
  virtual void close(ConnectionId connection) = 0;
  // Stops accepting and ends all connections at once. listen() may be called again.
  virtual void shutdown() = 0;
};

}  // namespace orla::link
