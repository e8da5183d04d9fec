// Decoder of the blocks whose format is at the head of int_block_encode.cc.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/int_block_decode.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"
// Above: what is compiled once per instruction set includes itself again.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/bit_pack.h"
#include "codec/bit_varint.h"
#include "codec/int_block.h"
#include "hwy/highway.h"

#ifndef ORLA_CODEC_LANE_TABLE
#define ORLA_CODEC_LANE_TABLE
namespace orla::codec {
namespace {

// Read behind the packed bits, at most.
constexpr std::size_t kReadSlack = 32;

// Where 4 numbers of a width lie in 16 bytes: which 4 bytes go into each lane, and by how much they are shifted. Half 0
// begins at a byte, half 1 where the first four end: `width` / 2 bytes on, and 4 bits when the width is odd.
struct LaneTable {
  alignas(16) std::uint8_t bytes[kMaxWidth + 1][2][16] = {};
  alignas(16) std::uint32_t shift[kMaxWidth + 1][2][4] = {};
  constexpr LaneTable() {
    for (unsigned width = 0; width <= kMaxWidth; ++width) {
      for (unsigned half = 0; half < 2; ++half) {
        for (unsigned lane = 0; lane < 4; ++lane) {
          const unsigned bit = (half * width * 4) % 8 + lane * width;
          shift[width][half][lane] = bit % 8;
          for (unsigned k = 0; k < 4; ++k) bytes[width][half][4 * lane + k] = static_cast<std::uint8_t>(bit / 8 + k);
        }
      }
    }
  }
};
constexpr LaneTable kLanes;

}  // namespace
}  // namespace orla::codec
#endif

HWY_BEFORE_NAMESPACE();
namespace orla::codec {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

// out[i] = add + number i; reads up to kReadSlack bytes behind the numbers, writes up to 7 places behind them.
HWY_INLINE void unpack(const std::uint8_t* in, std::size_t n, unsigned width, std::uint32_t add, std::uint32_t* out) {
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t bit = i * width;
    std::uint64_t word = 0;
    std::memcpy(&word, in + bit / 8, sizeof word);
    out[i] = add + static_cast<std::uint32_t>((word >> (bit % 8)) & mask);
  }
}

// x[i] = sum of x[0..i] + (i + 1) * step
HWY_INLINE void running_sums(std::uint32_t* x, std::size_t n, std::uint32_t step) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) x[i] = sum += x[i] + step;
}

// The same of what zigzag folded.
HWY_INLINE void running_sums_zigzag(std::uint32_t* x, std::size_t n) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) x[i] = sum += (x[i] >> 1) ^ (0 - (x[i] & 1));
}

// out[i] = base + x[i] * unit, x signed.
HWY_INLINE void scale_times(const std::uint32_t* x, std::size_t n, std::int64_t base, std::int32_t unit,
                            std::int64_t* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(base) +
                                  static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(x[i])} * unit));
}

