#include "model/quantile_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"

namespace orla::model {
namespace {

std::string bytes_of(const QuantileSketch& sketch) {
  std::string out;
  base::ByteWriter to(out);
  sketch.write(to);
  return out;
}

std::optional<QuantileSketch> read(std::string_view bytes) {
  base::ByteReader from(bytes);
  QuantileSketch sketch;
  if (!QuantileSketch::read(from, sketch) || !from.finished()) return std::nullopt;
  return sketch;
}

QuantileSketch sketch_of(const std::vector<double>& values) {
  QuantileSketch sketch;
  for (const double v : values) sketch.add(v);
  return sketch;
}

// Bins that the values fill when an octave has `per_octave`, by the definition in plain arithmetic.
std::size_t bins(const std::vector<double>& values, int per_octave) {
  std::set<std::tuple<bool, int, int>> filled;
  for (const double v : values) {
    if (std::fabs(v) < std::numeric_limits<double>::min()) continue;
    int exponent = 0;
    const double mantissa = std::frexp(std::fabs(v), &exponent);  // in [0.5, 1)
    filled.emplace(v < 0, exponent, static_cast<int>(std::floor((mantissa * 2 - 1) * per_octave)));
  }
  return filled.size();
}

// Of each magnitude that there is.
double any_double(base::Random& random) {
  const double v = std::ldexp(1 + random.unit(), static_cast<int>(random.below(2046)) - 1022);
  return random.below(2) == 0 ? v : -v;
}

double watts(base::Random& random) { return static_cast<double>(random.below(3'000'000)) / 1000; }

void expect_within_error(const QuantileSketch& sketch, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  ASSERT_EQ(sketch.count(), values.size());
  for (std::uint64_t rank = 1; rank <= values.size(); ++rank) {
    const double exact = values[rank - 1];
    const double shown = sketch.at_rank(rank);
    if (std::fabs(exact) < std::numeric_limits<double>::min()) {
      EXPECT_EQ(shown, 0.0) << exact;
    } else {
      EXPECT_LE(std::fabs(shown / exact - 1), sketch.relative_error()) << exact << " shown as " << shown;
    }
  }
}

TEST(QuantileKey, IsTheTopBitsOfTheMagnitude) {
  EXPECT_EQ(quantile_key(0.0), 0);
  EXPECT_EQ(quantile_key(-0.0), 0);
  EXPECT_EQ(quantile_key(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(quantile_key(0x1p-1022), 128);
  EXPECT_EQ(quantile_key(1.0), 1023 * 128);
  EXPECT_EQ(quantile_key(std::nextafter(1.0, 2)), 1023 * 128);
  EXPECT_EQ(quantile_key(1 + 1.0 / 128), 1023 * 128 + 1);
  EXPECT_EQ(quantile_key(-2.0), -1024 * 128);
  EXPECT_EQ(quantile_key(std::numeric_limits<double>::max()), 2047 * 128 - 1);
}

TEST(QuantileSketch, ShowsEveryRankWithinItsError) {
  base::SeededRandom random(1);
  for (const auto make : {+[](base::Random& r) { return watts(r); }, +[](base::Random& r) { return watts(r) - 1000; },
                          +[](base::Random& r) { return std::exp(r.unit() * 20 - 10); },
                          +[](base::Random& r) { return r.below(3) == 0 ? 0.0 : 1e-320; },
                          +[](base::Random& r) { return r.below(50) == 0 ? any_double(r) : r.unit(); }}) {
    std::vector<double> values;
    for (int i = 0; i < 3000; ++i) values.push_back(make(random));
    const QuantileSketch sketch = sketch_of(values);
    EXPECT_EQ(sketch.level(), 0);
    EXPECT_EQ(sketch.relative_error(), 0x1p-8);
    expect_within_error(sketch, values);
  }
}

TEST(QuantileSketch, TheErrorIsReached) {
  // Just above a power of two the bin's middle lies farthest away, in proportion: 2^-8 of it.
  EXPECT_EQ(sketch_of({1024}).at_rank(1), 1024 * (1 + 0x1p-8));
  EXPECT_EQ(sketch_of({-1024}).at_rank(1), -1024 * (1 + 0x1p-8));
}

TEST(QuantileSketch, CollapsesToTheLeastLevelThatHoldsTheBins) {
  base::SeededRandom random(2);
  for (const std::size_t count : {4096u, 5000u, 9000u, 30'000u, 200'000u}) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(any_double(random));
    const QuantileSketch sketch = sketch_of(values);
    int level = 0;
    while (bins(values, 128 >> level) > kMaxBins) ++level;
    EXPECT_EQ(sketch.level(), level) << count;
    EXPECT_EQ(sketch.relative_error(), std::ldexp(1.0, level - 8));
    if (count <= 9000) expect_within_error(sketch, values);
  }
}

TEST(QuantileSketch, AllDoublesFitAtTheLastLevel) {
  QuantileSketch sketch;
  std::vector<double> values = {0};
  for (int exponent = -1022; exponent <= 1023; ++exponent)
    for (int part = 0; part < 8; ++part)
      for (const double sign : {-1.0, 1.0}) values.push_back(sign * std::ldexp(1 + part / 8.0, exponent));
  sketch = sketch_of(values);
  EXPECT_EQ(bins(values, 8), 2046u * 8 * 2);
  EXPECT_EQ(sketch.level(), kLastLevel);
  EXPECT_EQ(sketch.relative_error(), 0.5);
  expect_within_error(sketch, values);
  EXPECT_EQ(*read(bytes_of(sketch)), sketch);
}

// Sketches of the parts of a random split, merged two at a time in a random order.
QuantileSketch merged_at_random(base::Random& random, std::vector<double> values, std::size_t parts) {
  std::vector<QuantileSketch> sketches(parts);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
  std::vector<std::vector<std::int32_t>> keys(parts);
  for (const double v : values) {
    const std::size_t part = random.below(parts);
    if (part % 2 == 0)
      sketches[part].add(v);
    else
      keys[part].push_back(quantile_key(v));
  }
  for (std::size_t part = 0; part < parts; ++part) sketches[part].add_keys(keys[part]);
  while (sketches.size() > 1) {
    const std::size_t from = random.below(sketches.size());
    QuantileSketch one = std::move(sketches[from]);
    sketches.erase(sketches.begin() + static_cast<std::ptrdiff_t>(from));
    QuantileSketch& into = sketches[random.below(sketches.size())];
    if (random.below(4) == 0) one = *read(bytes_of(one));  // as it comes over a link
    into.merge(one);
  }
  return sketches[0];
}

TEST(QuantileSketch, OrderAndSplitDoNotMatter) {
  base::SeededRandom random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values;
    const std::uint64_t kind = random.below(5);
    const std::size_t count = random.below(10) == 0 ? 12'000 : 1 + random.below(400);
    for (std::size_t i = 0; i < count; ++i) {
      double v = kind == 0 ? watts(random) : kind == 1 ? watts(random) - 100 : any_double(random);
      if (kind == 3 && random.below(2) == 0) v = 0;
      if (kind == 4 && random.below(20) != 0) v = watts(random);
      values.push_back(v);
    }
    const QuantileSketch whole = sketch_of(values);
    const QuantileSketch merged = merged_at_random(random, values, 1 + random.below(9));
    ASSERT_EQ(merged, whole) << "round " << round;
    ASSERT_EQ(bytes_of(merged), bytes_of(whole)) << "round " << round;
  }
}

TEST(QuantileSketch, CountsBeyondSixteenBitsAreCounted) {
  const std::vector<std::int32_t> keys(500, quantile_key(3.0));
  QuantileSketch sketch;
  for (int i = 0; i < 400; ++i) sketch.add_keys(keys);
  sketch.add(5);
  EXPECT_EQ(sketch.count(), 200'001u);
  EXPECT_LE(sketch.at_rank(200'000), 3 * (1 + 0x1p-8));
  EXPECT_GE(sketch.at_rank(200'001), 5 * (1 - 0x1p-8));
  QuantileSketch other = sketch_of({3, 4});
  other.merge(sketch);
  sketch.merge(sketch_of({4, 3}));
  EXPECT_EQ(other, sketch);
  EXPECT_EQ(*read(bytes_of(sketch)), sketch);
  sketch.merge(sketch);
  EXPECT_EQ(sketch.count(), 400'006u);
}

TEST(QuantileSketch, ReadsOnlyWhatItWrites) {
  base::SeededRandom random(4);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> values;
    for (std::uint64_t i = random.below(30); i > 0; --i) values.push_back(watts(random) - 1000);
    std::string bytes = bytes_of(sketch_of(values));
    EXPECT_EQ(read(bytes), sketch_of(values));
    for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(read(bytes.substr(0, length)));
    for (int change = 0; change < 50; ++change) {
      std::string other = bytes;
      other[random.below(other.size())] = static_cast<char>(random.next());
      if (const auto taken = read(other)) {
        EXPECT_EQ(bytes_of(*taken), other);
      }
    }
  }
  EXPECT_FALSE(read(std::string("\x01\x00\x00\x00", 4)));  // a level that nothing needs
  EXPECT_FALSE(read(std::string("\x08\x00\x00\x00", 4)));  // one that there is not
  std::string sum_too_large;
  base::ByteWriter to(sum_too_large);
  to.varint(0);
  to.varint(UINT64_MAX);
  to.varint(0);
  to.varint(1);
  to.varint(std::uint64_t{1023 * 128} << 2);
  EXPECT_FALSE(read(sum_too_large));
}

TEST(QuantileSketch, FewBinsFarApartTakeLittleRoom) {
  std::string bytes;
  base::ByteWriter to(bytes);
  for (const std::uint64_t v : {0, 0, 0, 2}) to.varint(v);
  for (const int key : {128, 4000}) to.varint(static_cast<std::uint64_t>(key) << 2);
  EXPECT_LT(read(bytes)->memory_bytes(), sizeof(QuantileSketch) + 64);
}

TEST(QuantileSketch, ManyBinsSideBySideTakeTwoBytesEach) {
  QuantileSketch sketch;
  std::vector<double> values;
  for (int bin = 0; bin < 512; ++bin) values.push_back(std::ldexp(1 + bin % 128 / 128.0, bin / 128));
  EXPECT_LT(read(bytes_of(sketch_of(values)))->memory_bytes(), sizeof(QuantileSketch) + 2 * 512 + 128);
}

TEST(NearestRank, IsTheLeastThatCoversTheShare) {
  EXPECT_EQ(nearest_rank(1, 1, 2), 1u);
  EXPECT_EQ(nearest_rank(2, 1, 2), 1u);
  EXPECT_EQ(nearest_rank(3, 1, 2), 2u);
  EXPECT_EQ(nearest_rank(10, 9, 10), 9u);
  EXPECT_EQ(nearest_rank(11, 9, 10), 10u);
  EXPECT_EQ(nearest_rank(1000, 999, 1000), 999u);
  EXPECT_EQ(nearest_rank(1001, 999, 1000), 1000u);
  EXPECT_EQ(nearest_rank(UINT64_MAX, 999, 1000), UINT64_MAX - UINT64_MAX / 1000);
}

}  // namespace
}  // namespace orla::model
