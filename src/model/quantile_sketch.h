// Quantiles of some samples within a stated relative error, whatever their order: a histogram with log-linear bins.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "model/bin_counts.h"

namespace orla::model {

// Bins that hold something, beside that of 0: beyond it the resolution halves.
inline constexpr std::size_t kMaxBins = 4096;
// Of resolutions: at level 0 an octave has 128 bins, at this one a single bin, and all doubles fit.
inline constexpr int kLastLevel = 7;

// The bin of a finite value at level 0: sign, exponent and the 7 top bits of the mantissa as a signed number, which
// rises with the value. 0 for values below the least normal double.
inline std::int32_t quantile_key(double value) {
  constexpr int dropped = 45;
  constexpr std::int32_t least_normal = 128;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto key = static_cast<std::int32_t>((bits & ~(std::uint64_t{1} << 63)) >> dropped);
  if (key < least_normal) return 0;
  return (bits >> 63) != 0 ? -key : key;
}

// A value; a commutative monoid under merge(): what it holds depends on the set of samples alone. Its level is the
// least at which they fill at most kMaxBins bins.
//
// A value v that is shown lies within |v| * relative_error() of the sample that has its rank; a sample below the least
// normal double is shown as 0.
class QuantileSketch {
 public:
  // Finite.
  void add(double value) {
    const std::int32_t key = quantile_key(value);
    if (key > 0 && level_ == 0) [[likely]] {
      positive_.add(key);
      fit();
    } else {
      add_keys(std::span(&key, 1));
    }
  }
  // quantile_key() of each sample.
  void add_keys(std::span<const std::int32_t> keys);
  void merge(const QuantileSketch& other);

  std::uint64_t count() const { return negative_.total() + zeros_ + positive_.total(); }
  int level() const { return level_; }
  // 2^-8 at level 0, doubled by each.
  double relative_error() const { return static_cast<double>(1 << level_) / 256; }
  // The middle of the bin that holds the sample of this rank, from the least on. 0 < rank <= count().
  double at_rank(std::uint64_t rank) const;
  std::size_t memory_bytes() const;

  // Canonical bytes: equal sketches give equal bytes. `read` takes only what `write` writes.
  void write(base::ByteWriter& to) const;
  static bool read(base::ByteReader& from, QuantileSketch& into);
  friend bool operator==(const QuantileSketch&, const QuantileSketch&) = default;

 private:
  void coarsen();
  void fit() {
    if (negative_.most_filled() + positive_.most_filled() > kMaxBins) [[unlikely]]
      reduce();
  }
  void reduce();
  double middle(std::int32_t bin) const;

  BinCounts negative_;  // by the bin of the magnitude
  BinCounts positive_;
  std::uint64_t zeros_ = 0;
  int level_ = 0;
};

// ceil(n * numerator / denominator): the rank of a quantile by the nearest-rank definition. n > 0.
std::uint64_t nearest_rank(std::uint64_t n, std::uint32_t numerator, std::uint32_t denominator);

}  // namespace orla::model
