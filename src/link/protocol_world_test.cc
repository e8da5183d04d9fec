#include "link/protocol_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "link/ranges.h"

namespace orla::link::model_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string encode(const model::PartialRows& rows) {
  std::string bytes;
  base::ByteWriter out(bytes);
  for (const model::PartialRow& row : rows) {
    out.varint(model::index(row.group));
    out.varint(row.partial.count);
  }
  return bytes;
}

model::PartialRows decode(std::string_view bytes) {
  model::PartialRows rows;
  std::size_t at = 0;
  const auto number = [&] {
    std::uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      v |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return v;
    }
  };
  while (at < bytes.size()) {
    model::PartialRow row;
    row.group = model::GroupId{static_cast<std::uint32_t>(number())};
    row.partial.count = number();
    rows.push_back(std::move(row));
  }
  return rows;
}

World::World(std::uint64_t seed, Bug bug) : random_(seed), bug_(bug) {
  const std::size_t edges = 1 + random_.below(4);
  const std::size_t level_1 = random_.below(4);
  const std::size_t level_2 = level_1 == 0 ? 0 : random_.below(3);
  std::vector<std::string> low;
  std::vector<std::string> high;
  for (std::size_t i = 0; i < level_1; ++i) low.push_back(fmt::format("low-{}", i));
  for (std::size_t i = 0; i < level_2; ++i) high.push_back(fmt::format("high-{}", i));
  add("cloud", model::Layer::kCloud, {});
  for (const std::string& name : high) add(name, model::Layer::kAggregator, {{"cloud"}});
  for (const std::string& name : low) {
    if (high.empty()) {
      add(name, model::Layer::kAggregator, {{"cloud"}});
    } else {
      add(name, model::Layer::kAggregator, {high, {"cloud"}});
    }
  }
  for (std::size_t i = 0; i < edges; ++i) {
    std::vector<std::vector<std::string>> parents;
    if (!low.empty()) parents.push_back(low);
    if (low.empty() || chance(2)) parents.push_back({"cloud"});
    Node& edge = add(fmt::format("edge-{}", i), model::Layer::kEdge, parents);
    edge.first_sample = static_cast<std::uint32_t>(1000 * (i + 1));
    if (chance(2)) edge.durability = model::Durability::kMemory;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) start(i);
}

std::string World::run() {
  const base::SteadyTime healed = now_ + seconds(6);
  const base::SteadyTime end = healed + seconds(120);
  next_fault_ = now_ + milliseconds(100);
  while (now_ < end && problem_.empty()) {
    if (now_ >= healed && !healed_) {
      healed_ = true;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->frozen) thaw(i);
        if (!nodes_[i]->alive) start(i);
      }
    }
    if (healed_ && drained()) break;
    if (!healed_ && now_ >= next_fault_) fault();
    if (events_.empty()) break;
    Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.at);
    event.run();
  }
  if (!problem_.empty()) return problem_;
  if (!drained()) return "not drained: " + describe();
  for (const auto& node : nodes_) {
    if (const auto missed = std::exchange(node->failed_trim, std::nullopt)) trim(*node, *missed);
  }
  if (std::string wrong = check_samples(); !wrong.empty()) return wrong;
  const RootCore::Counters& c = nodes_[0]->root->counters();
  if (c.received != c.applied + c.duplicate + c.refused + c.pending) return "the root's accounts do not add up";
  for (const auto& node : nodes_) {
    if (!node->relay) continue;
    const RelayCore::Counters& r = node->relay->counters();
    if (r.received != r.applied + r.duplicate + r.refused + r.dropped + node->relay->pending_chunks()) {
      return fmt::format("the accounts of {} do not add up", node->name);
    }
  }
  return "";
}

