// FleetWorld: faults come up, and heal.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/fleet_world.h"

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::int64_t kLongAgo = 1'000'000'000;  // seconds: further back than any program was built

}  // namespace

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
      // An unset clock makes nothing `future`: which of the samples pushed are rejected has to be known here.
      // No clock shows a time before 1970, however often it jumps back.
      target->clock->skew = std::max<std::chrono::nanoseconds>(
          target->clock->skew + seconds(pushes(fault.node) && fault.amount < -kLongAgo ? -3600 : fault.amount),
          -FakeClock::kStart);
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
      disk.doom(static_cast<std::uint64_t>(fault.amount), static_cast<FakeDisk::Moment>(fault.amount % 3), fault.lasts);
      break;
    case FaultKind::kPowerLoss:
      lose_power(machine, fault.lasts);
      break;
    case FaultKind::kDiskFull:
      disk.full = true;
      if (machine.files) machine.files->capacity = machine.files->used() + machine.random->below(2000);
      queue_.after(fault.lasts, [&disk, files = machine.files.get()] {
        disk.full = false;
        if (files != nullptr) files->capacity = base::FaultyDisk::kNoLimit;
      });
      break;
    case FaultKind::kDiskErrors: {
      const auto odds = static_cast<std::uint64_t>(fault.amount);
      disk.fails_one_in = odds;
      if (machine.files) {
        // Of the kinds of steps some: what goes on between them is what matters.
        const auto some = [&] { return machine.random->below(3) == 0 ? 0 : odds; };
        machine.files->odds = {some(), some(), some(), some(), some(), some()};
      }
      queue_.after(fault.lasts, [&disk, files = machine.files.get()] {
        disk.fails_one_in = 0;
        if (files != nullptr) files->odds = {};
      });
      break;
    }
    case FaultKind::kBitFlip:
    case FaultKind::kCutTail:
      damage(fault, machine);
      break;
    case FaultKind::kDiskSlow:
      disk.slow = milliseconds(fault.amount);
      queue_.after(fault.lasts, [&disk] { disk.slow = {}; });
      break;
    default:
      break;
  }
}

bool FleetWorld::in_trouble(const Machine& machine) const {
  return machine.disk->fails_one_in > 0 || machine.disk->full;
}

// Of chunks' rows, or of the journal's first copy: what is damaged there is read from the second one, which only power
// loss can take as well.
void FleetWorld::damage(const Fault& fault, Machine& machine) {
  if (fault.kind == FaultKind::kCutTail) crash(machine, fault.lasts);
  std::vector<std::pair<std::string, std::size_t>> files;
  const std::map<std::string, std::string> contents = machine.files->contents();
  for (const auto& [name, bytes] : contents) {
    // The second copy has to be complete: writing it may have failed, or a process died in it.
    bool journal = name.starts_with("journal-") && name.ends_with(".a") && !machine.loses_power;
    if (journal) {
      const auto twin = contents.find(name.substr(0, name.size() - 1) + "b");
      journal = twin != contents.end() && twin->second.size() >= bytes.size();
    }
    if (!bytes.empty() && (name.starts_with("outbox-") || journal)) files.emplace_back(name, bytes.size());
  }
  if (files.empty()) return;
  ++exercised_.flips;
  if (fault.kind == FaultKind::kCutTail) {
    const auto& [name, size] = files.back();
    const auto gone = std::min<std::size_t>(size, static_cast<std::size_t>(fault.amount));
    say(fmt::format("{} loses the last {} of {} bytes of {}", machine.spec->name, gone, size, name));
    machine.journal_hurt = machine.journal_hurt || name.starts_with("journal-");
    machine.files->cut(name, size - gone);
    return;
  }
  // Mostly rows: they are what is kept for long.
  std::size_t which = machine.random->below(files.size());
  if (machine.random->below(3) != 0) which = files.size() - 1;
  const auto& [name, size] = files[which];
  machine.journal_hurt = machine.journal_hurt || name.starts_with("journal-");
  say(fmt::format("{} has {} bits of {} flipped", machine.spec->name, fault.amount, name));
  for (std::int64_t i = 0; i < fault.amount; ++i) machine.files->flip_bit(name, machine.random->below(size * 8));
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

// A disk that has failed a sync may go on to: its process dies of it, the next one reads what was never synced, and
// then the power fails. Not where a journal was damaged: nothing could know then.
void FleetWorld::worsen(Machine& machine) {
  if (machine.journal_hurt || machine.random->below(3) != 0) return;
  machine.loses_power = true;
  say(fmt::format("{} dies with a failed sync", machine.spec->name));
  queue_.after({}, [this, &machine, down = milliseconds(1 + machine.random->below(100))] { crash(machine, down); });
  queue_.after(milliseconds(200 + machine.random->below(800)), [this, &machine] {
    if (phase_ == Phase::kFaults) lose_power(machine, milliseconds(200));
  });
}

void FleetWorld::lose_power(Machine& machine, milliseconds down) {
  ++exercised_.power_losses;
  crash(machine, down);
  machine.files->power_loss();
  exercised_.cached_losses += std::exchange(machine.from_cache, false) ? 1 : 0;
}

void FleetWorld::upgrade(Machine& machine) {
  ++exercised_.upgrades;
  machine.plan = &plan_;
  crash(machine, milliseconds(200));
}

void FleetWorld::heal() {
  say("-- everything heals");
  phase_ = Phase::kDraining;
  healed_at_ = queue_.now();
  network_->heal();
  for (const auto& pusher : pushers_) pusher->heal();
  for (const auto& machine : machines_) {
    machine->disk->heal();
    if (machine->files) {
      machine->files->odds = {};
      machine->files->capacity = base::FaultyDisk::kNoLimit;
    }
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
