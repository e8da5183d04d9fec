// What an origin lost for good, added up from the tombstones that were folded in.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/chunk.h"

namespace orla::model {

// Reasons of one origin, and inputs of one reason, that are told apart; further ones are added up under kOtherLosses.
inline constexpr std::size_t kMaxLossReasons = 16;
inline constexpr std::size_t kMaxLossInputs = 4096;
inline constexpr char kOtherLosses[] = "other";

struct Loss {
  std::string reason;
  std::uint64_t chunks = 0;
  std::vector<std::pair<std::string, std::uint64_t>> samples;  // by input key, sorted
  std::uint64_t raw_samples = 0;                               // of raw streams
  friend bool operator==(const Loss&, const Loss&) = default;
};

// `losses` is sorted by reason, and stays so. True when it is the first of its reason.
bool add_loss(std::vector<Loss>& losses, const Tombstone& tombstone);
std::uint64_t lost_samples(const Loss& loss);

// Adds up by key; both sorted.
void add_samples(std::vector<std::pair<std::string, std::uint64_t>>& into,
                 const std::vector<std::pair<std::string, std::uint64_t>>& more);

}  // namespace orla::model
