// Format: level as a varint, number of samples in the bin of 0, then the negative and the positive bins, each:
//
//   number of bins that hold something
//   for each, from the least magnitude on: 4 * (number of the bin - (number of the bin before + 1, or 0)) + the lesser
//   of count - 1 and 3; when that is 3: count - 4
//
// The number of a bin is quantile_key() of its values' magnitudes, divided by 2^level.
#include "model/quantile_sketch.h"

#include <algorithm>
#include <array>

namespace orla::model {
namespace {

constexpr std::size_t kChunk = 512;
constexpr int kDropped = 45;  // bits of a double that a bin at level 0 does not tell
constexpr std::int32_t kLeastKey = 128;
constexpr std::int32_t kLastKey = 2047 * 128 - 1;

// Whether so coarse a level may have been needed: at the one below, the samples filled more than kMaxBins bins.
bool may_be_least(const BinCounts& negative, const BinCounts& positive) {
  std::uint64_t most = 0;
  const auto count_finer = [&](std::int32_t, std::uint64_t count) { most += std::min<std::uint64_t>(count, 2); };
  negative.each(count_finer);
  positive.each(count_finer);
  return most > kMaxBins;
}

}  // namespace

void QuantileSketch::add_keys(std::span<const std::int32_t> keys) {
  while (!keys.empty()) {
    const std::span<const std::int32_t> some = keys.first(std::min(keys.size(), kChunk));
    keys = keys.subspan(some.size());
    std::int32_t least = some[0];
    std::int32_t most = some[0];
    for (const std::int32_t key : some) {
      least = std::min(least, key);
      most = std::max(most, key);
    }
    if (least > 0 && level_ == 0) {
      positive_.add(some, least, most);
    } else {
      std::array<std::int32_t, kChunk> above;
      std::array<std::int32_t, kChunk> below;
      std::size_t positives = 0;
      std::size_t negatives = 0;
      for (const std::int32_t key : some) {
        if (key > 0)
          above[positives++] = key >> level_;
        else if (key < 0)
          below[negatives++] = -key >> level_;
        else
          ++zeros_;
      }
      const auto put = [](BinCounts& to, std::span<const std::int32_t> bins) {
        if (bins.empty()) return;
        const auto [low, high] = std::minmax_element(bins.begin(), bins.end());
        to.add(bins, *low, *high);
      };
      put(positive_, std::span(above).first(positives));
      put(negative_, std::span(below).first(negatives));
    }
    fit();
  }
}

void QuantileSketch::merge(const QuantileSketch& other) {
  while (level_ < other.level_) coarsen();
  if (other.level_ < level_) {
    QuantileSketch coarse = other;
    while (coarse.level_ < level_) coarse.coarsen();
    merge(coarse);
    return;
  }
  zeros_ += other.zeros_;
  negative_.merge(other.negative_);
  positive_.merge(other.positive_);
  fit();
}

void QuantileSketch::coarsen() {
  negative_.coarsen();
  positive_.coarsen();
  ++level_;
}

void QuantileSketch::reduce() {
  while (level_ < kLastLevel && negative_.filled() + positive_.filled() > kMaxBins) coarsen();
}

// Exact: the bin's bits, then a 1 where the others begin.
double QuantileSketch::middle(std::int32_t bin) const {
  const int shift = kDropped + level_;
  return std::bit_cast<double>(static_cast<std::uint64_t>(bin) << shift | std::uint64_t{1} << (shift - 1));
}

double QuantileSketch::at_rank(std::uint64_t rank) const {
  const std::uint64_t below = negative_.total();
  if (rank <= below) return -middle(negative_.at_rank(below - rank + 1));
  rank -= below;
  if (rank <= zeros_) return 0;
  return middle(positive_.at_rank(rank - zeros_));
}

std::size_t QuantileSketch::memory_bytes() const {
  return sizeof *this + negative_.memory_bytes() + positive_.memory_bytes();
}

void QuantileSketch::write(base::ByteWriter& to) const {
  to.varint(static_cast<std::uint64_t>(level_));
  to.varint(zeros_);
  negative_.write(to);
  positive_.write(to);
}

bool QuantileSketch::read(base::ByteReader& from, QuantileSketch& into) {
  const std::uint64_t level = from.varint();
  if (level > kLastLevel) return false;
  QuantileSketch out;
  out.level_ = static_cast<int>(level);
  out.zeros_ = from.varint();
  const std::int32_t last = kLastKey >> level;
  if (!BinCounts::read(from, last, kMaxBins, out.negative_)) return false;
  if (!BinCounts::read(from, last, kMaxBins - out.negative_.filled(), out.positive_)) return false;
  std::uint64_t total = 0;
  if (__builtin_add_overflow(out.zeros_, out.negative_.total(), &total) ||
      __builtin_add_overflow(total, out.positive_.total(), &total))
    return false;
  const std::int32_t least = kLeastKey >> level;
  for (const BinCounts* side : {&out.negative_, &out.positive_})
    if (side->total() > 0 && side->at_rank(1) < least) return false;
  if (level > 0 && !may_be_least(out.negative_, out.positive_)) return false;
  into = std::move(out);
  return true;
}

std::uint64_t nearest_rank(std::uint64_t n, std::uint32_t numerator, std::uint32_t denominator) {
  const base::UInt128 product = static_cast<base::UInt128>(n) * numerator;
  return static_cast<std::uint64_t>((product + denominator - 1) / denominator);
}

}  // namespace orla::model
