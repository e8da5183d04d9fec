#include "node/uplink_settings.h"

#include "node/role.h"

namespace orla::node {

link::UplinkSettings uplink_settings(const model::Fleet& fleet, const model::NodeSpec& node) {
  link::UplinkSettings settings;
  settings.fleet = fleet.name;
  settings.node = node.name;
  settings.layer = node.layer;
  for (const std::vector<std::string>& group : node.parents) {
    std::vector<link::ParentCandidate>& candidates = settings.parents.emplace_back();
    for (const std::string& name : group) candidates.push_back({name, fleet.node(name)->listen});
  }
  settings.heartbeat = limit_ms(fleet, "heartbeat_ms");
  settings.parent_timeout = limit_ms(fleet, "parent_timeout_ms");
  settings.backoff_min = limit_ms(fleet, "reconnect_min_ms");
  settings.backoff_max = limit_ms(fleet, "reconnect_max_ms");
  return settings;
}

link::DownlinkSettings downlink_settings(const model::Fleet& fleet, const model::NodeSpec& node) {
  link::DownlinkSettings settings;
  settings.fleet = fleet.name;
  settings.node = node.name;
  for (const model::NodeSpec& other : fleet.nodes) {
    for (const std::vector<std::string>& group : other.parents) {
      for (const std::string& name : group) {
        if (name == node.name) settings.children.push_back(other.name);
      }
    }
  }
  settings.credit_bytes = static_cast<std::uint64_t>(limit(fleet, "credit_bytes"));
  settings.heartbeat = limit_ms(fleet, "heartbeat_ms");
  settings.child_timeout = 5 * limit_ms(fleet, "parent_timeout_ms");
  return settings;
}

}  // namespace orla::node
