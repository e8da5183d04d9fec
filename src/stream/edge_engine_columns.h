// A batch as the engine reads it: its times and values in whichever form they came.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "model/power_of_ten.h"
#include "stream/edge_engine.h"
#include "stream/run_kernels.h"

namespace orla::stream {

// Borrows the batch.
struct EdgeEngine::Columns : TallySource {
  const model::Batch& batch;
  const std::uint32_t* numbers;  // Input::series of the batch's input
  const std::int32_t* scaled;    // decimals of `source`, kNoDecimal where there is none; null: the batch has no samples

  int decimals() const { return static_cast<int>(source & 15); }
  std::uint32_t input() const { return source >> 4; }

  // Sample i, of run r.
  model::Time time(std::size_t r, std::uint32_t i) const {
    if (batch.paces.empty()) return batch.times[i];
    return batch.paces[r].start + batch.paces[r].step * (i - batch.runs[r].begin);
  }
  // The samples of run r from `begin` on, as they are or in `scratch`.
  std::pair<std::span<const model::Time>, std::span<const double>> plain(std::size_t r, std::uint32_t begin,
                                                                         model::Batch& scratch) const {
    const std::uint32_t end = batch.runs[r].end;
    const std::size_t count = end - begin;
    const model::Time* times = batch.times.data() + begin;
    const double* values = batch.values.data() + begin;
    if (!batch.paces.empty()) {
      scratch.times.resize(count);
      for (std::uint32_t i = begin; i < end; ++i) scratch.times[i - begin] = time(r, i);
      times = scratch.times.data();
    }
    if (batch.values.empty()) {
      const double unit = model::power_of_ten(batch.decimals);
      scratch.values.resize(count);
      for (std::uint32_t i = begin; i < end; ++i) scratch.values[i - begin] = batch.scaled[i] / unit;
      values = scratch.values.data();
    }
    return {{times, count}, {values, count}};
  }
  // Whether the run's times grow, by at most max_jump each.
  bool rises(std::size_t r) const {
    const model::Batch::Run& run = batch.runs[r];
    if (batch.paces.empty()) return stream::rises({batch.times.data() + run.begin, run.end - run.begin}, max_jump);
    return batch.paces[r].step > model::Duration::zero() && batch.paces[r].step <= max_jump;
  }
  // Of the samples [i, end) of run r, whose times grow, the first with a time of at least `bound`; else end.
  std::uint32_t first_at_or_after(std::size_t r, std::uint32_t i, std::uint32_t end, model::Time bound) const {
    if (time(r, end - 1) < bound) return end;
    if (batch.paces.empty()) {
      const model::Time* const times = batch.times.data();
      return static_cast<std::uint32_t>(std::lower_bound(times + i, times + end, bound) - times);
    }
    const std::int64_t step = batch.paces[r].step.count();
    const std::int64_t steps = ((bound - time(r, i)).count() + step - 1) / step;
    return i + static_cast<std::uint32_t>(steps);
  }
};

}  // namespace orla::stream
