#include "model/distinct_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"

namespace orla::model {
namespace {

std::string bytes_of(const DistinctSketch& sketch) {
  std::string out;
  base::ByteWriter to(out);
  sketch.write(to);
  return out;
}

std::optional<DistinctSketch> read(std::string_view bytes) {
  base::ByteReader from(bytes);
  DistinctSketch sketch;
  if (!DistinctSketch::read(from, sketch) || !from.finished()) return std::nullopt;
  return sketch;
}

std::vector<std::uint64_t> hashes(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(base::hash64("plug " + std::to_string(i), seed));
  return out;
}

DistinctSketch sketch_of(const std::vector<std::uint64_t>& hashes) {
  DistinctSketch sketch;
  for (const std::uint64_t hash : hashes) sketch.add(hash);
  return sketch;
}

TEST(DistinctSketch, IsExactUpToItsLimit) {
  EXPECT_EQ(DistinctSketch().estimate(), 0u);
  for (const std::size_t count : {1u, 20u, 511u, 512u}) {
    std::vector<std::uint64_t> twice = hashes(count, 1);
    const std::vector<std::uint64_t> again = twice;
    twice.insert(twice.end(), again.begin(), again.end());
    const DistinctSketch sketch = sketch_of(twice);
    EXPECT_TRUE(sketch.exact());
    EXPECT_EQ(sketch.estimate(), count);
  }
  EXPECT_FALSE(sketch_of(hashes(513, 1)).exact());
}

// The root of the mean squared relative error over many seeds is the stated one, 1.04/sqrt(4096); no single estimate is
// farther away than five times that.
TEST(DistinctSketch, HasTheStatedStandardError) {
  constexpr double standard_error = 1.04 / 64;
  for (const std::size_t count : {513u, 2000u, 10'000u, 50'000u}) {
    double squares = 0;
    constexpr int seeds = 100;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto estimate = static_cast<double>(sketch_of(hashes(count, seed)).estimate());
      const double error = estimate / static_cast<double>(count) - 1;
      EXPECT_LT(std::fabs(error), 5 * standard_error) << count;
      squares += error * error;
    }
    EXPECT_LT(std::sqrt(squares / seeds), 1.25 * standard_error) << count;
  }
}

TEST(DistinctSketch, OrderAndSplitDoNotMatter) {
  base::SeededRandom random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint64_t> all = hashes(1 + random.below(round % 2 == 0 ? 1500 : 60), 7);
    const DistinctSketch whole = sketch_of(all);
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    std::vector<DistinctSketch> parts(1 + random.below(6));
    for (const std::uint64_t hash : all)
      for (std::uint64_t n = 1 + random.below(2); n > 0; --n) parts[random.below(parts.size())].add(hash);
    DistinctSketch merged;
    for (const DistinctSketch& part : parts) merged.merge(*read(bytes_of(part)));
    ASSERT_EQ(merged, whole);
    ASSERT_EQ(bytes_of(merged), bytes_of(whole));
    merged.merge(parts[0]);  // the same things once more
    ASSERT_EQ(merged, whole);
  }
}

TEST(DistinctSketch, ReadsOnlyWhatItWrites) {
  base::SeededRandom random(2);
  for (const std::size_t count : {0u, 1u, 30u, 600u}) {
    const std::string bytes = bytes_of(sketch_of(hashes(count, 3)));
    ASSERT_TRUE(read(bytes).has_value());
    for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(read(bytes.substr(0, length)));
    EXPECT_FALSE(read(bytes + '\0'));
    for (int change = 0; change < 300; ++change) {
      std::string other = bytes;
      other[random.below(other.size())] = static_cast<char>(random.next());
      if (const auto taken = read(other)) {
        EXPECT_EQ(bytes_of(*taken), other);
      }
    }
  }
  DistinctSketch ends = sketch_of({0, UINT64_MAX});
  EXPECT_EQ(*read(bytes_of(ends)), ends);
}

}  // namespace
}  // namespace orla::model
