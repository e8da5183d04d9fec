#include "function/balance.h"

namespace orla::function {
namespace {

bool has_room(const ReplicaLoad& load) { return load.in_flight < load.concurrency; }

}  // namespace

std::optional<std::size_t> choose_replica(std::span<const ReplicaLoad> loads, std::uint64_t random) {
  if (loads.empty()) return std::nullopt;
  const std::size_t begin = static_cast<std::size_t>(random % loads.size());
  if (loads.size() > kReplicasCompared) {
    // Two different ones: nearly as good as the least of all (Mitzenmacher 2001), and never all calls to one.
    const std::size_t other =
        (begin + 1 + static_cast<std::size_t>((random >> 32) % (loads.size() - 1))) % loads.size();
    const std::size_t better = loads[other].in_flight < loads[begin].in_flight ? other : begin;
    if (has_room(loads[better])) return better;
    const std::size_t worse = better == begin ? other : begin;
    if (has_room(loads[worse])) return worse;
  }
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const std::size_t at = (begin + i) % loads.size();
    if (has_room(loads[at]) && (!best || loads[at].in_flight < loads[*best].in_flight)) best = at;
  }
  return best;
}

}  // namespace orla::function
