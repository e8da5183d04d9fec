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
// behind the other without gaps, into ceil(m * width / 8) bytes; unused bits are zero. (8 numbers fill `width` bytes.)
//
// A patched kind holds numbers of more than `width` bits: their lower bits are among the others, and there follow
//
//   1 byte      exceptions, 1..255
//   1 byte      width of their upper bits, coded as above
//   1 byte each where: the position among the packed numbers
//   bits(number >> width, exceptions)
//
// Literature: Goldstein, Ramakrishnan, Shaft 1998; Zukowski et al., "Super-scalar RAM-CPU cache compression" (ICDE
// 2006); Lemire, Boytsov, "Decoding billions of integers per second through vectorization" (2015); "ALP" (SIGMOD 2023).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/int_block_encode.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"
// Above: what is compiled once per instruction set includes itself again.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/bit_pack.h"
#include "codec/bit_varint.h"
#include "codec/int_block.h"
#include "codec/int_block_scalar.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace orla::codec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

using namespace scalar;

#else

using U32 = hn::CappedTag<std::uint32_t, 16>;
using I32 = hn::RebindToSigned<U32>;
using U8 = hn::Repartition<std::uint8_t, U32>;

// Two neighbouring lanes become one: the lower `width` bits of the odd one move to above those of the even one. Lanes
// have twice `half` bits; other bits are zero.
template <int half, typename D, typename V>
HWY_INLINE V join_pairs(D d, V v, unsigned width) {
  using T = hn::TFromD<D>;
  const auto even = hn::Set(d, static_cast<T>((T{1} << half) - 1));
  const V high = hn::AndNot(even, v);
  return hn::Or(hn::And(v, even), hn::ShiftRightSame(high, half - static_cast<int>(width)));
}

HWY_INLINE void pack_narrow(const Numbers& numbers, unsigned width, std::uint8_t* out) {
  const U32 d;
  const hn::Repartition<std::uint16_t, U32> d16;
  const hn::Repartition<std::uint64_t, U32> d64;
  const U8 d8;
  const std::size_t lanes = hn::Lanes(d);
  const auto mask = hn::Set(d, (std::uint32_t{1} << width) - 1);
  HWY_ALIGN std::uint64_t words[8];
  const auto two = [&](std::size_t i) HWY_ATTR {
    const auto low = hn::And(hn::Load(d, numbers.x + i), mask);
    const auto high = hn::And(hn::Load(d, numbers.x + i + lanes), mask);
    return hn::ConcatEven(d16, hn::BitCast(d16, high), hn::BitCast(d16, low));
  };
  if (width <= 8) {  // 8 numbers in a word
    for (std::size_t i = 0; i < numbers.n; i += 4 * lanes) {
      const auto bytes = hn::ConcatEven(d8, hn::BitCast(d8, two(i + 2 * lanes)), hn::BitCast(d8, two(i)));
      const auto in16 = join_pairs<8>(d16, hn::BitCast(d16, bytes), width);
      const auto in32 = join_pairs<16>(d, hn::BitCast(d, in16), 2 * width);
      hn::Store(join_pairs<32>(d64, hn::BitCast(d64, in32), 4 * width), d64, words);
      for (std::size_t k = 0; k < lanes / 2; ++k, out += width) std::memcpy(out, words + k, 8);
    }
    return;
  }
  const unsigned odd = (width & 1) * 4;
  for (std::size_t i = 0; i < numbers.n; i += 2 * lanes) {  // 4 numbers in a word, 9 to 15 bits each
    const auto in32 = join_pairs<16>(d, hn::BitCast(d, two(i)), width);
    hn::Store(join_pairs<32>(d64, hn::BitCast(d64, in32), 2 * width), d64, words);
    for (std::size_t k = 0; k < lanes / 2; k += 2, out += width) {
      const std::uint64_t joined = (words[k + 1] << odd) | (words[k] >> (4 * width - odd));
      std::memcpy(out, words + k, 8);
      std::memcpy(out + width / 2, &joined, 8);
    }
  }
}

