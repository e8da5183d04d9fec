#include "sim/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/fake_clock.h"

namespace orla::sim {

using std::chrono::milliseconds;

namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames{
    "crash",     "die-in-write", "power-loss", "stop",   "freeze",    "disk-full", "disk-errors",
    "disk-slow", "bit-flip",     "cut-tail",   "clock",  "take-over", "cut",       "half-open",
    "flap",      "slow-link",    "delay",      "refuse", "double",    "upgrade"};

// How often each comes up, of kAll.
constexpr std::array<std::uint64_t, kFaultKinds> kWeights{12, 14, 4,  8, 10, 5, 10, 4, 3, 2,
                                                          8,  8,  14, 4, 2,  5, 5,  6, 8, 1};

bool keeps(const model::NodeSpec& node) {
  return node.layer == model::Layer::kCloud ||
         (node.layer == model::Layer::kEdge && node.durability == model::Durability::kDisk);
}

// Whether the fault means anything to the node.
bool applies(FaultKind kind, const model::NodeSpec& node) {
  switch (kind) {
    case FaultKind::kDieInWrite:
    case FaultKind::kDiskFull:
    case FaultKind::kDiskErrors:
    case FaultKind::kDiskSlow:
      return keeps(node);
    case FaultKind::kPowerLoss:
    case FaultKind::kBitFlip:
    case FaultKind::kCutTail:
      return keeps(node) && node.layer == model::Layer::kEdge;
    case FaultKind::kTakeOver:
      return node.layer == model::Layer::kEdge;
    case FaultKind::kCut:
    case FaultKind::kHalfOpen:
    case FaultKind::kFlap:
    case FaultKind::kSlowLink:
    case FaultKind::kDelay:
    case FaultKind::kRefuse:
    case FaultKind::kDouble:
      return node.layer != model::Layer::kCloud;
    case FaultKind::kUpgrade:
      return node.layer == model::Layer::kCloud;
    case FaultKind::kCrash:
    case FaultKind::kStop:
    case FaultKind::kFreeze:
    case FaultKind::kClock:
      return true;
  }
  return false;
}

std::int64_t between(base::Random& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// `severity` in (0, 1].
void fill(base::Random& random, double severity, Fault& fault) {
  const auto lasts = [&](std::int64_t most) {
    return milliseconds(1 + between(random, 0, static_cast<std::int64_t>(static_cast<double>(most) * severity)));
  };
  switch (fault.kind) {
    case FaultKind::kCrash:
    case FaultKind::kPowerLoss:
      fault.lasts = lasts(1500);
      break;
    case FaultKind::kStop:
      fault.lasts = lasts(1000);
      break;
    case FaultKind::kDieInWrite:
      fault.lasts = lasts(1500);
      fault.amount = between(random, 1, 30);
      break;
    case FaultKind::kFreeze:
      fault.lasts = lasts(4000);
      break;
    case FaultKind::kDiskFull:
      fault.lasts = lasts(1500);
      break;
    case FaultKind::kDiskErrors:
      fault.lasts = lasts(4000);
      fault.amount = between(random, 1, 8);
      break;
    case FaultKind::kDiskSlow:
      fault.lasts = lasts(3000);
      fault.amount = between(random, 1, 400);
      break;
    case FaultKind::kBitFlip:
      fault.amount = between(random, 1, 3);
      break;
    case FaultKind::kCutTail:
      fault.lasts = lasts(500);
      fault.amount = between(random, 1, 3000);
      break;
    case FaultKind::kClock: {
      constexpr std::int64_t kHour = 3600;
      constexpr std::int64_t kTo1970 = -std::chrono::duration_cast<std::chrono::seconds>(FakeClock::kStart).count();
      const std::int64_t jumps[] = {24 * kHour, -kHour, kTo1970, between(random, -kHour, kHour)};
      fault.amount = jumps[random.below(4)];
      break;
    }
    case FaultKind::kFlap:
      fault.lasts = lasts(3000);
      fault.amount = 300;
      break;
    case FaultKind::kSlowLink:
      fault.lasts = lasts(6000);
      fault.amount = between(random, 300, 20'000);
      break;
    case FaultKind::kDelay:
      fault.lasts = lasts(5000);
      fault.amount = between(random, 20, 400);
      break;
    case FaultKind::kRefuse:
      fault.lasts = lasts(3000);
      break;
    case FaultKind::kDouble:
      fault.lasts = lasts(5000);
      fault.amount = between(random, 1, 20);
      break;
    case FaultKind::kTakeOver:
    case FaultKind::kCut:
    case FaultKind::kHalfOpen:
    case FaultKind::kUpgrade:
      break;
  }
}

}  // namespace

std::string_view to_string(FaultKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string to_string(const Fault& fault) {
  std::string text = fmt::format("{} {} at {:.3f} s", to_string(fault.kind), fault.node,
                                 std::chrono::duration<double>(fault.at).count());
  if (fault.lasts.count() > 0) text += fmt::format(" for {} ms", fault.lasts.count());
  if (fault.amount != 0) text += fmt::format(": {}", fault.amount);
  return text;
}

std::vector<Fault> draw_faults(base::Random& random, const model::Plan& plan, Mix mix, milliseconds span) {
  std::array<std::uint64_t, kFaultKinds> weights = kWeights;
  std::int64_t gap_ms = 250;
  double severity = 1;
  if (mix == Mix::kSwarm) {
    for (std::uint64_t& weight : weights) weight = random.below(2) == 0 ? 0 : 1 + random.below(10);
    // Too rare a kind to be left to chance within a run.
    if (random.below(8) == 0) weights[static_cast<std::size_t>(FaultKind::kUpgrade)] = 40;
    const std::int64_t gaps[] = {60, 150, 250, 600, 1500};
    gap_ms = gaps[random.below(5)];
    severity = 0.1 + 0.9 * random.unit();
  }
  // Large fleets meet more faults, but each node fewer.
  if (plan.fleet.nodes.size() > 12) gap_ms = gap_ms * 2 / 3;
  std::uint64_t all = 0;
  for (const std::uint64_t weight : weights) all += weight;
  std::vector<Fault> faults;
  if (all == 0) return faults;
  bool upgraded = false;
  for (milliseconds at{between(random, 1, 500)}; at < span; at += milliseconds(between(random, 1, 2 * gap_ms))) {
    std::uint64_t draw = random.below(all);
    std::size_t kind = 0;
    while (draw >= weights[kind]) draw -= weights[kind++];
    Fault fault;
    fault.kind = static_cast<FaultKind>(kind);
    fault.at = at;
    std::vector<const model::NodeSpec*> targets;
    for (const model::NodeSpec& node : plan.fleet.nodes) {
      if (applies(fault.kind, node)) targets.push_back(&node);
    }
    if (targets.empty() || (fault.kind == FaultKind::kUpgrade && std::exchange(upgraded, true))) continue;
    fault.node = targets[random.below(targets.size())]->name;
    fill(random, severity, fault);
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace orla::sim
