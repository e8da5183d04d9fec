// An aggregator: children's frames in, merged frames out. Keeps nothing on disk and acknowledges nothing itself; the
// rules are link::RelayCore's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "link/downlink.h"
#include "link/relay_core.h"
#include "link/uplink.h"
#include "node/group_table.h"
#include "node/role.h"

namespace orla::node {

class AggregatorRole final : public Role {
 public:
  // All outlive the role, and so does the plan.
  AggregatorRole(const model::Plan& plan, const model::NodeSpec& node, World world, link::DownlinkCarrier& below,
                 link::UplinkCarrier& above);

  absl::Status start() override;
  void shutdown(std::function<void(StopReport)> done) override;
  void fill(NodeStatus& status) const override;

 private:
  struct Child {
    model::NodeName node;
    model::Layer layer{};
    base::SteadyTime since{};
    ChildGroups groups;
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
  };

  void on_child_message(link::ConnectionId connection, link::UpMessage message);
  void on_frame(link::ConnectionId connection, Child& child, link::FrameMessage frame);
  void pump_relay();
  void send_frame(const link::RelayCore::SendFrame& action);

  const model::Plan& plan_;
  const model::NodeSpec& node_;
  World world_;
  Alarms alarms_;
  GroupTable groups_;
  link::RelayCore relay_;
  link::Downlink downlink_;
  link::Uplink uplink_;
  std::unique_ptr<Ticker> ticker_;
  std::map<link::ConnectionId, Child> children_;
  std::string listen_;
  std::size_t dictionary_sent_ = 0;
  std::uint64_t connects_ = 0;
  std::uint64_t frames_in_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t frames_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::string uplink_error_;
};

}  // namespace orla::node
