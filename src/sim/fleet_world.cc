#include "sim/fleet_world.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "node/aggregator_role.h"
#include "node/cloud_role.h"
#include "node/edge_role.h"
#include "sim/fleet_plan.h"

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kFaults{8};       // how long things go wrong
constexpr seconds kDrain{240};      // how long draining may take after that
constexpr seconds kSettle{3};       // and how long it has to stay drained
constexpr milliseconds kLook{100};  // how often it is looked at
constexpr std::size_t kRows = 150;  // of one input, at most
constexpr std::size_t kLeastRows = 30;

// What no fault of a simulated world may make a node say.
constexpr const char* kNever[] = {"lost data", "with other contents", "does not continue", "not have the contents",
                                  "malformed", "frame of child",      "is unusable",       "not in the outbox",
                                  "not kept"};

}  // namespace

// Watches for alarms that must not be, and shows lines in a trace.
class FleetWorld::Log final : public base::Logger {
 public:
  Log(FleetWorld& world, std::string node) : world_(world), node_(std::move(node)) {}
  bool enabled(base::LogLevel level) const override {
    return level == base::LogLevel::kError || world_.options_.trace == Trace::kOn;
  }
  void write(base::LogLevel level, std::string_view message) override {
    world_.say(fmt::format("{:10} {:5} {}", node_, base::to_string(level), message));
    if (level != base::LogLevel::kError || !world_.problem_.empty()) return;
    for (const char* never : kNever) {
      if (message.find(never) != std::string_view::npos) world_.problem_ = fmt::format("{}: {}", node_, message);
    }
  }

 private:
  FleetWorld& world_;
  const std::string node_;
};

FleetWorld::FleetWorld(const WorldOptions& options)
    : options_(options), random_(options.seed), network_(queue_, random_) {
  absl::StatusOr<model::Plan> plan = random_plan(random_);
  if (!plan.ok()) {
    problem_ = std::string(plan.status().message());
    return;
  }
  plan_ = *std::move(plan);
  int number = 0;
  for (const model::InputSpec& input : plan_.fleet.inputs) {
    scripts_[input.key] = make_script(random_, input.key, ++number, kLeastRows + random_.below(kRows - kLeastRows));
  }
  for (const model::NodeSpec& spec : plan_.fleet.nodes) {
    auto machine = std::make_unique<Machine>();
    machine->spec = &spec;
    machine->clock = std::make_unique<FakeClock>(queue_);
    machine->disk = std::make_unique<FakeDisk>(random_);
    machine->disk->bug = options.bug;
    machine->log = std::make_unique<Log>(*this, spec.name);
    machines_.push_back(std::move(machine));
  }
}

FleetWorld::~FleetWorld() {
  for (std::size_t i = 0; i < machines_.size(); ++i) end_life(i);
}

void FleetWorld::say(const std::string& text) {
  if (options_.trace == Trace::kOff) return;
  const std::chrono::duration<double> at = queue_.now().time_since_epoch();
  std::fprintf(stderr, "%10.3f %s\n", at.count(), text.c_str());
}

milliseconds FleetWorld::pause(std::uint64_t up_to_ms) { return milliseconds(1 + random_.below(up_to_ms)); }

void FleetWorld::start(std::size_t index) {
  Machine& machine = *machines_[index];
  if (machine.life) return;
  ++machine.lives;
  machine.stopping = false;
  say(fmt::format("{} starts", machine.spec->name));
  machine.life = std::make_unique<Life>();
  Life& life = *machine.life;
  life.random = std::make_unique<base::SeededRandom>(random_.next());
  life.loop = std::make_unique<FakeLoop>(queue_, [this, index] { crash(index); });
  life.loop->run([&] {
    const node::World world{*life.loop, *machine.clock, *life.random, *machine.log};
    const model::Layer layer = machine.spec->layer;
    if (layer != model::Layer::kCloud) life.up = std::make_unique<FakeUplink>(network_, *life.loop);
    if (layer != model::Layer::kEdge) life.down = std::make_unique<FakeDownlink>(network_, *life.loop);
    if (layer == model::Layer::kEdge) {
      if (machine.spec->durability == model::Durability::kDisk) {
        life.edge_store = std::make_unique<FakeEdgeStore>(machine.edge_disk, *machine.disk);
      }
      life.pump = std::make_unique<FakeInputPump>(*life.loop, random_, scripts_, options_.bug);
      life.role =
          std::make_unique<node::EdgeRole>(plan_, *machine.spec, world, life.edge_store.get(), *life.up, *life.pump);
    } else if (layer == model::Layer::kAggregator) {
      life.role = std::make_unique<node::AggregatorRole>(plan_, *machine.spec, world, *life.down, *life.up);
    } else {
      life.cloud_store = std::make_unique<FakeCloudStore>(cloud_disk_, *machine.disk);
      life.role = std::make_unique<node::CloudRole>(plan_, *machine.spec, world, *life.cloud_store, *life.down);
    }
    if (const absl::Status status = life.role->start(); !status.ok() && problem_.empty()) {
      problem_ = fmt::format("{} cannot start: {}", machine.spec->name, std::string(status.message()));
    }
  });
}

