// The seam to randomness. Parts that choose at random (epochs, jitter, generated data) get a Random through their
// constructor, so that a simulated world can repeat every choice from one seed.
#pragma once

#include <cstdint>

namespace orla::base {

// Not thread-safe: one owner.
class Random {
 public:
  virtual ~Random() = default;
  // 64 uniformly distributed bits.
  virtual std::uint64_t next() = 0;

  // Uniform in [0, bound). bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1).
  double unit();
};

// xoshiro256** (Blackman, Vigna 2018), seeded through splitmix64: the same seed gives the same sequence on every
// machine.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t next() override;

 private:
  std::uint64_t state_[4];
};

// The operating system's entropy.
class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;
};

}  // namespace orla::base
