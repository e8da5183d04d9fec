// Hashes of bytes that are stable across machines and versions: they are stored and sent.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace orla::base {

// 128 bits; a value, compared for equality.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// XXH3, 64 and 128 bits (public specification of the xxHash project). Not cryptographic.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);
Digest digest(std::string_view bytes);
// The chain over a sequence of byte strings: digest of (before || bytes).
Digest chain(const Digest& before, std::string_view bytes);

}  // namespace orla::base
