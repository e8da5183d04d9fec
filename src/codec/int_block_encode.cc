// The format of a block of n integers, 1 <= n <= 256 (n is known from elsewhere):
//
//   1 byte      kind * 32 + width; kinds in int_block.h; width 0..25, or 26 for 32 bits
//   kFrame      base, bits(value - base, n)                          base: the least value
//   kDelta      base, step, bits(value - previous - step, n - 1)     base: the first value; step: the least difference
//   kZigzag     base, bits(zigzag(value - previous), n - 1)          base: the first value
//   kWide       as kDelta; the differences, not the values' distance to the first, are below 2^32
//   kRaw        n words of 8 bytes, little-endian; the width is 0
//
// base and step are zigzag varints of 64 bits. bits(x, m) packs m numbers of `width` bits, least significant first, one
// behind the other without gaps, into ceil(m * width / 8) bytes; unused bits are zero. (8 numbers fill `width` bytes,
// so 8 lanes read theirs with one shuffle and one shift each, for any width up to 25.)
//
// A patched kind holds numbers that need more than `width` bits: their lower bits are among the others, and there
// follow
//
//   1 byte      exceptions, 1..255
//   1 byte      width of their upper bits, coded as above
//   1 byte each where: the position among the packed numbers
//   bits(number >> width, exceptions)
//
// Literature: frame of reference (Goldstein, Ramakrishnan, Shaft 1998), patched: Zukowski et al., "Super-scalar RAM-CPU
// cache compression" (ICDE 2006); widths chosen by cost as in Lemire and Boytsov, "Decoding billions of integers per
// second through vectorization" (2015); decimals as integers as in Afroozeh, Kuffo and Boncz, "ALP" (SIGMOD 2023).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/int_block_encode.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"
// Above: what is compiled once per instruction set includes itself again.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/bit_varint.h"
#include "codec/int_block.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace orla::codec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<std::uint32_t, 8>;
using I32 = hn::RebindToSigned<U32>;
using U8 = hn::CappedTag<std::uint8_t, 32>;

constexpr unsigned kMaxWidth = 25;    // beyond, 32
constexpr std::size_t kPadding = 32;  // zeros behind the numbers of a block
constexpr std::size_t kNumbers = kBlockValues + kPadding;

HWY_INLINE unsigned stored_width(unsigned width) { return width > kMaxWidth ? 32 : width; }
HWY_INLINE unsigned width_code(unsigned width) { return width > kMaxWidth ? kMaxWidth + 1 : width; }
HWY_INLINE std::size_t packed_bytes(std::size_t n, unsigned width) { return (n * width + 7) / 8; }

