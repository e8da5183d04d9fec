// A random fleet, small enough to be run a thousand times: mostly one to four edges on disk or in memory, up to two
// levels of aggregators, one cloud; now and then dozens of nodes at several sites, up to three levels. Merge,
// across-series and chained rollups; every bound so low that it is met.
#pragma once

#include "absl/status/statusor.h"
#include "base/random.h"
#include "model/plan.h"

namespace orla::sim {

absl::StatusOr<model::Plan> random_plan(base::Random& random);

}  // namespace orla::sim
