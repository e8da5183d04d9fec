// A whole fleet in one thread from one seed: the real roles on simulated clocks, loops, links, disks and inputs. Nodes
// crash (also in the middle of a commit), freeze and stop in an orderly way; links are cut; disks fail and fill. Then
// everything heals and drains, and the invariants are checked against a direct computation.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/plan.h"
#include "node/role.h"
#include "sim/event_queue.h"
#include "sim/fake_clock.h"
#include "sim/fake_cloud_store.h"
#include "sim/fake_disk.h"
#include "sim/fake_edge_store.h"
#include "sim/fake_loop.h"
#include "sim/fake_network.h"
#include "sim/script.h"

namespace orla::sim {

enum class Trace : std::uint8_t { kOff, kOn };

struct WorldOptions {
  std::uint64_t seed = 1;
  Bug bug = Bug::kNone;
  Trace trace = Trace::kOff;  // says on stderr what happens
};

// What a run went through.
struct Exercised {
  std::uint64_t samples = 0;  // received by inputs
  std::uint64_t windows = 0;  // compared
  std::uint64_t late = 0;
  std::uint64_t rejected = 0;
  std::uint64_t chunks = 0;  // folded in at the cloud
  std::uint64_t duplicates = 0;
  std::uint64_t refusals = 0;
  std::uint64_t crashes = 0;
  std::uint64_t stops = 0;
  std::uint64_t freezes = 0;
  std::uint64_t cuts = 0;
  std::uint64_t lost_messages = 0;
  std::uint64_t sessions = 0;
  std::uint64_t failovers = 0;
  std::uint64_t failed_writes = 0;
  std::uint64_t takeovers = 0;  // epochs closed behind an edge's back
  double simulated_s = 0;

  void add(const Exercised& other);
};
std::string to_string(const Exercised& e);

class FleetWorld {
 public:
  explicit FleetWorld(const WorldOptions& options);
  ~FleetWorld();
  FleetWorld(const FleetWorld&) = delete;
  FleetWorld& operator=(const FleetWorld&) = delete;

  // Once. Empty when every invariant held; else what was wrong.
  std::string run();
  const Exercised& exercised() const { return exercised_; }

 private:
  class Log;
  // One process: everything in it ends with it, the role first.
  struct Life {
    std::unique_ptr<base::Random> random;
    std::unique_ptr<FakeLoop> loop;
    std::unique_ptr<FakeUplink> up;
    std::unique_ptr<FakeDownlink> down;
    std::unique_ptr<store::EdgeStore> edge_store;
    std::unique_ptr<store::CloudStore> cloud_store;
    std::unique_ptr<FakeInputPump> pump;
    std::unique_ptr<node::Role> role;
  };
  struct Machine {
    const model::NodeSpec* spec = nullptr;
    std::unique_ptr<FakeClock> clock;
    std::unique_ptr<FakeDisk> disk;
    std::unique_ptr<Log> log;
    EdgeDisk edge_disk;
    std::unique_ptr<Life> life;  // null: not running
    std::uint64_t lives = 0;
    bool stopping = false;
    std::string last_parent;
  };

  void start(std::size_t index);
  void crash(std::size_t index);
  void end_life(std::size_t index);
  void stop(std::size_t index);
  void fault();
  void take_over(Machine& machine);
  void heal();
  bool drained();
  void observe(Machine& machine);
  std::string check();
  std::string check_parents();
  std::string check_inputs(std::map<std::string, model::Ledger>& ledgers,
                           std::map<std::string, std::pair<model::Position, bool>>& ends);
  void say(const std::string& text);
  node::NodeStatus status(const Machine& machine) const;
  std::chrono::milliseconds pause(std::uint64_t up_to_ms);

  const WorldOptions options_;
  base::SeededRandom random_;
  EventQueue queue_;
  FakeNetwork network_;
  model::Plan plan_;
  std::map<std::string, Script> scripts_;
  CloudDisk cloud_disk_;
  std::vector<std::unique_ptr<Machine>> machines_;
  bool healed_ = false;
  std::string problem_;
  Exercised exercised_;
};

}  // namespace orla::sim
