// The texts of a row's label cells -> a number, without making a string of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace orla::ingest {

// Open addressing, at most a quarter full; nothing is taken out. Not thread-safe.
class LabelTexts {
 public:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  static constexpr std::size_t kMaxCellBytes = 15;
  static constexpr std::size_t kMaxKnown = 1u << 18u;  // no more are kept

  explicit LabelTexts(std::size_t cells) : key_(2 * cells), numbers_(kFirstSlots, kUnknown) {
    keys_.resize(kFirstSlots * key_.size());
  }

  // The cells one after another: sets the key that find() and insert() use. False for a cell that is too long. 16 bytes
  // from the cell's begin on can be read.
  bool set(std::size_t i, std::string_view cell) {
    if (cell.size() > kMaxCellBytes) return false;
    std::uint64_t words[2];
    std::memcpy(words, cell.data(), sizeof words);
    const std::size_t bits = 8 * cell.size();
    const std::uint64_t keep = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
    const std::uint64_t keep_high = bits <= 64 ? 0 : (std::uint64_t{1} << (bits - 64)) - 1;
    key_[2 * i] = words[0] & keep;
    key_[2 * i + 1] = (words[1] & keep_high) | std::uint64_t{cell.size()} << 56;
    return true;
  }
  std::uint32_t find() const { return numbers_[slot()]; }
  void insert(std::uint32_t number) {
    if (known_ >= kMaxKnown) return;
    if (4 * (known_ + 1) > numbers_.size()) grow();
    const std::size_t i = slot();
    if (numbers_[i] == kUnknown) ++known_;
    std::copy(key_.begin(), key_.end(), keys_.begin() + static_cast<std::ptrdiff_t>(i * key_.size()));
    numbers_[i] = number;
  }

 private:
  static constexpr std::size_t kFirstSlots = 256;

  // Where the key is, or would be.
  std::size_t slot() const {
    const std::size_t words = key_.size();
    const std::uint64_t* const key = key_.data();
    std::uint64_t mixed = 0;
    for (std::size_t w = 0; w < words; ++w) {
      mixed = (mixed ^ key[w]) * 0x9e3779b97f4a7c15ULL;
      mixed ^= mixed >> 32;
    }
    const std::size_t mask = numbers_.size() - 1;
    for (std::size_t i = static_cast<std::size_t>(mixed) & mask;; i = (i + 1) & mask) {
      const std::uint64_t* const other = keys_.data() + i * words;
      std::uint64_t difference = 0;
      for (std::size_t w = 0; w < words; ++w) difference |= key[w] ^ other[w];
      if (difference == 0 && numbers_[i] != kUnknown) return i;
      if (numbers_[i] == kUnknown) return i;
    }
  }
  void grow() {
    const std::vector<std::uint64_t> key = key_;
    std::vector<std::uint64_t> old_keys(2 * keys_.size());
    std::vector<std::uint32_t> old_numbers(2 * numbers_.size(), kUnknown);
    old_keys.swap(keys_);
    old_numbers.swap(numbers_);
    for (std::size_t i = 0; i < old_numbers.size(); ++i) {
      if (old_numbers[i] == kUnknown) continue;
      std::copy_n(old_keys.begin() + static_cast<std::ptrdiff_t>(i * key_.size()), key_.size(), key_.begin());
      const std::size_t to = slot();
      std::copy(key_.begin(), key_.end(), keys_.begin() + static_cast<std::ptrdiff_t>(to * key_.size()));
      numbers_[to] = old_numbers[i];
    }
    key_ = key;
  }

  std::vector<std::uint64_t> key_;   // two words a cell: its bytes, then zeros; the last byte is its size
  std::vector<std::uint64_t> keys_;  // by slot
  std::vector<std::uint32_t> numbers_;
  std::size_t known_ = 0;
};

}  // namespace orla::ingest
