// A random model of the whole protocol: the real cores, joined by a network that delays, cuts and doubles, on nodes
// that crash, freeze and wake up. Every sample has to be folded in exactly once and everything has to drain. Planted
// bugs in what surrounds the cores must be noticed (the canary).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "link/downlink_core.h"
#include "link/origin_core.h"
#include "link/ranges.h"
#include "link/relay_core.h"
#include "link/root_core.h"
#include "link/uplink_core.h"

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Bug { kNone, kOverlap, kTrimOnSend, kNoCursors, kEpochNotClosed, kAcknowledgeEarly };

// Rows are sample numbers: group = the number, count = how often.
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

struct StoredChunk {
  model::Range range;
  std::string rows;
};

// What survives a crash of an edge.
struct Disk {
  OriginState origin;
  std::uint64_t position = 0;
  std::map<model::Sequence, StoredChunk> chunks;
};

// What survives a crash of the cloud.
struct CloudDisk {
  std::map<model::NodeName, model::Cursor> cursors;
  std::vector<ClosedOrigin> closed;
  std::map<std::uint32_t, std::uint64_t> tally;
  std::map<model::NodeName, std::vector<model::StateEntry>> states;
};

struct Connection {
  std::size_t child = 0;
  std::size_t parent = 0;
  UplinkCore::Attempt attempt{};
  ConnectionId id{};
  bool cut = false;
  base::SteadyTime last_up{};
  base::SteadyTime last_down{};
};

struct Node {
  std::string name;
  model::Layer layer = model::Layer::kEdge;
  model::Durability durability = model::Durability::kDisk;
  std::vector<std::vector<std::string>> parents;
  int life = 0;  // counts starts
  bool alive = false;
  bool frozen = false;
  std::vector<std::function<void()>> inbox;  // while frozen
  std::uint32_t first_sample = 0;
  std::unique_ptr<UplinkCore> up;
  std::unique_ptr<DownlinkCore> down;
  std::unique_ptr<OriginCore> origin;
  std::unique_ptr<RelayCore> relay;
  std::unique_ptr<RootCore> root;
  std::map<UplinkCore::Attempt, std::shared_ptr<Connection>> uplinks;
  std::map<ConnectionId, std::shared_ptr<Connection>> downlinks;
  Disk disk;       // a memory edge's is emptied by a crash
  CloudDisk kept;  // the cloud's, committed
  CloudDisk open;  // the cloud's, with what is not committed yet
};

