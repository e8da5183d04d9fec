// What the nodes of protocol_world.h do when their cores tell them to.
#include <algorithm>
#include <utility>

#include "link/protocol_world.h"
#include "link/ranges.h"

namespace orla::link::model_test {

using std::chrono::milliseconds;

void World::drain(std::size_t index) {
  Node& node = *nodes_[index];
  for (bool more = true; more && node.alive;) {
    more = false;
    if (node.up) {
      for (auto& action : node.up->take_actions()) more = true, uplink(index, action);
    }
    if (node.down) {
      for (auto& action : node.down->take_actions()) more = true, downlink(index, action);
    }
    if (node.origin) {
      for (auto& action : node.origin->take_actions()) more = true, origin(node, action);
    }
    if (node.relay) {
      for (auto& action : node.relay->take_actions()) more = true, relay(node, action);
    }
    if (node.root) {
      for (auto& action : node.root->take_actions()) more = true, root(node, action);
    }
  }
}

void World::uplink(std::size_t index, UplinkCore::Action& action) {
  Node& node = *nodes_[index];
  if (auto* connect = std::get_if<UplinkCore::Connect>(&action)) {
    const auto connection = std::make_shared<Connection>();
    connection->child = index;
    connection->parent = by_name_.at(connect->to.node);
    connection->attempt = connect->attempt;
    connection->id = ConnectionId{++last_connection_};
    node.uplinks[connect->attempt] = connection;
    const Node& parent = *nodes_[connection->parent];
    if (!parent.alive || (!healed_ && chance(5))) {
      cut(connection, false);
      return;
    }
    connection->last_up = connection->last_down = now_ + pause(30);
    on(
        connection->parent, parent.life, connection->last_up,
        [this, connection](Node& at_parent) {
          at_parent.downlinks[connection->id] = connection;
          at_parent.down->opened(now_, connection->id);
        },
        connection);
    on(
        index, node.life, connection->last_down,
        [connection](Node& child) { child.up->connected(connection->attempt); }, connection);
  } else if (auto* send = std::get_if<UplinkCore::Send>(&action)) {
    const auto it = node.uplinks.find(send->attempt);
    if (it == node.uplinks.end() || it->second->cut) return;
    const auto connection = it->second;
    const int copies = std::holds_alternative<FrameMessage>(send->message) && !healed_ && chance(30) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      connection->last_up = std::max(connection->last_up, now_ + pause(30));
      on(
          connection->parent, nodes_[connection->parent]->life, connection->last_up,
          [this, connection, message = send->message](Node& parent) {
            parent.down->received(now_, connection->id, message);
          },
          connection);
    }
  } else if (auto* close = std::get_if<UplinkCore::Close>(&action)) {
    const auto it = node.uplinks.find(close->attempt);
    if (it == node.uplinks.end()) return;
    const auto connection = it->second;
    node.uplinks.erase(it);
    cut(connection, false);
  } else if (auto* session = std::get_if<UplinkCore::SessionUp>(&action)) {
    if (node.origin) node.origin->session_up(now_, session->credit_bytes);
    if (node.relay) node.relay->session_up(now_, session->credit_bytes);
  } else if (std::holds_alternative<UplinkCore::SessionDown>(action)) {
    if (node.origin) node.origin->session_down();
    if (node.relay) node.relay->session_down();
  } else if (auto* deliver = std::get_if<UplinkCore::Deliver>(&action)) {
    if (node.origin) node.origin->received(now_, deliver->message);
    if (node.relay) node.relay->received(now_, deliver->message);
  } else if (auto* trouble = std::get_if<UplinkCore::Trouble>(&action)) {
    problem_ = trouble->text;
  }
}

void World::downlink(std::size_t index, DownlinkCore::Action& action) {
  Node& node = *nodes_[index];
  if (auto* send = std::get_if<DownlinkCore::Send>(&action)) {
    const auto it = node.downlinks.find(send->child);
    if (it == node.downlinks.end() || it->second->cut) return;
    const auto connection = it->second;
    connection->last_down = std::max(connection->last_down, now_ + pause(30));
    on(
        connection->child, nodes_[connection->child]->life, connection->last_down,
        [this, connection, message = send->message](Node& child) {
          child.up->received(now_, connection->attempt, message);
        },
        connection);
  } else if (auto* close = std::get_if<DownlinkCore::Close>(&action)) {
    const auto it = node.downlinks.find(close->child);
    if (it == node.downlinks.end()) return;
    const auto connection = it->second;
    node.downlinks.erase(it);
    cut(connection, false);
  } else if (auto* child_up = std::get_if<DownlinkCore::ChildUp>(&action)) {
    if (node.relay) node.relay->child_up(child_up->child);
  } else if (auto* child_down = std::get_if<DownlinkCore::ChildDown>(&action)) {
    if (node.relay) node.relay->child_down(child_down->child);
    if (node.root) node.root->child_down(child_down->child);
  } else if (auto* deliver = std::get_if<DownlinkCore::Deliver>(&action)) {
    if (auto* frame = std::get_if<FrameMessage>(&deliver->message)) {
      const std::size_t bytes = wire_bytes(deliver->message);
      if (node.root) {
        root_frame(node, deliver->child, *frame);
      } else {
        node.relay->frame(now_, deliver->child, frame->id, frame->ranges,
                          std::make_shared<const model::Content>(model::Content{decode(frame->rows), {}}), bytes);
        if (bug_ == Bug::kRelayAcknowledges) {
          Acknowledge early;
          for (const model::Range& r : frame->ranges) early.cursors.push_back({r.node, r.epoch, r.last, r.chain_after});
          node.down->send(deliver->child, early);
        }
      }
    } else if (auto* open = std::get_if<OpenEpoch>(&deliver->message)) {
      if (node.root) node.root->open(deliver->child, *open);
      if (node.relay) node.relay->open(deliver->child, *open);
    }
  }
}

