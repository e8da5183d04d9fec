#include "node/aggregator_role.h"

#include <fmt/format.h>

#include <utility>

#include "base/absl_view.h"
#include "codec/rows.h"
#include "node/uplink_settings.h"

namespace orla::node {

namespace {

constexpr std::chrono::milliseconds kTick{10};

link::RelaySettings relay_settings(const model::Fleet& fleet) {
  link::RelaySettings settings;
  settings.frame_bytes = static_cast<std::size_t>(limit(fleet, "frame_bytes"));
  settings.credit_bytes = static_cast<std::uint64_t>(limit(fleet, "credit_bytes"));
  return settings;
}

// Rows of several parts as one canonical run.
model::PartialRows merged(const std::vector<link::RelayCore::Rows>& parts) {
  if (parts.size() == 1) return *parts.front();
  model::PartialRows rows;
  std::size_t n = 0;
  for (const link::RelayCore::Rows& part : parts) n += part->size();
  rows.reserve(n);
  for (const link::RelayCore::Rows& part : parts) rows.insert(rows.end(), part->begin(), part->end());
  model::canonicalize(rows);
  return rows;
}

}  // namespace

AggregatorRole::AggregatorRole(const model::Plan& plan, const model::NodeSpec& node, World world,
                               link::DownlinkCarrier& below, link::UplinkCarrier& above)
    : plan_(plan),
      node_(node),
      world_(world),
      alarms_(world.log),
      groups_(static_cast<std::size_t>(limit(plan.fleet, "groups"))),
      relay_(relay_settings(plan.fleet)),
      downlink_(downlink_settings(plan.fleet, node), below, world.clock,
                {.child_up =
                     [this](const link::DownlinkCore::ChildUp& up) {
                       world_.log.info("child {} is connected", up.node);
                       children_[up.child] = Child{up.node, up.layer, world_.clock.steady_now(), {}, 0, 0};
                       relay_.child_up(up.child);
                       pump_relay();
                     },
                 .child_down =
                     [this](const link::DownlinkCore::ChildDown& down) {
                       world_.log.info("child {} is gone: {}", down.node, down.reason);
                       children_.erase(down.child);
                       relay_.child_down(down.child);
                       pump_relay();
                     },
                 .message = [this](link::ConnectionId child,
                                   link::UpMessage message) { on_child_message(child, std::move(message)); }}),
      uplink_(uplink_settings(plan.fleet, node), above, world.clock, world.random,
              {.session_up =
                   [this](const link::UplinkCore::SessionUp& up) {
                     ++connects_;
                     uplink_error_.clear();
                     dictionary_sent_ = 0;
                     world_.log.info("connected to parent {}", up.parent);
                     relay_.session_up(world_.clock.steady_now(), up.credit_bytes);
                     pump_relay();
                   },
               .session_down =
                   [this](const link::UplinkCore::SessionDown& down) {
                     uplink_error_ = down.reason;
                     world_.log.warn("lost parent {}: {}", down.parent, down.reason);
                     relay_.session_down();
                     pump_relay();
                   },
               .message =
                   [this](link::DownMessage message) {
                     relay_.received(world_.clock.steady_now(), message);
                     pump_relay();
                   },
               .trouble =
                   [this](const std::string& text) {
                     uplink_error_ = text;
                     world_.log.warn("{}", text);
                   }}) {}

absl::Status AggregatorRole::start() {
  absl::StatusOr<std::string> address = downlink_.listen(node_.listen);
  if (!address.ok()) return address.status();
  listen_ = *std::move(address);
  ticker_ = std::make_unique<Ticker>(world_.loop, kTick, [this] {
    downlink_.tick();
    uplink_.tick();
    relay_.tick(world_.clock.steady_now());
    pump_relay();
  });
  uplink_.start();
  return absl::OkStatus();
}

void AggregatorRole::on_child_message(link::ConnectionId connection, link::UpMessage message) {
  const auto found = children_.find(connection);
  if (found == children_.end()) return;
  Child& child = found->second;
  if (auto* dictionary = std::get_if<link::Dictionary>(&message)) {
    const absl::Status status =
        child.groups.define(*dictionary, [this](const model::GroupDef& group) { return groups_.intern(group); });
    // What cannot be defined shows again at the frame that uses it, and is refused there.
    if (!status.ok()) alarms_.raise(fmt::format("child {}: {}", child.node, base::message(status)));
  } else if (auto* frame = std::get_if<link::FrameMessage>(&message)) {
    on_frame(connection, child, std::move(*frame));
  } else if (auto* open = std::get_if<link::OpenEpoch>(&message)) {
    relay_.open(connection, *open);
  }
  pump_relay();
}

void AggregatorRole::on_frame(link::ConnectionId connection, Child& child, link::FrameMessage frame) {
  const std::size_t bytes = link::wire_bytes(link::UpMessage(frame));
  ++frames_in_;
  bytes_in_ += bytes;
  ++child.frames;
  child.bytes += bytes;
  absl::StatusOr<model::PartialRows> rows = codec::decode_rows(frame.rows);
  absl::Status status = rows.ok() ? child.groups.translate(*rows) : rows.status();
  if (!status.ok()) {
    alarms_.raise(fmt::format("frame of child {} refused: {}", child.node, base::message(status)));
    relay_.unreadable(connection, frame.id, base::message(status));
    return;
  }
  relay_.frame(world_.clock.steady_now(), connection, frame.id, std::move(frame.ranges),
               std::make_shared<const model::PartialRows>(*std::move(rows)), bytes);
}

void AggregatorRole::pump_relay() {
  for (std::vector<link::RelayCore::Action> actions = relay_.take_actions(); !actions.empty();
       actions = relay_.take_actions()) {
    for (link::RelayCore::Action& action : actions) {
      if (auto* frame = std::get_if<link::RelayCore::SendFrame>(&action)) {
        send_frame(*frame);
      } else if (auto* open = std::get_if<link::RelayCore::SendOpen>(&action)) {
        uplink_.send(open->message);
      } else if (auto* down = std::get_if<link::RelayCore::ToChild>(&action)) {
        downlink_.send(down->child, std::move(down->message));
      }
    }
  }
}

void AggregatorRole::send_frame(const link::RelayCore::SendFrame& action) {
  send_dictionary(
      dictionary_sent_, groups_.size(), [this](std::size_t i) { return groups_[static_cast<model::GroupId>(i)]; },
      [this](link::Dictionary message) { uplink_.send(std::move(message)); });
  link::FrameMessage frame{action.id, action.ranges, codec::encode_rows(merged(action.rows))};
  ++frames_sent_;
  bytes_sent_ += link::wire_bytes(link::UpMessage(frame));
  uplink_.send(std::move(frame));
}

void AggregatorRole::shutdown(std::function<void(StopReport)> done) {
  // Nothing to keep: children send again what the cloud has not acknowledged.
  ticker_.reset();
  uplink_.stop();
  downlink_.stop();
  done({});
}

void AggregatorRole::fill(NodeStatus& status) const {
  status.listen = listen_;
  status.frames_in = frames_in_;
  status.bytes_in = bytes_in_;
  status.alarms = alarms_.latest();
  UplinkStatus& up = status.uplink.emplace();
  up.connected = uplink_.core().up();
  up.parent = uplink_.core().parent();
  up.connects = connects_;
  up.frames_sent = frames_sent_;
  up.bytes_sent = bytes_sent_;
  up.error = uplink_error_;
  const base::SteadyTime now = world_.clock.steady_now();
  for (const auto& [connection, child] : children_) {
    status.children.push_back({child.node, std::string(model::to_string(child.layer)),
                               std::chrono::duration<double>(now - child.since).count(), child.frames, child.bytes});
  }
  const link::RelayCore::Counters& c = relay_.counters();
  // What was handed back or dropped comes again and is then counted anew: for this node it was a duplicate.
  status.chunks = ChunkAccount{c.received, c.applied, c.duplicate + c.refused + c.dropped, relay_.pending_chunks()};
  status.drained = relay_.idle();
}

}  // namespace orla::node