// The lower `width` bits of x[0..n); x is readable, and zero, up to the next multiple of 8. Touches up to 8 bytes more.
HWY_INLINE void pack(const std::uint32_t* x, std::size_t n, unsigned width, std::uint8_t* out) {
  if (width == 0) return;
  if (width > kMaxWidth) {
    std::memcpy(out, x, 4 * n);
    return;
  }
  const std::uint32_t mask = (std::uint32_t{1} << width) - 1;
  if (width > 15 || HWY_TARGET == HWY_SCALAR) {
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
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  const U32 d;
  const hn::Repartition<std::uint64_t, U32> d64;
  const auto low = hn::Set(d, mask);
  const auto pair = hn::Set(d64, (std::uint64_t{1} << (2 * width)) - 1);
  const unsigned odd = (width & 1) * 4;
  HWY_ALIGN std::uint64_t pairs[4];
  for (std::size_t i = 0; i < n; i += 8) {
    for (std::size_t k = 0; k < 8; k += hn::Lanes(d)) {
      const auto v = hn::BitCast(d64, hn::And(hn::LoadU(d, x + i + k), low));
      hn::Store(hn::And(hn::Or(v, hn::ShiftRightSame(v, static_cast<int>(32 - width))), pair), d64, pairs + k / 2);
    }
    const std::uint64_t four = pairs[0] | (pairs[1] << (2 * width));
    const std::uint64_t next = pairs[2] | (pairs[3] << (2 * width));
    const std::uint64_t joined = (next << odd) | (four >> (4 * width - odd));
    std::memcpy(out, &four, 8);
    std::memcpy(out + width / 2, &joined, 8);
    out += width;
  }
#endif
}

// The numbers of a block, and zeros behind them.
struct Numbers {
  HWY_ALIGN std::uint32_t x[kNumbers];
  std::size_t n = 0;
  std::uint32_t most = 0;

  HWY_INLINE void zero_padding() {
    const U32 d;
    for (std::size_t i = 0; i < kPadding; i += hn::Lanes(d)) hn::StoreU(hn::Zero(d), d, x + n + i);
  }
};

struct Choice {
  unsigned width = 0;
  unsigned top = 0;  // bits of the largest number
  std::size_t exceptions = 0;
  std::size_t bytes = 0;
};

#if HWY_TARGET == HWY_SCALAR

// widths[i] = bits of x[i].
HWY_INLINE void bit_widths(const Numbers& numbers, std::uint8_t* widths) {
  for (std::size_t i = 0; i < numbers.n; ++i) widths[i] = static_cast<std::uint8_t>(std::bit_width(numbers.x[i]));
}

HWY_INLINE std::size_t count_wider(const std::uint8_t* widths, std::size_t n, unsigned width) {
  std::size_t wider = 0;
  for (std::size_t i = 0; i < n; ++i) wider += widths[i] > width ? 1 : 0;
  return wider;
}

#else

// widths[i] = bits of x[i], where 31 stands for 32 too, up to the next multiple of the bytes in a vector.
HWY_INLINE void bit_widths(const Numbers& numbers, std::uint8_t* widths) {
  const U32 d;
  const I32 di;
  const hn::Rebind<float, U32> df;
  const hn::Rebind<std::uint8_t, U32> d8;
  const auto most = hn::Set(d, 0x40000000);
  const auto bias = hn::Set(d, 126);
  const std::size_t end = (numbers.n + hn::Lanes(U8()) - 1) / hn::Lanes(U8()) * hn::Lanes(U8());
  for (std::size_t i = 0; i < end; i += hn::Lanes(d)) {
    const auto v = hn::Min(hn::LoadU(d, numbers.x + i), most);
    // Without two neighbouring ones the conversion cannot round up to the next power of two.
    const auto sparse = hn::AndNot(hn::ShiftRight<1>(v), v);
    const auto exponent = hn::ShiftRight<23>(hn::BitCast(d, hn::ConvertTo(df, hn::BitCast(di, sparse))));
    const auto width = hn::Sub(hn::Max(exponent, bias), bias);
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, width)), d8, widths + i);
  }
}

HWY_INLINE std::size_t count_wider(const std::uint8_t* widths, std::size_t n, unsigned width) {
  const U8 d;
  const hn::RebindToSigned<U8> di;
  const hn::Repartition<std::uint64_t, U8> d64;
  const auto than = hn::Set(di, static_cast<std::int8_t>(width));
  auto wider = hn::Zero(di);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto v = hn::BitCast(di, hn::LoadU(d, widths + i));
    wider = hn::Sub(wider, hn::VecFromMask(di, hn::Gt(v, than)));
  }
  return hn::GetLane(hn::SumOfLanes(d64, hn::SumsOf8(hn::BitCast(d, wider))));
}

#endif

HWY_INLINE Choice choose(const Numbers& numbers) {
  Choice best;
  best.top = static_cast<unsigned>(std::bit_width(numbers.most));
  best.width = stored_width(best.top);
  best.bytes = packed_bytes(numbers.n, best.width);
  if (best.top == 0) return best;
  HWY_ALIGN std::uint8_t widths[kNumbers];
  bit_widths(numbers, widths);
  for (unsigned width = std::min(best.top, kMaxWidth + 1); width-- > 0;) {
    const std::size_t wider = count_wider(widths, numbers.n, width);
    if (wider + 2 >= best.bytes || wider > 255) break;  // more of them cost more
    const std::size_t bytes =
        packed_bytes(numbers.n, width) + 2 + wider + packed_bytes(wider, stored_width(best.top - width));
    if (bytes < best.bytes) best = {width, best.top, wider, bytes};
  }
  return best;
}

