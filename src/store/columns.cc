#include "store/columns.h"

#include <fmt/format.h>

namespace orla::store {

std::string hex(std::uint64_t v) { return fmt::format("{:016x}", v); }
std::string hex(model::Epoch epoch) { return hex(static_cast<std::uint64_t>(epoch)); }
std::string hex(const base::Digest& digest) { return hex(digest.high) + hex(digest.low); }

std::uint64_t from_hex(std::string_view text) {
  if (text.size() != 16) return 0;
  std::uint64_t v = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return 0;
    v = v << 4 | static_cast<std::uint64_t>(digit);
  }
  return v;
}

base::Digest digest_from_hex(std::string_view text) {
  if (text.size() != 32) return {};
  return {from_hex(text.substr(0, 16)), from_hex(text.substr(16))};
}

}  // namespace orla::store
