// FleetWorld: senders, and what has to be true of what they were told.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/ledger.h"
#include "sim/fleet_world.h"

namespace orla::sim {

namespace {

constexpr std::uint64_t kPushes = 100;  // the purpose of their random sequence

}  // namespace

void FleetWorld::build_pushers() {
  check_plan_ = plan_;
  push_random_ = std::make_unique<base::SeededRandom>(derive(kPushes, 0));
  int number = 0;
  for (model::InputSpec& input : check_plan_.fleet.inputs) {
    if (input.kind != model::InputSpec::Kind::kPush) continue;
    input.kind = model::InputSpec::Kind::kCsv;
    Machine& node = *machine(input.node);
    // What the oracle reads: per series in the order in which its only sender sends.
    Script& script = scripts_[input.key];
    script.key = input.key;
    for (Pusher::Plan& plan : make_pushes(*push_random_, input.key, ++number)) {
      if (plan.resends == Resends::kNumbered) {
        const auto first = static_cast<std::uint32_t>(script.series.size());
        script.series.insert(script.series.end(), plan.series.begin(), plan.series.end());
        for (const auto& push : plan.pushes) {
          for (const Pusher::Sample& sample : push) {
            script.rows.push_back({!sample.future, sample.future, first + sample.series, sample.time, sample.value});
          }
        }
      }
      pushers_.push_back(std::make_unique<Pusher>(
          queue_, *push_random_, std::move(plan),
          [this, &node](std::function<node::Push(ingest::SeriesTable&)> make, node::PushDone done) {
            return deliver(node, make, std::move(done));
          }));
      pushers_.back()->acknowledged = [this, &node, key = input.key](std::uint64_t) { acknowledged(node, key); };
    }
  }
}

bool FleetWorld::deliver(Machine& machine, const std::function<node::Push(ingest::SeriesTable&)>& make,
                         node::PushDone done) {
  if (!machine.life || machine.life->edge == nullptr) return false;
  machine.life->loop->post([&life = *machine.life, make, done = std::move(done)] {
    if (!life.role) return;
    node::Push push = make(*life.series);
    push.series = life.series;
    life.edge->push(std::move(push), done);
  });
  return true;
}

// Invariant 1 at a memory edge: by then the cloud's disk has it.
void FleetWorld::acknowledged(const Machine& machine, const std::string& input) {
  if (machine.spec->durability != model::Durability::kMemory) return;
  std::uint64_t samples = 0;
  for (const auto& pusher : pushers_) {
    if (pusher->plan().input == input) samples += pusher->acknowledged_samples();
  }
  const auto origin = cloud_disk_.origins.find(machine.spec->name);
  std::uint64_t received = 0;
  if (origin != cloud_disk_.origins.end()) {
    for (const auto& [key, ledger] : origin->second.ledgers) {
      if (key == input) received = ledger.received;
    }
  }
  if (received >= samples) return;
  problem(
      fmt::format("{} samples pushed to {} are acknowledged; the cloud's disk knows of {}", samples, input, received));
}

bool FleetWorld::pushes(const model::NodeName& node) const {
  return std::any_of(plan_.fleet.inputs.begin(), plan_.fleet.inputs.end(), [&](const model::InputSpec& input) {
    return input.node == node && input.kind == model::InputSpec::Kind::kPush;
  });
}

bool FleetWorld::pushed_out(const model::NodeName& node) const {
  std::set<std::string> keys;
  for (const model::InputSpec& input : plan_.fleet.inputs) {
    if (input.node == node) keys.insert(input.key);
  }
  return std::all_of(pushers_.begin(), pushers_.end(),
                     [&](const auto& pusher) { return pusher->done() || !keys.contains(pusher->plan().input); });
}

// What is pushed never ends: once the senders are done, and the files read, inputs are told to stop, which publishes
// what they brought.
void FleetWorld::stop_pushed_inputs() {
  for (const auto& machine : machines_) {
    if (!machine->life || machine->life->edge == nullptr || machine->stopping || machine->life->told_to_stop) continue;
    if (!pushes(machine->spec->name) || !pushed_out(machine->spec->name)) continue;
    const node::NodeStatus now = status(*machine);
    std::size_t running = 0;
    for (const node::InputStatus& input : now.inputs) running += input.ended ? 0 : 1;
    if (running > 1) continue;
    // An edge that keeps nothing and finds its epoch closed goes back to what the cloud has. Were it told to stop by
    // then, it would not read its files once more.
    const bool keeps = machine->spec->durability == model::Durability::kDisk;
    if (!keeps && now.outbox && now.outbox->acknowledged < now.outbox->last) continue;
    machine->life->told_to_stop = true;
    machine->life->loop->run([life = machine->life.get()] { life->role->stop_inputs(); });
  }
}

// Invariants 1 and 2 of what is pushed, as far as windows do not tell.
std::string FleetWorld::check_pushes() {
  for (const auto& machine : machines_) {
    if (machine->spec->layer != model::Layer::kEdge) continue;
    for (const node::InputStatus& input : status(*machine).inputs) {
      std::uint64_t numbered = 0;
      std::uint64_t acknowledged = 0;
      std::uint64_t sent = 0;
      bool pushed = false;
      for (const auto& pusher : pushers_) {
        if (pusher->plan().input != input.key) continue;
        pushed = true;
        if (!pusher->problem().empty()) return pusher->problem();
        if (pusher->plan().resends == Resends::kNumbered) {
          numbered += pusher->acknowledged_samples();
        } else {
          acknowledged += pusher->acknowledged_samples();
          sent += pusher->sent_samples();
        }
      }
      if (!pushed) continue;
      // Without numbers at least once; they are of a metric that nobody declared. With numbers exactly once.
      const std::uint64_t unmatched = input.ledger.unmatched;
      if (unmatched < acknowledged || unmatched > sent || input.ledger.received != numbered + unmatched) {
        return fmt::format(
            "input {}: {} samples of numbered pushes and {} of others are acknowledged, {} of these were sent; it has "
            "received {}, {} unmatched",
            input.key, numbered, acknowledged, sent, input.ledger.received, unmatched);
      }
    }
  }
  return "";
}

// The ledger of a pushed input as the oracle counts: without pushes that have no number, and with what is `future` as
// rows that cannot be read.
model::Ledger FleetWorld::as_expected(const std::string& input, model::Ledger reported) const {
  const Script& script = scripts_.at(input);
  const bool pushed =
      std::any_of(pushers_.begin(), pushers_.end(), [&](const auto& pusher) { return pusher->plan().input == input; });
  if (!pushed) return reported;
  reported.received -= reported.unmatched;
  reported.unmatched = 0;
  for (std::size_t i = 0; i < script.rows.size(); ++i) {
    const Script::Row& row = script.rows[i];
    if (!row.future) continue;
    reported.rejected_set.sum += model::row_hash(input, i + 1);
    reported.rejected_set.sum -= model::sample_hash(model::identity(script.series[row.series]), row.time, row.value);
  }
  return reported;
}

}  // namespace orla::sim
