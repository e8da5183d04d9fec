// What encoder and decoder of blocks of rows agree on; the format is at the head of row_blocks_encode.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "codec/int_block.h"

namespace orla::codec {

// The order of the columns.
enum RowColumn : std::size_t {
  kGroupSteps,
  kSliceSteps,
  kCounts,
  kPlaces,
  kMin,
  kMax,
  kFirst,
  kLast,
  kSums,
  kSquares,
  kFirstTimes,
  kLastTimes,
  kRowColumns,
};

// In a block's first byte: which lists follow its columns.
inline constexpr std::uint8_t kOddMin = 1;  // shifted by column - kMin: kMin, kMax, kFirst, kLast
inline constexpr std::uint8_t kFarSums = 16;
inline constexpr std::uint8_t kWideSums = 32;
inline constexpr std::uint8_t kRowBlockFlags = 63;

// One column of a block, with what its readers and writers touch behind it.
using RowNumbers = std::array<std::int64_t, kBlockValues + kValueSlack>;

inline constexpr std::array<std::int64_t, 16> kTens = {1,
                                                       10,
                                                       100,
                                                       1'000,
                                                       10'000,
                                                       100'000,
                                                       1'000'000,
                                                       10'000'000,
                                                       100'000'000,
                                                       1'000'000'000,
                                                       10'000'000'000,
                                                       100'000'000'000,
                                                       1'000'000'000'000,
                                                       10'000'000'000'000,
                                                       100'000'000'000'000,
                                                       1'000'000'000'000'000};

// A decimal of `from` places as one of `to`.
inline base::Int128 with_places(std::int64_t scaled, int from, int to) {
  if (from == to) return scaled;
  if (from < to) return base::Int128{scaled} * kTens[static_cast<std::size_t>(to - from)];
  return scaled / kTens[static_cast<std::size_t>(from - to)];
}

// What is known of the sums of `count` values of which `least` is the least. All modulo 2^128.
struct SumsAbove {
  base::UInt128 least;
  std::uint64_t count;

  base::UInt128 sum() const { return least * count; }
  // Of the squares, given that the sum is sum() + above. With x = value - least: the sum of the squares of the values
  // is 2 * least * sum - count * least^2 and the sum of x^2, which is above^2 / count at least (Cauchy, Schwarz).
  base::UInt128 squares(base::UInt128 above) const {
    base::UInt128 squares = least * (2 * above + sum());
    if (above != 0 && above >> 32 == 0) {
      const auto x = static_cast<std::uint64_t>(above);
      squares += x * x / count;
    }
    return squares;
  }
};

}  // namespace orla::codec
