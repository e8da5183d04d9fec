#include "model/bin_counts.h"

#include <algorithm>
#include <utility>

namespace orla::model {
namespace {

constexpr std::int32_t kStep = 32;  // dense ranges begin and end at multiples of it, so that they seldom grow
// Pairs take as much room as so many narrow counts each.
constexpr std::size_t kPairWeight = sizeof(BinCounts::Bin) / sizeof(std::uint16_t);
constexpr std::uint64_t kManySamples = 3;  // a count of so many more than 1 has a number of its own

template <typename To, typename From>
void add_counts(To* to, const std::vector<From>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<To>(to[i] + from[i]);
}

template <typename Count>
bool find_rank(const std::vector<Count>& counts, std::uint64_t& rank, std::size_t& at) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (rank <= counts[i]) {
      at = i;
      return true;
    }
    rank -= counts[i];
  }
  return false;
}

}  // namespace

// Dense over [least, most] and all that it has, with room for `more` samples. False, and nothing is done: the range is
// too long.
bool BinCounts::make_dense(std::int32_t least, std::int32_t most, std::uint64_t more) {
  if (is_dense()) {
    least = std::min(least, first_);
    most = std::max(most, first_ + static_cast<std::int32_t>(narrow_.size() + wide_.size()) - 1);
  } else if (!pairs_.empty()) {
    least = std::min(least, pairs_.front().number);
    most = std::max(most, pairs_.back().number);
  }
  least = least / kStep * kStep;
  most = most / kStep * kStep + kStep - 1;
  const std::int32_t length = most - least + 1;
  if (length > kMostDense) return false;
  const bool narrow = wide_.empty() && total_ <= UINT16_MAX && more <= UINT16_MAX - total_;
  if (is_dense() && most_filled() == static_cast<std::size_t>(length) && narrow == wide_.empty()) return true;
  std::vector<std::uint16_t> narrow_counts;
  std::vector<std::uint64_t> wide_counts;
  if (narrow) {
    narrow_counts.resize(static_cast<std::size_t>(length));
    each([&](std::int32_t bin, std::uint64_t count) {
      narrow_counts[static_cast<std::size_t>(bin - least)] = static_cast<std::uint16_t>(count);
    });
  } else {
    wide_counts.resize(static_cast<std::size_t>(length));
    each([&](std::int32_t bin, std::uint64_t count) { wide_counts[static_cast<std::size_t>(bin - least)] = count; });
  }
  narrow_ = std::move(narrow_counts);
  wide_ = std::move(wide_counts);
  pairs_ = std::vector<Bin>();  // `= {}` would keep its memory
  first_ = least;
  return true;
}

std::vector<BinCounts::Bin> BinCounts::pairs() const {
  if (!is_dense()) return pairs_;
  std::vector<Bin> out;
  each([&](std::int32_t bin, std::uint64_t count) { out.push_back({bin, count}); });
  return out;
}

// Replaces all there is, in the form that takes less room.
void BinCounts::set(std::vector<Bin> pairs) {
  pairs_ = std::move(pairs);
  narrow_ = std::vector<std::uint16_t>();
  wide_ = std::vector<std::uint64_t>();
  first_ = 0;
  if (pairs_.empty()) return;
  const std::int64_t length = std::int64_t{pairs_.back().number} - pairs_.front().number + 1;
  if (static_cast<std::uint64_t>(length) <= kPairWeight * pairs_.size())
    make_dense(pairs_.front().number, pairs_.back().number, 0);
}

void BinCounts::add(std::span<const std::int32_t> bins, std::int32_t least, std::int32_t most) {
  if (bins.empty()) return;
  if (make_dense(least, most, bins.size())) {
    const std::int32_t first = first_;
    if (wide_.empty()) {
      std::uint16_t* const counts = narrow_.data();
      for (const std::int32_t bin : bins) ++counts[bin - first];
    } else {
      for (const std::int32_t bin : bins) ++wide_[static_cast<std::size_t>(bin - first)];
    }
    total_ += bins.size();
    return;
  }
  if (bins.size() == 1 && !is_dense()) {
    const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), least,
                                     [](const Bin& bin, std::int32_t number) { return bin.number < number; });
    ++total_;
    if (at != pairs_.end() && at->number == least)
      ++at->count;
    else
      pairs_.insert(at, {least, 1});
    return;
  }
  std::vector<std::int32_t> sorted(bins.begin(), bins.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<Bin> more;
  for (const std::int32_t bin : sorted) {
    if (more.empty() || more.back().number != bin) more.push_back({bin, 0});
    ++more.back().count;
  }
  total_ += bins.size();
  merge_pairs(more);
}