// As a float, whose exponent says the bits of the number. Without two neighbouring ones the conversion cannot round up
// to the next power of two.
template <bool exact>
HWY_INLINE hn::VFromD<U32> as_float(hn::VFromD<U32> v) {
  const U32 d;
  const hn::Rebind<float, U32> df;
  if constexpr (!exact) v = hn::AndNot(hn::ShiftRight<1>(v), v);
  return hn::BitCast(d, hn::ConvertTo(df, hn::BitCast(I32(), v)));
}

template <bool exact>
HWY_INLINE void bit_widths_of(const Numbers& numbers, Widths& widths) {
  const U32 d;
  const U8 d8;
  const std::size_t lanes = hn::Lanes(d);
  const auto bias = hn::Set(d8, 126);
  const auto byte1 = hn::Set(d, 0xff00U);
  const auto byte2 = hn::Set(d, 0xff0000U);
  const auto byte3 = hn::Set(d, 0xff000000U);
  for (std::size_t i = 0; i < kGroup * numbers.groups(); i += 4 * lanes) {
    const auto at = [&](std::size_t k) HWY_ATTR { return as_float<exact>(hn::Load(d, numbers.x + i + k * lanes)); };
    const auto e0 = hn::ShiftRight<23>(at(0));
    const auto e1 = hn::And(hn::ShiftRight<15>(at(1)), byte1);
    const auto e2 = hn::And(hn::ShiftRight<7>(at(2)), byte2);
    const auto e3 = hn::And(hn::ShiftLeft<1>(at(3)), byte3);
    const auto all = hn::Or(hn::Or(e0, e1), hn::Or(e2, e3));
    hn::Store(hn::SaturatedSub(hn::BitCast(d8, all), bias), d8, widths.of + i);
  }
}

HWY_INLINE void bit_widths(const Numbers& numbers, Widths& widths) {
  if (numbers.most < (1U << 24)) {
    bit_widths_of<true>(numbers, widths);
  } else {
    bit_widths_of<false>(numbers, widths);
  }
}

template <std::size_t groups>
HWY_INLINE std::size_t count_wider(const Widths& widths, unsigned width) {
  const hn::RebindToSigned<U8> d;
  const auto than = hn::Set(d, static_cast<std::int8_t>(width));
  std::size_t wider = 0;
  for (std::size_t i = 0; i < kGroup * groups; i += hn::Lanes(d))
    wider += hn::CountTrue(d, hn::Gt(hn::BitCast(d, hn::Load(U8(), widths.of + i)), than));
  return wider;
}

HWY_INLINE void split(const Numbers& numbers, unsigned width, std::uint8_t* places, Numbers& high) {
  const U32 d;
  const std::size_t lanes = hn::Lanes(d);
  const auto most = hn::Set(d, (std::uint32_t{1} << width) - 1);
  std::size_t n = 0;
#if HWY_TARGET == HWY_AVX3
  const hn::Rebind<std::uint8_t, U32> d8;
  const auto ahead = hn::Set(d, static_cast<std::uint32_t>(lanes));
  auto here = hn::Iota(d, 0U);
  std::uint32_t wide[kBlockValues + kGroup];
  for (std::size_t i = 0; i < numbers.n; i += lanes) {
    const auto v = hn::Load(d, numbers.x + i);
    const auto wider = hn::Gt(v, most);
    hn::StoreU(hn::Compress(here, wider), d, wide + n);
    hn::StoreU(hn::Compress(hn::ShiftRightSame(v, static_cast<int>(width)), wider), d, high.x + n);
    n += hn::CountTrue(d, wider);
    here = hn::Add(here, ahead);
  }
  for (std::size_t k = 0; k < n; k += lanes) hn::StoreU(hn::TruncateTo(d8, hn::LoadU(d, wide + k)), d8, places + k);
#else  // the others have no instruction for it
  for (std::size_t i = 0; i < numbers.n; i += lanes) {
    std::uint8_t mask[8] = {};
    hn::StoreMaskBits(d, hn::Gt(hn::Load(d, numbers.x + i), most), mask);
    for (unsigned bits = mask[0]; bits != 0; bits &= bits - 1) {
      const std::size_t at = i + static_cast<unsigned>(std::countr_zero(bits));
      places[n] = static_cast<std::uint8_t>(at);
      high.x[n++] = numbers.x[at] >> width;
    }
  }
#endif
  for (std::size_t k = 0; k < kGroup; k += lanes) hn::StoreU(hn::Zero(d), d, high.x + n + k);
  high.n = n;
}

