// Two parts make the exact contents, each with one representation, so that equal contents have equal bytes:
//
// - decimals: the sum of the scaled integers is sum_ + 2^128 * Wide::sum_carry with sum_ in [-2^127, 2^127), the sum of
//   their squares is squares_ + 2^127 * Wide::squares_carry with squares_ in [0, 2^127).
// - the others: two's complement fixed-point numbers. Bit 0 of Wide::sum is worth 2^-1074 and of Wide::squares 2^-2148;
//   the widths hold 2^64 times the largest double, and its square. Wrapping past them cannot happen with honest counts
//   and is harmless (addition stays associative) with others.
//
// wide_ exists exactly when something in it is not zero.
//
// Bytes: a flag (1 when a wide part follows), sum_ and squares_ as varints (zigzag for the sum). The wide part: both
// carries as varints (zigzag for the sum's), then both fixed-point numbers, each as: index of the first word kept,
// number of words kept (one byte each), the words. Words left out below are zero, words left out above repeat the sign;
// as many as possible are left out.
#include "model/exact_sum.h"

#include <array>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "base/bytes.h"
#include "model/power_of_ten.h"

namespace orla::model {

namespace {

using base::Int128;
using base::UInt128;
using Big = boost::multiprecision::cpp_int;

constexpr double kTwo52 = 0x1p52;
constexpr double kTwo53 = 0x1p53;
constexpr int kLeastExponent = -1074;  // of the least double above 0

int bit_width(UInt128 v) {
  const auto high = static_cast<std::uint64_t>(v >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(v));
}

UInt128 magnitude(Int128 v) { return v < 0 ? 0 - static_cast<UInt128>(v) : static_cast<UInt128>(v); }

Big to_big(UInt128 v) { return (Big(static_cast<std::uint64_t>(v >> 64)) << 64) | static_cast<std::uint64_t>(v); }
Big to_big(Int128 v) { return v < 0 ? Big(-to_big(magnitude(v))) : to_big(static_cast<UInt128>(v)); }

// (quotient + fraction) * 2^exponent rounded to the nearest double, ties to even. The fraction, in [0, 1), is not zero
// exactly when `inexact`; then quotient >= 2^54 or exponent <= kLeastExponent - 2.
double round_quotient(std::uint64_t quotient, bool inexact, int exponent) {
  if (quotient == 0) return 0.0;
  const int top = std::bit_width(quotient) - 1 + exponent;
  const int unit = std::max(top - 52, kLeastExponent);
  const int drop = unit - exponent;
  if (drop <= 0) return std::ldexp(static_cast<double>(quotient), exponent);  // nothing to round
  if (drop > 64) return 0.0;
  const std::uint64_t kept = drop == 64 ? 0 : quotient >> drop;
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  const std::uint64_t rest = quotient & (half | (half - 1));
  const bool up = rest > half || (rest == half && (inexact || (kept & 1) != 0));
  return std::ldexp(static_cast<double>(kept + static_cast<std::uint64_t>(up)), unit);
}

// num / den / 2^power, rounded once. num >= 0, den > 0, power >= 0.
double round_ratio(const Big& num, const Big& den, int power) {
  if (num.is_zero()) return 0.0;
  const int least = static_cast<int>(msb(num)) - static_cast<int>(msb(den)) - 1;  // num / den > 2^least
  // A quotient of 55 or 56 bits, or one whose last bit is below a quarter of the least double.
  int shift = 55 - (least + 1);
  shift = std::min(shift, 2 - kLeastExponent - power);
  Big quotient, rest;
  if (den == 1) {
    if (shift >= 0) {
      quotient = num << static_cast<unsigned>(shift);
    } else {
      quotient = num >> static_cast<unsigned>(-shift);
      if (lsb(num) < static_cast<unsigned>(-shift)) rest = 1;
    }
  } else if (shift >= 0) {
    divide_qr(Big(num << static_cast<unsigned>(shift)), den, quotient, rest);
  } else {
    divide_qr(num, Big(den << static_cast<unsigned>(-shift)), quotient, rest);
  }
  // A quotient of 0 whose rest is not: far below half the least double, which rounds to 0.
  return round_quotient(static_cast<std::uint64_t>(quotient), !rest.is_zero(), -shift - power);
}

// num / den rounded once, in 128 bits where that is enough. den > 0.
double round_ratio(UInt128 num, UInt128 den) {
  constexpr UInt128 exact = UInt128{1} << 53;
  if (num <= exact && den <= exact)  // both are doubles: the division rounds once
    return static_cast<double>(static_cast<std::uint64_t>(num)) / static_cast<double>(static_cast<std::uint64_t>(den));
  if (bit_width(den) <= 70) {
    const int shift = 128 - bit_width(num);
    const UInt128 scaled = num << shift;  // >= 2^127, so the quotient has at least 57 bits
    UInt128 quotient = scaled / den;
    bool inexact = quotient * den != scaled;
    const int drop = std::max(0, bit_width(quotient) - 64);
    inexact = inexact || (quotient & ((UInt128{1} << drop) - 1)) != 0;
    return round_quotient(static_cast<std::uint64_t>(quotient >> drop), inexact, drop - shift);
  }
  return round_ratio(to_big(num), to_big(den), 0);
}

// A double's magnitude as mantissa * 2^(position - 1074).
struct Binary {
  std::uint64_t mantissa;
  unsigned position;
};
Binary split(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const auto exponent = static_cast<unsigned>((bits >> 52) & 0x7ff);
  if (exponent == 0) return {fraction, 0};
  return {fraction | (std::uint64_t{1} << 52), exponent - 1};
}

template <std::size_t n>
using Words = std::array<std::uint64_t, n>;

// words += value * 2^(64*at), modulo the width.
template <std::size_t n>
void add_at(Words<n>& words, std::size_t at, UInt128 value) {
  UInt128 carry = value;
  for (std::size_t i = at; i < n && carry != 0; ++i) {
    carry += words[i];
    words[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
}

template <std::size_t n>
void subtract_at(Words<n>& words, std::size_t at, UInt128 value) {
  std::uint64_t borrow = 0;
  for (std::size_t i = at; i < n && (value != 0 || borrow != 0); ++i) {
    const auto low = static_cast<std::uint64_t>(value);
    value >>= 64;
    const std::uint64_t before = words[i];
    words[i] = before - low - borrow;
    borrow = (before < low || (before == low && borrow != 0)) ? 1 : 0;
  }
}

template <std::size_t n>
void add_words(Words<n>& to, const Words<n>& from) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const UInt128 sum = static_cast<UInt128>(to[i]) + from[i] + carry;
    to[i] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64);
  }
}

template <std::size_t n>
bool negative(const Words<n>& words) {
  return (words[n - 1] >> 63) != 0;
}

// Words [begin, end) determine the rest: zeros below, the sign above. Empty for 0.
template <std::size_t n>
std::pair<std::size_t, std::size_t> kept(const Words<n>& words) {
  std::size_t begin = 0;
  while (begin < n && words[begin] == 0) ++begin;
  if (begin == n) return {0, 0};
  const std::uint64_t fill = negative(words) ? ~std::uint64_t{0} : 0;
  std::size_t end = n;
  // A word goes when it repeats the sign and the word below shows the same sign.
  while (end > begin + 1 && words[end - 1] == fill && (words[end - 2] >> 63) == (fill & 1)) --end;
  return {begin, end};
}

// The number's bits from bit `drop` up, signed; the bits below are zero.
template <std::size_t n>
Big to_big(const Words<n>& words, unsigned drop) {
  Words<n> positive = words;
  if (negative(words)) {
    for (std::uint64_t& w : positive) w = ~w;
    add_at(positive, 0, 1);
  }
  const auto [begin, end] = kept(positive);
  if (begin == end) return Big(0);
  Big big;
  import_bits(big, positive.begin() + static_cast<std::ptrdiff_t>(begin),
              positive.begin() + static_cast<std::ptrdiff_t>(end), 64, false);
  const int shift = static_cast<int>(64 * begin) - static_cast<int>(drop);
  if (shift >= 0)
    big <<= static_cast<unsigned>(shift);
  else
    big >>= static_cast<unsigned>(-shift);
  return negative(words) ? Big(-big) : big;
}

template <std::size_t n>
void put_words(base::ByteWriter& to, const Words<n>& words) {
  const auto [begin, end] = kept(words);
  to.u8(static_cast<std::uint8_t>(begin));
  to.u8(static_cast<std::uint8_t>(end - begin));
  for (std::size_t i = begin; i < end; ++i) to.u64(words[i]);
}

template <std::size_t n>
bool get_words(base::ByteReader& from, Words<n>& words) {
  const std::size_t begin = from.u8();
  const std::size_t count = from.u8();
  if (from.failed() || begin + count > n) return false;
  for (std::size_t i = begin; i < begin + count; ++i) words[i] = from.u64();
  if (count > 0 && (words[begin + count - 1] >> 63) != 0)
    for (std::size_t i = begin + count; i < n; ++i) words[i] = ~std::uint64_t{0};
  return !from.failed() && kept(words) == std::pair(begin, begin + count);
}

}  // namespace

