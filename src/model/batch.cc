#include "model/batch.h"

#include <algorithm>

#include "model/power_of_ten.h"

namespace orla::model {

Time Batch::newest() const {
  if (paces.empty()) return times.empty() ? kMinTime : *std::max_element(times.begin(), times.end());
  Time newest = kMinTime;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].begin == runs[r].end) continue;
    newest = std::max(newest, paces[r].start + paces[r].step * (std::int64_t{runs[r].end} - runs[r].begin - 1));
  }
  return newest;
}

void Batch::clear() {
  runs.clear();
  times.clear();
  paces.clear();
  values.clear();
  scaled.clear();
  decimals = 0;
}

void Batch::make_plain() {
  if (!paces.empty()) {
    times.resize(size());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      Time time = paces[r].start;
      for (std::uint32_t i = runs[r].begin; i < runs[r].end; ++i) {
        times[i] = time;
        if (i + 1 < runs[r].end) time += paces[r].step;
      }
    }
    paces.clear();
  }
  if (!scaled.empty()) {
    const double unit = power_of_ten(decimals);
    values.resize(scaled.size());
    for (std::size_t i = 0; i < scaled.size(); ++i) values[i] = scaled[i] / unit;
    scaled.clear();
    decimals = 0;
  }
}

}  // namespace orla::model
