#include "sim/fleet_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "node/aggregator_role.h"
#include "node/cloud_role.h"
#include "node/edge_disk.h"
#include "node/uplink_settings.h"
#include "sim/fleet_plan.h"

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kFaults{8};       // how long things go wrong
constexpr seconds kDrain{240};      // how long draining may take after that
constexpr seconds kSettle{2};       // and how long it has to stay drained
constexpr milliseconds kLook{100};  // how often it is looked at
constexpr std::size_t kRows = 150;  // of one input, at most
constexpr std::size_t kLeastRows = 30;
constexpr std::uint64_t kMostShards = 4;    // of an edge's engine
constexpr std::uint64_t kReturnsOneIn = 4;  // runs that wait until every node is back at its preferred parent
constexpr std::size_t kLargeFleet = 12;     // nodes; its inputs are shorter

// What no fault of a simulated world may make a node say.
constexpr const char* kNever[] = {"lost data", "with other contents", "does not continue", "not have the contents",
                                  "malformed", "frame of child",      "is unusable",       "not in the outbox",
                                  "not kept"};

// But this: a tombstone, which is checked by what is missing.
constexpr const char* kLegalLoss = "lost data for good";

constexpr const char* kJournalLost = "the journal of this edge is lost";

enum Purpose : std::uint64_t { kPlan = 1, kScripts, kFaultList, kNetwork, kMachine };

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
    if (level != base::LogLevel::kError) return;
    if (message.find(kJournalLost) != std::string_view::npos) world_.lose_journal(node_);
    if (message.find(kLegalLoss) != std::string_view::npos) return;
    for (const char* never : kNever) {
      if (message.find(never) != std::string_view::npos) world_.problem(fmt::format("{}: {}", node_, message));
    }
  }

 private:
  FleetWorld& world_;
  const std::string node_;
};

FleetWorld::FleetWorld(const WorldOptions& options)
    : options_(options),
      network_random_(std::make_unique<base::SeededRandom>(derive(kNetwork, 0))),
      network_(std::make_unique<FakeNetwork>(queue_, *network_random_)) {
  base::SeededRandom plan_random(derive(kPlan, 0));
  absl::StatusOr<model::Plan> plan = random_plan(plan_random);
  if (!plan.ok()) {
    problem_ = std::string(plan.status().message());
    return;
  }
  plan_ = *std::move(plan);
  build();
}

// Every part has a random sequence of its own, so that leaving out a fault changes as little as possible of the rest.
std::uint64_t FleetWorld::derive(std::uint64_t purpose, std::uint64_t number) const {
  return base::SeededRandom(options_.seed * 0x9E3779B97F4A7C15U + purpose * 0xC2B2AE3D27D4EB4FU + number).next();
}

