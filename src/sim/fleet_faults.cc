// FleetWorld: faults come up, and heal.
#include <fmt/format.h>

#include "sim/fleet_world.h"

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

void FleetWorld::happen(const Fault& fault) {
  Machine* target = machine(fault.node);
  if (target == nullptr || phase_ != Phase::kFaults) return;
  say(fmt::format("-- {}", to_string(fault)));
  ++exercised_.faults;
  switch (fault.kind) {
    case FaultKind::kCrash:
      crash(*target, fault.lasts);
      break;
    case FaultKind::kStop:
      stop(*target, fault.lasts);
      break;
    case FaultKind::kFreeze:
      freeze(*target, fault.lasts);
      break;
    case FaultKind::kClock:
      target->clock->skew += seconds(fault.amount);
      break;
    case FaultKind::kTakeOver:
      take_over(*target);
      break;
    case FaultKind::kUpgrade:
      upgrade(*target);
      break;
    case FaultKind::kDieInWrite:
    case FaultKind::kPowerLoss:
    case FaultKind::kDiskFull:
    case FaultKind::kDiskErrors:
    case FaultKind::kDiskSlow:
    case FaultKind::kBitFlip:
    case FaultKind::kCutTail:
      happen_to_disk(fault, *target);
      break;
    case FaultKind::kCut:
    case FaultKind::kHalfOpen:
    case FaultKind::kFlap:
    case FaultKind::kSlowLink:
    case FaultKind::kDelay:
    case FaultKind::kRefuse:
    case FaultKind::kDouble:
      happen_to_link(fault, *target);
      break;
  }
}

void FleetWorld::happen_to_disk(const Fault& fault, Machine& machine) {
  FakeDisk& disk = *machine.disk;
  switch (fault.kind) {
    case FaultKind::kDieInWrite:
      disk.doom(static_cast<std::uint64_t>(fault.amount),
                fault.amount % 2 == 0 ? FakeDisk::Moment::kBefore : FakeDisk::Moment::kAfter, fault.lasts);
      break;
    case FaultKind::kPowerLoss:
      ++exercised_.power_losses;
      crash(machine, fault.lasts);
      break;
    case FaultKind::kDiskFull:
      disk.full = true;
      queue_.after(fault.lasts, [&disk] { disk.full = false; });
      break;
    case FaultKind::kDiskErrors:
      disk.fails_one_in = static_cast<std::uint64_t>(fault.amount);
      queue_.after(fault.lasts, [&disk] { disk.fails_one_in = 0; });
      break;
    case FaultKind::kDiskSlow:
      disk.slow = milliseconds(fault.amount);
      queue_.after(fault.lasts, [&disk] { disk.slow = {}; });
      break;
    default:
      break;
  }
}

void FleetWorld::happen_to_link(const Fault& fault, Machine& machine) {
  Link& link = machine.link;
  const auto amount = static_cast<std::uint64_t>(fault.amount);
  switch (fault.kind) {
    case FaultKind::kCut:
      cut(machine, FakeNetwork::Notice::kSome);
      break;
    case FaultKind::kHalfOpen:
      cut(machine, FakeNetwork::Notice::kNone);
      break;
    case FaultKind::kFlap:
      flap(machine, milliseconds(fault.amount), queue_.now() + fault.lasts);
      break;
    case FaultKind::kSlowLink:
      link.bytes_per_s = amount;
      queue_.after(fault.lasts, [&link] { link.bytes_per_s = 0; });
      break;
    case FaultKind::kDelay:
      link.delay_max = milliseconds(fault.amount);
      queue_.after(fault.lasts, [&link] { link.delay_max = Link{}.delay_max; });
      break;
    case FaultKind::kRefuse:
      link.refuse = true;
      queue_.after(fault.lasts, [&link] { link.refuse = false; });
      break;
    case FaultKind::kDouble:
      link.doubles_one_in = amount;
      queue_.after(fault.lasts, [&link] { link.doubles_one_in = 0; });
      break;
    default:
      break;
  }
}

void FleetWorld::cut(Machine& machine, FakeNetwork::Notice notice) {
  if (!machine.life || !machine.life->up) return;
  exercised_.cuts += static_cast<unsigned>(network_->cut(*machine.life->up, notice));
}

void FleetWorld::flap(Machine& machine, milliseconds period, base::SteadyTime until) {
  if (phase_ != Phase::kFaults || queue_.now() >= until) return;
  cut(machine, FakeNetwork::Notice::kAll);
  queue_.after(period, [this, &machine, period, until] { flap(machine, period, until); });
}

void FleetWorld::freeze(Machine& machine, milliseconds lasts) {
  if (!machine.life || machine.life->loop->frozen()) return;
  ++exercised_.freezes;
  machine.life->loop->freeze();
  queue_.after(lasts, [&machine, which = machine.lives] {
    if (machine.lives == which && machine.life) machine.life->loop->thaw();
  });
}

// An OpenEpoch of an earlier start of the node, delayed until now: it closes the present epoch.
void FleetWorld::take_over(Machine& machine) {
  if (!machine.life || !machine.life->up) return;
  const auto origin = cloud_disk_.origins.find(machine.spec->name);
  if (origin == cloud_disk_.origins.end()) return;
  constexpr std::uint64_t kForgotten = std::uint64_t{1} << 60U;  // no request the edge waits for
  const link::OpenEpoch open{kForgotten, machine.spec->name, model::Epoch{machine.random->next() | 1U},
                             origin->second.cursor.epoch};
  if (network_->inject(*machine.life->up, open)) ++exercised_.takeovers;
}

void FleetWorld::upgrade(Machine& machine) {
  ++exercised_.upgrades;
  machine.plan = &plan_;
  crash(machine, milliseconds(200));
}

void FleetWorld::heal() {
  say("-- everything heals");
  phase_ = Phase::kDraining;
  network_->heal();
  for (const auto& machine : machines_) {
    machine->disk->heal();
    Link& link = machine->link;
    link.bytes_per_s = link.doubles_one_in = 0;
    link.delay_max = Link{}.delay_max;
    link.refuse = false;
    if (machine->life && machine->life->loop->frozen()) machine->life->loop->thaw();
    // Not by its fault, if that was taken out of the list.
    if (machine->plan != &plan_) upgrade(*machine);
    start(*machine);
  }
}

}  // namespace orla::sim
