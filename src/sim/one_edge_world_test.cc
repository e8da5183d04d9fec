#include "sim/one_edge_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "codec/rows.h"
#include "model/fleet_file.h"

namespace orla::sim {

namespace {

constexpr const char* kFleet = R"(
[fleet]
name = "one-edge"
zone = "UTC"

[[node]]
name = "cloud"
layer = "cloud"
listen = "127.0.0.1:7400"

[[node]]
name = "edge"
layer = "edge"
parents = ["cloud"]
{}

[[metric]]
name = "load"
unit = "W"
decimals = 3
disorder = "0s"
allowed_lateness = "1h"

[[input]]
node = "edge"
kind = "generator"
generator = {{ houses = 1, for = "1h" }}

[[rollup]]
name = "plug_load"
metric = "load"
by = ["plug"]
slice = "1m"
windows = ["1m"]

[[rollup]]
name = "all_load"
metric = "load"
by = []
slice = "1m"
windows = ["1m"]
)";

}  // namespace

// ---- the disk ----

absl::StatusOr<store::EdgeRecovery> LossyEdgeStore::recover(const Progress& /*progress*/) {
  store::EdgeRecovery out;
  out.meta = disk_.meta;
  out.reopen = std::exchange(disk_.reopen, false);
  if (std::exchange(disk_.journal_lost, false)) {
    disk_.journal.clear();
    if (!disk_.chunks.empty()) out.without_journal = disk_.chunks.rbegin()->second.facts;
    out.groups = disk_.groups;
  }
  for (const store::JournalEntry& entry : disk_.journal) {
    if (entry.snapshot) out.journal.clear();
    out.journal.push_back(entry.state);
  }
  for (const auto& [sequence, chunk] : disk_.chunks) {
    if (sequence <= disk_.meta.acknowledged) continue;
    const bool tombstone = !chunk.range.note.tombstones.empty();
    out.outbox.push_back(
        {sequence, chunk.rows.size(), chunk.facts, !tombstone && disk_.damaged.contains(sequence), tombstone});
  }
  return out;
}

absl::Status LossyEdgeStore::commit(const store::EdgeCommit& commit) {
  if (disk_.full || disk_.fail_commits > 0) {
    if (disk_.fail_commits > 0) --disk_.fail_commits;
    return absl::ResourceExhaustedError("the disk is full");
  }
  ++disk_.commits;
  disk_.meta = commit.meta;
  if (commit.entry.snapshot) {
    disk_.journal.clear();
    disk_.groups.clear();
  }
  disk_.journal.push_back(commit.entry);
  if (!commit.groups.empty()) disk_.groups.push_back(commit.groups);
  for (const store::StoredChunk& chunk : commit.chunks) disk_.chunks[chunk.range.first] = chunk;
  for (const model::Tombstone& t : commit.tombstones) {
    for (model::Sequence s = t.first; s <= t.last; ++s) {
      const auto found = disk_.chunks.find(s);
      if (found == disk_.chunks.end()) continue;
      store::StoredChunk& chunk = found->second;
      chunk.rows.clear();
      chunk.range.note.tombstones = {{s, s, t.reason, chunk.facts.samples, chunk.facts.from, chunk.facts.to}};
      found_.erase(s);
    }
  }
  return absl::OkStatus();
}

absl::Status LossyEdgeStore::trim(model::Sequence through) {
  if (disk_.full) return absl::ResourceExhaustedError("the disk is full");
  disk_.chunks.erase(disk_.chunks.begin(), disk_.chunks.upper_bound(through));
  disk_.meta.acknowledged = std::max(disk_.meta.acknowledged, through);
  return absl::OkStatus();
}

absl::Status LossyEdgeStore::renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) {
  if (disk_.full) return absl::ResourceExhaustedError("the disk is full");
  disk_.meta = meta;
  disk_.chunks.clear();
  disk_.damaged.clear();  // they were written anew, or are tombstones
  found_.clear();
  for (const store::StoredChunk& chunk : outbox) disk_.chunks[chunk.range.first] = chunk;
  return absl::OkStatus();
}

absl::StatusOr<store::StoredChunk> LossyEdgeStore::load(model::Sequence sequence) {
  const auto found = disk_.chunks.find(sequence);
  if (found == disk_.chunks.end()) return absl::NotFoundError(fmt::format("there is no chunk {}", sequence));
  store::StoredChunk chunk = found->second;
  if (disk_.damaged.contains(sequence) && chunk.range.note.tombstones.empty()) {
    found_.insert(sequence);
    chunk.rows.clear();
    chunk.range.note.tombstones = {
        {sequence, sequence, model::kDamaged, chunk.facts.samples, chunk.facts.from, chunk.facts.to}};
  }
  return chunk;
}

std::vector<model::Tombstone> LossyEdgeStore::lost() const {
  std::vector<model::Tombstone> out;
  for (const model::Sequence s : found_) out.push_back({s, s, model::kDamaged, {}, {}, {}});
  return out;
}

std::uint64_t LossyEdgeStore::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [sequence, chunk] : disk_.chunks) bytes += chunk.rows.size();
  return bytes;
}

// ---- the input ----

class OneEdgeWorld::Pump final : public node::InputPump {
 public:
  void set_events(Events events) override { events_ = std::move(events); }
  void start(std::size_t, const model::InputSpec&, model::Position from) override {
    running_ = true;
    row_ = from.row;
    known_ = 0;
    outstanding_ = 0;
  }
  void consumed(std::size_t) override { --outstanding_; }
  model::Time paced_now(std::size_t) const override { return model::kMinTime; }
  double progress(std::size_t) const override { return -1; }
  void stop() override { running_ = false; }

