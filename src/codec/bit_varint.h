// Zigzag varints (see base/bytes.h) in memory that the caller knows to be large enough, for the inner loops of
// `packed`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace orla::codec {

inline constexpr std::size_t kMaxVarintBytes = 10;

// Behind what was written; kMaxVarintBytes can be written.
inline std::uint8_t* write_signed(std::uint8_t* out, std::int64_t value) {
  std::uint64_t rest = base::zigzag(value);
  if (rest < (std::uint64_t{1} << 28)) {  // without branches that depend on the length
    const auto bits = static_cast<std::uint32_t>(rest);
    const auto more = static_cast<unsigned>(std::bit_width(bits | 1) - 1) / 7;
    const std::uint32_t spread =
        (bits & 0x7f) | (bits & 0x3f80) << 1 | (bits & 0x1fc000) << 2 | (bits & 0xfe00000) << 3;
    const std::uint32_t word = spread | (0x808080U & ((1U << (8 * more)) - 1));
    std::memcpy(out, &word, sizeof word);
    return out + more + 1;
  }
  while (rest >= 0x80) {
    *out++ = static_cast<std::uint8_t>(rest) | 0x80;
    rest >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(rest);
  return out;
}

inline std::size_t signed_bytes(std::int64_t value) {
  return (static_cast<std::size_t>(std::bit_width(base::zigzag(value) | 1)) + 6) / 7;
}

// False when the bytes end before the number, or it has more than 64 bits.
inline bool read_signed(const std::uint8_t*& next, const std::uint8_t* end, std::int64_t& value) {
  std::uint32_t word = 0;
  if (end - next >= static_cast<std::ptrdiff_t>(sizeof word)) {
    std::memcpy(&word, next, sizeof word);
    const std::uint32_t last = ~word & 0x80808080U;
    if (last != 0) {
      const auto bits_of_bytes = static_cast<unsigned>(std::countr_zero(last)) + 1;
      word &= static_cast<std::uint32_t>((std::uint64_t{1} << bits_of_bytes) - 1);
      next += bits_of_bytes / 8;
      value = base::unzigzag((word & 0x7f) | (word & 0x7f00) >> 1 | (word & 0x7f0000) >> 2 | (word & 0x7f000000) >> 3);
      return true;
    }
  }
  std::uint64_t bits = 0;
  for (unsigned shift = 0; shift < 64 && next != end; shift += 7) {
    const std::uint8_t byte = *next++;
    if (shift == 63 && byte > 1) return false;
    bits |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      value = base::unzigzag(bits);
      return true;
    }
  }
  return false;
}

}  // namespace orla::codec
