// The compression of Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory Time Series Database" (VLDB 2015),
// section 4.1, to compare with: each run is a block of its own, with 32 bits of series and of length in front. Times
// are whole seconds.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/batch.h"

namespace orla::bench {

class BitWriter {
 public:
  explicit BitWriter(std::string& out) : out_(out) {}
  // The lower `count` bits, 1..64, highest first.
  void put(std::uint64_t bits, int count) {
    for (; count > 32; count -= 32) put(bits >> (count - 32) & 0xffffffff, 32);
    held_ = held_ << count | (bits & ((std::uint64_t{1} << count) - 1));
    for (in_ += count; in_ >= 8; in_ -= 8) out_.push_back(static_cast<char>(held_ >> (in_ - 8)));
  }
  void finish() {
    if (in_ > 0) put(0, 8 - in_);
  }

 private:
  std::string& out_;
  std::uint64_t held_ = 0;
  int in_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t get(int count) {
    if (count > 32) {
      const std::uint64_t high = get(count - 32);
      return high << 32 | get(32);
    }
    for (; in_ < count; in_ += 8)
      held_ = held_ << 8 | (at_ < bytes_.size() ? static_cast<std::uint8_t>(bytes_[at_]) : 0), ++at_;
    in_ -= count;
    return held_ >> in_ & ((std::uint64_t{1} << count) - 1);
  }
  void align() { in_ = 0; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint64_t held_ = 0;
  int in_ = 0;
};

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

// batch has times and values.
inline void gorilla_encode(const model::Batch& batch, std::string& out) {
  out.clear();
  for (const model::Batch::Run& run : batch.runs) {
    BitWriter to(out);
    to.put(model::index(run.series), 32);
    to.put(run.end - run.begin, 32);
    std::int64_t before = 0;
    std::int64_t delta_before = 0;
    std::uint64_t bits_before = 0;
    int leading_before = -1;
    int trailing_before = 0;
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const std::int64_t time = model::to_ns(batch.times[i]) / kSecondNs;
      const auto bits = std::bit_cast<std::uint64_t>(batch.values[i]);
      if (i == run.begin) {
        to.put(static_cast<std::uint64_t>(time), 64);
        to.put(bits, 64);
      } else {
        const std::int64_t change = time - before - delta_before;
        delta_before = time - before;
        if (change == 0) {
          to.put(0, 1);
        } else if (change >= -63 && change <= 64) {
          to.put(0b10, 2);
          to.put(static_cast<std::uint64_t>(change + 63), 7);
        } else if (change >= -255 && change <= 256) {
          to.put(0b110, 3);
          to.put(static_cast<std::uint64_t>(change + 255), 9);
        } else if (change >= -2047 && change <= 2048) {
          to.put(0b1110, 4);
          to.put(static_cast<std::uint64_t>(change + 2047), 12);
        } else {
          to.put(0b1111, 4);
          to.put(static_cast<std::uint64_t>(change), 32);
        }
        const std::uint64_t differs = bits ^ bits_before;
        if (differs == 0) {
          to.put(0, 1);
        } else {
          const int leading = std::min(31, std::countl_zero(differs));
          const int trailing = std::countr_zero(differs);
          if (leading_before >= 0 && leading >= leading_before && trailing >= trailing_before) {
            to.put(0b10, 2);
            to.put(differs >> trailing_before, 64 - leading_before - trailing_before);
          } else {
            const int meaningful = 64 - leading - trailing;
            to.put(0b11, 2);
            to.put(static_cast<std::uint64_t>(leading), 5);
            to.put(static_cast<std::uint64_t>(meaningful & 63), 6);
            to.put(differs >> trailing, meaningful);
            leading_before = leading;
            trailing_before = trailing;
          }
        }
      }
      before = time;
      bits_before = bits;
    }
    to.finish();
  }
}

// `samples` in all.
inline void gorilla_decode(std::string_view bytes, std::size_t samples, model::Batch& batch) {
  batch.clear();
  BitReader from(bytes);
  while (batch.times.size() < samples) {
    const auto series = static_cast<model::SeriesId>(from.get(32));
    const auto count = static_cast<std::uint32_t>(from.get(32));
    const auto begin = static_cast<std::uint32_t>(batch.times.size());
    batch.runs.push_back({series, begin, begin + count});
    std::int64_t time = 0;
    std::int64_t delta = 0;
    std::uint64_t bits = 0;
    int leading = 0;
    int trailing = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i == 0) {
        time = static_cast<std::int64_t>(from.get(64));
        bits = from.get(64);
      } else {
        if (from.get(1) != 0) {
          if (from.get(1) == 0) {
            delta += static_cast<std::int64_t>(from.get(7)) - 63;
          } else if (from.get(1) == 0) {
            delta += static_cast<std::int64_t>(from.get(9)) - 255;
          } else if (from.get(1) == 0) {
            delta += static_cast<std::int64_t>(from.get(12)) - 2047;
          } else {
            delta += static_cast<std::int32_t>(from.get(32));
          }
        }
        time += delta;
        if (from.get(1) != 0) {
          if (from.get(1) != 0) {
            leading = static_cast<int>(from.get(5));
            const int stored = static_cast<int>(from.get(6));
            trailing = 64 - leading - (stored == 0 ? 64 : stored);
          }
          bits ^= from.get(64 - leading - trailing) << trailing;
        }
      }
      batch.times.push_back(model::from_ns(time * kSecondNs));
      batch.values.push_back(std::bit_cast<double>(bits));
    }
    from.align();
  }
}

}  // namespace orla::bench
