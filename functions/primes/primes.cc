// How many primes there are up to n: ?n=1000000 (at most 10^9). A sieve in segments that stay in the cache.
#include <charconv>
#include <cstdint>
#include <vector>

#include "orla_query.h"

namespace {

constexpr std::uint64_t kSegment = 1 << 17;

std::uint64_t primes_up_to(std::uint64_t n) {
  if (n < 2) return 0;
  std::vector<std::uint32_t> small;  // odd primes up to the root of n
  std::uint64_t root = 1;
  while ((root + 1) * (root + 1) <= n) ++root;
  std::vector<bool> composite(root + 1);
  for (std::uint64_t i = 3; i <= root; i += 2) {
    if (composite[i]) continue;
    small.push_back(static_cast<std::uint32_t>(i));
    for (std::uint64_t k = i * i; k <= root; k += 2 * i) composite[k] = true;
  }
  // Element i of a segment stands for the odd number low + 2 i.
  std::vector<std::uint8_t> crossed(kSegment);
  std::vector<std::uint64_t> next(small.size());
  for (std::size_t k = 0; k < small.size(); ++k) next[k] = std::uint64_t{small[k]} * small[k];
  std::uint64_t count = 1;  // 2
  for (std::uint64_t low = 3; low <= n; low += 2 * kSegment) {
    const std::uint64_t numbers = (n - low) / 2 + 1 < kSegment ? (n - low) / 2 + 1 : kSegment;
    crossed.assign(kSegment, 0);
    for (std::size_t k = 0; k < small.size(); ++k) {
      std::uint64_t i = (next[k] - low) / 2;
      for (; i < numbers; i += small[k]) crossed[i] = 1;
      next[k] = low + 2 * i;
    }
    for (std::uint64_t i = 0; i < numbers; ++i) count += crossed[i] == 0;
  }
  return count;
}

}  // namespace

ORLA_HANDLER {
  const auto n = static_cast<std::uint64_t>(orla_query_number("n", 1'000'000, 1'000'000'000));
  char text[32];
  char* end = std::to_chars(text, text + sizeof text - 1, primes_up_to(n)).ptr;
  *end++ = '\n';
  return orla_write(text, static_cast<std::uint32_t>(end - text)) < 0;
}
