// The world of protocol_model_test.cc: the real cores on nodes that crash, freeze and wake up, joined by a network that
// delays, cuts and doubles, with disks on which chunks are damaged. Everything happens in one thread from one seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "link/downlink_core.h"
#include "link/origin_core.h"
#include "link/relay_core.h"
#include "link/root_core.h"
#include "link/uplink_core.h"

namespace orla::link::model_test {

// Planted in what surrounds the cores.
enum class Bug {
  kNone,
  kOverlap,            // the cloud folds a frame in that begins before its cursor
  kTrimOnSend,         // an edge drops a chunk once it is sent
  kNoCursors,          // the cloud folds in whatever comes
  kEpochNotClosed,     // the cloud folds in frames of closed epochs
  kAcknowledgeEarly,   // the cloud says what it has not committed
  kNewNumber,          // an edge gives what it sends again after a restart a new number
  kRelayAcknowledges,  // an aggregator acknowledges what it has received
  kBlockOnLost,        // an edge waits for a chunk whose rows are lost
  kMergeDefinitions,   // the cloud does not tell definitions apart
  kLossTwice,          // an edge does not take a loss back when the original got through
};

// Rows are sample numbers: group = the number (plus kDefinition times the definition it was aggregated by), count = how
// often.
inline constexpr std::uint32_t kDefinition = 1'000'000;
std::string encode(const model::PartialRows& rows);
model::PartialRows decode(std::string_view bytes);

struct StoredChunk {
  model::Range range;
  std::string rows;
};

// What survives a crash of an edge.
struct Disk {
  OriginState origin;
  std::uint64_t position = 0;
  std::map<model::Sequence, StoredChunk> chunks;
  std::uint64_t lost = 0;  // samples, by this edge's accounts
};

// What survives a crash of the cloud.
struct CloudDisk {
  std::map<model::NodeName, model::Cursor> cursors;
  std::vector<ClosedOrigin> closed;
  std::map<std::uint32_t, std::uint64_t> tally;
  std::map<std::uint32_t, std::uint64_t> lost;  // folded in as tombstones
  std::map<model::NodeName, std::vector<model::Loss>> losses;
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
  std::uint32_t definition = 0;                          // of the fleet file; some edges get another one on the way
  std::map<std::uint32_t, std::uint32_t> definition_of;  // by sample: the one it was aggregated by last
  std::unique_ptr<UplinkCore> up;
  std::unique_ptr<DownlinkCore> down;
  std::unique_ptr<OriginCore> origin;
  std::unique_ptr<RelayCore> relay;
  std::unique_ptr<RootCore> root;
  std::map<UplinkCore::Attempt, std::shared_ptr<Connection>> uplinks;
  std::map<ConnectionId, std::shared_ptr<Connection>> downlinks;
  Disk disk;  // a memory edge's is emptied by a crash
  std::optional<OriginCore::Trim> failed_trim;
  CloudDisk kept;  // the cloud's, committed
  CloudDisk open;  // the cloud's, with what is not committed yet
};

class World {
 public:
  World(std::uint64_t seed, Bug bug);

  static constexpr std::uint64_t kSamples = 60;  // per edge

  // Empty when all is well.
  std::string run();

  std::uint64_t crashes = 0, freezes = 0, cuts = 0, refusals = 0, sessions = 0, chunks = 0, splits = 0, epochs = 0;
  std::uint64_t damaged = 0, stood = 0, regained = 0, reopened = 0;

 private:
  struct Event {
    base::SteadyTime at;
    std::uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }
  std::chrono::milliseconds pause(std::uint64_t up_to_ms) {
    return std::chrono::milliseconds(1 + random_.below(up_to_ms));
  }

  Node& add(const std::string& name, model::Layer layer, std::vector<std::vector<std::string>> parents);
  void at(base::SteadyTime when, std::function<void()> run) { events_.push(Event{when, ++order_, std::move(run)}); }

  // Runs on the node unless it has crashed in between, or the connection was cut; later when it is frozen.
  void on(std::size_t index, int life, base::SteadyTime when, std::function<void(Node&)> run,
          std::shared_ptr<const Connection> over = nullptr);
  void start(std::size_t index);
  void tick(std::size_t index, int life);
  void crash(std::size_t index);
  void thaw(std::size_t index);
  void collect(const Node& node);

  // Ends a connection; each side hears of it after a while, or (half open) finds out by itself.
  void cut(const std::shared_ptr<Connection>& connection, bool half_open);
  void fault();
  void produce(Node& node);
  void damage(Node& node);
  void trim(Node& node, const OriginCore::Trim& action);
  std::string check_samples();
  void commit(std::size_t index);
  void fold(Node& cloud, const FrameMessage& frame);
  void root_frame(Node& cloud, ConnectionId child, const FrameMessage& frame);
  void drain(std::size_t index);
  void uplink(std::size_t index, UplinkCore::Action& action);
  void downlink(std::size_t index, DownlinkCore::Action& action);
  void origin(Node& node, OriginCore::Action& action);
  void relay(Node& node, RelayCore::Action& action);
  void root(Node& node, RootCore::Action& action);
  bool drained();
  std::string describe();

  base::SeededRandom random_;
  Bug bug_;
  base::SteadyTime now_{std::chrono::seconds(1000)};
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

}  // namespace orla::link::model_test
