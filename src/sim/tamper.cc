#include "sim/tamper.h"

#include <utility>

namespace orla::sim {

void Tamper::acknowledge(const WirePtr& wire, const link::FrameMessage& frame) {
  link::Acknowledge early;
  for (const model::Range& range : frame.ranges) {
    early.cursors.push_back({range.node, range.epoch, range.last, range.chain_after});
  }
  network_.inject_down(wire, std::move(early));
}

void Tamper::accept_overlap(link::FrameMessage& frame) const {
  for (model::Range& range : frame.ranges) {
    const auto found = durable_.origins.find(range.node);
    if (found == durable_.origins.end()) continue;
    const model::Cursor& cursor = found->second.cursor;
    if (cursor.epoch != range.epoch || range.first > cursor.last || range.last <= cursor.last) continue;
    range.first = cursor.last + 1;
    range.chain_before = cursor.chain;
  }
}

void Tamper::arrives_up(const WirePtr& wire, link::UpMessage& message) {
  const model::NodeSpec* parent = plan_.fleet.node(wire->parent);
  const model::NodeSpec* child = plan_.fleet.node(wire->child);
  if (parent == nullptr || child == nullptr) return;
  const bool at_cloud = parent->layer == model::Layer::kCloud;
  if (auto* dictionary = std::get_if<link::Dictionary>(&message)) {
    if (bug_ != Bug::kMergeDefinitions || !at_cloud || !cloud_is_older_) return;
    for (link::Dictionary::Entry& entry : dictionary->entries) {
      for (const model::StreamDef& stream : older_.streams) {
        if (stream.name != entry.group.stream) continue;
        entry.group.definition = stream.definition;
        entry.group.decimals = stream.decimals;
      }
    }
    return;
  }
  auto* frame = std::get_if<link::FrameMessage>(&message);
  if (frame == nullptr) return;
  switch (bug_) {
    case Bug::kAcknowledgeEarly:
      if (at_cloud) acknowledge(wire, *frame);
      break;
    case Bug::kTrimOnRelay:
      if (!at_cloud) acknowledge(wire, *frame);
      break;
    case Bug::kAcceptOverlap:
      if (at_cloud) accept_overlap(*frame);
      break;
    case Bug::kLoseState:
      if (child->layer == model::Layer::kEdge) {
        for (model::Range& range : frame->ranges) range.note.states.clear();
      }
      break;
    case Bug::kForgetLate:
      if (!at_cloud) break;
      for (model::Range& range : frame->ranges) {
        for (auto& [key, ledger] : range.note.ledgers) ledger.late.sum = 0;
      }
      break;
    default:
      break;
  }
}

}  // namespace orla::sim
