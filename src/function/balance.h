// Which replica takes the next call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace orla::function {

struct ReplicaLoad {
  std::uint32_t in_flight = 0;
  std::uint32_t concurrency = 1;  // calls it takes at a time
};

// Up to this many, all are compared; of more, two that chance picks.
inline constexpr std::size_t kReplicasCompared = 8;

// Its index; nothing when all are full. Of equally loaded ones, `random` decides: any number, another one each time.
std::optional<std::size_t> choose_replica(std::span<const ReplicaLoad> loads, std::uint64_t random);

}  // namespace orla::function