struct ExactSum::Wide {
  std::int64_t sum_carry = 0;
  std::uint64_t squares_carry = 0;
  Words<34> sum{};      // 2176 bits; 2^64 * 2^1024 needs 2163 with its sign
  Words<67> squares{};  // 4288 bits; 2^64 * 2^2048 needs 4261
  friend bool operator==(const Wide&, const Wide&) = default;

  // Of the doubles alone: the least shift p for which sum * 2^p and squares * 2^(2p) are integers, as far as words
  // tell.
  int scale() const {
    int p = 0;
    if (const auto [begin, end] = kept(sum); begin != end) p = std::max(p, 1074 - static_cast<int>(64 * begin));
    if (const auto [begin, end] = kept(squares); begin != end)
      p = std::max(p, (2148 - static_cast<int>(64 * begin) + 1) / 2);
    return p;
  }
};

std::optional<std::int64_t> as_decimal(double v, int decimals) {
  const double power = power_of_ten(decimals);
  const double scaled = v * power;
  const double size = std::fabs(scaled);
  if (!(size <= kTwo53)) return std::nullopt;
  // std::round (halves away from zero) where it matters: below 2^52 the addition rounds to another integer only for
  // values so far from one that the test below fails either way; from 2^52 on there are only integers.
  const auto whole = static_cast<std::int64_t>(size < kTwo52 ? scaled + std::copysign(0.5, scaled) : scaled);
  if (static_cast<double>(whole) / power != v) return std::nullopt;
  return whole;
}

