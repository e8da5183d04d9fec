#include "base/utf8.h"

#include <cstddef>

namespace orla::base {

namespace {

// Length of the valid character at `i`, 0 when there is none.
std::size_t character(std::string_view s, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
  const auto tail = [&](std::size_t k, unsigned low, unsigned high) {
    return k < s.size() && byte(k) >= low && byte(k) <= high;
  };
  const unsigned b = byte(i);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return tail(i + 1, 0x80, 0xBF) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF) {
    const unsigned low = b == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = b == 0xED ? 0x9F : 0xBF;
    return tail(i + 1, low, high) && tail(i + 2, 0x80, 0xBF) ? 3 : 0;
  }
  if (b >= 0xF0 && b <= 0xF4) {
    const unsigned low = b == 0xF0 ? 0x90 : 0x80;
    const unsigned high = b == 0xF4 ? 0x8F : 0xBF;
    return tail(i + 1, low, high) && tail(i + 2, 0x80, 0xBF) && tail(i + 3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t n = character(bytes, i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t n = character(bytes, i);
    if (n == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
    } else {
      out.append(bytes, i, n);
      i += n;
    }
  }
  return out;
}

}  // namespace orla::base