void FleetWorld::build() {
  model::Fleet older = plan_.fleet;
  older.metrics.front().decimals = (older.metrics.front().decimals + 1) % 4;
  older_ = model::make_plan(std::move(older));

  base::SeededRandom script_random(derive(kScripts, 0));
  const std::size_t rows = plan_.fleet.nodes.size() > kLargeFleet ? kRows / 3 : kRows;
  int number = 0;
  for (const model::InputSpec& input : plan_.fleet.inputs) {
    if (input.kind == model::InputSpec::Kind::kPush) continue;
    scripts_[input.key] =
        make_script(script_random, input.key, ++number, kLeastRows + script_random.below(rows - kLeastRows));
  }
  base::SeededRandom fault_random(derive(kFaultList, 0));
  faults_ = draw_faults(fault_random, plan_, options_.mix, kFaults);
  watch_ = std::make_unique<Watch>(plan_, queue_, cloud_disk_);
  witness_.expect_publications(plan_, [this](const std::string& text) { problem(text); });
  tamper_ = std::make_unique<Tamper>(options_.bug, *network_, plan_, older_, cloud_disk_);
  FakeNetwork::Hooks hooks;
  hooks.sent_up = [this](const Wire& wire, const link::UpMessage& message) { watch_->sent_up(wire, message); };
  hooks.sent_down = [this](const Wire& wire, const link::DownMessage& message) { watch_->sent_down(wire, message); };
  hooks.arrives_up = [this](const WirePtr& wire, link::UpMessage& message) {
    watch_->arrives_up(*wire);
    tamper_->arrives_up(wire, message);
  };
  hooks.arrives_down = [this](const WirePtr& wire, link::DownMessage& message) {
    watch_->arrives_down(*wire, message);
  };
  network_->set_hooks(std::move(hooks));
  if (options_.bug == Bug::kStarve) network_->starve();
  for (const model::NodeSpec& spec : plan_.fleet.nodes) {
    auto machine = std::make_unique<Machine>();
    machine->spec = &spec;
    machine->plan = &plan_;
    machine->random = std::make_unique<base::SeededRandom>(derive(kMachine, machines_.size()));
    machine->clock = std::make_unique<FakeClock>(queue_);
    machine->disk = std::make_unique<FakeDisk>(*machine->random);
    machine->disk->bug = options_.bug;
    machine->log = std::make_unique<Log>(*this, spec.name);
    if (!spec.parents.empty()) {
      const link::UplinkSettings settings = node::uplink_settings(plan_.fleet, spec);
      // A try may come while the parent is still backed off from, and the next one only then.
      machine->returns_within =
          5 * (settings.return_after + settings.backoff_max) / 4 + settings.connect_timeout + settings.return_first;
      machine->preferred_parent = link::UplinkCore(settings, *machine->random).preference().front().node;
    }
    if (spec.layer == model::Layer::kEdge && spec.durability == model::Durability::kDisk) {
      machine->files = std::make_unique<base::FaultyDisk>(*machine->random);
      machine->files->hook = [disk = machine->disk.get()](const base::FaultyDisk::Step& step) {
        return disk->at(step);
      };
    }
    machines_.push_back(std::move(machine));
  }
  build_pushers();
}

FleetWorld::~FleetWorld() {
  for (const auto& machine : machines_) end_life(*machine);
}

void FleetWorld::say(const std::string& text) {
  if (options_.trace == Trace::kOff) return;
  const std::chrono::duration<double> at = queue_.now().time_since_epoch();
  std::fprintf(stderr, "%10.3f %s\n", at.count(), text.c_str());
}

// Both copies of the journal have to be damaged for that: one by a fault, the other in a crash.
void FleetWorld::lose_journal(const std::string& node) {
  journal_lost_ = true;
  watch_->begins_anew(node);
  if (!machine(node)->journal_hurt) problem(fmt::format("{} has lost its journal, which nothing has damaged", node));
}

void FleetWorld::problem(const std::string& text) {
  if (text.empty() || !problem_.empty()) return;
  say("!! " + text);
  problem_ = text;
}

FleetWorld::Machine* FleetWorld::machine(const std::string& name) {
  for (const auto& machine : machines_) {
    if (machine->spec->name == name) return machine.get();
  }
  return nullptr;
}

void FleetWorld::start(Machine& machine) {
  if (machine.life) return;
  ++machine.lives;
  machine.stopping = false;
  if (machine.files && machine.files->gave_up()) {
    ++exercised_.cached_starts;
    machine.from_cache = true;
  }
  say(fmt::format("{} starts", machine.spec->name));
  machine.life = std::make_unique<Life>();
  Life& life = *machine.life;
  life.started = queue_.now();
  life.connects_before = machine.link.connects;
  life.random = std::make_unique<base::SeededRandom>(machine.random->next());
  life.loop = std::make_unique<FakeLoop>(queue_, [this, &machine] { crash(machine, machine.disk->down_for()); });
  machine.disk->loop = life.loop.get();
  life.loop->run([this, &machine, &life] {
    const node::World world{*life.loop, *machine.clock, *life.random, *machine.log};
    const model::Plan& plan = *machine.plan;
    const model::Layer layer = machine.spec->layer;
    if (layer != model::Layer::kCloud) {
      life.up = std::make_unique<FakeUplink>(*network_, *life.loop, machine.link, machine.spec->name);
    }
    if (layer != model::Layer::kEdge) {
      life.down = std::make_unique<FakeDownlink>(*network_, *life.loop, machine.spec->name);
    }
    if (layer == model::Layer::kEdge) {
      if (machine.spec->durability == model::Durability::kDisk) {
        life.edge_store = plant(
            options_.bug, witness_.watch(machine.spec->name, std::make_unique<store::SegmentEdgeStore>(
                                                                 *machine.files, *machine.clock, node::edge_format(),
                                                                 node::edge_options(plan, *machine.spec))));
      }
      life.pump = std::make_unique<FakeInputPump>(*life.loop, *machine.random, scripts_, options_.bug);
      life.series = std::make_shared<ingest::SeriesTable>();
      // Another number at each start.
      life.shards = std::make_unique<stream::InlineShards>(1 + life.random->below(kMostShards));
      auto edge = std::make_unique<node::EdgeRole>(plan, *machine.spec, world, life.edge_store.get(), *life.up,
                                                   *life.pump, life.shards.get());
      life.edge = edge.get();
      life.role = std::move(edge);
    } else if (layer == model::Layer::kAggregator) {
      life.role = std::make_unique<node::AggregatorRole>(plan, *machine.spec, world, *life.down, *life.up);
    } else {
      tamper_->cloud_is_older(machine.plan == &older_);
      life.cloud_store = std::make_unique<FakeCloudStore>(cloud_disk_, *machine.disk);
      life.role = std::make_unique<node::CloudRole>(plan, *machine.spec, world, *life.cloud_store, *life.down);
    }
    if (const absl::Status status = life.role->start(); !status.ok()) {
      life.role.reset();
      if (!in_trouble(machine)) {
        problem(fmt::format("{} cannot start: {}", machine.spec->name, std::string(status.message())));
      }
      say(fmt::format("{} cannot start: {}", machine.spec->name, std::string(status.message())));
      // Whoever runs it tries again.
      queue_.after({}, [this, &machine] { crash(machine, milliseconds(500)); });
    }
  });
}

