// Raw samples in the cloud's file: how their blocks become bytes, and how large they are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "model/batch.h"
#include "model/plan.h"

namespace orla::store {

// The formats of what is codec's. Both replace `out`. Not thread-safe.
struct SampleFormat {
  std::function<absl::Status(const model::Batch&, std::string& out)> encode;
  std::function<absl::Status(std::string_view, model::Batch& out)> decode;
};

// What one commit brings of one series and hour is a block of its own from so many samples on.
inline constexpr std::size_t kOwnBlockSamples = 512;
// Samples of a block at most.
inline constexpr std::size_t kBlockSamples = std::size_t{1} << 16;
// The tail is sorted into blocks by the commit that makes it larger than this: samples, and rows (one per commit).
inline constexpr std::size_t kTailSamples = 1'000'000;
inline constexpr std::size_t kTailRows = 2'048;

// The start of the hour that holds the time, in ns.
inline std::int64_t hour_of(model::Time time) {
  const std::int64_t hour = model::kRawBlock.count();
  const std::int64_t ns = model::to_ns(time);
  if (ns < INT64_MIN + hour) return INT64_MIN;
  const std::int64_t beyond = ns % hour;
  return ns - (beyond < 0 ? beyond + hour : beyond);
}

}  // namespace orla::store
