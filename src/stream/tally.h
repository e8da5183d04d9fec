// How far a series is, and what its newest samples add to its rows, not yet added to them: one cache line, for decimals
// that come in order of time. Everything else goes to the rows themselves.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/time.h"
#include "stream/run_kernels.h"
#include "stream/small_row.h"

namespace orla::stream {

// What a batch's samples have in common.
struct TallySource {
  std::uint32_t source;      // input and decimals, see Tally::source_of
  model::Time not_after;     // a later one is for acceptance to decide
  model::Duration max_jump;  // so is one further ahead
};

// Open, it takes samples later than `watermark` and before `to`, of one input and with one number of decimals
// (`source`). Closed, it may hold some still. The memory of a new one is that of a closed one.
struct alignas(64) Tally {
  model::Time watermark = model::kMinTime;  // of the series: the newest time accepted
  model::Time to = model::kMinTime;         // end of the slices that the samples lie in; kMinTime: it holds none
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
  model::Time first_time{};
  std::uint32_t count = 0;
  std::int32_t min = INT32_MAX;
  std::int32_t max = INT32_MIN;
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::uint32_t source = kClosed;

  bool takes(model::Time time, const TallySource& from) const { return takes(time, from, from.source); }
  // The same whether or not its rows have quantiles, which takes() alone passes over.
  bool takes_sketched(model::Time time, const TallySource& from) const {
    return takes(time, from, from.source | (source & kQuantiles));
  }
  bool has_quantiles() const { return (source & kQuantiles) != 0; }
  // A sample that it takes. False, and nothing is done: the value is none, or the sum of squares would not fit.
  bool add(model::Time time, std::int32_t value) {
    const auto square = static_cast<std::uint64_t>(std::int64_t{value} * value);
    if (value == kNoDecimal || square > UINT64_MAX - squares) [[unlikely]]
      return false;
    if (count == 0) {
      first_time = time;
      first = value;
    }
    ++count;
    sum += value;
    squares += square;
    min = std::min(min, value);
    max = std::max(max, value);
    last = value;
    watermark = time;
    return true;
  }
  // `samples` of them at once. False, and nothing is done: the sum of squares would not fit.
  bool add(model::Time from, std::int32_t first_value, const RunSummary& all, model::Time until,
           std::int32_t last_value, std::uint32_t samples) {
    if (all.squares > UINT64_MAX - squares || samples > UINT32_MAX - count) return false;
    if (count == 0) {
      first_time = from;
      first = first_value;
    }
    count += samples;
    sum += all.sum;
    squares += all.squares;
    min = std::min(min, all.min);
    max = std::max(max, all.max);
    last = last_value;
    watermark = until;
    return true;
  }
  // The samples, which lie in the slice that starts then.
  DecimalSummary summary(model::Time slice) const {
    return {sum, squares, count, min, max, first, last, first_time - slice, watermark - slice};
  }
  bool holds() const { return to != model::kMinTime; }
  // Closed, and without samples.
  void clear() {
    close();
    to = model::kMinTime;
    sum = 0;
    squares = 0;
    count = 0;
    min = INT32_MAX;
    max = INT32_MIN;
  }
  bool closed() const { return (source & kClosed) != 0; }
  void close() { source |= kClosed; }
  // It holds none. The input that delivered the series last.
  void set_input(std::uint32_t number) { source = source_of(number, 0) | kClosed; }

  // In `source`: each value has to reach its rows' quantile sketches, too.
  static constexpr std::uint32_t kQuantiles = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kClosed = std::uint32_t{1} << 30;
  static constexpr std::uint32_t source_of(std::uint32_t input, int decimals) {
    return input << 4 | static_cast<std::uint32_t>(decimals);
  }
  std::uint32_t input() const { return (source & ~(kQuantiles | kClosed)) >> 4; }

 private:
  bool takes(model::Time time, const TallySource& from, std::uint32_t wanted) const {
    return time > watermark && time < to && source == wanted && time <= from.not_after &&
           time - watermark <= from.max_jump;
  }
};
static_assert(sizeof(Tally) == 64);

}  // namespace orla::stream