void FleetWorld::end_life(Machine& machine) {
  if (!machine.life) return;
  if (machine.life->role) observe(machine);
  const std::unique_ptr<Life> life = std::move(machine.life);
  machine.disk->loop = nullptr;
  if (machine.files) machine.files->crash();
  life->role.reset();
  life->pump.reset();
  life->edge_store.reset();
  life->cloud_store.reset();
  life->up.reset();
  life->down.reset();
}

void FleetWorld::die(Machine& machine) {
  if (!machine.life) return;
  say(fmt::format("{} dies", machine.spec->name));
  end_life(machine);
}

void FleetWorld::crash(Machine& machine, milliseconds down) {
  if (!machine.life) return;
  ++exercised_.crashes;
  die(machine);
  queue_.after(down, [this, &machine] { start(machine); });
}

// SIGTERM, and a start some time later.
void FleetWorld::stop(Machine& machine, milliseconds down) {
  if (!machine.life || machine.stopping || machine.life->loop->frozen()) return;
  ++exercised_.stops;
  machine.stopping = true;
  const std::uint64_t which = machine.lives;
  machine.life->loop->run([this, &machine, which, down] {
    machine.life->role->shutdown([this, &machine, which, down](node::StopReport) {
      queue_.after({}, [this, &machine, which, down] {
        if (machine.lives != which) return;
        end_life(machine);
        queue_.after(down, [this, &machine] { start(machine); });
      });
    });
  });
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

void FleetWorld::look() {
  if (phase_ != Phase::kFaults) stop_pushed_inputs();
  std::map<std::string, Watch::End> ends;
  for (const auto& machine : machines_) {
    if (!machine->life || !machine->life->role) continue;
    const node::NodeStatus now = status(*machine);
    watch_->looked(*machine->spec, now, machine->life->started,
                   machine->link.connects - machine->life->connects_before);
    if (!machine->stopping) ends[machine->spec->name] = {true, machine->life->loop->free_since()};
    if (now.uplink && now.uplink->connected && now.uplink->parent != machine->last_parent) {
      if (!machine->last_parent.empty()) {
        ++exercised_.failovers;
        exercised_.returns += now.uplink->parent == machine->preferred_parent ? 1 : 0;
      }
      machine->last_parent = now.uplink->parent;
    }
    if (machine->files) look_at_journal(*machine);
    if (machine->files && machine->files->gave_up() && phase_ == Phase::kFaults) worsen(*machine);
  }
  for (const auto& machine : machines_) {
    if (ends.contains(machine->spec->name)) look_at_parent(*machine, status(*machine), ends);
  }
  for (const WirePtr& wire : network_->wires()) watch_->looked(*wire, ends[wire->child], ends[wire->parent]);
  if (!watch_->problem().empty()) problem(watch_->problem());
  if (!cloud_disk_.problem.empty()) problem("the cloud's disk: " + cloud_disk_.problem);
}

bool FleetWorld::drained() {
  for (const auto& pusher : pushers_) {
    if (!pusher->done()) return false;
  }
  for (const auto& machine : machines_) {
    if (!machine->life || !machine->life->role || machine->stopping) return false;
    const node::NodeStatus now = status(*machine);
    if (!now.drained || (now.chunks && now.chunks->pending > 0)) return false;
    // Drained or not: who heals finds a parent again.
    if (now.uplink && !now.uplink->connected) return false;
    if (options_.seed % kReturnsOneIn == 0 && !has_returned(*machine, now)) return false;
    if (machine->spec->layer == model::Layer::kEdge) {
      for (const node::InputStatus& input : now.inputs) {
        if (!input.ended && !input.stopped) return false;
      }
    }
  }
  return true;
}

void FleetWorld::start_again() {
  say("-- everything is killed and starts once more");
  phase_ = Phase::kAgain;
  windows_before_ = cloud_disk_.windows;
  samples_before_ = cloud_disk_.samples;
  for (const auto& machine : machines_) {
    die(*machine);
    start(*machine);
  }
}

std::string FleetWorld::run() {
  if (!problem_.empty()) return problem_;
  exercised_.nodes = machines_.size();
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (!options_.keep || std::count(options_.keep->begin(), options_.keep->end(), i) > 0) kept.push_back(i);
  }
  for (const std::size_t i : kept) {
    queue_.after(faults_[i].at, [this, i] { happen(faults_[i]); });
    if (faults_[i].kind == FaultKind::kPowerLoss) machine(faults_[i].node)->loses_power = true;
    if (faults_[i].kind == FaultKind::kUpgrade) machine(faults_[i].node)->plan = &older_;
  }
  for (const auto& machine : machines_) {
    queue_.after(milliseconds(1 + machine->random->below(500)), [this, &machine = *machine] { start(machine); });
  }
  const base::SteadyTime healed_at = queue_.now() + kFaults;
  base::SteadyTime end = healed_at + kDrain;
  queue_.at(healed_at, [this] { heal(); });
  for (const auto& pusher : pushers_) pusher->start();
  base::SteadyTime next_look = queue_.now();
  base::SteadyTime drained_since = base::SteadyTime::max();
  while (problem_.empty() && queue_.step()) {
    if (queue_.now() < next_look) continue;
    next_look = queue_.now() + kLook;
    look();
    if (phase_ == Phase::kFaults) continue;
    if (!drained()) {
      drained_since = base::SteadyTime::max();
      if (queue_.now() >= end) break;
    } else if (drained_since == base::SteadyTime::max()) {
      drained_since = queue_.now();
    } else if (queue_.now() - drained_since >= kSettle) {
      if (phase_ == Phase::kAgain) break;
      problem(check());
      if (!problem_.empty()) break;
      start_again();
      drained_since = base::SteadyTime::max();
      end = queue_.now() + kDrain;
    }
  }
  for (const auto& pusher : pushers_) exercised_.pushes += pusher->acknowledged_pushes();
  exercised_.simulated_s = std::chrono::duration<double>(queue_.now().time_since_epoch()).count();
  exercised_.lagging = witness_.lagging();
  exercised_.lost_messages = network_->counters().lost;
  exercised_.slowed_messages = network_->counters().queued;
  const Watch::Peaks& peaks = watch_->peaks();
  exercised_.outbox_bytes = peaks.outbox_bytes;
  exercised_.unresolved_bytes = peaks.unresolved_bytes;
  exercised_.parked_rows = peaks.parked_rows;
  exercised_.connects_per_s = peaks.connects_per_s;
  for (const auto& machine : machines_) {
    exercised_.failed_writes += machine->disk->counters.failures;
    if (!machine->files) continue;
    const base::FaultyDisk::Counters& counters = machine->files->counters();
    exercised_.failed_writes += counters.failures;
    exercised_.failed_syncs += counters.failed_syncs;
    exercised_.failed_removals += counters.failed_removals;
  }
  if (problem_.empty()) problem(phase_ == Phase::kAgain ? check_again() : check());
  for (const auto& machine : machines_) {
    if (machine->life && machine->life->role) observe(*machine);
  }
  return problem_;
}

}  // namespace orla::sim