  bool can_deliver() const { return running_ && outstanding_ < kMaxOutstanding; }
  bool running() const { return running_; }
  void deliver(int minute, int series) {
    model::InputBatch batch;
    for (; known_ < series; ++known_) batch.new_series.push_back({"load", {{"plug", std::to_string(known_)}}});
    for (int i = 0; i < series; ++i) {
      const auto at = static_cast<std::uint32_t>(i);
      batch.samples.runs.push_back({model::SeriesId{at}, at, at + 1});
      batch.samples.times.push_back(model::from_ns(std::int64_t{minute} * 60'000'000'000));
      batch.samples.values.push_back(i + 0.5);
    }
    batch.received = static_cast<std::uint64_t>(series);
    row_ += batch.received;
    batch.position = {row_, row_};
    ++outstanding_;
    events_.batch(0, batch, model::kMinTime);
  }

 private:
  Events events_;
  bool running_ = false;
  std::uint64_t row_ = 0;
  int known_ = 0;
  std::size_t outstanding_ = 0;
};

// ---- the world ----

OneEdgeWorld::OneEdgeWorld(const std::string& extra) : log_(std::make_unique<base::SilentLogger>()) {
  model::ParsedFleet parsed =
      model::parse_fleet(fmt::format(kFleet, extra), "one-edge.toml", [](std::string_view) { return std::nullopt; });
  for (const model::FleetError& error : parsed.errors) ADD_FAILURE() << model::to_string(error);
  plan = model::make_plan(*std::move(parsed.fleet));
  network_.heal();
}

OneEdgeWorld::~OneEdgeWorld() {
  crash_edge();
  crash_cloud();
}

void OneEdgeWorld::start_edge() {
  edge_.random = std::make_unique<base::SeededRandom>(random_.next());
  edge_.loop = std::make_unique<FakeLoop>(queue_, [] {});
  edge_.loop->run([&] {
    const node::World world{*edge_.loop, clock_, *edge_.random, *log_};
    edge_.up = std::make_unique<FakeUplink>(network_, *edge_.loop, link_, "edge");
    const model::NodeSpec& spec = *plan.fleet.node("edge");
    if (spec.durability == model::Durability::kDisk) edge_.store = std::make_unique<LossyEdgeStore>(disk);
    edge_.pump = std::make_unique<Pump>();
    edge_.role = std::make_unique<node::EdgeRole>(plan, spec, world, edge_.store.get(), *edge_.up, *edge_.pump);
    const absl::Status status = edge_.role->start();
    EXPECT_TRUE(status.ok()) << status;
  });
}

void OneEdgeWorld::crash_edge() {
  edge_.role.reset();
  edge_.pump.reset();
  edge_.store.reset();
  edge_.up.reset();
  edge_.loop.reset();
}

void OneEdgeWorld::stop_edge() {
  bool done = false;
  edge_.loop->run([&] { edge_.role->shutdown([&](node::StopReport) { done = true; }); });
  for (int i = 0; i < 60 && !done; ++i) run(std::chrono::milliseconds(100));
  EXPECT_TRUE(done);
  crash_edge();
}

void OneEdgeWorld::start_cloud() {
  cloud_.loop = std::make_unique<FakeLoop>(queue_, [] {});
  cloud_.loop->run([&] {
    const node::World world{*cloud_.loop, clock_, random_, *log_};
    cloud_.down = std::make_unique<FakeDownlink>(network_, *cloud_.loop, "cloud");
    cloud_.store = std::make_unique<FakeCloudStore>(cloud_disk, healthy_);
    cloud_.role =
        std::make_unique<node::CloudRole>(plan, *plan.fleet.node("cloud"), world, *cloud_.store, *cloud_.down);
    const absl::Status status = cloud_.role->start();
    EXPECT_TRUE(status.ok()) << status;
  });
}

void OneEdgeWorld::crash_cloud() {
  cloud_.role.reset();
  cloud_.store.reset();
  cloud_.down.reset();
  cloud_.loop.reset();
}

void OneEdgeWorld::take_over() {
  const model::Epoch current = cloud_disk.origins.at("edge").cursor.epoch;
  EXPECT_TRUE(network_.inject(*edge_.up, link::OpenEpoch{999'999, "edge", model::Epoch{4242}, current}));
}

void OneEdgeWorld::run(std::chrono::milliseconds time) {
  const base::SteadyTime end = queue_.now() + time;
  bool over = false;
  queue_.at(end, [&over] { over = true; });
  while (!over && queue_.step()) {
  }
}

bool OneEdgeWorld::drain() {
  for (int i = 0; i < 600; ++i) {
    const node::NodeStatus now = edge();
    if (now.outbox->chunks == 0 && now.outbox->acknowledged > 0 && i > 5) return true;
    run(std::chrono::milliseconds(100));
  }
  return false;
}

bool OneEdgeWorld::reading() const { return edge_.pump->running(); }

void OneEdgeWorld::feed(int minute, int series) {
  if (!edge_.pump->can_deliver()) return;
  edge_.loop->run([&] { edge_.pump->deliver(minute, series); });
  delivered_ += static_cast<std::uint64_t>(series);
  run(std::chrono::milliseconds(300));  // a commit
}

node::NodeStatus OneEdgeWorld::edge() const {
  node::NodeStatus status;
  edge_.role->fill(status);
  return status;
}

node::NodeStatus OneEdgeWorld::cloud() const {
  node::NodeStatus status;
  cloud_.role->fill(status);
  return status;
}

std::uint64_t OneEdgeWorld::counted() const {
  std::uint64_t n = 0;
  for (const auto& [key, row] : cloud_disk.windows) {
    if (row.table == "all_load") n += row.state.count;
  }
  return n;
}

}  // namespace orla::sim