class World {
 public:
  World(std::uint64_t seed, Bug bug) : random_(seed), bug_(bug) {
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

  static constexpr std::uint64_t kSamples = 60;  // per edge

  // Empty when all is well.
  std::string run() {
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
    const CloudDisk& cloud = nodes_[0]->kept;
    for (const auto& node : nodes_) {
      if (node->layer != model::Layer::kEdge) continue;
      for (std::uint32_t s = node->first_sample; s < node->first_sample + kSamples; ++s) {
        const auto it = cloud.tally.find(s);
        const std::uint64_t n = it == cloud.tally.end() ? 0 : it->second;
        if (n != 1) return fmt::format("sample {} of {} is counted {} times", s, node->name, n);
      }
    }
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

  std::uint64_t crashes = 0, freezes = 0, cuts = 0, refusals = 0, sessions = 0, chunks = 0, splits = 0, epochs = 0;

 private:
  struct Event {
    base::SteadyTime at;
    std::uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }
  milliseconds pause(std::uint64_t up_to_ms) { return milliseconds(1 + random_.below(up_to_ms)); }

  Node& add(const std::string& name, model::Layer layer, std::vector<std::vector<std::string>> parents) {
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->name = name;
    nodes_.back()->layer = layer;
    nodes_.back()->parents = std::move(parents);
    by_name_[name] = nodes_.size() - 1;
    return *nodes_.back();
  }

  void at(base::SteadyTime when, std::function<void()> run) { events_.push(Event{when, ++order_, std::move(run)}); }

  // Runs on the node unless it has crashed in between, or the connection was cut; later when it is frozen.
  void on(std::size_t index, int life, base::SteadyTime when, std::function<void(Node&)> run,
          std::shared_ptr<const Connection> over = nullptr) {
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

  void start(std::size_t index) {
    Node& node = *nodes_[index];
    node.alive = true;
    node.frozen = false;
    ++node.life;
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
      node.origin->start(node.disk.origin);
    }
    drain(index);
    tick(index, node.life);
  }

  void tick(std::size_t index, int life) {
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

  void crash(std::size_t index) {
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

  void thaw(std::size_t index) {
    nodes_[index]->frozen = false;
    for (const auto& run : std::exchange(nodes_[index]->inbox, {})) {
      if (nodes_[index]->alive) run();
    }
  }

  void collect(const Node& node) {
    if (node.up) sessions += node.up->counters().sessions;
    if (node.origin) refusals += node.origin->counters().refused;
    if (node.origin) epochs += node.origin->counters().epochs_opened;
    if (node.relay) splits += node.relay->counters().splits;
  }

  // Ends a connection; each side hears of it after a while, or (half open) finds out by itself.
  void cut(const std::shared_ptr<Connection>& connection, bool half_open) {
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

  void fault() {
    next_fault_ = now_ + pause(400);
    const std::size_t index = random_.below(nodes_.size());
    Node& node = *nodes_[index];
    switch (random_.below(4)) {
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

  void produce(Node& node) {
    if (!node.origin->ready() || node.origin->pending_chunks() > 20) return;
    if (node.disk.position >= kSamples || !chance(2)) return;
    model::PartialRows rows;
    const std::uint64_t n = std::min<std::uint64_t>(random_.below(4), kSamples - node.disk.position);
    for (std::uint64_t i = 0; i < n; ++i) {
      model::PartialRow row;
      row.group = model::GroupId{node.first_sample + static_cast<std::uint32_t>(node.disk.position + i)};
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

  void commit(std::size_t index) {
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

  void fold(Node& cloud, const FrameMessage& frame) {
    for (const model::PartialRow& row : decode(frame.rows)) {
      cloud.open.tally[model::index(row.group)] += row.partial.count;
    }
    for (const model::Range& range : frame.ranges) {
      std::vector<model::StateEntry>& states = cloud.open.states[range.node];
      for (const model::StateEntry& entry : range.note.states) {
        if (entry.snapshot) states.clear();
        states.push_back(entry);
      }
    }
  }

  void root_frame(Node& cloud, ConnectionId child, const FrameMessage& frame) {
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
      wanted =
          (bug_ == Bug::kOverlap && overlaps) || bug_ == Bug::kNoCursors || (bug_ == Bug::kEpochNotClosed && closed);
      if (wanted) fold(cloud, frame);
      return;
    }
    fold(cloud, frame);
    cloud.root->folded(child, frame.id, frame.ranges);
  }

  void drain(std::size_t index) {
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

  void uplink(std::size_t index, UplinkCore::Action& action) {
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

  void downlink(std::size_t index, DownlinkCore::Action& action) {
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
                            std::make_shared<const model::PartialRows>(decode(frame->rows)), bytes);
        }
      } else if (auto* open = std::get_if<OpenEpoch>(&deliver->message)) {
        if (node.root) node.root->open(deliver->child, *open);
        if (node.relay) node.relay->open(deliver->child, *open);
      }
    }
  }

  void origin(Node& node, OriginCore::Action& action) {
    if (auto* send = std::get_if<OriginCore::SendChunk>(&action)) {
      const auto it = node.disk.chunks.find(send->sequence);
      if (it == node.disk.chunks.end()) {
        node.origin->unreadable(now_, send->sequence, "gone");
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
      if (chance(5)) return;  // the trim failed: it is made up for by the next
      node.disk.origin.acknowledged = trim->through;
      node.disk.chunks.erase(node.disk.chunks.begin(), node.disk.chunks.upper_bound(trim->through));
    } else if (auto* renumber = std::get_if<OriginCore::Renumber>(&action)) {
      if (!healed_ && chance(3)) {
        node.origin->renumber_failed(now_);
        return;
      }
      Disk next;
      next.position = node.disk.position;
      next.origin.epoch = renumber->epoch;
      for (auto& [sequence, chunk] : node.disk.chunks) {
        if (sequence <= renumber->folded) continue;
        StoredChunk moved = chunk;
        moved.range.epoch = renumber->epoch;
        moved.range.first = moved.range.last = next.origin.next_sequence++;
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
    } else if (std::holds_alternative<OriginCore::EpochLost>(action)) {
      node.disk = {};
    } else if (auto* alarm = std::get_if<OriginCore::Alarm>(&action)) {
      if (alarm->kind != OriginCore::Alarm::Kind::kEpochClosed) problem_ = alarm->text;
    }
  }

  void relay(Node& node, RelayCore::Action& action) {
    if (auto* send = std::get_if<RelayCore::SendFrame>(&action)) {
      model::PartialRows rows;
      for (const RelayCore::Rows& some : send->rows) rows.insert(rows.end(), some->begin(), some->end());
      node.up->send(FrameMessage{send->id, send->ranges, encode(rows)});
    } else if (auto* open = std::get_if<RelayCore::SendOpen>(&action)) {
      node.up->send(open->message);
    } else if (auto* to = std::get_if<RelayCore::ToChild>(&action)) {
      node.down->send(to->child, to->message);
    }
  }

  void root(Node& node, RootCore::Action& action) {
    if (auto* to = std::get_if<RootCore::ToChild>(&action)) {
      node.down->send(to->child, to->message);
    } else if (auto* answer = std::get_if<RootCore::AnswerOpen>(&action)) {
      if (answer->message.opened) answer->message.states = node.kept.states[answer->node];
      node.down->send(answer->child, answer->message);
    } else if (auto* alarm = std::get_if<RootCore::Alarm>(&action)) {
      problem_ = alarm->text;
    }
  }

  bool drained() {
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

  std::string describe() {
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

  base::SeededRandom random_;
  Bug bug_;
  base::SteadyTime now_{seconds(1000)};
  std::uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::size_t, std::uint64_t> credit_;
  std::uint64_t last_connection_ = 0;
  base::SteadyTime next_fault_{};
  bool healed_ = false;
  bool counted_ = false;
  std::string problem_;
};

TEST(ProtocolModel, EveryChunkIsCountedOnce) {
  std::uint64_t crashes = 0, freezes = 0, cuts = 0, refusals = 0, sessions = 0, chunks = 0, splits = 0, epochs = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    World world(seed, Bug::kNone);
    const std::string problem = world.run();
    ASSERT_EQ(problem, "") << "seed " << seed;
    crashes += world.crashes;
    freezes += world.freezes;
    cuts += world.cuts;
    refusals += world.refusals;
    sessions += world.sessions;
    chunks += world.chunks;
    splits += world.splits;
    epochs += world.epochs;
  }
  RecordProperty("exercised", fmt::format("crashes {} freezes {} cuts {} refusals {} sessions {} chunks {} splits {} "
                                          "epochs {}",
                                          crashes, freezes, cuts, refusals, sessions, chunks, splits, epochs));
  // A run in which nothing happens proves nothing.
  EXPECT_GT(crashes, 150U);
  EXPECT_GT(freezes, 150U);
  EXPECT_GT(cuts, 150U);
  EXPECT_GT(refusals, 150U);
  EXPECT_GT(sessions, 500U);
  EXPECT_GT(chunks, 5000U);
  EXPECT_GT(splits, 50U);
  EXPECT_GT(epochs, 100U);
}

struct Planted {
  Bug bug;
  std::uint64_t first_seed;  // the rare ones are looked for where they are found
};
class Canary : public testing::TestWithParam<Planted> {};

TEST_P(Canary, PlantedBugIsNoticed) {
  const auto [bug, first_seed] = GetParam();
  for (std::uint64_t seed = first_seed; seed < first_seed + 100; ++seed) {
    if (!World(seed, bug).run().empty()) return;
  }
  FAIL() << "100 seeds ran clean with a planted bug";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Canary,
                         testing::Values(Planted{Bug::kOverlap, 1}, Planted{Bug::kTrimOnSend, 1},
                                         Planted{Bug::kNoCursors, 1}, Planted{Bug::kEpochNotClosed, 440},
                                         Planted{Bug::kAcknowledgeEarly, 1}));

}  // namespace
}  // namespace orla::link
