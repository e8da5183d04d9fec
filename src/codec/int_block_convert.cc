// Times and doubles as integers of 32 bits, and the blocks of those that are none; see int_block.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/int_block_convert.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"
// Above: what is compiled once per instruction set includes itself again.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/bit_varint.h"
#include "codec/int_block.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace orla::codec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kAhead = 4 * kBlockValues;  // the next but one block is fetched while this one is converted

bool offsets(const std::int64_t* t, std::size_t n, std::int32_t unit, std::int32_t* v) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::int64_t, 8> d;
  const hn::Rebind<double, decltype(d)> df;
  const hn::Repartition<std::int32_t, decltype(d)> dw;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<std::uint32_t, decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  const auto first = hn::Set(d, t[0]);
  const auto units = hn::Set(dw, unit);
  const auto inverse = hn::Set(df, 1.0 / unit);
  // Added to a double below 2^51 in size, its lower bits are the nearest integer.
  const auto shift = hn::Set(df, 0x1.8p52);
  const auto middle = hn::Set(d, std::int64_t{1} << 30);
  auto differs = hn::Zero(d);
  auto beyond = hn::Zero(d);
  const auto convert = [&](std::size_t i) HWY_ATTR {
    hwy::Prefetch(t + i + kAhead);
    const auto distance = hn::Sub(hn::LoadU(d, t + i), first);
    const auto shifted = hn::MulAdd(hn::ConvertTo(df, distance), inverse, shift);
    const auto count = hn::Sub(hn::BitCast(d, shifted), hn::BitCast(d, shift));
    beyond = hn::Or(beyond, hn::Add(count, middle));
    differs = hn::Or(differs, hn::Xor(distance, hn::MulEven(hn::BitCast(dw, count), units)));
    hn::StoreU(hn::TruncateTo(di, hn::BitCast(du, count)), di, reinterpret_cast<std::uint32_t*>(v) + i);
  };
  for (; i + lanes <= n; i += lanes) convert(i);
  if (i < n && n > lanes) {  // the last ones, some of them again
    convert(n - lanes);
    i = n;
  }
  if (!hn::AllTrue(d,
                   hn::Eq(hn::Or(differs, hn::BitCast(d, hn::ShiftRight<31>(hn::BitCast(du, beyond)))), hn::Zero(d))))
    return false;
#endif
  for (; i < n; ++i) {
    const auto distance =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(t[i]) - static_cast<std::uint64_t>(t[0]));
    const std::int64_t count = distance / unit;
    if (count * unit != distance || count >= (1 << 30) || count < -(1 << 30)) return false;
    v[i] = static_cast<std::int32_t>(count);
  }
  return true;
}

#if HWY_TARGET != HWY_SCALAR
// decimals() of whole numbers.
HWY_INLINE bool whole_numbers(const double* x, std::size_t n, std::int32_t* v) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<std::uint64_t, decltype(d)> du;
  const std::size_t lanes = hn::Lanes(d);
  auto differs = hn::Zero(du);
  auto least = hn::Zero(di);
  const auto convert = [&](std::size_t i) HWY_ATTR {
    hwy::Prefetch(x + i + kAhead);
    const auto value = hn::LoadU(d, x + i);
    const auto whole = hn::DemoteTo(di, value);
    least = hn::Min(least, whole);
    differs = hn::Or(differs, hn::Xor(hn::BitCast(du, value), hn::BitCast(du, hn::PromoteTo(d, whole))));
    hn::StoreU(whole, di, v + i);
  };
  for (std::size_t i = 0; i + lanes <= n; i += lanes) convert(i);
  if (n % lanes != 0) convert(n - lanes);  // the last ones, some of them again
  return hn::AllTrue(du, hn::Eq(differs, hn::Zero(du))) && hn::AllTrue(di, hn::Gt(least, hn::Set(di, INT32_MIN)));
}
#endif

bool decimals(const double* x, std::size_t n, double unit, std::int32_t* v) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (unit == 1 && n >= hn::Lanes(hn::CappedTag<double, 8>())) return whole_numbers(x, n, v);
  const hn::CappedTag<double, 8> d;
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
  const auto convert = [&](std::size_t i) HWY_ATTR {
    hwy::Prefetch(x + i + kAhead);
    const auto value = hn::LoadU(d, x + i);
    const auto large = hn::Mul(value, units);
    const auto whole = hn::Round(large);
    good = hn::And(good, hn::Le(hn::Abs(large), limit));
#if HWY_NATIVE_FMA
    const auto bound = hn::Mul(hn::BitCast(d, hn::And(hn::BitCast(du, value), exponent)), half);
    good = hn::And(good, hn::Le(hn::Abs(hn::MulSub(value, units, whole)), bound));
#else
    good = hn::And(good, hn::Eq(hn::Div(whole, units), value));
#endif
    good = hn::And(good, hn::RebindMask(d, hn::Ne(hn::BitCast(du, value), minus_zero)));
    hn::StoreU(hn::DemoteTo(di, whole), di, v + i);
  };
  for (; i + lanes <= n; i += lanes) convert(i);
  if (i < n && n > lanes) {  // the last ones, some of them again
    convert(n - lanes);
    i = n;
  }
  if (!hn::AllTrue(d, good)) return false;
#endif
  for (; i < n; ++i) {
    const double large = x[i] * unit;
    if (!(large <= 2147483647.0 && large >= -2147483647.0)) return false;
    v[i] = static_cast<std::int32_t>(large < 0 ? large - 0.5 : large + 0.5);
    if (std::bit_cast<std::uint64_t>(v[i] / unit) != std::bit_cast<std::uint64_t>(x[i])) return false;
  }
  return true;
}

}  // namespace

const IntConverter* converter() {
  static constexpr IntConverter kConverter{offsets, decimals};
  return &kConverter;
}

}  // namespace HWY_NAMESPACE
}  // namespace orla::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::codec {

HWY_EXPORT(converter);
const IntConverter& int_converter() { return *HWY_DYNAMIC_DISPATCH(converter)(); }

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
