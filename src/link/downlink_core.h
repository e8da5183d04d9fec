// The parent's sessions with its children, as a state machine: who may connect, greetings, heartbeats, when a child
// counts as gone. docs/protocol.md, "Sessions". Used by aggregators and the cloud.
//
// Events in, actions out, in the order they have to be done. No I/O, no clock. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "link/carrier.h"
#include "link/messages.h"
#include "model/fleet.h"

namespace orla::link {

struct DownlinkSettings {
  std::string fleet;
  model::NodeName node;
  // Who may connect. Empty: every node of the fleet's name that says so.
  std::vector<model::NodeName> children;
  std::uint64_t credit_bytes = 8U << 20U;  // per child
  std::size_t max_children = 4096;         // connections; more are rejected
  std::chrono::nanoseconds heartbeat = std::chrono::milliseconds(500);
  std::chrono::nanoseconds child_timeout = std::chrono::seconds(10);  // without any message: the connection is closed
  std::chrono::nanoseconds hello_timeout = std::chrono::seconds(5);
};

class DownlinkCore {
 public:
  struct Send {
    ConnectionId child{};
    DownMessage message;
  };
  struct Close {
    ConnectionId child{};
    std::string reason;
  };
  struct ChildUp {
    ConnectionId child{};
    model::NodeName node;
    model::Layer layer = model::Layer::kEdge;
  };
  struct ChildDown {
    ConnectionId child{};
    model::NodeName node;
    std::string reason;
  };
  // Dictionary, FrameMessage or OpenEpoch of a child that is up.
  struct Deliver {
    ConnectionId child{};
    UpMessage message;
  };
  using Action = std::variant<Send, Close, ChildUp, ChildDown, Deliver>;

  explicit DownlinkCore(DownlinkSettings settings);

  void opened(base::SteadyTime now, ConnectionId connection);
  void received(base::SteadyTime now, ConnectionId connection, UpMessage message);
  void closed(ConnectionId connection, std::string why);
  // At least every heartbeat/4.
  void tick(base::SteadyTime now);
  // This node itself did nothing for so long, until now: no child's silence meanwhile says anything about the child.
  void slept(base::SteadyTime now, std::chrono::nanoseconds time);
  // Dropped when the child is not up.
  void send(ConnectionId child, DownMessage message);

  std::vector<Action> take_actions();

  // Children that are up: connection and name.
  std::vector<std::pair<ConnectionId, model::NodeName>> children() const;

  struct Counters {
    std::uint64_t sessions = 0;
    std::uint64_t rejections = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t replaced = 0;  // connections ended by a newer one of the same node
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Child {
    bool up = false;
    model::NodeName node;
    base::SteadyTime heard{};
    base::SteadyTime sent{};  // the last heartbeat
  };

  void hello(base::SteadyTime now, ConnectionId connection, const Hello& message);
  void reject(ConnectionId connection, std::string message);
  void drop(ConnectionId connection, const std::string& reason);

  DownlinkSettings settings_;
  std::map<ConnectionId, Child> connections_;
  std::map<model::NodeName, ConnectionId> by_node_;
  std::vector<Action> actions_;
  Counters counters_;
};

}  // namespace orla::link