ExactSum::ExactSum() = default;
ExactSum::ExactSum(const ExactSum& other)
    : sum_(other.sum_),
      squares_(other.squares_),
      wide_(other.wide_ == nullptr ? nullptr : std::make_unique<Wide>(*other.wide_)) {}
ExactSum::ExactSum(ExactSum&&) noexcept = default;
ExactSum& ExactSum::operator=(const ExactSum& other) {
  if (this != &other) *this = ExactSum(other);
  return *this;
}
ExactSum& ExactSum::operator=(ExactSum&&) noexcept = default;
ExactSum::~ExactSum() = default;

ExactSum ExactSum::from_decimals(__int128 sum, __int128 squares) {
  ExactSum result;
  result.sum_ = sum;
  result.squares_ = squares;
  return result;
}

ExactSum::Wide& ExactSum::wide() {
  if (wide_ == nullptr) wide_ = std::make_unique<Wide>();
  return *wide_;
}

void ExactSum::add(double v, int decimals) {
  if (const std::optional<std::int64_t> scaled = as_decimal(v, decimals))
    add_decimal(*scaled);
  else
    add_binary(v);
}

void ExactSum::add_binary(double v) {
  const Binary b = split(v);
  if (b.mantissa == 0) return;
  Wide& w = wide();
  const UInt128 shifted = static_cast<UInt128>(b.mantissa) << (b.position % 64);
  if (v > 0)
    add_at(w.sum, b.position / 64, shifted);
  else
    subtract_at(w.sum, b.position / 64, shifted);
  // 106 bits at any offset: three words.
  const UInt128 square = static_cast<UInt128>(b.mantissa) * b.mantissa;
  const unsigned at = 2 * b.position;
  const UInt128 low = static_cast<UInt128>(static_cast<std::uint64_t>(square)) << (at % 64);
  const UInt128 high = static_cast<UInt128>(static_cast<std::uint64_t>(square >> 64)) << (at % 64);
  add_at(w.squares, at / 64, low);
  add_at(w.squares, at / 64 + 1, high);
}