// out[i] = (base + x[i]) / unit, x signed.
HWY_INLINE void scale_doubles(const std::uint32_t* x, std::size_t n, double base, double unit, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = (base + static_cast<std::int32_t>(x[i])) / unit;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<std::uint32_t, 8>;
using Quad = hn::CappedTag<std::uint32_t, 4>;
using QuadBytes = hn::Repartition<std::uint8_t, Quad>;

// out[i] = add + number i; reads up to kReadSlack bytes behind the numbers, writes up to 7 places behind them.
HWY_INLINE void unpack(const std::uint8_t* in, std::size_t n, unsigned width, std::uint32_t add, std::uint32_t* out) {
  const U32 d;
  const auto plus = hn::Set(d, add);
  if (width == 0) {
    for (std::size_t i = 0; i < n; i += hn::Lanes(d)) hn::StoreU(plus, d, out + i);
    return;
  }
  if (width > kMaxWidth) {
    const hn::Repartition<std::uint8_t, U32> d8;
    for (std::size_t i = 0; i < n; i += hn::Lanes(d))
      hn::StoreU(hn::Add(hn::BitCast(d, hn::LoadU(d8, in + 4 * i)), plus), d, out + i);
    return;
  }
  const auto mask = hn::Set(d, (std::uint32_t{1} << width) - 1);
  const Quad quad;
  const QuadBytes bytes;
  const auto index0 = hn::Load(bytes, kLanes.bytes[width][0]);
  const auto index1 = hn::Load(bytes, kLanes.bytes[width][1]);
  const auto shift0 = hn::Load(quad, kLanes.shift[width][0]);
  const auto shift1 = hn::Load(quad, kLanes.shift[width][1]);
  const std::size_t middle = width / 2;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::Repartition<std::uint8_t, U32> d8;
  const auto index = hn::Combine(d8, index1, index0);
  const auto shift = hn::Combine(d, shift1, shift0);
  for (std::size_t i = 0; i < n; i += 8, in += width) {
    const auto both = hn::Combine(d8, hn::LoadU(bytes, in + middle), hn::LoadU(bytes, in));
    const auto v = hn::Shr(hn::BitCast(d, hn::TableLookupBytes(both, index)), shift);
    hn::StoreU(hn::Add(hn::And(v, mask), plus), d, out + i);
  }
#else
  for (std::size_t i = 0; i < n; i += 8, in += width) {
    const auto v0 = hn::Shr(hn::BitCast(quad, hn::TableLookupBytes(hn::LoadU(bytes, in), index0)), shift0);
    const auto v1 = hn::Shr(hn::BitCast(quad, hn::TableLookupBytes(hn::LoadU(bytes, in + middle), index1)), shift1);
    hn::StoreU(hn::Add(hn::And(v0, mask), plus), quad, out + i);
    hn::StoreU(hn::Add(hn::And(v1, mask), plus), quad, out + i + 4);
  }
#endif
}

// x[i] = sum of x[0..i] + (i + 1) * step
HWY_INLINE void running_sums(std::uint32_t* x, std::size_t n, std::uint32_t step) {
  const Quad d;
  const auto more = hn::Set(d, step);
  auto before = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += 4) {
    auto v = hn::Add(hn::LoadU(d, x + i), more);
    v = hn::Add(v, hn::ShiftLeftLanes<1>(v));
    v = hn::Add(v, hn::ShiftLeftLanes<2>(v));
    v = hn::Add(v, before);
    hn::StoreU(v, d, x + i);
    before = hn::Broadcast<3>(v);
  }
}

// The same of what zigzag folded.
HWY_INLINE void running_sums_zigzag(std::uint32_t* x, std::size_t n) {
  const Quad d;
  const auto one = hn::Set(d, 1);
  auto before = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += 4) {
    const auto folded = hn::LoadU(d, x + i);
    auto v = hn::Xor(hn::ShiftRight<1>(folded), hn::Sub(hn::Zero(d), hn::And(folded, one)));
    v = hn::Add(v, hn::ShiftLeftLanes<1>(v));
    v = hn::Add(v, hn::ShiftLeftLanes<2>(v));
    v = hn::Add(v, before);
    hn::StoreU(v, d, x + i);
    before = hn::Broadcast<3>(v);
  }
}

// out[i] = base + x[i] * unit, x signed.
HWY_INLINE void scale_times(const std::uint32_t* x, std::size_t n, std::int64_t base, std::int32_t unit,
                            std::int64_t* out) {
  const hn::CappedTag<std::int64_t, 4> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Repartition<std::int32_t, decltype(d)> dw;
  const auto from = hn::Set(d, base);
  const auto units = hn::Set(dw, unit);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto count = hn::PromoteTo(d, hn::LoadU(di, reinterpret_cast<const std::int32_t*>(x) + i));
    hn::StoreU(hn::Add(from, hn::MulEven(hn::BitCast(dw, count), units)), d, out + i);
  }
}

// out[i] = (base + x[i]) / unit, x signed.
HWY_INLINE void scale_doubles(const std::uint32_t* x, std::size_t n, double base, double unit, double* out) {
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const auto from = hn::Set(d, base);
  const auto units = hn::Set(d, unit);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto above = hn::PromoteTo(d, hn::LoadU(di, reinterpret_cast<const std::int32_t*>(x) + i));
    hn::StoreU(hn::Div(hn::Add(from, above), units), d, out + i);
  }
}

#endif

