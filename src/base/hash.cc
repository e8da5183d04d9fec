#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace orla::base {

namespace {
Digest from(XXH128_hash_t h) { return Digest{h.high64, h.low64}; }
}  // namespace

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Digest digest(std::string_view bytes) { return from(XXH3_128bits(bytes.data(), bytes.size())); }

Digest chain(const Digest& before, std::string_view bytes) {
  // The chained state enters as the seed of one half and is mixed into the other, so both halves depend on both.
  const XXH128_hash_t h = XXH3_128bits_withSeed(bytes.data(), bytes.size(), before.low);
  const std::uint64_t words[4] = {before.high, before.low, h.high64, h.low64};
  return from(XXH3_128bits(words, sizeof words));
}

}  // namespace orla::base
