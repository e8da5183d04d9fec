// A whole fleet in one thread from one seed: the real roles on simulated clocks, loops, links, disks and inputs. Faults
// (fault.h) come up for a while; then everything heals and drains, every node is killed and started once more, and the
// invariants are checked against a direct computation. docs/simulator.md says which check covers which.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/faulty_disk.h"
#include "base/random.h"
#include "model/plan.h"
#include "node/edge_role.h"
#include "node/role.h"
#include "sim/event_queue.h"
#include "sim/exercised.h"
#include "sim/fake_clock.h"
#include "sim/fake_cloud_store.h"
#include "sim/fake_disk.h"
#include "sim/fake_loop.h"
#include "sim/fake_network.h"
#include "sim/fault.h"
#include "sim/pusher.h"
#include "sim/script.h"
#include "sim/tamper.h"
#include "sim/watch.h"
#include "sim/witness.h"
#include "verify/compare.h"
#include "verify/oracle.h"

namespace orla::sim {

enum class Trace : std::uint8_t { kOff, kOn };

struct WorldOptions {
  std::uint64_t seed = 1;
  Mix mix = Mix::kAll;
  Bug bug = Bug::kNone;
  Trace trace = Trace::kOff;  // says on stderr what happens
  // Of the faults drawn, only these happen, by number from 0; nothing: all of them.
  std::optional<std::vector<std::size_t>> keep;
};

class FleetWorld {
 public:
  explicit FleetWorld(const WorldOptions& options);
  ~FleetWorld();
  FleetWorld(const FleetWorld&) = delete;
  FleetWorld& operator=(const FleetWorld&) = delete;

  // Once. Empty when every invariant held; else what was wrong.
  std::string run();
  const Exercised& exercised() const { return exercised_; }
  // All that were drawn.
  const std::vector<Fault>& faults() const { return faults_; }

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
    std::unique_ptr<stream::InlineShards> shards;
    std::unique_ptr<node::Role> role;
    node::EdgeRole* edge = nullptr;               // the role, of an edge
    std::shared_ptr<ingest::SeriesTable> series;  // of what is pushed in this life
    bool told_to_stop = false;                    // its inputs
    base::SteadyTime started{};
    std::uint64_t connects_before = 0;
  };
  struct Machine {
    const model::NodeSpec* spec = nullptr;
    const model::Plan* plan = nullptr;  // what it runs
    std::unique_ptr<base::Random> random;
    std::unique_ptr<FakeClock> clock;
    std::unique_ptr<FakeDisk> disk;
    std::unique_ptr<Log> log;
    Link link;
    std::unique_ptr<base::FaultyDisk> files;  // edges on disk
    bool loses_power = false;                 // some time in this run
    bool journal_hurt = false;                // damaged by a fault
    std::unique_ptr<Life> life;               // null: not running
    std::uint64_t lives = 0;
    bool stopping = false;
    std::string last_parent;
    std::string preferred_parent;               // empty: it has none
    std::chrono::nanoseconds returns_within{};  // ... once that one is well
    std::pair<std::string, std::uint64_t>
        journal;              // the newest one's first copy when it was looked at last, and its size
    bool from_cache = false;  // it has read what a failed sync had given up, and the power has not failed since
  };
  enum class Phase : std::uint8_t { kFaults, kDraining, kAgain, kDone };

