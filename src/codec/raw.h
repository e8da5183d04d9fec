// A batch as it lies in memory, to be used where it was received. The format is at the head of raw.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace orla::codec {

// Columns inside of the bytes they were read from, which outlive it.
struct RawView {
  std::span<const std::uint32_t> series;   // of each run
  std::span<const std::uint32_t> lengths;  // of each run, in samples; they add up to the number of samples
  std::span<const std::int64_t> times;     // of each sample, ns; empty with paces
  std::span<const std::int64_t> starts;    // of each run, ns; with paces
  std::span<const std::int64_t> steps;     // of each run, ns; with paces
  std::span<const double> values;          // of each sample; empty with scaled
  std::span<const std::int32_t> scaled;    // of each sample: value * 10^decimals
  int decimals = 0;
};

// Without copying. bytes.data() lies at a multiple of 8. DataLoss: the checksum differs.
absl::StatusOr<RawView> view_raw(std::string_view bytes);

}  // namespace orla::codec
