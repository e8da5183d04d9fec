// Blocks of up to 256 integers as bits: what the frames of `packed` are made of. The format is at the head of
// int_block_encode.cc. Encoder and decoder are compiled for several instruction sets (Highway) and chosen at run time;
// all give the same bytes and the same values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orla::codec {

inline constexpr std::size_t kBlockValues = 256;
// What an encoder may touch behind `out`.
inline constexpr std::size_t kBlockRoom = 8 * kBlockValues + 128;
// Places behind the n values of a block that a decoder may write and an encoder read.
inline constexpr std::size_t kValueSlack = 16;

// Kinds, in the upper three bits of a block's first byte; the lower five say the width.
enum class BlockKind : std::uint8_t {
  kFrame = 0,         // the least value, and how much each is above it
  kFramePatched = 1,  // the same with exceptions
  kDelta = 2,         // the first value, the least difference, and how much each difference is above it
  kDeltaPatched = 3,
  kZigzag = 4,  // the first value, and differences of either sign
  kZigzagPatched = 5,
  kRaw = 6,   // 8 bytes each
  kWide = 7,  // as kDelta, but the values may be further than 2^31 from the first
};

// 1 <= n <= kBlockValues. Returns the bytes written to `out`, which has kBlockRoom.
struct BlockEncoder {
  // Block of base + v[i], without overflow; kValueSlack places behind v[n - 1] are readable. kFrame or, where a look
  // at some of them promises less, differences; patched when that is cheaper.
  std::size_t (*ints)(const std::int32_t* v, std::size_t n, std::int64_t base, std::uint8_t* out);
  // The same for values that follow each other closely, as times do, and are less than 2^31 apart: differences at once.
  std::size_t (*steps)(const std::int32_t* v, std::size_t n, std::int64_t base, std::uint8_t* out);
};

struct IntConverter {
  // v[i] = (t[i] - t[0]) / unit, if each is a whole number in [-2^30, 2^30): then true. 1 <= unit < 2^31.
  bool (*offsets)(const std::int64_t* t, std::size_t n, std::int32_t unit, std::int32_t* v);
  // v[i] = x[i] * unit, if each x[i] is the double nearest to v[i] / unit (and not -0.0) and |v[i]| < 2^31: then true.
  // unit is a power of ten up to 1e15. Any n.
  bool (*decimals)(const double* x, std::size_t n, double unit, std::int32_t* v);
};

// Bytes of a block; `next` moves behind what was read. Nothing behind `end` is touched.
struct BlockBytes {
  const std::uint8_t* next;
  const std::uint8_t* end;
};

// Every function writes n values (up to kValueSlack more places hold anything afterwards) and returns what is wrong
// with the bytes, or null.
struct BlockDecoder {
  // The lower 32 bits; neither kRaw nor kWide.
  const char* (*ints)(BlockBytes& bytes, std::size_t n, std::int32_t* out);
  // reference + value * unit; of kRaw the value itself. 1 <= unit < 2^31.
  const char* (*times)(BlockBytes& bytes, std::size_t n, std::int64_t reference, std::int32_t unit, std::int64_t* out);
  // value / unit; of kRaw the bits of a double.
  const char* (*doubles)(BlockBytes& bytes, std::size_t n, double unit, double* out);
  // start + i * step. Any n.
  void (*paced)(std::int64_t start, std::int64_t step, std::size_t n, std::int64_t* out);
};

// Of the best instruction set of this machine.
const BlockEncoder& block_encoder();
const IntConverter& int_converter();
const BlockDecoder& block_decoder();

// kWide, or 0 where the differences do not allow it.
std::size_t encode_wide_block(const std::int64_t* v, std::size_t n, std::uint8_t* out);
// kRaw, of any words of 8 bytes.
std::size_t encode_raw_block(const void* words, std::size_t n, std::uint8_t* out);

}  // namespace orla::codec
