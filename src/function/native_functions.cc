#include "function/native_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/sha256.h"
#include "base/url.h"

namespace orla::function {

namespace {

constexpr std::size_t kSieveBlock = 1 << 18;  // numbers, odd ones only
constexpr std::uint64_t kRoundsPerCheck = 10'000;

absl::StatusOr<NativeAnswer> run_primes(const NativeContext& context, const Call& call, std::string_view body) {
  constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  absl::StatusOr<std::uint64_t> n = number_of(call.head.query, "n", kMissing, 0, kMaxPrimesBelow);
  if (!n.ok()) return n.status();
  if (*n == kMissing) {
    std::string_view text = body;
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    n = number_of(fmt::format("n={}", text), "n", 0, 0, kMaxPrimesBelow);
    if (!n.ok() || text.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("primes wants a number of at most {}, as the body or as ?n=1000; found \"{}\"", kMaxPrimesBelow,
                      text.substr(0, 40)));
    }
  }
  absl::StatusOr<std::uint64_t> count = count_primes_below(*n, context, call);
  if (!count.ok()) return count.status();
  return NativeAnswer{.body = fmt::format("{}\n", *count)};
}

absl::StatusOr<NativeAnswer> run_sha256(const NativeContext& context, const Call& call, std::string_view body) {
  const absl::StatusOr<std::uint64_t> rounds = number_of(call.head.query, "rounds", 1, 1, kMaxSha256Rounds);
  if (!rounds.ok()) return rounds.status();
  base::Sha256 digest = base::sha256(body);
  for (std::uint64_t round = 1; round < *rounds; ++round) {
    if (round % kRoundsPerCheck == 0) {
      if (absl::Status fine = context.go_on(call); !fine.ok()) return fine;
    }
    digest = base::sha256({reinterpret_cast<const char*>(digest.data()), digest.size()});
  }
  return NativeAnswer{.body = base::hex(digest) + "\n"};
}

constexpr NativeFunction kFunctions[] = {
    {"echo", "the body, as it comes", NativeFunction::Wants::kNothing, nullptr},
    {"matrix", "/multiply, /invert and /log (natural, of each element) of matrices", NativeFunction::Wants::kBlas,
     run_matrix},
    {"primes", "how many primes are below n", NativeFunction::Wants::kNothing, run_primes},
    {"sha256", "of the body, ?rounds= times over", NativeFunction::Wants::kNothing, run_sha256},
};

}  // namespace

absl::Status NativeContext::go_on(const Call& call) const {
  if (call.cancellation.cancelled()) return absl::CancelledError("cancelled");
  if (clock.steady_now() >= deadline) return absl::DeadlineExceededError("timed out");
  return absl::OkStatus();
}

std::span<const NativeFunction> native_functions() { return kFunctions; }

const NativeFunction* find_native_function(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const NativeFunction& function) { return function.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

absl::StatusOr<std::uint64_t> number_of(std::string_view query, std::string_view name, std::uint64_t otherwise,
                                        std::uint64_t least, std::uint64_t most) {
  for (const auto& [key, value] : base::parse_query(query)) {
    if (key != name) continue;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
      return absl::InvalidArgumentError(
          fmt::format("{} is \"{}\"; a number from {} to {} was expected", name, value, least, most));
    }
    return number;
  }
  return otherwise;
}

// A sieve of Eratosthenes in blocks, odd numbers only.
absl::StatusOr<std::uint64_t> count_primes_below(std::uint64_t n, const NativeContext& context, const Call& call) {
  if (n <= 2) return std::uint64_t{0};
  const auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n))) + 1;
  std::vector<bool> small(root + 1, true);
  std::vector<std::uint64_t> primes;
  for (std::uint64_t i = 3; i <= root; i += 2) {
    if (!small[i]) continue;
    primes.push_back(i);
    for (std::uint64_t j = i * i; j <= root; j += 2 * i) small[j] = false;
  }
  std::uint64_t count = 1;  // 2
  std::vector<char> block(kSieveBlock);
  for (std::uint64_t low = 3; low < n; low += 2 * kSieveBlock) {
    if (absl::Status fine = context.go_on(call); !fine.ok()) return fine;
    const std::uint64_t high = std::min(n, low + 2 * kSieveBlock);  // block[i] is low + 2i
    std::fill(block.begin(), block.end(), 1);
    for (const std::uint64_t p : primes) {
      if (p * p >= high) break;
      std::uint64_t first = std::max(p * p, (low + p - 1) / p * p);
      if (first % 2 == 0) first += p;
      for (std::uint64_t j = (first - low) / 2; j < kSieveBlock; j += p) block[j] = 0;
    }
    count += static_cast<std::uint64_t>(
        std::count(block.begin(), block.begin() + static_cast<std::ptrdiff_t>((high - low + 1) / 2), 1));
  }
  return count;
}

}  // namespace orla::function
