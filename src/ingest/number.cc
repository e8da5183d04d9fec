#include "ingest/number.h"

#include <fast_float/fast_float.h>

#include <cmath>
#include <system_error>

namespace orla::ingest {

Parsed parse_number(std::string_view text, double& out) {
  // from_chars knows '-' but not '+'.
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return Parsed::kNone;
  }
  if (text.empty()) return Parsed::kNone;
  const char* end = text.data() + text.size();
  const auto result = fast_float::from_chars(text.data(), end, out, fast_float::chars_format::general);
  // Some versions report a value out of range, others give the infinity or the zero alone; `out` is set in both.
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return Parsed::kNone;
  return std::isfinite(out) ? Parsed::kNumber : Parsed::kNotFinite;
}

std::size_t read_decimal(const char* text, Decimal& out, char mark) {
  const auto digit = [](char c) { return static_cast<unsigned>(static_cast<unsigned char>(c)) - '0'; };
  const char* p = text;
  out.negative = *p == '-';
  if (out.negative) ++p;
  const char* begin = p;
  std::uint64_t digits = 0;
  while (digit(*p) <= 9) digits = digits * 10 + digit(*p++);
  std::ptrdiff_t count = p - begin;
  std::ptrdiff_t decimals = 0;
  if (*p == mark) {
    const char* const point = ++p;
    while (digit(*p) <= 9) digits = digits * 10 + digit(*p++);
    decimals = p - point;
    count += decimals;
  }
  if (count == 0 || count > Decimal::kMaxDigits) return 0;
  out.digits = out.negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  out.decimals = static_cast<int>(decimals);
  return static_cast<std::size_t>(p - text);
}

bool parse_unsigned(std::string_view text, std::uint64_t max, std::uint64_t& out) {
  if (text.empty()) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(c)) - '0';
    if (digit > 9 || digit > max || value > (max - digit) / 10) return false;
    value = value * 10 + digit;
  }
  out = value;
  return true;
}

}  // namespace orla::ingest