// Of samples that total_ has.
void BinCounts::merge_pairs(const std::vector<Bin>& other) {
  const std::vector<Bin> mine = is_dense() ? pairs() : std::move(pairs_);
  std::vector<Bin> out;
  out.reserve(mine.size() + other.size());
  auto a = mine.begin();
  for (const Bin& b : other) {
    while (a != mine.end() && a->number < b.number) out.push_back(*a++);
    out.push_back(b);
    if (a != mine.end() && a->number == b.number) out.back().count += (a++)->count;
  }
  out.insert(out.end(), a, mine.end());
  set(std::move(out));
}

void BinCounts::merge(const BinCounts& other) {
  if (&other == this) return merge(BinCounts(other));
  if (other.most_filled() == 0) return;
  if (most_filled() == 0) {
    *this = other;
    return;
  }
  if (is_dense() || other.is_dense()) {
    const std::int32_t least = other.is_dense() ? other.first_ : other.pairs_.front().number;
    const std::int32_t most = other.is_dense() ? other.first_ + static_cast<std::int32_t>(other.most_filled()) - 1
                                               : other.pairs_.back().number;
    if (make_dense(least, most, other.total_)) {
      const auto at = static_cast<std::size_t>(least - first_);
      if (wide_.empty()) {  // then the other's are narrow, too
        add_counts(narrow_.data() + at, other.narrow_);
        for (const Bin& bin : other.pairs_) narrow_[static_cast<std::size_t>(bin.number - first_)] += bin.count;
      } else {
        add_counts(wide_.data() + at, other.narrow_);
        add_counts(wide_.data() + at, other.wide_);
        for (const Bin& bin : other.pairs_) wide_[static_cast<std::size_t>(bin.number - first_)] += bin.count;
      }
      total_ += other.total_;
      return;
    }
  }
  total_ += other.total_;
  merge_pairs(other.is_dense() ? other.pairs() : other.pairs_);
}

void BinCounts::coarsen() {
  std::vector<Bin> out;
  each([&](std::int32_t bin, std::uint64_t count) {
    if (out.empty() || out.back().number != bin / 2) out.push_back({bin / 2, 0});
    out.back().count += count;
  });
  set(std::move(out));
}

std::size_t BinCounts::filled() const {
  const auto in = [](const auto& counts) {
    return counts.size() - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0));
  };
  return pairs_.size() + in(narrow_) + in(wide_);
}

std::int32_t BinCounts::at_rank(std::uint64_t rank) const {
  std::size_t at = 0;
  if (find_rank(narrow_, rank, at) || find_rank(wide_, rank, at)) return first_ + static_cast<std::int32_t>(at);
  for (const Bin& bin : pairs_) {
    if (rank <= bin.count) return bin.number;
    rank -= bin.count;
  }
  return 0;
}

std::size_t BinCounts::memory_bytes() const {
  return pairs_.capacity() * sizeof(Bin) + narrow_.capacity() * sizeof(std::uint16_t) +
         wide_.capacity() * sizeof(std::uint64_t);
}

void BinCounts::write(base::ByteWriter& to) const {
  to.varint(filled());
  std::int32_t next = 0;
  each([&](std::int32_t bin, std::uint64_t count) {
    const std::uint64_t few = std::min(count - 1, kManySamples);
    to.varint(static_cast<std::uint64_t>(bin - next) << 2 | few);
    if (few == kManySamples) to.varint(count - 1 - kManySamples);
    next = bin + 1;
  });
}

bool BinCounts::read(base::ByteReader& from, std::int32_t last, std::size_t most, BinCounts& into) {
  const std::uint64_t count = from.varint();
  if (count > most || count > from.left()) return false;
  std::vector<Bin> bins;
  bins.reserve(count);
  std::uint64_t next = 0;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t code = from.varint();
    const std::uint64_t gap = code >> 2;
    std::uint64_t samples = (code & 3) + 1;
    if ((code & 3) == kManySamples && __builtin_add_overflow(samples, from.varint(), &samples)) return false;
    const auto end = static_cast<std::uint64_t>(last);
    if (from.failed() || next > end || gap > end - next || __builtin_add_overflow(total, samples, &total)) return false;
    bins.push_back({static_cast<std::int32_t>(next + gap), samples});
    next += gap + 1;
  }
  into.total_ = total;
  into.set(std::move(bins));
  return true;
}

bool operator==(const BinCounts& a, const BinCounts& b) {
  if (a.total_ != b.total_) return false;
  return a.pairs() == b.pairs();
}

}  // namespace orla::model
