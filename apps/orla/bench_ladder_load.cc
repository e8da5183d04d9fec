#include "bench_ladder_load.h"

#include <algorithm>
#include <utility>

namespace orla::apps {

namespace {

constexpr std::uint32_t kLeastRun = 100;

std::uint64_t mix(std::uint64_t z) {  // the finaliser of splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t random_at(std::uint64_t seed, std::uint64_t plug, std::uint64_t at) {
  return mix((seed * 0x9e3779b97f4a7c15ULL + plug) * 0xd1342543de82ef95ULL + at * 0x9e3779b97f4a7c15ULL);
}

}  // namespace

std::uint32_t LadderLoad::run_length() const {
  if (order == LadderOrder::kRandom) return 1;
  return batch < kLeastRun ? batch : batch / (batch / kLeastRun);
}

std::int32_t ladder_value(const LadderLoad& load, std::uint32_t plug, std::int64_t second) {
  const std::uint64_t seed = load.seed;
  if (load.values == LadderValues::kWide)
    return static_cast<std::int32_t>(random_at(seed, plug, static_cast<std::uint64_t>(second)) >> 42);
  constexpr std::int64_t kLevelSeconds = 600;
  const std::uint64_t level = random_at(seed, plug, static_cast<std::uint64_t>(second / kLevelSeconds) | 1ULL << 40);
  const auto watts = static_cast<std::int32_t>(level >> 32 & 0x3ff);
  switch (plug % 10) {
    case 0:
    case 1:
    case 2:
    case 3:
      return (level & 63) == 0 ? watts * 1000 : 0;
    case 8:
    case 9:
      return watts * 1000 + static_cast<std::int32_t>(random_at(seed, plug, static_cast<std::uint64_t>(second)) >> 52);
    default:
      return watts * 1000 + static_cast<std::int32_t>(random_at(seed, plug, static_cast<std::uint64_t>(second)) >> 59);
  }
}

std::vector<std::uint32_t> edge_plugs(const LadderLoad& load, std::uint32_t edge) {
  std::vector<std::uint32_t> plugs;
  for (std::uint32_t plug = edge; plug < load.plugs; plug += load.edges) plugs.push_back(plug);
  return plugs;
}

void ladder_batches(const LadderLoad& load, std::uint32_t edge,
                    const std::function<bool(const model::Batch& batch)>& frame) {
  const std::vector<std::uint32_t> plugs = edge_plugs(load, edge);
  const std::uint32_t length = load.run_length();
  std::vector<std::uint32_t> order(plugs.size());
  for (std::uint32_t k = 0; k < order.size(); ++k) order[k] = k;
  model::Batch batch;
  batch.decimals = 3;
  const auto deliver = [&] {
    const bool go_on = frame(batch);
    batch.clear();
    batch.decimals = 3;
    return go_on;
  };
  for (std::int64_t second = 0; second < load.seconds; second += length) {
    for (std::size_t k = order.size(); load.order == LadderOrder::kRandom && k > 1; --k)
      std::swap(order[k - 1], order[random_at(load.seed, k, static_cast<std::uint64_t>(second) | 1ULL << 41) % k]);
    for (const std::uint32_t k : order) {
      const auto begin = static_cast<std::uint32_t>(batch.scaled.size());
      for (std::uint32_t i = 0; i < length; ++i) batch.scaled.push_back(ladder_value(load, plugs[k], second + i));
      batch.runs.push_back({model::SeriesId{k}, begin, begin + length});
      const model::Time start = model::from_ns((kLadderStart + second) * 1'000'000'000);
      if (load.order == LadderOrder::kRandom)
        batch.times.push_back(start);
      else
        batch.paces.push_back({start, std::chrono::seconds(1)});
      if (batch.scaled.size() >= load.batch && !deliver()) return;
    }
  }
  if (!batch.scaled.empty()) deliver();
}

std::vector<LadderCell> ladder_truth(const LadderLoad& load, std::uint32_t plug, std::int64_t window_s) {
  std::vector<LadderCell> cells(static_cast<std::size_t>((load.seconds + window_s - 1) / window_s));
  for (std::int64_t second = 0; second < load.seconds; ++second) {
    LadderCell& cell = cells[static_cast<std::size_t>(second / window_s)];
    const std::int32_t value = ladder_value(load, plug, second);
    ++cell.count;
    cell.sum += value;
    cell.min = std::min(cell.min, value);
    cell.max = std::max(cell.max, value);
  }
  return cells;
}

}  // namespace orla::apps
