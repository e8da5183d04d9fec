// Zigzag varints (see base/bytes.h) in memory that the caller knows to be large enough, for the inner loops of
// `packed`.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace orla::codec {

inline constexpr std::size_t kMaxVarintBytes = 10;

// Behind what was written.
inline std::uint8_t* write_signed(std::uint8_t* out, std::int64_t value) {
  std::uint64_t rest = base::zigzag(value);
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
  if (next != end && *next < 0x80) {
    value = base::unzigzag(*next++);
    return true;
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
