// Which windows a slice belongs to, computed from civil time alone.
//
// A day begins at its local midnight: the first instant of the civil day, which is the end of the gap where the clock
// skips midnight, and the first of the two where it repeats it. It ends where the next day begins.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "model/time.h"
#include "model/window.h"

namespace orla::verify {

struct Interval {
  model::Time start{};
  model::Time end{};
  friend bool operator==(const Interval&, const Interval&) = default;
};

// All windows [start, end) of this kind that hold `t`, by ascending start; one, but for hopping windows. kSteps has no
// meaning here (its numbering needs a stream's first day): nothing.
std::vector<Interval> windows_at(const model::WindowSpec& spec, model::Time t, const absl::TimeZone& zone);

}  // namespace orla::verify
