// Numbers from text, correctly rounded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orla::ingest {

enum class Parsed : std::uint8_t {
  kNumber,     // finite
  kNotFinite,  // nan, inf, infinity (any case, signed), or beyond the range of a double
  kNone,       // no number, or something after it
};

// All of `text`: [+-] digits [. digits] [e [+-] digits], where one side of the point may be missing. The nearest
// double, ties to even; what is too small becomes a zero.
Parsed parse_number(std::string_view text, double& out);

// An unsigned integer of decimal digits alone, at most `max`.
bool parse_unsigned(std::string_view text, std::uint64_t max, std::uint64_t& out);

// 10^0 .. 10^22, the powers of ten that are doubles. An integer up to 2^53 divided by one of them is rounded once, so
// it is the double nearest to that decimal (Clinger 1990).
inline constexpr std::array<double, 23> kPowersOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// exponent in 0..18.
inline constexpr std::int64_t power_of_ten(int exponent) {
  constexpr std::array<std::int64_t, 19> kPowers = [] {
    std::array<std::int64_t, 19> powers{1};
    for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
    return powers;
  }();
  return kPowers[static_cast<std::size_t>(exponent)];
}

// A decimal as it was written, exactly: digits * 10^-decimals.
struct Decimal {
  static constexpr int kMaxDigits = 15;  // so |digits| < 10^15 < 2^53; at most as many decimals

  std::int64_t digits = 0;
  int decimals = 0;
  bool negative = false;  // the sign of digits; tells -0.0 from 0.0

  bool is_negative_zero() const { return negative && digits == 0; }
  // The nearest double: what parse_number() gives for the same text.
  double nearest() const {
    const double value = static_cast<double>(digits) / kPowersOfTen[static_cast<std::size_t>(decimals)];
    return is_negative_zero() ? -0.0 : value;
  }
  // The value * 10^places as an integer of at most 31 bits and a sign; nothing when it is larger. places >= decimals.
  std::optional<std::int32_t> scaled(int places) const {
    std::int64_t value = digits;
    if (places != decimals && __builtin_mul_overflow(digits, power_of_ten(places - decimals), &value)) {
      return std::nullopt;
    }
    if (value > INT32_MAX || value < -INT32_MAX) return std::nullopt;
    return static_cast<std::int32_t>(value);
  }
};

// Reads the front of `text`: [-] digits [mark digits], at most Decimal::kMaxDigits digits, one side of the point may be
// missing. Returns how many bytes that took, 0 when there is no such number. Something else may follow (also what would
// make it another number). Bytes are read until one that does not belong to it: there must be one.
std::size_t read_decimal(const char* text, Decimal& out, char mark = '.');

}  // namespace orla::ingest
