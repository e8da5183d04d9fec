// The encoder's kernels of int_block_encode.cc without vectors: for machines that have none, and as what the others
// must equal.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "codec/bit_pack.h"
#include "codec/int_block.h"

namespace orla::codec {

// Numbers are handled in groups of so many, the last one filled up with zeros.
inline constexpr std::size_t kGroup = 64;
// Neighbours that are looked at to choose between frame and differences.
inline constexpr std::size_t kSampled = 16;

// The numbers of a block, and zeros behind them.
struct Numbers {
  alignas(64) std::uint32_t x[kBlockValues + kGroup];
  std::size_t n = 0;
  std::uint32_t most = 0;

  std::size_t groups() const { return (n + kGroup - 1) / kGroup; }
};

struct Extent {
  std::int32_t least;
  std::int32_t most;
};

// The bits of each number (31 stands for 32 too), in any order.
struct Widths {
  alignas(64) std::uint8_t of[kBlockValues];
};

inline std::uint32_t zigzag(std::int32_t s) {
  return (static_cast<std::uint32_t>(s) << 1) ^ static_cast<std::uint32_t>(s >> 31);
}

// Of the differences of n > 1 neighbours.
inline Extent few_steps_extent(const std::int32_t* v, std::size_t n) {
  Extent steps{v[1] - v[0], v[1] - v[0]};
  for (std::size_t i = 2; i < n; ++i)
    steps = {std::min(steps.least, v[i] - v[i - 1]), std::max(steps.most, v[i] - v[i - 1])};
  return steps;
}

namespace scalar {

inline void pack_narrow(const Numbers& numbers, unsigned width, std::uint8_t* out) {
  pack_bits(numbers.x, numbers.n, width, out);
}

inline void bit_widths(const Numbers& numbers, Widths& widths) {
  for (std::size_t i = 0; i < kGroup * numbers.groups(); ++i)
    widths.of[i] = static_cast<std::uint8_t>(std::bit_width(numbers.x[i]));
}

template <std::size_t groups>
inline std::size_t count_wider(const Widths& widths, unsigned width) {
  std::size_t wider = 0;
  for (std::size_t i = 0; i < kGroup * groups; ++i) wider += widths.of[i] > width ? 1 : 0;
  return wider;
}

// The places of the numbers wider than that, and their upper bits.
inline void split(const Numbers& numbers, unsigned width, std::uint8_t* places, Numbers& high) {
  for (std::size_t i = 0; i < numbers.n; ++i) {
    if (numbers.x[i] >> width == 0) continue;
    *places++ = static_cast<std::uint8_t>(i);
    high.x[high.n++] = numbers.x[i] >> width;
  }
}

inline Extent extent(const std::int32_t* v, std::size_t n) {
  return {*std::min_element(v, v + n), *std::max_element(v, v + n)};
}

inline Extent steps_extent(const std::int32_t* v, std::size_t n) { return few_steps_extent(v, n); }

// Fills `numbers`, whose n is set, from f(i).
template <typename F>
inline void fill(Numbers& numbers, F f) {
  for (std::size_t i = 0; i < numbers.n; ++i) numbers.x[i] = f(i);
  std::fill(numbers.x + numbers.n, numbers.x + kGroup * numbers.groups(), 0U);
}

// v[i] - least
inline void subtract(const std::int32_t* v, std::int32_t least, Numbers& numbers) {
  fill(numbers, [=](std::size_t i) { return static_cast<std::uint32_t>(v[i]) - static_cast<std::uint32_t>(least); });
}

// v[i + 1] - v[i] - least
inline void steps_above(const std::int32_t* v, std::int32_t least, Numbers& numbers) {
  fill(numbers, [=](std::size_t i) { return static_cast<std::uint32_t>(v[i + 1] - v[i] - least); });
}

inline void steps_zigzag(const std::int32_t* v, Numbers& numbers) {
  fill(numbers, [=](std::size_t i) { return zigzag(v[i + 1] - v[i]); });
}

// Bits of v[i] - least less those of zigzag(v[i + 1] - v[i]), over kSampled values at each stride.
inline int excess_bits(const std::int32_t* v, std::size_t n, std::size_t stride, std::int32_t least) {
  int excess = 0;
  for (std::size_t begin = 0; begin + kSampled < n; begin += stride)
    for (std::size_t i = begin; i < begin + kSampled; ++i)
      excess += std::bit_width(static_cast<std::uint32_t>(v[i]) - static_cast<std::uint32_t>(least)) -
                std::min(31, static_cast<int>(std::bit_width(zigzag(v[i + 1] - v[i]))));
  return excess;
}

}  // namespace scalar
}  // namespace orla::codec
