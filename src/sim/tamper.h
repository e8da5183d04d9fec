// Planted bugs that show in the messages between real nodes: what arrives is changed, or answered, as a node with the
// bug would have done.
#pragma once

#include "model/plan.h"
#include "sim/fake_cloud_store.h"
#include "sim/fake_network.h"
#include "sim/planted.h"

namespace orla::sim {

class Tamper {
 public:
  // All outlive it. `older` is the plan of a cloud that runs an older fleet file.
  Tamper(Bug bug, FakeNetwork& network, const model::Plan& plan, const model::Plan& older, const CloudDisk& durable)
      : bug_(bug), network_(network), plan_(plan), older_(older), durable_(durable) {}

  // Whether the cloud runs the older fleet file now.
  void cloud_is_older(bool older) { cloud_is_older_ = older; }
  // Before the message is looked at by the parent.
  void arrives_up(const WirePtr& wire, link::UpMessage& message);

 private:
  void acknowledge(const WirePtr& wire, const link::FrameMessage& frame);
  void accept_overlap(link::FrameMessage& frame) const;

  const Bug bug_;
  FakeNetwork& network_;
  const model::Plan& plan_;
  const model::Plan& older_;
  const CloudDisk& durable_;
  bool cloud_is_older_ = false;
};

}  // namespace orla::sim
