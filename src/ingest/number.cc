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