void FleetWorld::end_life(std::size_t index) {
  Machine& machine = *machines_[index];
  if (!machine.life) return;
  if (machine.life->role) observe(machine);
  const std::unique_ptr<Life> life = std::move(machine.life);
  life->role.reset();
  life->pump.reset();
  life->edge_store.reset();
  life->cloud_store.reset();
  life->up.reset();
  life->down.reset();
}

void FleetWorld::crash(std::size_t index) {
  if (!machines_[index]->life) return;
  say(fmt::format("{} crashes", machines_[index]->spec->name));
  ++exercised_.crashes;
  end_life(index);
  queue_.after(pause(1500), [this, index] { start(index); });
}

// SIGTERM, and a start some time later.
void FleetWorld::stop(std::size_t index) {
  Machine& machine = *machines_[index];
  if (!machine.life || machine.stopping || machine.life->loop->frozen()) return;
  say(fmt::format("{} is asked to stop", machine.spec->name));
  ++exercised_.stops;
  machine.stopping = true;
  const std::uint64_t which = machine.lives;
  Life& life = *machine.life;
  life.loop->run([&] {
    life.role->shutdown([this, index, which](node::StopReport) {
      queue_.after({}, [this, index, which] {
        if (machines_[index]->lives != which) return;
        end_life(index);
        queue_.after(pause(1000), [this, index] { start(index); });
      });
    });
  });
}

void FleetWorld::fault() {
  if (healed_) return;
  queue_.after(pause(500), [this] { fault(); });
  const std::size_t index = random_.below(machines_.size());
  Machine& machine = *machines_[index];
  switch (random_.below(8)) {
    case 0:
      crash(index);
      break;
    case 1:
      stop(index);
      break;
    case 2:
      if (machine.life && !machine.life->loop->frozen()) {
        say(fmt::format("{} freezes", machine.spec->name));
        ++exercised_.freezes;
        machine.life->loop->freeze();
        queue_.after(pause(4000), [this, index, which = machine.lives] {
          Machine& later = *machines_[index];
          if (later.lives == which && later.life) later.life->loop->thaw();
        });
      }
      break;
    case 3:
      machine.disk->full = true;
      queue_.after(pause(1500), [&machine] { machine.disk->full = false; });
      break;
    case 4:
      machine.clock->skew += milliseconds(random_.below(7'200'000)) - milliseconds(3'600'000);
      break;
    case 5:
      take_over(machine);
      break;
    default:
      if (machine.life && machine.life->up) exercised_.cuts += static_cast<unsigned>(network_.cut(*machine.life->up));
  }
}

// An OpenEpoch of an earlier start of the node, delayed until now: it closes the present epoch.
void FleetWorld::take_over(Machine& machine) {
  if (machine.spec->layer != model::Layer::kEdge || !machine.life || !machine.life->up) return;
  const auto origin = cloud_disk_.origins.find(machine.spec->name);
  if (origin == cloud_disk_.origins.end()) return;
  constexpr std::uint64_t kForgotten = std::uint64_t{1} << 60U;  // no request the edge waits for
  const link::OpenEpoch open{kForgotten, machine.spec->name, model::Epoch{random_.next() | 1U},
                             origin->second.cursor.epoch};
  if (!network_.inject(*machine.life->up, open)) return;
  say(fmt::format("{} has its epoch closed", machine.spec->name));
  ++exercised_.takeovers;
}

