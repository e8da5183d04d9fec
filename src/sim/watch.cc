#include "sim/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link/ranges.h"
#include "node/role.h"

namespace orla::sim {

using std::chrono::milliseconds;

namespace {

// What an edge may hold beyond its outbox's bound: batches that were under way when it was reached.
constexpr std::uint64_t kOutboxSlack = 64'000;
// The parents' own factor, see link/relay_core.h.
constexpr std::uint64_t kOverdraft = 2;
// Nodes look at the time this often, and messages are under way.
constexpr milliseconds kTick{250};

double seconds_of(std::chrono::nanoseconds d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

Watch::Watch(const model::Plan& plan, const EventQueue& queue, const CloudDisk& durable)
    : plan_(plan),
      queue_(queue),
      durable_(durable),
      heartbeat_(node::limit_ms(plan.fleet, "heartbeat_ms")),
      parent_timeout_(node::limit_ms(plan.fleet, "parent_timeout_ms")),
      credit_(node::limit(plan.fleet, "credit_bytes")) {}

void Watch::problem(std::string text) {
  if (problem_.empty()) problem_ = std::move(text);
}

bool Watch::durable(const model::Cursor& cursor) const {
  if (cursor.epoch == model::Epoch{} || cursor.last == 0) return true;
  const auto origin = durable_.origins.find(cursor.node);
  if (origin != durable_.origins.end() && origin->second.cursor.epoch == cursor.epoch) {
    return cursor.last <= origin->second.cursor.last;
  }
  return std::any_of(durable_.closed.begin(), durable_.closed.end(), [&](const store::ClosedEpoch& closed) {
    return closed.node == cursor.node && closed.epoch == cursor.epoch && cursor.last <= closed.last;
  });
}

// Invariant 1: nobody is told of what the cloud's disk does not have.
void Watch::tells(const Wire& wire, const model::Cursor& cursor) {
  if (durable(cursor)) return;
  problem(fmt::format("{} tells {} that the cloud has chunks of {} up to {}: its disk does not", wire.parent,
                      wire.child, cursor.node, cursor.last));
}

void Watch::sent_down(const Wire& wire, const link::DownMessage& message) {
  if (const auto* ack = std::get_if<link::Acknowledge>(&message)) {
    for (const model::Cursor& cursor : ack->cursors) tells(wire, cursor);
  } else if (const auto* refused = std::get_if<link::Refused>(&message)) {
    for (const model::Cursor& cursor : refused->cursors) tells(wire, cursor);
    // Refusals are handed down; one by a frame that came twice is no fault of the child. What a tombstone takes is
    // known only once it is made, and may be more than the rows it stands for.
    doubled_ = doubled_ || wire.doubled;
    if (!doubled_ && tombstones_.empty() && refused->message.find("its credit is") != std::string::npos) {
      problem(fmt::format("{} overdraws its credit at {}: {}", wire.child, wire.parent, refused->message));
    }
  } else if (const auto* opened = std::get_if<link::Opened>(&message)) {
    tells(wire, opened->current);
  }
}

void Watch::from_edge(const model::NodeSpec& node, const model::Range& range) {
  // What was sent under a number stays what it is, and an epoch's chunks are told in one story.
  const auto [it, added] =
      sealed_.try_emplace({range.node, range.epoch, range.first}, Sealed{range.chain_before, range.chain_after});
  if (!added && (it->second.chain_before != range.chain_before || it->second.chain_after != range.chain_after)) {
    problem(fmt::format("{} sends chunk {} again with other contents", range.node, range.first));
  }
  if (node.durability == model::Durability::kMemory && range.note.states.empty()) {
    problem(fmt::format("{} sends chunk {} without its acceptance state", range.node, range.first));
  }
  for (const model::Tombstone& tombstone : range.note.tombstones) {
    for (model::Sequence s = tombstone.first; s <= tombstone.last; ++s) {
      tombstones_.insert_or_assign({range.node, range.epoch, s}, Lost{tombstone.samples, tombstone.raw_samples});
    }
  }
  Said& said = said_[{range.node, range.epoch}];
  if (range.last <= said.sequence) return;
  said.sequence = range.last;
  for (const model::Publication& publication : range.note.publications) {
    const auto [before, is_new] = said.publications.try_emplace(publication.metric, publication.time);
    if (publication.time < before->second && !new_stories_.contains(range.node)) {
      problem(fmt::format("{} publishes {} back from chunk {} on", range.node, publication.metric, range.first));
    }
    before->second = publication.time;
  }
  for (const auto& [key, ledger] : range.note.ledgers) {
    const auto [before, is_new] = said.received.try_emplace(key, ledger.received);
    if ((ledger.received < before->second && !new_stories_.contains(range.node)) || ledger.unaccounted() != 0) {
      problem(fmt::format("{} says in chunk {} that input {} received {} (before: {}), {} unaccounted for", range.node,
                          range.first, key, ledger.received, before->second, ledger.unaccounted()));
    }
    before->second = ledger.received;
  }
}

void Watch::sent_up(const Wire& wire, const link::UpMessage& message) {
  const auto* frame = std::get_if<link::FrameMessage>(&message);
  if (frame == nullptr) return;
  Session& session = sessions_[wire.id];
  // A number is left out when a chunk cannot be read.
  if (frame->id <= session.last_frame) {
    problem(fmt::format("{} sends frame {} after {}", wire.child, frame->id, session.last_frame));
  }
  session.last_frame = frame->id;
  std::size_t bytes = link::wire_bytes(message);
  // What a tombstone takes is known only once it is made.
  for (const model::Range& range : frame->ranges) {
    if (!range.note.tombstones.empty()) bytes = 0;
  }
  // Invariant 5: what a child may have unresolved.
  if (!session.flights.empty() && session.unresolved + bytes > kOverdraft * static_cast<std::uint64_t>(credit_)) {
    problem(fmt::format("{} has {} bytes unresolved at {} and sends {} more; its credit is {}", wire.child,
                        session.unresolved, wire.parent, bytes, credit_));
  }
  Flight flight{frame->id, bytes, {}};
  for (const model::Range& range : frame->ranges) {
    flight.ranges.push_back({range.node, range.epoch, range.first, range.last, {}, {}, {}});
  }
  session.unresolved += bytes;
  peaks_.unresolved_bytes = std::max(peaks_.unresolved_bytes, session.unresolved);
  session.flights.push_back(std::move(flight));
  const model::NodeSpec* node = plan_.fleet.node(wire.child);
  if (node == nullptr || node->layer != model::Layer::kEdge) return;
  for (const model::Range& range : frame->ranges) from_edge(*node, range);
}

void Watch::resolve(Session& session, const std::vector<model::Cursor>& cursors) {
  for (Flight& flight : session.flights) {
    std::erase_if(flight.ranges, [&](const model::Range& range) {
      return std::any_of(cursors.begin(), cursors.end(),
                         [&](const model::Cursor& cursor) { return link::covers(cursor, range); });
    });
    if (flight.ranges.empty()) session.unresolved -= flight.bytes;
  }
  std::erase_if(session.flights, [](const Flight& flight) { return flight.ranges.empty(); });
}

void Watch::arrives_up(const Wire& wire) { sessions_[wire.id].up_arrived = queue_.now(); }

void Watch::arrives_down(const Wire& wire, const link::DownMessage& message) {
  Session& session = sessions_[wire.id];
  session.down_arrived = queue_.now();
  if (const auto* ack = std::get_if<link::Acknowledge>(&message)) {
    resolve(session, ack->cursors);
  } else if (const auto* refused = std::get_if<link::Refused>(&message)) {
    resolve(session, refused->cursors);
    for (Flight& flight : session.flights) {
      if (flight.id == refused->frame) session.unresolved -= flight.bytes;
    }
    std::erase_if(session.flights, [&](const Flight& flight) { return flight.id == refused->frame; });
  }
}

void Watch::looked(const model::NodeSpec& node, const node::NodeStatus& status, base::SteadyTime started,
                   std::uint64_t connects) {
  if (node.layer == model::Layer::kEdge && status.outbox) {
    peaks_.outbox_bytes = std::max(peaks_.outbox_bytes, status.outbox->bytes);
    const auto bound = static_cast<std::uint64_t>(node::limit(plan_.fleet, "outbox_bytes"));
    if (status.outbox->bytes > bound + kOutboxSlack) {
      problem(fmt::format("{} holds {} bytes in its outbox; its bound is {}", node.name, status.outbox->bytes, bound));
    }
  }
  if (status.cloud) {
    peaks_.parked_rows = std::max(peaks_.parked_rows, status.cloud->parked_rows);
    const auto bound = static_cast<std::uint64_t>(node::limit(plan_.fleet, "parked_rows"));
    if (status.cloud->parked_rows > bound) {
      problem(fmt::format("{} has parked {} rows; its bound is {}", node.name, status.cloud->parked_rows, bound));
    }
  }
  if (node.parents.empty()) return;
  // A parent that cannot be reached is tried ever more rarely.
  std::size_t candidates = 0;
  for (const auto& group : node.parents) candidates += group.size();
  const double seconds = seconds_of(queue_.now() - started);
  if (seconds > 1) peaks_.connects_per_s = std::max(peaks_.connects_per_s, static_cast<double>(connects) / seconds);
  const double bound = static_cast<double>(candidates) * (6 + 4 * seconds);
  if (static_cast<double>(connects) > bound) {
    problem(fmt::format("{} has tried to connect {} times in {:.1f} s, with {} parents", node.name, connects, seconds,
                        candidates));
  }
}

void Watch::looked(const Wire& wire, const End& child, const End& parent) {
  const base::SteadyTime now = queue_.now();
  const Session& session = sessions_[wire.id];
  const std::chrono::nanoseconds under_way = wire.link->delay_max + kTick;
  const auto quiet = [&](base::SteadyTime since, std::initializer_list<base::SteadyTime> others) {
    for (const base::SteadyTime other : others) since = std::max(since, other);
    return now - since;
  };
  // An end that is free says something every heartbeat.
  if (!wire.cut && wire.welcomed != base::SteadyTime{} && child.alive && parent.alive && wire.up != nullptr &&
      wire.down != nullptr) {
    const auto limit = 3 * heartbeat_ + under_way;
    if (quiet(wire.to_parent.said, {child.free_since, wire.welcomed, session.down_arrived}) > limit) {
      problem(fmt::format("{} says nothing to {} for {:.1f} s", wire.child, wire.parent,
                          seconds_of(now - wire.to_parent.said)));
    }
    if (quiet(wire.to_child.said, {parent.free_since, wire.welcomed, session.up_arrived}) > limit) {
      problem(fmt::format("{} says nothing to {} for {:.1f} s", wire.parent, wire.child,
                          seconds_of(now - wire.to_child.said)));
    }
    // And it arrives, however much waits for a slow link.
    if (quiet(session.up_arrived, {wire.welcomed, child.free_since}) > limit + heartbeat_) {
      problem(fmt::format("heartbeats of {} are stuck on the way to {}", wire.child, wire.parent));
    }
    if (quiet(session.down_arrived, {wire.welcomed, parent.free_since}) > limit + heartbeat_) {
      problem(fmt::format("heartbeats of {} are stuck on the way to {}", wire.parent, wire.child));
    }
  }
  // A parent of which nothing arrives any more is noticed.
  constexpr std::chrono::seconds kConnect{2};
  constexpr std::chrono::milliseconds kHello{5500};
  if (child.alive && wire.up != nullptr &&
      quiet(session.down_arrived, {wire.began, child.free_since}) >
          std::max<std::chrono::nanoseconds>(parent_timeout_, kConnect) + under_way) {
    problem(fmt::format("{} has not noticed for {:.1f} s that nothing comes from {}", wire.child,
                        seconds_of(now - std::max(session.down_arrived, wire.began)), wire.parent));
  }
  if (parent.alive && wire.down != nullptr &&
      quiet(session.up_arrived, {wire.began, parent.free_since}) >
          std::max<std::chrono::nanoseconds>(5 * parent_timeout_, kHello) + under_way) {
    problem(fmt::format("{} has not noticed for {:.1f} s that nothing comes from {}", wire.parent,
                        seconds_of(now - std::max(session.up_arrived, wire.began)), wire.child));
  }
}

}  // namespace orla::sim
