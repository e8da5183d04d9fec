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

std::string hex_of_bytes(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::optional<std::string> bytes_of_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    // 14 zeros before the two digits make them a number for from_hex; only valid digits give themselves back.
    const std::uint64_t byte = from_hex(std::string(14, '0') + std::string(text.substr(i, 2)));
    if (fmt::format("{:02x}", byte) != text.substr(i, 2)) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

base::Digest digest_from_hex(std::string_view text) {
  if (text.size() != 32) return {};
  return {from_hex(text.substr(0, 16)), from_hex(text.substr(16))};
}

}  // namespace orla::store
