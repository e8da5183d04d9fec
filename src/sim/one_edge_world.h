// One edge and one cloud, for tests: the real roles over a simulated network, an edge's disk that loses what it is told
// to lose, and an input that delivers what the test says.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/logger.h"
#include "model/plan.h"
#include "node/cloud_role.h"
#include "node/edge_role.h"
#include "sim/fake_clock.h"
#include "sim/fake_cloud_store.h"
#include "sim/fake_network.h"

namespace orla::sim {

// What an edge keeps, and what is going to happen to it.
struct LossyDisk {
  store::EdgeMeta meta;
  std::vector<store::JournalEntry> journal;
  std::vector<std::string> groups;  // of the outbox
  std::map<model::Sequence, store::StoredChunk> chunks;
  std::set<model::Sequence> damaged;  // rows that cannot be read any more
  bool full = false;
  bool journal_lost = false;  // found at the next start
  bool reopen = false;        // likewise
  int fail_commits = 0;       // so many
  std::uint64_t commits = 0;
};

class LossyEdgeStore final : public store::EdgeStore {
 public:
  explicit LossyEdgeStore(LossyDisk& disk) : disk_(disk) {}

  absl::StatusOr<store::EdgeRecovery> recover(const Progress& progress) override;
  absl::Status commit(const store::EdgeCommit& commit) override;
  absl::Status trim(model::Sequence through) override;
  absl::Status renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) override;
  absl::StatusOr<store::StoredChunk> load(model::Sequence sequence) override;
  std::vector<model::Tombstone> lost() const override;
  std::uint64_t bytes() const override;
  store::JournalBytes journal_bytes() const override { return {}; }  // it is never too long for a test

 private:
  LossyDisk& disk_;
  std::set<model::Sequence> found_;  // damaged, and read since
};

class OneEdgeWorld {
 public:
  // `extra`: lines of the edge's [[node]].
  explicit OneEdgeWorld(const std::string& extra = "");
  ~OneEdgeWorld();

  void start_edge();
  void stop_edge();   // SIGTERM, waited for
  void crash_edge();  // SIGKILL
  void start_cloud();
  void crash_cloud();
  // Nothing under way arrives any more.
  void cut() { network_.cut(*edge_.up); }
  // Another node opens an epoch of the edge's name.
  void take_over();

  void run(std::chrono::milliseconds time);
  // Until the edge says so; false after a simulated minute.
  bool drain();

  // One sample of each of `series` plugs in the given minute; the minute before is then published.
  void feed(int minute, int series);
  std::uint64_t delivered() const { return delivered_; }
  bool reading() const;  // an input was started and may deliver

  node::NodeStatus edge() const;
  node::NodeStatus cloud() const;
  node::EdgeRole& role() { return *edge_.role; }
  model::Ledger ledger() const { return edge().inputs.at(0).ledger; }
  // Of the cloud's windows of one minute.
  std::uint64_t counted() const;

  model::Plan plan;
  LossyDisk disk;
  CloudDisk cloud_disk;

 private:
  class Pump;
  struct Edge {
    std::unique_ptr<base::Random> random;
    std::unique_ptr<FakeLoop> loop;
    std::unique_ptr<FakeUplink> up;
    std::unique_ptr<LossyEdgeStore> store;
    std::unique_ptr<Pump> pump;
    std::unique_ptr<node::EdgeRole> role;
  };
  struct Cloud {
    std::unique_ptr<FakeLoop> loop;
    std::unique_ptr<FakeDownlink> down;
    std::unique_ptr<FakeCloudStore> store;
    std::unique_ptr<node::CloudRole> role;
  };

  base::SeededRandom random_{1};
  EventQueue queue_;
  FakeNetwork network_{queue_, random_};
  FakeClock clock_{queue_};
  FakeDisk healthy_{random_};
  Link link_;
  std::unique_ptr<base::Logger> log_;
  Edge edge_;
  Cloud cloud_;
  std::uint64_t delivered_ = 0;
};

}  // namespace orla::sim