void FleetWorld::heal() {
  say("everything heals");
  healed_ = true;
  network_.heal();
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    Machine& machine = *machines_[i];
    machine.disk->healed = true;
    machine.disk->full = false;
    if (machine.life && machine.life->loop->frozen()) machine.life->loop->thaw();
    start(i);
  }
}

node::NodeStatus FleetWorld::status(const Machine& machine) const {
  node::NodeStatus status;
  machine.life->role->fill(status);
  return status;
}

// Before a life ends, and at the end: what it went through.
void FleetWorld::observe(Machine& machine) {
  const node::NodeStatus now = status(machine);
  if (now.uplink) {
    exercised_.refusals += now.uplink->refusals;
    exercised_.sessions += now.uplink->connects;
  }
  if (machine.spec->layer == model::Layer::kCloud && now.chunks) {
    exercised_.chunks += now.chunks->applied;
    exercised_.duplicates += now.chunks->duplicate;
  }
}

bool FleetWorld::drained() {
  for (const auto& machine : machines_) {
    if (!machine->life || !machine->life->role || machine->stopping) return false;
    const node::NodeStatus now = status(*machine);
    if (!now.drained || (now.chunks && now.chunks->pending > 0)) return false;
    if (machine->spec->layer == model::Layer::kEdge) {
      for (const node::InputStatus& input : now.inputs) {
        if (!input.ended) return false;
      }
    }
    if (now.uplink && now.uplink->connected && now.uplink->parent != machine->last_parent) {
      if (!machine->last_parent.empty()) ++exercised_.failovers;
      machine->last_parent = now.uplink->parent;
    }
  }
  return true;
}

std::string FleetWorld::run() {
  if (!problem_.empty()) return problem_;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    queue_.after(pause(500), [this, i] { start(i); });
  }
  queue_.after(pause(1000), [this] { fault(); });
  const base::SteadyTime healed_at = queue_.now() + kFaults;
  const base::SteadyTime end = healed_at + kDrain;
  queue_.at(healed_at, [this] { heal(); });
  base::SteadyTime next_look = queue_.now();
  base::SteadyTime drained_since = end;
  while (problem_.empty() && queue_.step()) {
    if (queue_.now() < next_look) continue;
    next_look = queue_.now() + kLook;
    if (!healed_) {
      drained();  // only to see who moved where
      continue;
    }
    if (!drained()) {
      drained_since = end;
      if (queue_.now() >= end) break;
    } else if (drained_since == end) {
      drained_since = queue_.now();
    } else if (queue_.now() - drained_since >= kSettle) {
      break;
    }
  }
  exercised_.simulated_s = std::chrono::duration<double>(queue_.now().time_since_epoch()).count();
  exercised_.lost_messages = network_.counters().lost;
  for (const auto& machine : machines_) exercised_.failed_writes += machine->disk->counters.failures;
  if (!problem_.empty()) return problem_;
  for (const auto& machine : machines_) {
    if (machine->life && machine->life->role) observe(*machine);
  }
  return check();
}

void Exercised::add(const Exercised& other) {
  samples += other.samples;
  windows += other.windows;
  late += other.late;
  rejected += other.rejected;
  chunks += other.chunks;
  duplicates += other.duplicates;
  refusals += other.refusals;
  crashes += other.crashes;
  stops += other.stops;
  freezes += other.freezes;
  cuts += other.cuts;
  lost_messages += other.lost_messages;
  sessions += other.sessions;
  failovers += other.failovers;
  failed_writes += other.failed_writes;
  takeovers += other.takeovers;
  simulated_s += other.simulated_s;
}

std::string to_string(const Exercised& e) {
  return fmt::format(
      "{:.0f} s, samples {}, windows {}, late {}, rejected {}, chunks {}, duplicates {}, refusals {}, crashes {}, "
      "stops {}, freezes {}, cuts {}, messages lost {}, sessions {}, failovers {}, failed writes {}, epochs closed {}",
      e.simulated_s, e.samples, e.windows, e.late, e.rejected, e.chunks, e.duplicates, e.refusals, e.crashes, e.stops,
      e.freezes, e.cuts, e.lost_messages, e.sessions, e.failovers, e.failed_writes, e.takeovers);
}

}  // namespace orla::sim