// Every sample is folded in once, by its own definition, or once as lost; and the edges' accounts say the same.
std::string World::check_samples() {
  const CloudDisk& cloud = nodes_[0]->kept;
  const auto count = [](const std::map<std::uint32_t, std::uint64_t>& in, std::uint32_t key) {
    const auto it = in.find(key);
    return it == in.end() ? 0 : it->second;
  };
  for (const auto& node : nodes_) {
    if (node->layer != model::Layer::kEdge) continue;
    std::uint64_t lost = 0;
    for (std::uint32_t s = node->first_sample; s < node->first_sample + kSamples; ++s) {
      const std::uint64_t gone = count(cloud.lost, s);
      const std::uint64_t n = count(cloud.tally, s + kDefinition * node->definition_of[s]);
      if (n + gone != 1) return fmt::format("sample {} of {} is counted {} times, lost {}", s, node->name, n, gone);
      lost += gone;
    }
    if (node->disk.lost != lost) {
      return fmt::format("{} says that {} samples are lost; of the cloud's there are {}", node->name, node->disk.lost,
                         lost);
    }
    stood += lost;
  }
  return "";
}

Node& World::add(const std::string& name, model::Layer layer, std::vector<std::vector<std::string>> parents) {
  nodes_.push_back(std::make_unique<Node>());
  nodes_.back()->name = name;
  nodes_.back()->layer = layer;
  nodes_.back()->parents = std::move(parents);
  by_name_[name] = nodes_.size() - 1;
  return *nodes_.back();
}

void World::on(std::size_t index, int life, base::SteadyTime when, std::function<void(Node&)> run,
               std::shared_ptr<const Connection> over) {
  at(when, [this, index, life, run = std::move(run), over = std::move(over)] {
    Node& node = *nodes_[index];
    if (!node.alive || node.life != life || (over && over->cut)) return;
    if (node.frozen) {
      node.inbox.emplace_back([this, index, life, run] {
        if (nodes_[index]->alive && nodes_[index]->life == life) {
          run(*nodes_[index]);
          drain(index);
        }
      });
      return;
    }
    run(node);
    drain(index);
  });
}

void World::start(std::size_t index) {
  Node& node = *nodes_[index];
  node.alive = true;
  node.frozen = false;
  ++node.life;
  node.failed_trim.reset();
  if (!node.parents.empty()) {
    UplinkSettings settings;
    settings.fleet = "f";
    settings.node = node.name;
    settings.layer = node.layer;
    for (const auto& group : node.parents) {
      settings.parents.emplace_back();
      for (const std::string& name : group) settings.parents.back().push_back({name, name});
    }
    settings.connect_timeout = milliseconds(500);
    settings.backoff_max = seconds(1);
    settings.stable_after = seconds(1);
    settings.return_after = seconds(2);
    node.up = std::make_unique<UplinkCore>(settings, random_);
    node.up->start(now_);
  }
  if (node.layer != model::Layer::kEdge) {
    DownlinkSettings settings;
    settings.fleet = "f";
    settings.node = node.name;
    settings.credit_bytes = 100 + random_.below(2000);
    settings.child_timeout = seconds(2 + random_.below(8));
    credit_[index] = settings.credit_bytes;
    node.down = std::make_unique<DownlinkCore>(settings);
  }
  if (node.layer == model::Layer::kAggregator) {
    RelaySettings settings;
    settings.frame_bytes = 50 + random_.below(1000);
    settings.max_delay = milliseconds(random_.below(100));
    settings.credit_bytes = credit_[index];
    node.relay = std::make_unique<RelayCore>(settings);
  }
  if (node.layer == model::Layer::kCloud) {
    node.open = node.kept;
    std::vector<model::Cursor> cursors;
    for (const auto& [name, cursor] : node.kept.cursors) cursors.push_back(cursor);
    node.root = std::make_unique<RootCore>(cursors, node.kept.closed);
  }
  if (node.layer == model::Layer::kEdge) {
    OriginSettings settings;
    settings.node = node.name;
    settings.durability = node.durability;
    settings.retry_max = seconds(2);
    settings.open_timeout = seconds(1);
    if (node.durability == model::Durability::kMemory) node.disk = {};
    node.origin = std::make_unique<OriginCore>(settings, random_);
    node.disk.origin.outbox.clear();
    for (const auto& [sequence, chunk] : node.disk.chunks) {
      node.disk.origin.outbox.emplace_back(sequence, chunk.rows.size());
    }
    if (bug_ == Bug::kNewNumber && !node.disk.chunks.empty()) {
      std::map<model::Sequence, StoredChunk> moved;
      for (auto& [sequence, chunk] : node.disk.chunks) {
        chunk.range.first = chunk.range.last = node.disk.origin.next_sequence++;
        chunk.range.chain_before = node.disk.origin.chain;
        chunk.range.chain_after = node.disk.origin.chain =
            chunk_chain(node.disk.origin.chain, chunk.range.first, chunk.rows);
        chunk.range.note.tombstones.clear();
        moved[chunk.range.first] = chunk;
      }
      node.disk.chunks = std::move(moved);
      node.disk.origin.acknowledged = node.disk.chunks.begin()->first - 1;
      node.disk.origin.outbox.clear();
    }
    node.disk.origin.reopen = node.durability == model::Durability::kDisk && node.life > 1 && !healed_ && chance(6);
    if (node.disk.origin.reopen) ++reopened;
    if (chance(3)) node.definition = 1;  // started with another fleet file
    node.origin->start(node.disk.origin);
  }
  drain(index);
  tick(index, node.life);
}