// As unpack(), without reading behind `end`. False when the numbers do not end before it.
HWY_INLINE bool unpack_within(BlockBytes& from, std::size_t n, unsigned width, std::uint32_t add, std::uint32_t* out) {
  const std::size_t bytes = packed_bytes(n, width);
  const auto left = static_cast<std::size_t>(from.end - from.next);
  if (HWY_UNLIKELY(left < bytes + kReadSlack)) {
    if (left < bytes) return false;
    std::uint8_t copy[4 * kBlockValues + kReadSlack];
    std::memcpy(copy, from.next, bytes);
    std::memset(copy + bytes, 0, kReadSlack);
    unpack(copy, n, width, add, out);
  } else {
    unpack(from.next, n, width, add, out);
  }
  from.next += bytes;
  return true;
}

HWY_INLINE bool read_width(std::uint8_t code, unsigned& width) {
  width = code == kMaxWidth + 1 ? 32 : code;
  return code <= kMaxWidth + 1;
}

// Numbers and their exceptions: out[i] = add + number i.
HWY_INLINE const char* read_numbers(BlockBytes& from, std::size_t n, unsigned width, std::uint32_t add,
                                    std::uint32_t* out, std::uint32_t patched) {
  if (HWY_UNLIKELY(!unpack_within(from, n, width, add, out))) return "a block is cut off";
  if (!patched) return nullptr;
  if (from.end - from.next < 2) return "the exceptions of a block are cut off";
  const std::size_t exceptions = from.next[0];
  unsigned upper = 0;
  if (!read_width(from.next[1], upper)) return "the width of the exceptions is above 32 bits";
  if (exceptions == 0 || width > kMaxWidth) return "the exceptions of a block do not add up";
  from.next += 2;
  if (static_cast<std::size_t>(from.end - from.next) < exceptions) return "the exceptions of a block are cut off";
  const std::uint8_t* const where = from.next;
  from.next += exceptions;
  std::uint32_t high[kBlockValues + kValueSlack];
  if (!unpack_within(from, exceptions, upper, 0, high)) return "the exceptions of a block are cut off";
  std::uint8_t last = 0;
  for (std::size_t k = 0; k < exceptions; ++k) last = std::max(last, where[k]);
  if (last >= n) return "an exception lies outside of its block";
  for (std::size_t k = 0; k < exceptions; ++k) out[where[k]] += high[k] << width;
  return nullptr;
}

struct Header {
  BlockKind kind;
  unsigned width;
  std::int64_t base;
};

HWY_INLINE const char* read_header(BlockBytes& from, Header& header) {
  if (from.next == from.end) return "a block is missing";
  const std::uint8_t first = *from.next++;
  header.kind = static_cast<BlockKind>(first >> 5);
  if (!read_width(first & 31, header.width)) return "the width of a block is above 32 bits";
  if (header.kind == BlockKind::kRaw) return header.width == 0 ? nullptr : "a raw block has a width";
  return read_signed(from.next, from.end, header.base) ? nullptr : "the base of a block is cut off or too large";
}

// x[i] = value i - base + add modulo 2^32, of a block that is neither kRaw nor kWide.
HWY_INLINE const char* read_values(BlockBytes& from, const Header& header, std::size_t n, std::uint32_t add,
                                   std::uint32_t* x) {
  const std::uint32_t patched = static_cast<std::uint32_t>(header.kind) & 1;
  if (static_cast<unsigned>(header.kind) <= static_cast<unsigned>(BlockKind::kFramePatched))
    return read_numbers(from, n, header.width, add, x, patched);
  if (static_cast<unsigned>(header.kind) <= static_cast<unsigned>(BlockKind::kDeltaPatched)) {
    std::int64_t step = 0;
    if (!read_signed(from.next, from.end, step)) return "the step of a block is cut off or too large";
    const char* wrong = read_numbers(from, n - 1, header.width, 0, x + 1, patched);
    if (wrong != nullptr) return wrong;
    x[0] = add - static_cast<std::uint32_t>(step);
    running_sums(x, n, static_cast<std::uint32_t>(step));
    return nullptr;
  }
  const char* wrong = read_numbers(from, n - 1, header.width, 0, x + 1, patched);
  if (wrong != nullptr) return wrong;
  x[0] = (add << 1) ^ (0 - (add >> 31));
  running_sums_zigzag(x, n);
  return nullptr;
}