void ExactSum::add_decimal(std::int64_t scaled) {
  const Int128 square = static_cast<Int128>(scaled) * scaled;
  Int128 sum = 0;
  Int128 squares = 0;
  if (!__builtin_add_overflow(sum_, static_cast<Int128>(scaled), &sum) &&
      !__builtin_add_overflow(squares_, square, &squares)) [[likely]] {
    sum_ = sum;
    squares_ = squares;
  } else {
    merge(from_decimals(scaled, square));
  }
}

void ExactSum::merge(const ExactSum& other) {
  // The wide part first: `other` may be this object.
  if (other.wide_ != nullptr) {
    Wide& w = wide();
    const Wide& o = *other.wide_;
    w.sum_carry =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(w.sum_carry) + static_cast<std::uint64_t>(o.sum_carry));
    w.squares_carry += o.squares_carry;
    add_words(w.sum, o.sum);
    add_words(w.squares, o.squares);
  }
  const Int128 add = other.sum_;
  const Int128 add_squares = other.squares_;
  if (__builtin_add_overflow(sum_, add, &sum_)) {  // sum_ is now 2^128 too small or too large
    std::int64_t& carry = wide().sum_carry;
    carry = static_cast<std::int64_t>(static_cast<std::uint64_t>(carry) + (add > 0 ? 1u : ~std::uint64_t{0}));
  }
  if (__builtin_add_overflow(squares_, add_squares, &squares_)) {
    squares_ = static_cast<Int128>(static_cast<UInt128>(squares_) ^ (UInt128{1} << 127));
    ++wide().squares_carry;
  }
  if (wide_ != nullptr && *wide_ == Wide{}) wide_.reset();
}

bool operator==(const ExactSum& a, const ExactSum& b) {
  if (a.sum_ != b.sum_ || a.squares_ != b.squares_ || a.has_wide() != b.has_wide()) return false;
  return a.wide_ == nullptr || *a.wide_ == *b.wide_;
}

namespace {

// The exact contents over a common denominator: sum = total / (10^d * 2^p), sum of squares = squares / (10^2d * 2^2p).
struct Exact {
  Big total;
  Big squares;
  Big ten = 1;  // 10^d
  int power = 0;
};

double signed_ratio(const Big& num, const Big& den, int power) {
  return num < 0 ? 0.0 - round_ratio(Big(-num), den, power) : round_ratio(num, den, power);  // never -0.0
}

template <typename Wide>
Exact exact(Int128 sum, Int128 squares, const Wide* wide, int decimals) {
  Exact e;
  if (wide == nullptr) {
    e.total = to_big(sum);
    e.squares = to_big(squares);
    e.ten = static_cast<std::uint64_t>(power_of_ten(decimals));
    return e;
  }
  const Big decimal_sum = to_big(sum) + (Big(wide->sum_carry) << 128);
  const Big decimal_squares = to_big(squares) + (Big(wide->squares_carry) << 127);
  e.power = wide->scale();
  const auto p = static_cast<unsigned>(e.power);
  e.total = to_big(wide->sum, 1074 - p);
  e.squares = to_big(wide->squares, 2148 - 2 * p);
  if (!decimal_squares.is_zero() || !decimal_sum.is_zero()) {  // else no decimals: binary alone
    e.ten = static_cast<std::uint64_t>(power_of_ten(decimals));
    e.total = e.total * e.ten + (decimal_sum << p);
    e.squares = e.squares * e.ten * e.ten + (decimal_squares << (2 * p));
  }
  return e;
}

}  // namespace

