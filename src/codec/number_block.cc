// The format of n numbers, 1 <= n <= 256 (n is known from elsewhere), by the first byte:
//
//   31     n zigzag varints follow: of few numbers, or very different ones
//   30     number >> shift and number & (2^shift - 1) are apart, of numbers so far from each other that a block would
//          take 32 bits each, or more than it can:
//            1 byte   shift, 1..30
//            block    of the upper parts, in the format at the head of int_block_encode.cc
//            block    of the lower parts
//   else   it begins a block of all numbers (no block of int_block_encode.cc begins with 30 or 31)
//
// The smaller one is written. Sums are modulo 2^64.
#include "codec/number_block.h"

#include <algorithm>
#include <bit>

#include "codec/bit_pack.h"
#include "codec/bit_varint.h"

namespace orla::codec {

namespace {

constexpr std::uint8_t kVarints = 31;
constexpr std::uint8_t kSplit = 30;
constexpr unsigned kLargestShift = 30;

std::size_t varint_bytes(const std::int64_t* v, std::size_t n) {
  std::size_t bytes = 1;
  for (std::size_t i = 0; i < n; ++i) bytes += signed_bytes(v[i]);
  return bytes;
}

std::uint8_t* write_varints(const std::int64_t* v, std::size_t n, std::uint8_t* out) {
  *out++ = kVarints;
  for (std::size_t i = 0; i < n; ++i) out = write_signed(out, v[i]);
  return out;
}

// The upper parts of numbers whose extent has so many bits take 24 bits at least, and 30 at most: neither they nor the
// difference to one that was rounded down needs more than a block holds. 0: there is no such shift.
unsigned shift_for(unsigned bits) {
  if (bits < kMaxWidth) return 0;
  const unsigned shift = bits < 2 * kMaxWidth ? bits - kMaxWidth + 1 : bits - kLargestShift;
  return shift > kLargestShift ? 0 : shift;
}

// Numbers with a slack behind them for a block.
class Small {
 public:
  template <typename F>
  Small(std::size_t n, F f) {
    for (std::size_t i = 0; i < n; ++i) v_[i] = static_cast<std::int32_t>(f(i));
    std::fill_n(v_ + n, kValueSlack, 0);
  }
  std::size_t write(std::size_t n, std::int64_t base, std::uint8_t* out) const {
    return block_encoder().ints(v_, n, base, out);
  }

 private:
  std::int32_t v_[kBlockValues + kValueSlack];
};

std::size_t write_split(const std::int64_t* v, std::size_t n, std::int64_t least, unsigned shift, std::uint8_t* out) {
  const std::int64_t base = least >> shift;
  const std::int64_t mask = (std::int64_t{1} << shift) - 1;
  out[0] = kSplit;
  out[1] = static_cast<std::uint8_t>(shift);
  const std::size_t upper = Small(n, [=](std::size_t i) { return (v[i] >> shift) - base; }).write(n, base, out + 2);
  return 2 + upper + Small(n, [=](std::size_t i) { return v[i] & mask; }).write(n, 0, out + 2 + upper);
}

}  // namespace

std::uint8_t* write_number_block(const std::int64_t* v, std::size_t n, std::uint8_t* out) {
  std::int64_t least = v[0];
  std::int64_t most = v[0];
  for (std::size_t i = 1; i < n; ++i) {
    least = std::min(least, v[i]);
    most = std::max(most, v[i]);
  }
  const std::uint64_t extent = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  if (extent == 0) {
    *out = static_cast<std::uint8_t>(static_cast<unsigned>(BlockKind::kFrame) * 32);
    return write_signed(out + 1, least);
  }
  const unsigned shift = shift_for(static_cast<unsigned>(std::bit_width(extent)));
  std::size_t size = 0;
  if (extent <= std::uint64_t{INT32_MAX}) {
    size = Small(n, [=](std::size_t i) { return v[i] - least; }).write(n, least, out);
    if (shift != 0 && (*out & 31) == kMaxWidth + 1) size = write_split(v, n, least, shift, out);
  } else if (shift != 0) {
    size = write_split(v, n, least, shift, out);
  } else {
    return write_varints(v, n, out);
  }
  // A varint takes a byte at least.
  if (size > n + 1 && size > varint_bytes(v, n)) return write_varints(v, n, out);
  return out + size;
}

const char* read_number_block(BlockBytes& bytes, std::size_t n, std::int64_t* out) {
  if (bytes.next == bytes.end) return "a column of numbers is missing";
  const BlockDecoder& decoder = block_decoder();
  if (*bytes.next == kVarints) {
    ++bytes.next;
    for (std::size_t i = 0; i < n; ++i)
      if (!read_signed(bytes.next, bytes.end, out[i])) return "a number is cut off or too large";
    return nullptr;
  }
  if (*bytes.next != kSplit) return decoder.times(bytes, n, 0, 1, out);
  if (bytes.end - bytes.next < 2) return "a column of numbers is cut off";
  const unsigned shift = bytes.next[1];
  if (shift == 0 || shift > kLargestShift) return "numbers are split where none are";
  bytes.next += 2;
  if (const char* wrong = decoder.times(bytes, n, 0, std::int32_t{1} << shift, out)) return wrong;
  std::int32_t lower[kBlockValues + kValueSlack];
  if (const char* wrong = decoder.ints(bytes, n, lower)) return wrong;
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(out[i]) + static_cast<std::uint64_t>(lower[i]));
  return nullptr;
}

}  // namespace orla::codec