void World::tick(std::size_t index, int life) {
  on(index, life, now_ + milliseconds(60), [this, index, life](Node& node) {
    if (node.up) node.up->tick(now_);
    if (node.down) node.down->tick(now_);
    if (node.relay) node.relay->tick(now_);
    if (node.origin) {
      node.origin->tick(now_);
      produce(node);
    }
    if (node.root && chance(3)) commit(index);
    if (node.alive) tick(index, life);
  });
}

void World::crash(std::size_t index) {
  Node& node = *nodes_[index];
  ++crashes;
  collect(node);
  node.alive = false;
  node.inbox.clear();
  for (auto& [attempt, connection] : node.uplinks) cut(connection, false);
  for (auto& [id, connection] : node.downlinks) cut(connection, false);
  node.uplinks.clear();
  node.downlinks.clear();
  node.up.reset();
  node.down.reset();
  node.origin.reset();
  node.relay.reset();
  node.root.reset();
}

void World::thaw(std::size_t index) {
  nodes_[index]->frozen = false;
  for (const auto& run : std::exchange(nodes_[index]->inbox, {})) {
    if (nodes_[index]->alive) run();
  }
}

void World::collect(const Node& node) {
  if (node.up) sessions += node.up->counters().sessions;
  if (node.origin) refusals += node.origin->counters().refused;
  if (node.origin) epochs += node.origin->counters().epochs_opened;
  if (node.relay) splits += node.relay->counters().splits;
}

void World::cut(const std::shared_ptr<Connection>& connection, bool half_open) {
  if (connection->cut) return;
  connection->cut = true;
  const Connection c = *connection;
  if (!half_open || chance(2)) {
    on(c.child, nodes_[c.child]->life, now_ + pause(200), [this, c](Node& node) {
      if (node.uplinks.erase(c.attempt) > 0) node.up->closed(now_, c.attempt, absl::UnavailableError("cut"));
    });
  }
  if (!half_open || chance(2)) {
    on(c.parent, nodes_[c.parent]->life, now_ + pause(200), [c](Node& node) {
      if (node.downlinks.erase(c.id) > 0) node.down->closed(c.id, "cut");
    });
  }
}

