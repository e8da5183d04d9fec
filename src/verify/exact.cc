#include "verify/exact.h"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

namespace orla::verify {
namespace {

using Integer = boost::multiprecision::cpp_int;

// Every finite double is a whole number of 2^-1074, and its square a whole number of 2^-2148.
constexpr unsigned kUnit = 1074;

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // whole numbers up to it are doubles

Integer power_of_ten(int exponent) { return boost::multiprecision::pow(Integer(10), static_cast<unsigned>(exponent)); }

// numerator / denominator as the nearest double, ties to even. denominator > 0.
double nearest(const Integer& numerator, const Integer& denominator) {
  if (numerator == 0) return 0.0;
  const bool negative = numerator < 0;
  const Integer top = negative ? Integer(-numerator) : numerator;
  // The quotient is q * 2^e with q of 54 to 56 bits, but e is never below the least double's half.
  const int bits = static_cast<int>(msb(top)) - static_cast<int>(msb(denominator));
  int e = bits - 54;
  if (e < -1075) e = -1075;
  Integer over = top, under = denominator;
  if (e < 0) over <<= static_cast<unsigned>(-e);
  if (e > 0) under <<= static_cast<unsigned>(e);
  Integer q, rest;
  divide_qr(over, under, q, rest);
  // Drop the bits a double has no room for: down to 53, and to a multiple of 2^-1074.
  const int width = q == 0 ? 0 : static_cast<int>(msb(q)) + 1;
  int drop = width > 53 ? width - 53 : 0;
  if (e + drop < -1074) drop = -1074 - e;
  const Integer unit = Integer(1) << static_cast<unsigned>(drop);
  Integer kept = q / unit;
  const Integer twice = 2 * (q % unit);
  const bool above = twice > unit || (twice == unit && rest > 0);
  const bool tie = twice == unit && rest == 0;
  if (above || (tie && (kept & 1) == 1)) kept += 1;
  const double result = std::ldexp(static_cast<double>(static_cast<std::int64_t>(kept)), e + drop);
  return negative ? -result : result;
}

// The same where both fit doubles exactly: IEEE division rounds once.
std::optional<double> nearest_small(__int128 numerator, __int128 denominator) {
  if (numerator > kExact || numerator < -kExact || denominator > kExact) return std::nullopt;
  return static_cast<double>(static_cast<std::int64_t>(numerator)) /
         static_cast<double>(static_cast<std::int64_t>(denominator));
}

// v as a whole number of 2^-1074. An infinity (the contribution of a sum beyond the doubles) counts as 2^1024.
Integer units(double v) {
  if (std::isinf(v)) return v > 0 ? Integer(1) << (1024 + kUnit) : Integer(-(Integer(1) << (1024 + kUnit)));
  int exponent = 0;
  const double fraction = std::frexp(v, &exponent);                           // v = fraction * 2^exponent
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));  // exact
  const int shift = exponent - 53 + static_cast<int>(kUnit);
  if (shift >= 0) return Integer(mantissa) << static_cast<unsigned>(shift);
  return Integer(mantissa >> -shift);  // subnormal: the bits that go are zero
}

constexpr std::int64_t kPowers[] = {1,
                                    10,
                                    100,
                                    1'000,
                                    10'000,
                                    100'000,
                                    1'000'000,
                                    10'000'000,
                                    100'000'000,
                                    1'000'000'000,
                                    10'000'000'000,
                                    100'000'000'000,
                                    1'000'000'000'000,
                                    10'000'000'000'000,
                                    100'000'000'000'000,
                                    1'000'000'000'000'000};

}  // namespace

std::optional<std::int64_t> decimal_of(double v, int decimals) {
  const auto power = static_cast<double>(kPowers[decimals]);
  const double r = std::round(v * power);
  if (!(std::fabs(r) <= static_cast<double>(kExact))) return std::nullopt;
  if (r / power != v) return std::nullopt;
  return static_cast<std::int64_t>(r);
}

struct Total::Large {
  Integer decimal_sum;      // beyond sum_
  Integer decimal_squares;  // beyond squares_
  Integer double_sum;       // in 2^-1074
  Integer double_squares;   // in 2^-2148

  // Both sums over one denominator, 10^decimals * 2^1074, and both sums of squares over its square.
  Integer sum(const Integer& decimal_part, int decimals) const {
    return ((decimal_sum + decimal_part) << kUnit) + double_sum * power_of_ten(decimals);
  }
  Integer squares(const Integer& decimal_part, int decimals) const {
    return ((decimal_squares + decimal_part) << (2 * kUnit)) + double_squares * power_of_ten(2 * decimals);
  }
  static Integer denominator(int decimals) { return power_of_ten(decimals) << kUnit; }
};

Total::Total() = default;
Total::Total(Total&&) noexcept = default;
Total& Total::operator=(Total&&) noexcept = default;
Total::~Total() = default;

Total::Large& Total::large() {
  if (large_ == nullptr) large_ = std::make_unique<Large>();
  return *large_;
}

void Total::add_decimal(std::int64_t scaled) {
  // From here one more decimal (at most 2^53) or square (at most 2^106) cannot overflow.
  constexpr __int128 kRoomForSums = __int128{1} << 126;
  if (sum_ >= kRoomForSums || sum_ <= -kRoomForSums || squares_ >= kRoomForSums) {
    large().decimal_sum += Integer(sum_);
    large().decimal_squares += Integer(squares_);
    sum_ = 0;
    squares_ = 0;
  }
  sum_ += scaled;
  squares_ += static_cast<__int128>(scaled) * scaled;
}

void Total::add_double(double v) {
  const Integer u = units(v);
  large().double_sum += u;
  large().double_squares += u * u;
}

double Total::sum(int decimals) const {
  if (large_ == nullptr) {
    if (const auto small = nearest_small(sum_, kPowers[decimals])) return *small;
    return nearest(Integer(sum_), power_of_ten(decimals));
  }
  return nearest(large_->sum(Integer(sum_), decimals), Large::denominator(decimals));
}

double Total::mean(int decimals, std::uint64_t n) const {
  if (large_ == nullptr) {
    if (const auto small = nearest_small(sum_, static_cast<__int128>(kPowers[decimals]) * n)) return *small;
    return nearest(Integer(sum_), power_of_ten(decimals) * n);
  }
  return nearest(large_->sum(Integer(sum_), decimals), Large::denominator(decimals) * n);
}

// variance = sum(x^2)/n - (sum(x)/n)^2 = (n*sum(x^2) - sum(x)^2) / n^2
double Total::stddev(int decimals, std::uint64_t n) const {
  if (large_ == nullptr) {
    const Integer numerator = Integer(squares_) * n - Integer(sum_) * sum_;
    const Integer denominator = power_of_ten(2 * decimals) * n * n;
    if (numerator <= kExact && denominator <= kExact) {
      return std::sqrt(static_cast<double>(numerator) / static_cast<double>(denominator));
    }
    return std::sqrt(nearest(numerator, denominator));
  }
  const Integer sum = large_->sum(Integer(sum_), decimals);
  const Integer numerator = large_->squares(Integer(squares_), decimals) * n - sum * sum;
  const Integer denominator = Large::denominator(decimals) * n;
  return std::sqrt(nearest(numerator, denominator * denominator));
}

}  // namespace orla::verify
