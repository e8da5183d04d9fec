// Batches of every shape, for tests of the sample encodings and their benchmark.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "base/random.h"
#include "fmt/format.h"
#include "model/batch.h"

namespace orla::codec {

enum class Shape {
  kSorted,    // runs of 60 to 600 samples, about one a second, three decimals
  kRandom,    // runs of one or a few
  kPaced,     // as kSorted in the forms `paces` and `scaled`
  kOneRun,    // one series, minutes apart, one decimal, evenly spaced with gaps
  kMixed,     // long and short and empty runs, times in any order and of any size, doubles of any kind
  kDoubles,   // random bits: NaN with payload, infinities, denormals
  kSmallest,  // one decimal place too many here and there
  kInts,      // the whole range of int32 in `scaled`
  kWide,      // whole numbers beyond 32 bits
};
inline constexpr Shape kShapes[] = {Shape::kSorted,  Shape::kRandom,   Shape::kPaced, Shape::kOneRun, Shape::kMixed,
                                    Shape::kDoubles, Shape::kSmallest, Shape::kInts,  Shape::kWide};

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kStart = 1'377'986'401 * kSecondNs;

inline std::size_t run_length(Shape shape, std::size_t left, base::Random& random) {
  std::size_t length = 60 + random.below(541);
  if (shape == Shape::kRandom) length = 1 + random.below(random.below(4) + 1);
  if (shape == Shape::kOneRun) length = left;
  if (shape == Shape::kMixed || shape == Shape::kWide) length = random.below(random.below(2) == 0 ? 4 : 300);
  return std::min(length, left);
}

inline double odd_double(base::Random& random) {
  constexpr double kOdd[] = {0.0,
                             -0.0,
                             1e300,
                             -1e300,
                             5e-324,
                             0.1,
                             1.0 / 3,
                             1e15,
                             9007199254740993.0,
                             -1e-15,
                             2.2e-308,
                             1e-7,
                             -273.15,
                             1e22,
                             4096.5,
                             std::numeric_limits<double>::infinity()};
  switch (random.below(3)) {
    case 0:
      return kOdd[random.below(std::size(kOdd))];
    case 1:
      return static_cast<double>(random.below(2'000'000)) / 1000 - 700;
    default:
      return std::bit_cast<double>(random.below(std::numeric_limits<std::uint64_t>::max()));
  }
}

inline std::int64_t next_time(Shape shape, std::int64_t t, base::Random& random) {
  switch (shape) {
    case Shape::kOneRun:
      return t + 60 * kSecondNs * (random.below(200) == 0 ? 17 : 1);
    case Shape::kMixed:
      if (random.below(300) == 0)
        return static_cast<std::int64_t>(random.below(std::numeric_limits<std::uint64_t>::max()));
      return t + static_cast<std::int64_t>(random.below(1 << (1 + random.below(30)))) - 1000;
    case Shape::kWide:
      return t + static_cast<std::int64_t>(random.below(std::uint64_t{1} << 33)) * 1000;
    default: {
      const std::uint64_t chance = random.below(100);
      return t + kSecondNs * (chance < 84 ? 1 : chance < 93 ? 0 : chance < 97 ? 2 : 3);
    }
  }
}

inline double value(Shape shape, double before, base::Random& random) {
  switch (shape) {
    case Shape::kOneRun:
      return std::round(before * 10 + static_cast<double>(random.below(5)) - 2) / 10;
    case Shape::kMixed:
      return random.below(20) == 0 ? odd_double(random) : static_cast<double>(random.below(100));
    case Shape::kDoubles:
      return odd_double(random);
    case Shape::kSmallest:
      return static_cast<double>(random.below(300'000)) / (random.below(3000) == 0 ? 1e6 : 100);
    case Shape::kWide:
      return std::round(before) + static_cast<double>(random.below(std::uint64_t{1} << 36));
    default:
      if (random.below(50) == 0) return static_cast<double>(random.below(2'000'000)) / 1000;
      return std::round(before * 1000 + static_cast<double>(random.below(64)) - 32) / 1000;
  }
}

inline model::Batch made_batch(Shape shape, std::size_t samples, base::Random& random) {
  model::Batch batch;
  std::int64_t start = kStart;
  std::uint32_t series = 0;
  while (batch.times.size() < samples) {
    const std::size_t n = run_length(shape, samples - batch.times.size(), random);
    const auto begin = static_cast<std::uint32_t>(batch.times.size());
    if (shape == Shape::kRandom || shape == Shape::kMixed) series = static_cast<std::uint32_t>(random.below(2125));
    batch.runs.push_back({model::SeriesId{series++}, begin, begin + static_cast<std::uint32_t>(n)});
    if (shape == Shape::kMixed && random.below(4) == 0) {  // the times of the run before, as of two metrics of one plug
      start = batch.times.empty() ? start : model::to_ns(batch.times[begin / 2]);
    }
    std::int64_t t = start;
    double v = static_cast<double>(random.below(400'000)) / 1000;
    const bool level = random.below(4) == 0;
    for (std::size_t i = 0; i < n; ++i) {
      batch.times.push_back(model::from_ns(t));
      t = next_time(shape, t, random);
      batch.values.push_back(v);
      if (!level) v = value(shape, v, random);
    }
    if (shape == Shape::kRandom) start = t;
  }
  if (shape == Shape::kPaced || shape == Shape::kInts) {
    batch.decimals = shape == Shape::kInts ? static_cast<int>(random.below(16)) : 3;
    for (const double v : batch.values) {
      auto integer = static_cast<std::int32_t>(std::lround(v * 1000));
      if (shape == Shape::kInts && random.below(3) == 0) integer = static_cast<std::int32_t>(random.below(UINT32_MAX));
      batch.scaled.push_back(integer);
    }
    batch.values.clear();
  }
  if (shape == Shape::kPaced) {
    for (const model::Batch::Run& run : batch.runs) {
      const model::Duration step(static_cast<std::int64_t>(random.below(3)) * (random.below(9) == 0 ? 1 : kSecondNs));
      batch.paces.push_back({batch.times[run.begin], step});
    }
    batch.times.clear();
  }
  return batch;
}

// What differs between the samples of two batches, whatever their forms: runs, times, values to the bit. Empty:
// nothing.
inline std::string difference(model::Batch a, model::Batch b) {
  a.make_plain();
  b.make_plain();
  const auto same_run = [](const model::Batch::Run& x, const model::Batch::Run& y) {
    return x.series == y.series && x.begin == y.begin && x.end == y.end;
  };
  if (!std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(), same_run))
    return fmt::format("the runs, {} and {}", a.runs.size(), b.runs.size());
  if (a.times.size() != b.times.size() || a.values.size() != b.values.size())
    return fmt::format("the sizes, {} and {}", a.times.size(), b.times.size());
  for (std::size_t i = 0; i < a.times.size(); ++i) {
    if (a.times[i] != b.times[i])
      return fmt::format("time {}: {} and {}", i, model::to_ns(a.times[i]), model::to_ns(b.times[i]));
    if (std::bit_cast<std::uint64_t>(a.values[i]) != std::bit_cast<std::uint64_t>(b.values[i]))
      return fmt::format("value {}: {} and {}", i, a.values[i], b.values[i]);
  }
  return {};
}

}  // namespace orla::codec
