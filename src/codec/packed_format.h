// What encoder and decoder of `packed` agree on; the format is at the head of packed_encode.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/envelope.h"
#include "model/batch.h"

namespace orla::codec {

inline constexpr Format kPackedFormat{'B', 1, "packed samples"};

inline constexpr std::uint8_t kPackedCompressed = 1;
inline constexpr std::uint8_t kPackedDoubles = 2;
inline constexpr std::uint8_t kPackedPaced = 4;
inline constexpr unsigned kPackedUnitShift = 3;  // two bits
inline constexpr std::uint8_t kPackedFlags = 31;

// Nanoseconds.
inline constexpr std::int32_t kPackedUnits[4] = {1, 1'000, 1'000'000, 1'000'000'000};

enum class TimesOf : std::uint8_t { kPaced = 0, kAsBefore = 1, kBlocks = 2 };

// A run this long has blocks of its own.
inline constexpr std::uint32_t kLongRun = 16;

// Calls f(begin, end) for the stretches of samples that are cut into blocks together: each long run, and the short ones
// between two long ones. Stops when f gives false, and gives that.
template <typename F>
bool each_stretch(const std::vector<model::Batch::Run>& runs, std::size_t samples, F f) {
  std::size_t begin = 0;
  for (const model::Batch::Run& run : runs) {
    if (run.end - run.begin < kLongRun) continue;
    if (begin != run.begin && !f(begin, std::size_t{run.begin})) return false;
    if (!f(std::size_t{run.begin}, std::size_t{run.end})) return false;
    begin = run.end;
  }
  return begin == samples || f(begin, samples);
}

}  // namespace orla::codec
