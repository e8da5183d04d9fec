// A hash set of numbers that stand for things kept elsewhere: 4.6 to 5.7 bytes for each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace orla::model {

// Open addressing, at most seven eighths full. A slot holds a number plus one, and above it, in the bits that no number
// needs, bits of its hash: hardly a thing is looked at that is not the one. Not thread-safe.
class NumberSet {
 public:
  // The number with this hash of which same(number) says that it is the one.
  template <typename Same>
  std::optional<std::uint32_t> find(std::uint64_t hash, Same same) const {
    if (slots_.empty()) return std::nullopt;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t i = home(hash); slots_[i] != 0; i = next(i)) {
      if (static_cast<std::uint64_t>(slots_[i] ^ tag) >> bits_ != 0) continue;
      const std::uint32_t number = (slots_[i] & most()) - 1;
      if (same(number)) return number;
    }
    return std::nullopt;
  }

  // Whether the number can be inserted. If not, the caller grows the set, which empties it, and inserts all anew, in
  // whatever order they are at hand.
  bool has_room(std::uint32_t number) const { return (size_ + 1) * 8 <= slots_.size() * 7 && number < most(); }
  void grow(std::uint32_t number) {
    std::size_t capacity = std::max<std::size_t>(slots_.size(), 16);
    if ((size_ + 1) * 8 > capacity * 7) capacity += capacity / 4;
    bits_ =
        std::min(32, static_cast<int>(std::max<std::size_t>(std::bit_width(capacity), std::bit_width(number) + 1U)));
    size_ = 0;
    std::vector<std::uint32_t>().swap(slots_);
    slots_.resize(capacity);
  }
  // It is not there, and there is room.
  void insert(std::uint32_t number, std::uint64_t hash) {
    std::size_t i = home(hash);
    while (slots_[i] != 0) i = next(i);
    slots_[i] = tag_of(hash) | (number + 1);
    ++size_;
  }
  void clear() {
    std::vector<std::uint32_t>().swap(slots_);
    size_ = 0;
    bits_ = 0;
  }

 private:
  std::uint32_t most() const { return static_cast<std::uint32_t>((std::uint64_t{1} << bits_) - 1); }
  std::uint32_t tag_of(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(hash)) << bits_);
  }
  std::size_t home(std::uint64_t hash) const {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(hash) * slots_.size()) >> 64);
  }
  std::size_t next(std::size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }

  std::vector<std::uint32_t> slots_;  // 0: free
  std::size_t size_ = 0;
  int bits_ = 0;  // of a slot that are a number's
};

}  // namespace orla::model