// Behind what was written.
HWY_INLINE std::uint8_t* write_numbers(const Numbers& numbers, const Choice& choice, std::uint8_t* out) {
  pack(numbers.x, numbers.n, choice.width, out);
  out += packed_bytes(numbers.n, choice.width);
  if (choice.exceptions == 0) return out;
  const unsigned upper = choice.top - choice.width;
  *out++ = static_cast<std::uint8_t>(choice.exceptions);
  *out++ = static_cast<std::uint8_t>(width_code(upper));
  Numbers high;
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < numbers.n; ++i) {
    if (numbers.x[i] >> choice.width == 0) continue;
    *out++ = static_cast<std::uint8_t>(i);
    high.x[high.n++] = numbers.x[i] >> choice.width;
  }
#else
  const U32 d;
  const auto most = hn::Set(d, (std::uint32_t{1} << choice.width) - 1);
  for (std::size_t i = 0; i < numbers.n; i += hn::Lanes(d)) {
    std::uint8_t mask[8] = {};
    hn::StoreMaskBits(d, hn::Gt(hn::LoadU(d, numbers.x + i), most), mask);
    for (unsigned bits = mask[0]; bits != 0; bits &= bits - 1) {
      const std::size_t at = i + static_cast<unsigned>(std::countr_zero(bits));
      *out++ = static_cast<std::uint8_t>(at);
      high.x[high.n++] = numbers.x[at] >> choice.width;
    }
  }
#endif
  high.zero_padding();
  pack(high.x, high.n, stored_width(upper), out);
  return out + packed_bytes(high.n, stored_width(upper));
}

HWY_INLINE std::uint8_t* write_header(BlockKind kind, const Choice& choice, std::int64_t base, std::uint8_t* out) {
  const unsigned code = static_cast<unsigned>(kind) + (choice.exceptions != 0 ? 1 : 0);
  *out++ = static_cast<std::uint8_t>(code * 32 + width_code(choice.width));
  return write_signed(out, base);
}

struct Extent {
  std::int32_t least;
  std::int32_t most;
};

// Of f(i) for i in [0, n); f gives a vector from any i on that has as many places left.
template <typename F>
HWY_INLINE Extent extent(std::size_t n, F f, std::int32_t first) {
  const I32 d;
  const std::size_t lanes = hn::Lanes(d);
  auto least = hn::Set(d, first);
  auto most = least;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = f(i);
    least = hn::Min(least, v);
    most = hn::Max(most, v);
  }
  if (i < n) {  // the last ones, some of them again
    const auto v = f(n - lanes);
    least = hn::Min(least, v);
    most = hn::Max(most, v);
  }
  return {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
}