void World::origin(Node& node, OriginCore::Action& action) {
  if (auto* send = std::get_if<OriginCore::SendChunk>(&action)) {
    const auto it = node.disk.chunks.find(send->sequence);
    if (it == node.disk.chunks.end()) {
      node.origin->unreadable(now_, send->sequence, "gone");
      return;
    }
    if (bug_ == Bug::kBlockOnLost && !it->second.range.note.tombstones.empty()) {
      node.origin->unreadable(now_, send->sequence, "lost");
      return;
    }
    node.up->send(FrameMessage{send->frame, {it->second.range}, it->second.rows});
    if (bug_ == Bug::kTrimOnSend) {
      node.disk.origin.acknowledged = send->sequence;
      node.disk.chunks.erase(it);
    }
  } else if (auto* open = std::get_if<OriginCore::SendOpen>(&action)) {
    node.up->send(open->message);
  } else if (auto* trim = std::get_if<OriginCore::Trim>(&action)) {
    if (chance(5)) {
      node.failed_trim = *trim;  // made up for by the next
    } else {
      this->trim(node, *trim);
    }
  } else if (auto* renumber = std::get_if<OriginCore::Renumber>(&action)) {
    if (!healed_ && chance(3)) {
      node.origin->renumber_failed(now_);
      return;
    }
    if (const auto missed = std::exchange(node.failed_trim, std::nullopt)) this->trim(node, *missed);
    Disk next;
    next.position = node.disk.position;
    next.lost = node.disk.lost;
    next.origin.epoch = renumber->epoch;
    for (auto& [sequence, chunk] : node.disk.chunks) {
      if (sequence <= renumber->folded) continue;
      StoredChunk moved = chunk;
      moved.range.epoch = renumber->epoch;
      moved.range.first = moved.range.last = next.origin.next_sequence++;
      for (model::Tombstone& tombstone : moved.range.note.tombstones) {
        tombstone.first = tombstone.last = moved.range.first;
      }
      moved.range.chain_before = next.origin.chain;
      moved.range.chain_after = chunk_chain(next.origin.chain, moved.range.first, moved.rows);
      next.origin.chain = moved.range.chain_after;
      next.origin.outbox.emplace_back(moved.range.first, moved.rows.size());
      next.chunks[moved.range.first] = std::move(moved);
    }
    node.disk = next;
    node.origin->renumbered(now_, node.disk.origin);
  } else if (auto* started = std::get_if<OriginCore::Started>(&action)) {
    node.disk = {};
    if (!started->states.empty()) node.disk.position = std::stoull(started->states.back().bytes);
    for (const model::Loss& loss : started->losses) node.disk.lost += model::lost_samples(loss);
  } else if (std::holds_alternative<OriginCore::EpochLost>(action)) {
    node.disk = {};
  } else if (auto* alarm = std::get_if<OriginCore::Alarm>(&action)) {
    if (alarm->kind != OriginCore::Alarm::Kind::kEpochClosed) problem_ = alarm->text;
  }
}

// One transaction: what is acknowledged goes, and what was lost only here is taken back.
void World::trim(Node& node, const OriginCore::Trim& action) {
  node.failed_trim.reset();
  node.disk.origin.acknowledged = action.through;
  const auto end = node.disk.chunks.upper_bound(action.through);
  for (auto it = node.disk.chunks.begin(); it != end; ++it) {
    if (contains(action.tombstones, it->first) || bug_ == Bug::kLossTwice) continue;
    for (const model::Tombstone& tombstone : it->second.range.note.tombstones) {
      node.disk.lost -= tombstone.samples.size();
      regained += tombstone.samples.size();
    }
  }
  node.disk.chunks.erase(node.disk.chunks.begin(), end);
}

void World::relay(Node& node, RelayCore::Action& action) {
  if (auto* send = std::get_if<RelayCore::SendFrame>(&action)) {
    model::PartialRows rows;
    for (const RelayCore::Rows& some : send->rows) rows.insert(rows.end(), some->rows.begin(), some->rows.end());
    node.up->send(FrameMessage{send->id, send->ranges, encode(rows)});
  } else if (auto* open = std::get_if<RelayCore::SendOpen>(&action)) {
    node.up->send(open->message);
  } else if (auto* to = std::get_if<RelayCore::ToChild>(&action)) {
    node.down->send(to->child, to->message);
  }
}

void World::root(Node& node, RootCore::Action& action) {
  if (auto* to = std::get_if<RootCore::ToChild>(&action)) {
    node.down->send(to->child, to->message);
  } else if (auto* answer = std::get_if<RootCore::AnswerOpen>(&action)) {
    if (answer->message.opened) {
      answer->message.states = node.kept.states[answer->node];
      answer->message.losses = node.kept.losses[answer->node];
    }
    node.down->send(answer->child, answer->message);
  } else if (auto* alarm = std::get_if<RootCore::Alarm>(&action)) {
    problem_ = alarm->text;
  }
}

}  // namespace orla::link::model_test
