// Numbers of a few bits behind each other, one at a time; see int_block_encode.cc for the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace orla::codec {

inline constexpr unsigned kMaxWidth = 25;  // beyond, 32

inline unsigned stored_width(unsigned width) { return width > kMaxWidth ? 32 : width; }
inline unsigned width_code(unsigned width) { return width > kMaxWidth ? kMaxWidth + 1 : width; }
inline std::size_t packed_bytes(std::size_t n, unsigned width) { return (n * width + 7) / 8; }

// The lower `width` bits, 0..kMaxWidth, of each. Touches up to 8 bytes more.
inline void pack_bits(const std::uint32_t* x, std::size_t n, unsigned width, std::uint8_t* out) {
  const std::uint32_t mask = (std::uint32_t{1} << width) - 1;
  std::uint64_t bits = 0;
  unsigned held = 0;
  for (std::size_t i = 0; i < n; ++i) {
    bits |= static_cast<std::uint64_t>(x[i] & mask) << held;
    held += width;
    if (held >= 32) {
      const auto word = static_cast<std::uint32_t>(bits);
      std::memcpy(out, &word, 4);
      out += 4;
      bits >>= 32;
      held -= 32;
    }
  }
  std::memcpy(out, &bits, 8);
}

}  // namespace orla::codec