void World::fault() {
  next_fault_ = now_ + pause(400);
  const std::size_t index = random_.below(nodes_.size());
  Node& node = *nodes_[index];
  switch (random_.below(5)) {
    case 4:
      for (const auto& edge : nodes_) {
        if (edge->layer == model::Layer::kEdge && edge->alive) damage(*edge);
      }
      break;
    case 0:
      if (node.alive) {
        crash(index);
        at(now_ + pause(1500), [this, index] {
          if (!nodes_[index]->alive) start(index);
        });
      }
      break;
    case 1:
      if (node.alive && !node.frozen) {
        ++freezes;
        node.frozen = true;
        at(now_ + pause(4000), [this, index] {
          if (nodes_[index]->frozen) thaw(index);
        });
        if (chance(2)) {  // and one of its children dies with what it sent in the frozen one's buffers
          for (auto& [id, connection] : node.downlinks) {
            const std::size_t child = connection->child;
            at(now_ + pause(300), [this, child] {
              if (nodes_[child]->alive) crash(child);
              if (!nodes_[child]->alive) start(child);
            });
          }
        }
      }
      break;
    default:
      for (auto& [attempt, connection] : std::map(node.uplinks)) {
        ++cuts;
        cut(connection, chance(3));
      }
  }
}

void World::produce(Node& node) {
  if (!node.origin->ready() || node.origin->pending_chunks() > 20) return;
  if (node.disk.position >= kSamples || !chance(2)) return;
  model::PartialRows rows;
  const std::uint64_t n = std::min<std::uint64_t>(random_.below(4), kSamples - node.disk.position);
  for (std::uint64_t i = 0; i < n; ++i) {
    model::PartialRow row;
    const std::uint32_t sample = node.first_sample + static_cast<std::uint32_t>(node.disk.position + i);
    node.definition_of[sample] = node.definition;
    row.group = model::GroupId{sample + kDefinition * node.definition};
    row.partial.count = 1;
    rows.push_back(std::move(row));
  }
  StoredChunk chunk;
  chunk.rows = encode(rows);
  chunk.range.node = node.name;
  chunk.range.epoch = node.origin->epoch();
  chunk.range.first = chunk.range.last = node.origin->next_sequence();
  chunk.range.chain_before = node.origin->chain();
  chunk.range.chain_after = chunk_chain(node.origin->chain(), chunk.range.first, chunk.rows);
  // One transaction: position, chunk, numbering.
  node.disk.position += n;
  if (node.durability == model::Durability::kMemory) {
    chunk.range.note.states.push_back({chance(2), std::to_string(node.disk.position)});
  }
  node.disk.origin.epoch = chunk.range.epoch;
  node.disk.origin.next_sequence = chunk.range.last + 1;
  node.disk.origin.chain = chunk.range.chain_after;
  node.disk.chunks[chunk.range.first] = chunk;
  ++chunks;
  node.origin->sealed(now_, chunk.rows.size() + wire_bytes(chunk.range), chunk.range.chain_after);
}

// The rows of some chunk are gone, whether or not it was sent. The accounts say so in the same transaction.
void World::damage(Node& node) {
  if (node.disk.chunks.empty()) return;
  auto it = node.disk.chunks.begin();
  std::advance(it, static_cast<std::ptrdiff_t>(random_.below(node.disk.chunks.size())));
  StoredChunk& chunk = it->second;
  if (it->first <= node.origin->acknowledged() || !chunk.range.note.tombstones.empty()) return;
  model::Tombstone tombstone{it->first, it->first, chance(2) ? model::kDamaged : model::kDropOldest, {}, {}, {}};
  for (const model::PartialRow& row : decode(chunk.rows)) {
    tombstone.samples.emplace_back(fmt::format("{:08}", model::index(row.group) % kDefinition), 1);
  }
  ++damaged;
  node.disk.lost += tombstone.samples.size();
  chunk.rows.clear();
  chunk.range.note.tombstones = {std::move(tombstone)};
  node.origin->lost(it->first, wire_bytes(chunk.range));
}