  std::uint64_t derive(std::uint64_t purpose, std::uint64_t number) const;
  void build();
  Machine* machine(const std::string& name);
  void start(Machine& machine);
  void die(Machine& machine);
  void crash(Machine& machine, std::chrono::milliseconds down);
  void stop(Machine& machine, std::chrono::milliseconds down);
  void end_life(Machine& machine);
  // fleet_pushes.cc
  void build_pushers();
  bool deliver(Machine& machine, const std::function<node::Push(ingest::SeriesTable&)>& make, node::PushDone done);
  void acknowledged(const Machine& machine, const std::string& input);
  bool pushes(const model::NodeName& node) const;      // it has senders
  bool pushed_out(const model::NodeName& node) const;  // and all of them are done
  void stop_pushed_inputs();
  std::string check_pushes();
  model::Ledger as_expected(const std::string& input, model::Ledger reported) const;
  // fleet_faults.cc
  void happen(const Fault& fault);
  void happen_to_link(const Fault& fault, Machine& machine);
  void happen_to_disk(const Fault& fault, Machine& machine);
  bool in_trouble(const Machine& machine) const;
  void damage(const Fault& fault, Machine& machine);
  void flap(Machine& machine, std::chrono::milliseconds period, base::SteadyTime until);
  void cut(Machine& machine, FakeNetwork::Notice notice);
  void freeze(Machine& machine, std::chrono::milliseconds lasts);
  void take_over(Machine& machine);
  void upgrade(Machine& machine);
  void heal();
  // What is looked at every now and then.
  void look();
  bool drained();
  void worsen(Machine& machine);
  void lose_power(Machine& machine, std::chrono::milliseconds down);
  // fleet_bounds.cc
  void look_at_journal(Machine& machine);
  void look_at_parent(const Machine& machine, const node::NodeStatus& now,
                      const std::map<std::string, Watch::End>& ends);
  bool has_returned(const Machine& machine, const node::NodeStatus& now) const;
  void observe(Machine& machine);
  void start_again();
  // fleet_check.cc
  std::string check();
  std::string describe_undrained();
  std::string check_parents();
  std::string check_told(const Machine& machine, const node::InputStatus& input) const;
  std::string check_inputs(std::map<std::string, model::Ledger>& ledgers,
                           std::map<std::string, std::pair<model::Position, bool>>& ends);
  std::string check_cloud();
  std::string check_again();
  std::string check_windows();
  std::string check_totals(const std::map<std::string, model::Ledger>& ledgers) const;
  std::string check_counts(const verify::Oracle& oracle) const;
  // fleet_losses.cc: what disks have lost for good, by what the witness saw.
  struct Losses {
    std::string wrong;  // why it cannot be told
    std::uint64_t chunks = 0;
    std::uint64_t unseen = 0;                      // samples of chunks that never were on a disk
    std::map<std::string, std::uint64_t> samples;  // by input
    std::uint64_t raw_samples = 0;
    std::uint64_t unseen_raw = 0;                            // of these, of chunks that never were on a disk
    verify::Oracle::RawSamples raw;                          // the others
    std::map<CloudDisk::WindowKey, model::Partial> windows;  // of merge tables: what they would hold more
    std::vector<std::pair<model::Time, model::Time>> slices;
    bool overlap(model::Time start, model::Time end) const;
  };
  Losses gather_losses();
  std::string lose(const model::NodeName& node, const Witness::Chunk& chunk, Losses& losses);
  bool may_be_open(const std::string& table, const std::string& window, model::Time end) const;
  void add_windows(const Losses& losses, const verify::Oracle& oracle, verify::Comparison& comparison) const;
  // fleet_samples.cc
  std::string lose_samples(const model::NodeName& node, const model::Content& content, Losses& losses);
  std::string check_samples(const Losses& losses, const std::map<std::string, model::Ledger>& ledgers);
  void lose_journal(const std::string& node);
  void say(const std::string& text);
  void problem(const std::string& text);
  node::NodeStatus status(const Machine& machine) const;

  const WorldOptions options_;
  EventQueue queue_;
  std::unique_ptr<base::Random> network_random_;
  std::unique_ptr<FakeNetwork> network_;
  model::Plan plan_;
  model::Plan older_;  // of a cloud that is not upgraded yet
  std::vector<Fault> faults_;
  std::map<std::string, Script> scripts_;
  CloudDisk cloud_disk_;
  Witness witness_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Tamper> tamper_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::unique_ptr<base::Random> push_random_;
  std::vector<std::unique_ptr<Pusher>> pushers_;
  model::Plan check_plan_;  // as the oracle sees it: what was pushed can be read again
  Phase phase_ = Phase::kFaults;
  base::SteadyTime healed_at_{};
  std::map<CloudDisk::WindowKey, store::WindowRow> windows_before_;  // before everything started once more
  verify::Oracle::RawSamples samples_before_;                        // likewise
  bool journal_lost_ = false;  // of some edge, by faults: what was open there is gone, and nobody can tell its rows
  std::string problem_;
  Exercised exercised_;
};

}  // namespace orla::sim
