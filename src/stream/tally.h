// What the samples of one series add to its rows, not yet added to them: one cache line, for decimals that come in
// order of time. Everything else goes to the rows themselves.
#pragma once

#include <cstdint>

#include "model/partial.h"
#include "model/time.h"

namespace orla::stream {

// Open while `to` lies above kMinTime: it then takes samples later than `watermark` and before `to`, of one input and
// with one number of decimals (`source`).
struct Tally {
  model::Time watermark = model::kMinTime;  // of the series: the newest time taken, or that of its Acceptance
  model::Time to = model::kMinTime;         // end of the slices of the series' rows
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
  model::Time first_time{};
  std::uint32_t count = 0;
  std::int32_t min = INT32_MAX;
  std::int32_t max = INT32_MIN;
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::uint32_t source = 0;

  // The samples, as a partial; the tally holds none afterwards, and is as open as before.
  void take(model::Partial& out);

  static constexpr std::uint32_t source_of(std::uint32_t input, int decimals) {
    return input << 4 | static_cast<std::uint32_t>(decimals);
  }
  int decimals() const { return static_cast<int>(source & 15); }
  std::uint32_t input() const { return source >> 4; }
};
static_assert(sizeof(Tally) == 64);

}  // namespace orla::stream