const char* decode_ints(BlockBytes& bytes, std::size_t n, std::int32_t* out) {
  Header header;
  const char* wrong = read_header(bytes, header);
  if (wrong != nullptr) return wrong;
  if (header.kind == BlockKind::kRaw || header.kind == BlockKind::kWide) return "a block of 64 bits stands among 32";
  return read_values(bytes, header, n, static_cast<std::uint32_t>(header.base), reinterpret_cast<std::uint32_t*>(out));
}

// Values of kRaw and kWide.
const char* read_long(BlockBytes& from, const Header& header, std::size_t n, std::int64_t* out) {
  if (header.kind == BlockKind::kRaw) {
    if (static_cast<std::size_t>(from.end - from.next) < 8 * n) return "a raw block is cut off";
    std::memcpy(out, from.next, 8 * n);
    from.next += 8 * n;
    return nullptr;
  }
  std::int64_t step = 0;
  if (!read_signed(from.next, from.end, step)) return "the step of a block is cut off or too large";
  std::uint32_t x[kBlockValues + kValueSlack];
  if (!unpack_within(from, n - 1, header.width, 0, x)) return "a block is cut off";
  auto sum = static_cast<std::uint64_t>(header.base);
  out[0] = header.base;
  for (std::size_t i = 1; i < n; ++i) {
    sum += x[i - 1] + static_cast<std::uint64_t>(step);
    out[i] = static_cast<std::int64_t>(sum);
  }
  return nullptr;
}

const char* decode_times(BlockBytes& bytes, std::size_t n, std::int64_t reference, std::int32_t unit,
                         std::int64_t* out) {
  Header header;
  const char* wrong = read_header(bytes, header);
  if (wrong != nullptr) return wrong;
  const auto scaled = [&](std::int64_t value) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(reference) +
                                     static_cast<std::uint64_t>(value) * static_cast<std::uint64_t>(unit));
  };
  if (header.kind == BlockKind::kRaw) return read_long(bytes, header, n, out);
  if (header.kind == BlockKind::kWide) {
    wrong = read_long(bytes, header, n, out);
    if (wrong != nullptr) return wrong;
    for (std::size_t i = 0; i < n; ++i) out[i] = scaled(out[i]);
    return nullptr;
  }
  HWY_ALIGN std::uint32_t x[kBlockValues + kValueSlack];
  wrong = read_values(bytes, header, n, 0, x);
  if (wrong != nullptr) return wrong;
  scale_times(x, n, scaled(header.base), unit, out);
  return nullptr;
}

const char* decode_doubles(BlockBytes& bytes, std::size_t n, double unit, double* out) {
  Header header;
  const char* wrong = read_header(bytes, header);
  if (wrong != nullptr) return wrong;
  if (header.kind == BlockKind::kRaw || header.kind == BlockKind::kWide) {
    std::int64_t values[kBlockValues];
    wrong = read_long(bytes, header, n, values);
    if (wrong != nullptr) return wrong;
    if (header.kind == BlockKind::kRaw) {
      std::memcpy(out, values, 8 * n);
    } else {
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(values[i]) / unit;
    }
    return nullptr;
  }
  HWY_ALIGN std::uint32_t x[kBlockValues + kValueSlack];
  wrong = read_values(bytes, header, n, 0, x);
  if (wrong != nullptr) return wrong;
  scale_doubles(x, n, static_cast<double>(header.base), unit, out);
  return nullptr;
}

void decode_paced(std::int64_t start, std::int64_t step, std::size_t n, std::int64_t* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + i * static_cast<std::uint64_t>(step));
}

}  // namespace

const BlockDecoder* decoder() {
  static constexpr BlockDecoder kDecoder{decode_ints, decode_times, decode_doubles, decode_paced};
  return &kDecoder;
}

}  // namespace HWY_NAMESPACE
}  // namespace orla::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::codec {

HWY_EXPORT(decoder);
const BlockDecoder& block_decoder() { return *HWY_DYNAMIC_DISPATCH(decoder)(); }

}  // namespace orla::codec
#endif