void World::commit(std::size_t index) {
  Node& cloud = *nodes_[index];
  if (!cloud.root->dirty()) return;
  if (!healed_ && chance(10)) return;  // failed; tried again at the next
  if (!healed_ && chance(15)) {        // failed for good
    cloud.open = cloud.kept;
    cloud.root->rolled_back("disk full");
    return;
  }
  const RootCore::Changes changes = cloud.root->changes();
  for (const model::Cursor& cursor : changes.cursors) cloud.open.cursors[cursor.node] = cursor;
  cloud.open.closed.insert(cloud.open.closed.end(), changes.closed.begin(), changes.closed.end());
  if (bug_ == Bug::kAcknowledgeEarly && !healed_ && chance(2)) {
    cloud.root->committed();  // and the transaction comes later, or never
    drain(index);
    return;
  }
  cloud.kept = cloud.open;
  if (!healed_ && chance(20)) {  // dies before it can say so
    crash(index);
    at(now_ + pause(1000), [this, index] {
      if (!nodes_[index]->alive) start(index);
    });
    return;
  }
  cloud.root->committed();
}

void World::fold(Node& cloud, const FrameMessage& frame) {
  for (const model::PartialRow& row : decode(frame.rows)) {
    const std::uint32_t group = model::index(row.group);
    cloud.open.tally[bug_ == Bug::kMergeDefinitions ? group % kDefinition : group] += row.partial.count;
  }
  for (const model::Range& range : frame.ranges) {
    for (const model::Tombstone& tombstone : range.note.tombstones) {
      model::add_loss(cloud.open.losses[range.node], tombstone);
      for (const auto& [sample, n] : tombstone.samples) {
        cloud.open.lost[static_cast<std::uint32_t>(std::stoul(sample))] += n;
      }
    }
    std::vector<model::StateEntry>& states = cloud.open.states[range.node];
    for (const model::StateEntry& entry : range.note.states) {
      if (entry.snapshot) states.clear();
      states.push_back(entry);
    }
  }
}

void World::root_frame(Node& cloud, ConnectionId child, const FrameMessage& frame) {
  if (!healed_ && chance(40)) {
    if (cloud.root->offer(child, frame.id, frame.ranges) == RootCore::Verdict::kFold) {
      cloud.root->refuse(child, frame.id, frame.ranges, RefusalReason::kFull, "full");
    }
    return;
  }
  bool wanted = cloud.root->offer(child, frame.id, frame.ranges) == RootCore::Verdict::kFold;
  if (!wanted) {
    const model::Range& range = frame.ranges.front();
    const model::Cursor cursor = cloud.root->cursor(range.node);
    const bool overlaps = range.epoch == cursor.epoch && range.first <= cursor.last && range.last > cursor.last;
    const bool closed = cursor.epoch != model::Epoch{} && range.epoch != cursor.epoch;
    wanted = (bug_ == Bug::kOverlap && overlaps) || bug_ == Bug::kNoCursors || (bug_ == Bug::kEpochNotClosed && closed);
    if (wanted) fold(cloud, frame);
    return;
  }
  fold(cloud, frame);
  cloud.root->folded(child, frame.id, frame.ranges);
}

bool World::drained() {
  for (const auto& node : nodes_) {
    if (node->origin && (!node->origin->ready() || !node->origin->drained() || node->disk.position < kSamples)) {
      return false;
    }
    if (node->relay && !node->relay->idle()) return false;
  }
  if (!counted_) {
    counted_ = true;
    for (const auto& node : nodes_) collect(*node);
  }
  return true;
}

std::string World::describe() {
  std::string text;
  for (const auto& node : nodes_) {
    if (node->origin) {
      text += fmt::format("{}: parent {}, pending {}, position {}, ready {}, {}; ", node->name, node->up->parent(),
                          node->origin->pending_chunks(), node->disk.position, node->origin->ready(),
                          node->origin->stalled());
    }
    if (node->relay) {
      text += fmt::format("{}: parent {}, parts {}; ", node->name, node->up->parent(), node->relay->held_parts());
    }
  }
  return text;
}

}  // namespace orla::link::model_test
