#include "function/scale_policy.h"

#include <algorithm>
#include <cmath>

namespace orla::function {
namespace {

std::uint32_t desired(const LoadMeans& load, const ScaleSnapshot& snapshot, const ScaleOptions& options) {
  double total = 0;
  double target = options.target;
  switch (options.type) {
    case ScaleOptions::Type::kCapacity:
      total = load.calls;
      // A replica that takes fewer calls at a time than the target never reaches it.
      if (snapshot.concurrency > 0) target = std::min(target, static_cast<double>(snapshot.concurrency));
      break;
    case ScaleOptions::Type::kRps:
      total = load.per_second;
      break;
    case ScaleOptions::Type::kQueue:
      total = static_cast<double>(snapshot.queue);
      break;
  }
  // So that a load of exactly n replicas' worth asks for n, whatever the division rounds to.
  constexpr double kSlack = 1e-9;
  const double replicas = std::ceil(total / (target * options.target_proportion) - kSlack);
  return static_cast<std::uint32_t>(std::clamp(replicas, 0.0, static_cast<double>(options.max)));
}

}  // namespace

void ScaleMemory::recommend(base::SteadyTime now, std::uint32_t replicas) {
  while (!recommended.empty() && recommended.back().second <= replicas) recommended.pop_back();
  recommended.emplace_back(now, replicas);
}

void ScaleMemory::set_by_hand(base::SteadyTime now, std::uint32_t replicas) {
  recommended.clear();
  panic_until.reset();
  recommended.emplace_back(now, replicas);
}

std::uint32_t decide_replicas(const ScaleSnapshot& snapshot, const ScaleOptions& options, ScaleMemory& memory) {
  if (snapshot.wanted == 0) return 0;
  if (options.zero && snapshot.calls == 0 && snapshot.queue == 0 && snapshot.idle >= options.zero_duration) {
    memory = {};
    return 0;
  }
  if (options.min == options.max) return options.min;

  std::uint32_t recommendation = desired(snapshot.stable, snapshot, options);
  const std::uint32_t burst = desired(snapshot.panic, snapshot, options);
  if (burst > 1 && burst >= kPanicFactor * std::max(snapshot.ready, 1u)) {
    memory.panic_until = snapshot.now + kStableWindow;
  }
  if (memory.panic_until && snapshot.now >= *memory.panic_until) memory.panic_until.reset();
  if (memory.panic_until) recommendation = std::max({recommendation, burst, snapshot.wanted});
  recommendation = std::clamp(recommendation, options.min, options.max);

  memory.recommend(snapshot.now, recommendation);
  while (memory.recommended.size() > 1 && snapshot.now - memory.recommended.front().first >= options.down_window) {
    memory.recommended.pop_front();
  }
  return std::clamp(memory.recommended.front().second, options.min, options.max);
}

std::uint32_t step_up(std::uint32_t wanted, const ScaleOptions& options) {
  const std::uint32_t step = (options.max * options.factor + 99) / 100;
  return std::clamp(wanted + step, options.min, options.max);
}

}  // namespace orla::function
