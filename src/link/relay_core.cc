#include "link/relay_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link/ranges.h"

namespace orla::link {

RelayCore::RelayCore(RelaySettings settings) : settings_(settings) {}

const model::Range& RelayCore::range_of(const Part& part, const model::NodeName& node) {
  return *std::lower_bound(part.ranges.begin(), part.ranges.end(), node,
                           [](const model::Range& range, const model::NodeName& name) { return range.node < name; });
}

std::uint64_t RelayCore::chunks_of(const Part& part) {
  std::uint64_t n = 0;
  for (const model::Range& range : part.ranges) n += chunks(range);
  return n;
}

std::uint64_t RelayCore::pending_chunks() const {
  std::uint64_t n = 0;
  for (const auto& [id, part] : parts_) n += chunks_of(part);
  return n;
}

void RelayCore::child_up(ConnectionId child) { children_[child]; }

void RelayCore::child_down(ConnectionId child) {
  const auto it = children_.find(child);
  if (it == children_.end()) return;
  for (const model::NodeName& node : it->second.origins) {
    const auto route = routes_.find(node);
    route->second.erase(child);
    if (route->second.empty()) routes_.erase(route);
  }
  std::vector<PartId> gone;
  for (auto& [id, part] : parts_) {
    if (part.orphan || part.child != child) continue;
    part.orphan = true;
    if (part.frame == 0) gone.push_back(id);
  }
  for (const PartId id : gone) {
    counters_.dropped += chunks_of(parts_.at(id));
    forget(id);
  }
  std::erase_if(openings_, [&](const auto& opening) { return opening.second.child == child; });
  children_.erase(child);
}

void RelayCore::frame(base::SteadyTime now, ConnectionId child, std::uint64_t id, std::vector<model::Range> ranges,
                      Rows rows, std::size_t bytes) {
  const auto it = children_.find(child);
  if (it == children_.end()) return;
  ++counters_.parts;
  if (const absl::Status status = check_ranges(ranges); !status.ok()) {
    ++counters_.malformed;
    actions_.emplace_back(ToChild{child, Refused{id, RefusalReason::kMalformed, {}, std::string(status.message())}});
    return;
  }
  Part part;
  part.child = child;
  part.child_frame = id;
  part.ranges = std::move(ranges);
  part.covered.resize(part.ranges.size());
  part.rows = std::move(rows);
  part.bytes = bytes;
  part.arrived = now;
  counters_.received += chunks_of(part);
  if (it->second.held_bytes > 0 && it->second.held_bytes + bytes > 2 * settings_.credit_bytes) {
    ++counters_.overdrawn;
    counters_.refused += chunks_of(part);
    actions_.emplace_back(ToChild{child, Refused{id,
                                                 RefusalReason::kFull,
                                                 {},
                                                 fmt::format("{} bytes of this child are unresolved; its credit is {}",
                                                             it->second.held_bytes + bytes, settings_.credit_bytes)}});
    return;
  }
  const PartId number = ++last_part_;
  for (const model::Range& range : part.ranges) {
    by_origin_[range.node].held.insert(number);
    if (it->second.origins.insert(range.node).second) routes_[range.node].insert(child);
  }
  it->second.held_bytes += bytes;
  held_bytes_ += bytes;
  queued_.insert(number);
  queued_bytes_ += bytes;
  parts_.emplace(number, std::move(part));
  pump(now);
}

void RelayCore::unreadable(ConnectionId child, std::uint64_t id, std::string why) {
  if (!children_.contains(child)) return;
  ++counters_.parts;
  ++counters_.malformed;
  actions_.emplace_back(ToChild{child, Refused{id, RefusalReason::kMalformed, {}, std::move(why)}});
}

void RelayCore::open(ConnectionId child, const OpenEpoch& message) {
  if (!children_.contains(child)) return;
  // A newer request of the same node stands for the older one.
  std::erase_if(openings_, [&](const auto& opening) {
    return opening.second.child == child && opening.second.message.node == message.node;
  });
  if (openings_.size() >= settings_.max_opens) {
    ++counters_.opens_ignored;
    return;
  }
  openings_[++last_request_] = Opening{child, message};
  if (!session_) return;
  OpenEpoch up = message;
  up.request = last_request_;
  actions_.emplace_back(SendOpen{std::move(up)});
}

void RelayCore::session_up(base::SteadyTime now, std::uint64_t credit_bytes) {
  session_down();
  session_ = true;
  credit_ = credit_bytes;
  for (const auto& [request, opening] : openings_) {
    OpenEpoch up = opening.message;
    up.request = request;
    actions_.emplace_back(SendOpen{std::move(up)});
  }
  pump(now);
}

void RelayCore::session_down() {
  session_ = false;
  last_frame_ = 0;
  const auto frames = std::exchange(frames_, {});
  for (const auto& [frame, flight] : frames) {
    for (const PartId id : flight.parts) {
      Part& part = parts_.at(id);
      queue_again(id);
      if (part.orphan) {
        counters_.dropped += chunks_of(part);
        forget(id);
      }
    }
  }
  for (const PartId id : queued_) {
    parts_.at(id).alone = false;
    parts_.at(id).doomed = false;
  }
  queued_alone_ = 0;
}

void RelayCore::tick(base::SteadyTime now) { pump(now); }

bool RelayCore::due(base::SteadyTime now) const {
  if (queued_.empty()) return false;
  return queued_alone_ > 0 || queued_bytes_ >= settings_.frame_bytes ||
         now - parts_.at(*queued_.begin()).arrived >= settings_.max_delay;
}

void RelayCore::pump(base::SteadyTime now) {
  while (session_ && due(now) && (frames_.empty() || in_flight_bytes_ < credit_)) {
    if (!send_frame()) return;
  }
}

bool RelayCore::sendable(PartId id, const Part& part, const std::set<model::NodeName>& blocked) const {
  return std::all_of(part.ranges.begin(), part.ranges.end(), [&](const model::Range& range) {
    if (blocked.contains(range.node)) return false;
    const std::set<PartId>& in_flight = by_origin_.at(range.node).in_flight;
    if (in_flight.empty()) return true;
    const PartId latest = *in_flight.rbegin();
    return latest < id && continues(range_of(parts_.at(latest), range.node), range);
  });
}

bool RelayCore::send_frame() {
  const std::uint64_t frame = last_frame_ + 1;
  std::vector<PartId> chosen;
  std::size_t bytes = 0;
  std::set<model::NodeName> blocked;
  std::map<model::NodeName, std::size_t> tombstones;  // of the frame so far
  const auto too_many_tombstones = [&](const Part& part) {
    return std::any_of(part.ranges.begin(), part.ranges.end(), [&](const model::Range& range) {
      if (range.note.tombstones.empty()) return false;
      const auto had = tombstones.find(range.node);
      return had != tombstones.end() && had->second + range.note.tombstones.size() > kMaxTombstonesPerRange;
    });
  };
  for (const PartId id : queued_) {
    const Part& part = parts_.at(id);
    const bool first = chosen.empty();
    if ((part.alone && !first) || !sendable(id, part, blocked) || too_many_tombstones(part)) {
      for (const model::Range& range : part.ranges) blocked.insert(range.node);
      continue;
    }
    if (!(first && frames_.empty()) && in_flight_bytes_ + part.bytes > credit_) break;
    if (!first && bytes + part.bytes > settings_.frame_bytes) break;
    chosen.push_back(id);
    bytes += part.bytes;
    in_flight_bytes_ += part.bytes;
    // From here on it counts as in flight: the next part of its origins has to continue it.
    for (const model::Range& range : part.ranges) {
      by_origin_.at(range.node).in_flight.insert(id);
      if (!range.note.tombstones.empty()) tombstones[range.node] += range.note.tombstones.size();
    }
    if (part.alone) break;
  }
  if (chosen.empty()) return false;

  std::map<model::NodeName, model::Range> ranges;
  SendFrame action;
  action.id = last_frame_ = frame;
  for (const PartId id : chosen) {
    Part& part = parts_.at(id);
    part.frame = frame;
    queued_.erase(id);
    queued_bytes_ -= part.bytes;
    if (part.alone) --queued_alone_;
    for (const model::Range& range : part.ranges) {
      const auto [it, added] = ranges.try_emplace(range.node, range);
      if (!added) append(it->second, range);
    }
    if (part.rows) action.rows.push_back(part.rows);
  }
  for (auto& [node, range] : ranges) action.ranges.push_back(std::move(range));
  frames_[frame] = Flight{chosen, chosen.size() > 1};
  ++counters_.frames;
  actions_.emplace_back(std::move(action));
  return true;
}

// Takes a part out of the flight it is in.
void RelayCore::take_off(PartId id, std::uint64_t frame) {
  Part& part = parts_.at(id);
  part.frame = 0;
  in_flight_bytes_ -= part.bytes;
  for (const model::Range& range : part.ranges) by_origin_.at(range.node).in_flight.erase(id);
  const auto flight = frames_.find(frame);
  if (flight == frames_.end()) return;
  std::erase(flight->second.parts, id);
  if (flight->second.parts.empty()) frames_.erase(flight);
}

void RelayCore::queue_again(PartId id) {
  Part& part = parts_.at(id);
  take_off(id, part.frame);
  queued_.insert(id);
  queued_bytes_ += part.bytes;
  if (part.alone) ++queued_alone_;
}

void RelayCore::forget(PartId id) {
  Part& part = parts_.at(id);
  if (part.frame != 0) {
    take_off(id, part.frame);
  } else {
    queued_.erase(id);
    queued_bytes_ -= part.bytes;
    if (part.alone) --queued_alone_;
  }
  held_bytes_ -= part.bytes;
  const auto child = children_.find(part.child);
  if (!part.orphan && child != children_.end()) child->second.held_bytes -= part.bytes;
  for (const model::Range& range : part.ranges) {
    const auto parts = by_origin_.find(range.node);
    parts->second.held.erase(id);
    if (parts->second.held.empty()) by_origin_.erase(parts);
  }
  parts_.erase(id);
}

void RelayCore::received(base::SteadyTime now, const DownMessage& message) {
  if (const auto* acknowledged = std::get_if<Acknowledge>(&message)) {
    apply(acknowledged->cursors);
  } else if (const auto* refusal = std::get_if<Refused>(&message)) {
    apply(refusal->cursors);
    refused(*refusal);
  } else if (const auto* answer = std::get_if<Opened>(&message)) {
    const auto it = openings_.find(answer->request);
    if (it != openings_.end()) {
      Opened down = *answer;
      down.request = it->second.message.request;
      actions_.emplace_back(ToChild{it->second.child, std::move(down)});
      openings_.erase(it);
    }
  }
  pump(now);
}

void RelayCore::apply(const std::vector<model::Cursor>& cursors) {
  std::map<ConnectionId, std::vector<model::Cursor>> news;
  for (const model::Cursor& cursor : cursors) {
    if (const auto route = routes_.find(cursor.node); route != routes_.end()) {
      for (const ConnectionId child : route->second) news[child].push_back(cursor);
    }
    const auto parts = by_origin_.find(cursor.node);
    if (parts == by_origin_.end()) continue;
    const std::vector<PartId> held(parts->second.held.begin(), parts->second.held.end());
    for (const PartId id : held) {
      Part& part = parts_.at(id);
      for (std::size_t i = 0; i < part.ranges.size(); ++i) {
        if (covers(cursor, part.ranges[i])) part.covered[i] = 1;
      }
      if (std::find(part.covered.begin(), part.covered.end(), 0) != part.covered.end()) continue;
      (part.frame != 0 ? counters_.applied : counters_.duplicate) += chunks_of(part);
      forget(id);
    }
  }
  for (auto& [child, told] : news) actions_.emplace_back(ToChild{child, Acknowledge{std::move(told)}});
}

bool RelayCore::earlier_held(PartId id) const {
  const Part& part = parts_.at(id);
  return std::any_of(part.ranges.begin(), part.ranges.end(), [&](const model::Range& range) {
    const std::set<PartId>& held = by_origin_.at(range.node).held;
    return std::any_of(held.begin(), held.lower_bound(id),
                       [&](PartId earlier) { return range_of(parts_.at(earlier), range.node).epoch == range.epoch; });
  });
}

void RelayCore::refused(const Refused& message) {
  const auto it = frames_.find(message.frame);
  if (it == frames_.end()) return;  // everything in it was resolved in another way
  const Flight flight = it->second;
  if (flight.merged) ++counters_.splits;
  for (const PartId id : flight.parts) queue_again(id);
  for (const PartId id : flight.parts) {
    const auto found = parts_.find(id);
    if (found == parts_.end()) continue;  // handed back with a part before it
    Part& part = found->second;
    if (part.orphan) {
      counters_.dropped += chunks_of(part);
      forget(id);
    } else if (part.doomed) {
      hand_back(id, RefusalReason::kCursor, message);
    } else if (flight.merged || (message.reason == RefusalReason::kCursor && earlier_held(id))) {
      if (!part.alone) ++queued_alone_;
      part.alone = true;
    } else {
      hand_back(id, message.reason, message);
    }
  }
}

void RelayCore::hand_back(PartId id, RefusalReason reason, const Refused& message) {
  const auto hand = [&](PartId which, RefusalReason why) {
    const Part& part = parts_.at(which);
    Refused down{part.child_frame, why, {}, message.message};
    for (const model::Cursor& cursor : message.cursors) {
      if (std::any_of(part.ranges.begin(), part.ranges.end(),
                      [&](const model::Range& range) { return range.node == cursor.node; })) {
        down.cursors.push_back(cursor);
      }
    }
    counters_.refused += chunks_of(part);
    actions_.emplace_back(ToChild{part.child, std::move(down)});
    forget(which);
  };

  // Later parts of the same origins would only be gaps.
  const Part& part = parts_.at(id);
  std::set<PartId> later;
  for (const model::Range& range : part.ranges) {
    const std::set<PartId>& held = by_origin_.at(range.node).held;
    for (auto it = held.upper_bound(id); it != held.end(); ++it) {
      Part& other = parts_.at(*it);
      if (other.orphan || other.child != part.child || range_of(other, range.node).epoch != range.epoch) continue;
      if (other.frame != 0) {
        other.doomed = true;  // it cannot be called back: its own answer decides
      } else {
        later.insert(*it);
      }
    }
  }
  hand(id, reason);
  for (const PartId other : later) hand(other, RefusalReason::kCursor);
}

std::vector<RelayCore::Action> RelayCore::take_actions() { return std::exchange(actions_, {}); }

}  // namespace orla::link