double ExactSum::sum(int decimals) const {
  if (wide_ == nullptr) {
    const double size = round_ratio(magnitude(sum_), power_of_ten(decimals));
    return sum_ < 0 ? -size : size;
  }
  const Exact e = exact(sum_, squares_, wide_.get(), decimals);
  return signed_ratio(e.total, e.ten, e.power);
}

double ExactSum::sum_of_squares(int decimals) const {
  const UInt128 ten = power_of_ten(decimals);
  if (wide_ == nullptr) return round_ratio(magnitude(squares_), ten * ten);
  const Exact e = exact(sum_, squares_, wide_.get(), decimals);
  return signed_ratio(e.squares, e.ten * e.ten, 2 * e.power);
}

double ExactSum::mean(int decimals, std::uint64_t n) const {
  if (wide_ == nullptr) {
    const double size = round_ratio(magnitude(sum_), static_cast<UInt128>(power_of_ten(decimals)) * n);
    return sum_ < 0 ? -size : size;
  }
  const Exact e = exact(sum_, squares_, wide_.get(), decimals);
  return signed_ratio(e.total, e.ten * n, e.power);
}

double ExactSum::variance(int decimals, std::uint64_t n) const {
  const UInt128 size = magnitude(sum_);
  if (wide_ == nullptr && (size >> 64) == 0) {
    const UInt128 ten = power_of_ten(decimals);
    UInt128 scaled = 0;
    UInt128 denominator = 0;
    if (!__builtin_mul_overflow(static_cast<UInt128>(squares_), static_cast<UInt128>(n), &scaled) &&
        !__builtin_mul_overflow(static_cast<UInt128>(n) * n, ten * ten, &denominator)) {
      const UInt128 square = size * size;
      return scaled > square ? round_ratio(scaled - square, denominator) : 0.0;
    }
  }
  const Exact e = exact(sum_, squares_, wide_.get(), decimals);
  const Big num = e.squares * n - e.total * e.total;
  if (num <= 0) return 0.0;  // below 0 only for contents that no n values have
  const Big den = e.ten * n;
  return round_ratio(num, den * den, 2 * e.power);
}

std::string ExactSum::encode() const {
  std::string out;
  base::ByteWriter to(out);
  to.u8(wide_ != nullptr ? 1 : 0);
  to.varint128(base::zigzag128(sum_));
  to.varint128(static_cast<UInt128>(squares_));
  if (wide_ != nullptr) {
    to.varint(base::zigzag(wide_->sum_carry));
    to.varint(wide_->squares_carry);
    put_words(to, wide_->sum);
    put_words(to, wide_->squares);
  }
  return out;
}

absl::StatusOr<ExactSum> ExactSum::decode(std::string_view bytes) {
  base::ByteReader from(bytes);
  ExactSum result;
  const std::uint8_t flag = from.u8();
  result.sum_ = base::unzigzag128(from.varint128());
  const UInt128 squares = from.varint128();
  result.squares_ = static_cast<Int128>(squares);
  bool good = flag <= 1 && (squares >> 127) == 0;
  if (good && flag == 1) {
    Wide& w = result.wide();
    w.sum_carry = base::unzigzag(from.varint());
    w.squares_carry = from.varint();
    good = get_words(from, w.sum) && get_words(from, w.squares) && w != Wide{};
  }
  if (!good || !from.finished())
    return absl::InvalidArgumentError("exact sum: the bytes are not the canonical form of one");
  return result;
}

}  // namespace orla::model
