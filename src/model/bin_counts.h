// How many samples each bin of one sign of a quantile sketch holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace orla::model {

// A value. Dense (an array over a range of bins) where samples were added, or where that takes no more room than
// sorted pairs; else sorted pairs. What it holds depends on what was added alone. Bins are >= 0.
class BinCounts {
 public:
  struct Bin {
    std::int32_t number = 0;
    std::uint64_t count = 0;
    friend bool operator==(const Bin&, const Bin&) = default;
  };
  // A range longer than this is kept as sorted pairs.
  static constexpr std::int32_t kMostDense = 4096;

  void add(std::int32_t bin) {
    const auto at = static_cast<std::uint32_t>(bin - first_);
    if (at < narrow_.size() && total_ < UINT16_MAX) [[likely]] {
      ++narrow_[at];
      ++total_;
      return;
    }
    add(std::span(&bin, 1), bin, bin);
  }
  // One sample for each of `bins`, all of which lie in [least, most].
  void add(std::span<const std::int32_t> bins, std::int32_t least, std::int32_t most);
  void merge(const BinCounts& other);
  // Bins 2i and 2i+1 become bin i.
  void coarsen();

  std::uint64_t total() const { return total_; }
  // Bins that hold something; `most_filled` is a bound of it that costs nothing.
  std::size_t filled() const;
  std::size_t most_filled() const { return narrow_.size() + wide_.size() + pairs_.size(); }
  // The bin of the rank-th sample, from the least bin on. 0 < rank <= total().
  std::int32_t at_rank(std::uint64_t rank) const;
  std::size_t memory_bytes() const;

  // visit(bin number, count > 0), from the least bin on.
  template <typename Visit>
  void each(Visit visit) const {
    for (const Bin& bin : pairs_) visit(bin.number, bin.count);
    for (std::size_t i = 0; i < narrow_.size(); ++i)
      if (narrow_[i] != 0) visit(first_ + static_cast<std::int32_t>(i), std::uint64_t{narrow_[i]});
    for (std::size_t i = 0; i < wide_.size(); ++i)
      if (wide_[i] != 0) visit(first_ + static_cast<std::int32_t>(i), wide_[i]);
  }

  // Canonical bytes (the format is at the head of quantile_sketch.cc). read() takes only what write() writes, with bins
  // up to `last` and at most `most` of them.
  void write(base::ByteWriter& to) const;
  static bool read(base::ByteReader& from, std::int32_t last, std::size_t most, BinCounts& into);
  friend bool operator==(const BinCounts& a, const BinCounts& b);

 private:
  bool is_dense() const { return !narrow_.empty() || !wide_.empty(); }
  std::vector<Bin> pairs() const;
  bool make_dense(std::int32_t least, std::int32_t most, std::uint64_t more);
  void set(std::vector<Bin> pairs);
  void merge_pairs(const std::vector<Bin>& other);

  // One of these at most is in use. Narrow counts while all samples together fit one.
  std::vector<Bin> pairs_;
  std::vector<std::uint16_t> narrow_;
  std::vector<std::uint64_t> wide_;
  std::int32_t first_ = 0;  // of the dense bins
  std::uint64_t total_ = 0;
};

}  // namespace orla::model