std::size_t encode_ints(const std::int32_t* v, std::size_t n, std::int64_t base, std::uint8_t* out) {
  const I32 d;
  const U32 du;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN std::int32_t few[16];
  if (n < lanes + 1) {  // too few for a vector of differences: repeat the last one
    for (std::size_t i = 0; i < 16; ++i) few[i] = v[std::min(i, n - 1)];
    v = few;
  }
  const std::uint8_t* const begin = out;
  const auto value_at = [&](std::size_t i) HWY_ATTR { return hn::LoadU(d, v + i); };
  const Extent values = extent(std::max(n, lanes), value_at, v[0]);
  Numbers frame;
  frame.n = n;
  frame.most = static_cast<std::uint32_t>(values.most) - static_cast<std::uint32_t>(values.least);
  if (frame.most == 0) return static_cast<std::size_t>(write_header(BlockKind::kFrame, {}, base + v[0], out) - begin);

  std::size_t i = 0;
  const auto least = hn::Set(d, values.least);
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::BitCast(du, hn::Sub(value_at(i), least)), du, frame.x + i);
  for (; i < n; ++i) frame.x[i] = static_cast<std::uint32_t>(v[i]) - static_cast<std::uint32_t>(values.least);
  frame.zero_padding();
  const Choice framed = choose(frame);
  const std::size_t frame_cost = framed.bytes + signed_bytes(base + values.least);

  // Differences of neighbours fit into 32 bits when the values are less than 2^31 apart.
  if (n > 2 && frame.most < (std::uint32_t{1} << 31)) {
    const auto step_at = [&](std::size_t k) HWY_ATTR { return hn::Sub(hn::LoadU(d, v + k + 1), hn::LoadU(d, v + k)); };
    Extent steps{v[1] - v[0], v[1] - v[0]};
    if (n > lanes) {
      steps = extent(n - 1, step_at, v[1] - v[0]);
    } else {
      for (std::size_t k = 2; k < n; ++k)
        steps = {std::min(steps.least, v[k] - v[k - 1]), std::max(steps.most, v[k] - v[k - 1])};
    }
    Numbers deltas;
    deltas.n = n - 1;
    const bool rising = steps.least >= 0 || steps.least == steps.most;
    std::size_t k = 0;
    if (rising) {
      deltas.most = static_cast<std::uint32_t>(steps.most) - static_cast<std::uint32_t>(steps.least);
      const auto step = hn::Set(d, steps.least);
      for (; k + lanes <= deltas.n; k += lanes)
        hn::StoreU(hn::BitCast(du, hn::Sub(step_at(k), step)), du, deltas.x + k);
      for (; k < deltas.n; ++k) deltas.x[k] = static_cast<std::uint32_t>(v[k + 1] - v[k] - steps.least);
    } else {
      const auto zigzag = [](std::int32_t s) {
        return (static_cast<std::uint32_t>(s) << 1) ^ static_cast<std::uint32_t>(s >> 31);
      };
      deltas.most = std::max(zigzag(steps.least), zigzag(steps.most));
      for (; k + lanes <= deltas.n; k += lanes) {
        const auto s = step_at(k);
        const auto folded = hn::Xor(hn::ShiftLeft<1>(s), hn::ShiftRight<31>(s));
        hn::StoreU(hn::BitCast(du, folded), du, deltas.x + k);
      }
      for (; k < deltas.n; ++k) deltas.x[k] = zigzag(v[k + 1] - v[k]);
    }
    deltas.zero_padding();
    const Choice chosen = choose(deltas);
    const std::size_t cost = chosen.bytes + signed_bytes(base + v[0]) + (rising ? signed_bytes(steps.least) : 0);
    if (cost + n / 64 < frame_cost) {  // running sums cost the decoder some time
      out = write_header(rising ? BlockKind::kDelta : BlockKind::kZigzag, chosen, base + v[0], out);
      if (rising) out = write_signed(out, steps.least);
      return static_cast<std::size_t>(write_numbers(deltas, chosen, out) - begin);
    }
  }
  out = write_header(BlockKind::kFrame, framed, base + values.least, out);
  return static_cast<std::size_t>(write_numbers(frame, framed, out) - begin);
}

bool offsets(const std::int64_t* t, std::size_t n, std::int32_t unit, std::int32_t* v) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::int64_t, 4> d;
  const hn::Rebind<double, decltype(d)> df;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Repartition<std::int32_t, decltype(d)> dw;
  const std::size_t lanes = hn::Lanes(d);
  const auto first = hn::Set(d, t[0]);
  const auto units = hn::Set(dw, unit);
  const auto inverse = hn::Set(df, 1.0 / unit);
  const auto limit = hn::Set(df, 1 << 30);
  auto differs = hn::Zero(d);
  auto close = hn::Eq(inverse, inverse);
  for (; i + lanes <= n; i += lanes) {
    const auto distance = hn::Sub(hn::LoadU(d, t + i), first);
    const auto count = hn::Round(hn::Mul(hn::ConvertTo(df, distance), inverse));
    const auto whole = hn::DemoteTo(di, count);
    close = hn::And(close, hn::Lt(hn::Abs(count), limit));
    differs = hn::Or(differs, hn::Xor(distance, hn::MulEven(hn::BitCast(dw, hn::PromoteTo(d, whole)), units)));
    hn::StoreU(whole, di, v + i);
  }
  if (!hn::AllTrue(df, close) || !hn::AllTrue(d, hn::Eq(differs, hn::Zero(d)))) return false;
#endif
  for (; i < n; ++i) {
    const auto distance =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(t[i]) - static_cast<std::uint64_t>(t[0]));
    const std::int64_t count = distance / unit;
    if (count * unit != distance || count >= (1 << 30) || count <= -(1 << 30)) return false;
    v[i] = static_cast<std::int32_t>(count);
  }
  return true;
}

bool decimals(const double* x, std::size_t n, double unit, std::int32_t* v) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<std::uint64_t, decltype(d)> du;
  const std::size_t lanes = hn::Lanes(d);
  const auto units = hn::Set(d, unit);
  const auto limit = hn::Set(d, 2147483647.0);
  const auto minus_zero = hn::Set(du, std::uint64_t{1} << 63);
  auto good = hn::Eq(units, units);