// Calls f(i) for vectors at i that cover [0, n), some places twice. n is at least a vector.
template <typename F>
HWY_INLINE void each_vector(std::size_t n, F f) {
  const std::size_t lanes = hn::Lanes(I32());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i);
  if (i < n) f(n - lanes);
}

HWY_INLINE Extent extent(const std::int32_t* v, std::size_t n) {
  const I32 d;
  auto least = hn::Set(d, v[0]);
  auto most = least;
  each_vector(n, [&](std::size_t i) HWY_ATTR {
    const auto at = hn::LoadU(d, v + i);
    least = hn::Min(least, at);
    most = hn::Max(most, at);
  });
  return {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
}

HWY_INLINE Extent steps_extent(const std::int32_t* v, std::size_t n) {
  const I32 d;
  auto least = hn::Set(d, v[1] - v[0]);
  auto most = least;
  each_vector(n - 1, [&](std::size_t i) HWY_ATTR {
    const auto at = hn::Sub(hn::LoadU(d, v + i + 1), hn::LoadU(d, v + i));
    least = hn::Min(least, at);
    most = hn::Max(most, at);
  });
  return {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
}

// f(i) gives the vector of the numbers from i on, where there may be others behind the last one.
template <typename F>
HWY_INLINE void fill(Numbers& numbers, F f) {
  const U32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= numbers.n; i += lanes) hn::Store(f(i), d, numbers.x + i);
  if (i < numbers.n) {
    hn::Store(hn::IfThenElseZero(hn::FirstN(d, numbers.n - i), f(i)), d, numbers.x + i);
    i += lanes;
  }
  for (; i % kGroup != 0; i += lanes) hn::Store(hn::Zero(d), d, numbers.x + i);
}

HWY_INLINE void subtract(const std::int32_t* v, std::int32_t least, Numbers& numbers) {
  const I32 d;
  const auto from = hn::Set(d, least);
  fill(numbers, [&](std::size_t i) HWY_ATTR { return hn::BitCast(U32(), hn::Sub(hn::LoadU(d, v + i), from)); });
}

HWY_INLINE void steps_above(const std::int32_t* v, std::int32_t least, Numbers& numbers) {
  const I32 d;
  const auto from = hn::Set(d, least);
  fill(numbers, [&](std::size_t i) HWY_ATTR {
    return hn::BitCast(U32(), hn::Sub(hn::Sub(hn::LoadU(d, v + i + 1), hn::LoadU(d, v + i)), from));
  });
}

HWY_INLINE hn::VFromD<U32> folded(hn::VFromD<I32> step) {
  return hn::BitCast(U32(), hn::Xor(hn::ShiftLeft<1>(step), hn::ShiftRight<31>(step)));
}

HWY_INLINE void steps_zigzag(const std::int32_t* v, Numbers& numbers) {
  const I32 d;
  fill(numbers, [&](std::size_t i) HWY_ATTR { return folded(hn::Sub(hn::LoadU(d, v + i + 1), hn::LoadU(d, v + i))); });
}

HWY_INLINE int excess_bits(const std::int32_t* v, std::size_t n, std::size_t stride, std::int32_t least) {
  const I32 d;
  const U32 du;
  const auto from = hn::Set(d, least);
  const auto bias = hn::Set(d, 126);
  const auto most = hn::Set(du, 0x40000000U);
  auto excess = hn::Zero(d);
  const auto bits = [&](hn::VFromD<U32> numbers) HWY_ATTR {
    return hn::Max(hn::BitCast(d, hn::ShiftRight<23>(as_float<false>(numbers))), bias);
  };
  for (std::size_t begin = 0; begin + kSampled < n; begin += stride) {
    for (std::size_t i = begin; i < begin + kSampled; i += hn::Lanes(d)) {
      const auto at = hn::LoadU(d, v + i);
      const auto frame = hn::BitCast(du, hn::Sub(at, from));
      const auto step = hn::Min(folded(hn::Sub(hn::LoadU(d, v + i + 1), at)), most);
      excess = hn::Add(excess, hn::Sub(bits(frame), bits(step)));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, excess));
}

#endif

// The lower `width` bits of the numbers. Touches up to 8 bytes more.
HWY_INLINE void pack(const Numbers& numbers, unsigned width, std::uint8_t* out) {
  if (width == 0) return;
  if (width > kMaxWidth) {
    std::memcpy(out, numbers.x, 4 * numbers.n);
  } else if (width > 15) {
    pack_bits(numbers.x, numbers.n, width, out);
  } else {
    pack_narrow(numbers, width, out);
  }
}

struct Choice {
  unsigned width = 0;
  unsigned top = 0;  // bits of the largest number
  std::size_t exceptions = 0;
};

template <std::size_t groups>
HWY_INLINE Choice choose_of(const Numbers& numbers, Choice best) {
  // Bytes, exceptions and width in one word: the least of them is found without branches.
  std::uint64_t least = packed_bytes(numbers.n, best.width) << 32 | best.width;
  Widths widths;
  bit_widths(numbers, widths);
  for (unsigned width = std::min(best.top, kMaxWidth + 1); width-- > 0;) {
    const std::size_t wider = count_wider<groups>(widths, width);
    const std::size_t upper = packed_bytes(wider, stored_width(best.top - width));
    const std::size_t bytes = packed_bytes(numbers.n, width) + 2 + wider + upper;
    least = std::min(least, static_cast<std::uint64_t>(bytes << 32 | wider << 8 | width));
    if (bytes > (least >> 32) + numbers.n / 8) break;  // it hardly ever gets better again
  }
  best.width = least & 0xff;
  best.exceptions = (least >> 8) & 0xffff;
  return best;
}

HWY_INLINE Choice choose(const Numbers& numbers) {
  Choice plain;
  plain.top = static_cast<unsigned>(std::bit_width(numbers.most));
  plain.width = stored_width(plain.top);
  if (plain.top == 0 || plain.top == 32) return plain;
  switch (numbers.groups()) {
    case 1:
      return choose_of<1>(numbers, plain);
    case 2:
      return choose_of<2>(numbers, plain);
    case 3:
      return choose_of<3>(numbers, plain);
    default:
      return choose_of<4>(numbers, plain);
  }
}

// Behind what was written.
HWY_INLINE std::uint8_t* write_numbers(const Numbers& numbers, const Choice& choice, std::uint8_t* out) {
  pack(numbers, choice.width, out);
  out += packed_bytes(numbers.n, choice.width);
  if (choice.exceptions == 0) return out;
  const unsigned upper = choice.top - choice.width;
  *out++ = static_cast<std::uint8_t>(choice.exceptions);
  *out++ = static_cast<std::uint8_t>(width_code(upper));
  Numbers high;
  split(numbers, choice.width, out, high);
  out += choice.exceptions;
  pack(high, stored_width(upper), out);
  return out + packed_bytes(choice.exceptions, stored_width(upper));
}

HWY_INLINE std::uint8_t* write_header(BlockKind kind, const Choice& choice, std::int64_t base, std::uint8_t* out) {
  const unsigned code = static_cast<unsigned>(kind) + (choice.exceptions != 0 ? 1 : 0);
  *out++ = static_cast<std::uint8_t>(code * 32 + width_code(choice.width));
  return write_signed(out, base);
}

// Whether differences take fewer bits than the distances to the least value, by a look at some of the n values (n >
// kSampled, less than 2^31 apart).
HWY_INLINE bool differences_are_smaller(const std::int32_t* v, std::size_t n, std::int32_t least) {
  const std::size_t stride = n <= 4 * kSampled ? kSampled : 4 * kSampled;
  const std::size_t looked_at = ((n - 1 - kSampled) / stride + 1) * kSampled;
  return 4 * excess_bits(v, n, stride, least) > 3 * static_cast<int>(looked_at);
}

// Behind what was written: the first of n > 2 values, less than 2^31 apart, and their differences.
HWY_INLINE std::uint8_t* write_differences(const std::int32_t* v, std::size_t n, std::int64_t base, std::uint8_t* out) {
  const Extent steps = n <= kSampled ? few_steps_extent(v, n) : steps_extent(v, n);
  Numbers numbers;
  numbers.n = n - 1;
  const bool rising = steps.least >= 0 || steps.least == steps.most;
  if (rising) {
    numbers.most = static_cast<std::uint32_t>(steps.most) - static_cast<std::uint32_t>(steps.least);
    steps_above(v, steps.least, numbers);
  } else {
    numbers.most = std::max(zigzag(steps.least), zigzag(steps.most));
    steps_zigzag(v, numbers);
  }
  const Choice choice = choose(numbers);
  out = write_header(rising ? BlockKind::kDelta : BlockKind::kZigzag, choice, base + v[0], out);
  if (rising) out = write_signed(out, steps.least);
  return write_numbers(numbers, choice, out);
}

std::size_t encode_ints(const std::int32_t* v, std::size_t n, std::int64_t base, std::uint8_t* out) {
  const std::uint8_t* const begin = out;
  std::int32_t few[2 * kSampled];
  const std::size_t given = n;
  if (n <= kSampled) {  // vectors are filled up with the last value
    std::fill(std::copy(v, v + n, few), few + 2 * kSampled, v[n - 1]);
    v = few;
    n = kSampled + 1;
  }
  const Extent values = extent(v, n);
  Numbers numbers;
  numbers.most = static_cast<std::uint32_t>(values.most) - static_cast<std::uint32_t>(values.least);
  if (numbers.most == 0) return static_cast<std::size_t>(write_header(BlockKind::kFrame, {}, base + v[0], out) - begin);
  if (given > 2 && numbers.most < (std::uint32_t{1} << 31) && differences_are_smaller(v, n, values.least))
    return static_cast<std::size_t>(write_differences(v, given, base, out) - begin);
  numbers.n = given;
  subtract(v, values.least, numbers);
  const Choice choice = choose(numbers);
  out = write_header(BlockKind::kFrame, choice, base + values.least, out);
  return static_cast<std::size_t>(write_numbers(numbers, choice, out) - begin);
}

std::size_t encode_steps(const std::int32_t* v, std::size_t n, std::int64_t base, std::uint8_t* out) {
  if (n <= kSampled) return encode_ints(v, n, base, out);
  return static_cast<std::size_t>(write_differences(v, n, base, out) - out);
}

}  // namespace

const BlockEncoder* encoder() {
  static constexpr BlockEncoder kEncoder{encode_ints, encode_steps};
  return &kEncoder;
}

}  // namespace HWY_NAMESPACE
}  // namespace orla::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::codec {

HWY_EXPORT(encoder);
const BlockEncoder& block_encoder() { return *HWY_DYNAMIC_DISPATCH(encoder)(); }

}  // namespace orla::codec
#endif
