// Parts of a node for fleets of a thousand edges, where nothing fails: an edge store that keeps only the outbox, a
// cloud store and an input whose work takes processor time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "node/input_pump.h"
#include "sim/event_queue.h"
#include "sim/fake_cloud_store.h"
#include "sim/fake_loop.h"
#include "store/edge_store.h"

namespace orla::sim {

class LeanEdgeStore final : public store::EdgeStore {
 public:
  absl::StatusOr<store::EdgeRecovery> recover(const Progress& progress) override;
  absl::Status commit(const store::EdgeCommit& commit) override;
  absl::Status trim(model::Sequence through) override;
  absl::Status renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) override;
  absl::StatusOr<store::StoredChunk> load(model::Sequence sequence) override;
  std::vector<model::Tombstone> lost() const override { return {}; }
  std::uint64_t bytes() const override { return 0; }
  store::JournalBytes journal_bytes() const override { return journal_; }

 private:
  store::JournalBytes journal_;
  std::map<model::Sequence, store::StoredChunk> chunks_;
};

// A FakeCloudStore that takes its time, and tells what is committed.
class CostlyCloudStore final : public store::CloudStore {
 public:
  using Committed = std::function<void(const store::CloudCommit&)>;
  // All outlive it.
  CostlyCloudStore(CloudDisk& kept, FakeDisk& disk, FakeLoop& loop, double window_ns, Committed committed)
      : inner_(kept, disk), loop_(loop), window_ns_(window_ns), committed_(std::move(committed)) {}
  absl::StatusOr<store::CloudRecovery> recover() override { return inner_.recover(); }
  absl::Status commit(const store::CloudCommit& commit) override;
  absl::StatusOr<std::vector<store::WindowRow>> load_windows(const std::string& table, const std::string& window,
                                                             model::Time start) override {
    return inner_.load_windows(table, window, start);
  }
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                        model::Time from) override {
    return inner_.next_start(table, window, from);
  }
  absl::StatusOr<std::vector<model::StateEntry>> load_states(const model::NodeName& node) override {
    return inner_.load_states(node);
  }

 private:
  FakeCloudStore inner_;
  FakeLoop& loop_;
  const double window_ns_;
  const Committed committed_;
};

// What the inputs of all edges have made.
struct Made {
  std::uint64_t samples = 0;
  double value_sum = 0;  // whole numbers, far below 2^53
  std::uint64_t charged = 0;
};

// One sample of every series each second, in event time that runs with simulated time; a slow edge falls behind.
class SteadyPump final : public node::InputPump {
 public:
  struct Load {
    model::Time origin{};  // event time at the start of the world
    base::SteadyTime begin{};
    std::int64_t seconds = 0;
    std::int64_t series = 0;
    std::int64_t charged_per_s = 0;  // samples
    double sample_ns = 0;
    std::int64_t house = 0;
    std::chrono::nanoseconds phase{};  // edges do not all speak at once
  };
  // All outlive it.
  SteadyPump(FakeLoop& loop, const EventQueue& queue, Load load, Made& made)
      : loop_(loop), queue_(queue), load_(load), made_(made) {}
  void set_events(Events events) override { events_ = std::move(events); }
  void start(std::size_t input, const model::InputSpec& spec, model::Position from) override;
  void consumed(std::size_t input) override;
  model::Time paced_now(std::size_t) const override { return model::kMinTime; }
  double progress(std::size_t) const override { return -1; }
  void stop() override { stopped_ = true; }

 private:
  void schedule();
  void deliver();

  FakeLoop& loop_;
  const EventQueue& queue_;
  const Load load_;
  Made& made_;
  Events events_;
  std::size_t input_ = 0;
  std::int64_t next_ = 0;  // second
  std::size_t outstanding_ = 0;
  bool scheduled_ = false;
  bool stopped_ = false;
};

}  // namespace orla::sim