#if HWY_NATIVE_FMA
  // x is the double nearest to v / unit when |x - v / unit| is below half the distance of the doubles around x,
  // 2^(e-53) with e the exponent of x; times unit: |x * unit - v| <= unit * 2^(e-53), where the left side is rounded
  // once. Equality is v = 0 only: a tie would need v >= 2^53. Where x is a power of two, and the doubles below it
  // closer, x * unit is a multiple of more than the bound unless it is v.
  const auto exponent = hn::Set(du, std::uint64_t{0x7ff} << 52);
  const auto half = hn::Set(d, unit * 0x1p-53);
#endif
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(d, x + i);
    const auto large = hn::Mul(value, units);
    const auto whole = hn::Round(large);
    good = hn::And(good, hn::Lt(hn::Abs(large), limit));
#if HWY_NATIVE_FMA
    const auto bound = hn::Mul(hn::BitCast(d, hn::And(hn::BitCast(du, value), exponent)), half);
    good = hn::And(good, hn::Le(hn::Abs(hn::MulSub(value, units, whole)), bound));
#else
    good = hn::And(good, hn::Eq(hn::Div(whole, units), value));
#endif
    good = hn::And(good, hn::RebindMask(d, hn::Ne(hn::BitCast(du, value), minus_zero)));
    hn::StoreU(hn::DemoteTo(di, whole), di, v + i);
  }
  if (!hn::AllTrue(d, good)) return false;
#endif
  for (; i < n; ++i) {
    const double large = x[i] * unit;
    if (!(large < 2147483647.0 && large > -2147483647.0)) return false;
    v[i] = static_cast<std::int32_t>(large < 0 ? large - 0.5 : large + 0.5);
    if (std::bit_cast<std::uint64_t>(v[i] / unit) != std::bit_cast<std::uint64_t>(x[i])) return false;
  }
  return true;
}

}  // namespace

const BlockEncoder* encoder() {
  static constexpr BlockEncoder kEncoder{encode_ints, offsets, decimals};
  return &kEncoder;
}

}  // namespace HWY_NAMESPACE
}  // namespace orla::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::codec {

HWY_EXPORT(encoder);
const BlockEncoder& block_encoder() { return *HWY_DYNAMIC_DISPATCH(encoder)(); }

std::size_t encode_raw_block(const void* words, std::size_t n, std::uint8_t* out) {
  *out = static_cast<std::uint8_t>(static_cast<unsigned>(BlockKind::kRaw) * 32);
  std::memcpy(out + 1, words, 8 * n);
  return 1 + 8 * n;
}

std::size_t encode_wide_block(const std::int64_t* v, std::size_t n, std::uint8_t* out) {
  // Differences modulo 2^64: the decoder adds them up again modulo 2^64.
  const auto step = [&](std::size_t i) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(v[i]) - static_cast<std::uint64_t>(v[i - 1]));
  };
  std::int64_t least = n > 1 ? step(1) : 0;
  std::int64_t most = least;
  for (std::size_t i = 2; i < n; ++i) {
    least = std::min(least, step(i));
    most = std::max(most, step(i));
  }
  const std::uint64_t extent = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  if (extent >> 32 != 0) return 0;
  auto width = static_cast<unsigned>(std::bit_width(extent));
  if (width > 25) width = 32;
  std::uint8_t* next = out;
  *next++ = static_cast<std::uint8_t>(static_cast<unsigned>(BlockKind::kWide) * 32 + (width == 32 ? 26 : width));
  next = write_signed(next, v[0]);
  next = write_signed(next, least);
  std::uint64_t bits = 0;
  unsigned held = 0;
  for (std::size_t i = 1; i < n; ++i) {
    bits |= (static_cast<std::uint64_t>(step(i)) - static_cast<std::uint64_t>(least)) << held;
    for (held += width; held >= 8; held -= 8, bits >>= 8) *next++ = static_cast<std::uint8_t>(bits);
  }
  if (held > 0) *next++ = static_cast<std::uint8_t>(bits);
  return static_cast<std::size_t>(next - out);
}

}  // namespace orla::codec
#endif
