#include "link/downlink_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::link {

DownlinkCore::DownlinkCore(DownlinkSettings settings) : settings_(std::move(settings)) {}

void DownlinkCore::opened(base::SteadyTime now, ConnectionId connection) {
  connections_[connection] = Child{false, "", now, now};
  if (connections_.size() > settings_.max_children) {
    reject(connection, fmt::format("node \"{}\" has {} children already, its bound; use another parent", settings_.node,
                                   settings_.max_children));
  }
}

void DownlinkCore::reject(ConnectionId connection, std::string message) {
  ++counters_.rejections;
  actions_.emplace_back(Send{connection, Rejected{message}});
  actions_.emplace_back(Close{connection, std::move(message)});
  connections_.erase(connection);
}

void DownlinkCore::drop(ConnectionId connection, const std::string& reason) {
  const auto it = connections_.find(connection);
  if (it == connections_.end()) return;
  if (it->second.up) {
    by_node_.erase(it->second.node);
    actions_.emplace_back(ChildDown{connection, it->second.node, reason});
  }
  connections_.erase(it);
}

void DownlinkCore::hello(base::SteadyTime now, ConnectionId connection, const Hello& message) {
  Child& child = connections_.at(connection);
  if (child.up) return;  // a second Hello says nothing new
  if (message.major != kProtocolMajor) {
    reject(connection,
           fmt::format("node \"{}\" speaks protocol {}.{}, its parent \"{}\" speaks {}.{}: bring both to "
                       "the same major version, parents first",
                       message.node, message.major, message.minor, settings_.node, kProtocolMajor, kProtocolMinor));
    return;
  }
  if (message.fleet != settings_.fleet) {
    reject(connection, fmt::format("node \"{}\" is of fleet \"{}\", its parent \"{}\" of fleet \"{}\"", message.node,
                                   message.fleet, settings_.node, settings_.fleet));
    return;
  }
  const std::vector<model::NodeName>& known = settings_.children;
  if (message.node.empty() || message.node == settings_.node ||
      (!known.empty() && std::find(known.begin(), known.end(), message.node) == known.end())) {
    reject(connection, fmt::format("node \"{}\" is not a child of \"{}\" in fleet \"{}\"", message.node, settings_.node,
                                   settings_.fleet));
    return;
  }
  const auto older = by_node_.find(message.node);
  if (older != by_node_.end()) {
    const ConnectionId old = older->second;
    const std::string reason = fmt::format("node \"{}\" has connected anew", message.node);
    ++counters_.replaced;
    drop(old, reason);
    actions_.emplace_back(Close{old, reason});
  }
  child.up = true;
  child.node = message.node;
  child.sent = now;
  by_node_[message.node] = connection;
  ++counters_.sessions;
  actions_.emplace_back(
      Send{connection, Welcome{kProtocolMajor, kProtocolMinor, settings_.node,
                               std::chrono::duration_cast<std::chrono::milliseconds>(settings_.heartbeat).count(),
                               settings_.credit_bytes}});
  actions_.emplace_back(ChildUp{connection, message.node, message.layer});
}

void DownlinkCore::received(base::SteadyTime now, ConnectionId connection, UpMessage message) {
  const auto it = connections_.find(connection);
  if (it == connections_.end()) return;
  it->second.heard = now;
  if (const auto* greeting = std::get_if<Hello>(&message)) {
    hello(now, connection, *greeting);
  } else if (!it->second.up) {
    reject(connection, "the first message of a connection has to be Hello");
  } else if (!std::holds_alternative<Heartbeat>(message)) {
    actions_.emplace_back(Deliver{connection, std::move(message)});
  }
}

void DownlinkCore::closed(ConnectionId connection, std::string why) { drop(connection, why); }

void DownlinkCore::tick(base::SteadyTime now) {
  std::vector<ConnectionId> silent;
  for (auto& [connection, child] : connections_) {
    if (now - child.heard >= (child.up ? settings_.child_timeout : settings_.hello_timeout)) {
      silent.push_back(connection);
    } else if (child.up && now - child.sent >= settings_.heartbeat) {
      child.sent = now;
      actions_.emplace_back(Send{connection, Heartbeat{}});
    }
  }
  for (const ConnectionId connection : silent) {
    ++counters_.timeouts;
    const std::string reason = fmt::format(
        "nothing heard for {} ms",
        std::chrono::duration_cast<std::chrono::milliseconds>(now - connections_.at(connection).heard).count());
    drop(connection, reason);
    actions_.emplace_back(Close{connection, reason});
  }
}

void DownlinkCore::slept(base::SteadyTime now, std::chrono::nanoseconds time) {
  for (auto& [connection, child] : connections_) child.heard = std::min(now, child.heard + time);
}

void DownlinkCore::send(ConnectionId child, DownMessage message) {
  const auto it = connections_.find(child);
  if (it != connections_.end() && it->second.up) actions_.emplace_back(Send{child, std::move(message)});
}

std::vector<DownlinkCore::Action> DownlinkCore::take_actions() { return std::exchange(actions_, {}); }

std::vector<std::pair<ConnectionId, model::NodeName>> DownlinkCore::children() const {
  std::vector<std::pair<ConnectionId, model::NodeName>> all;
  for (const auto& [node, connection] : by_node_) all.emplace_back(connection, node);
  return all;
}

}  // namespace orla::link
