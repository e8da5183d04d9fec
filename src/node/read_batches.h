// The samples of a file as the batches that an edge would get, for benchmarks of what works on batches.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/batch.h"

namespace orla::node {

// A CSV file (.gz and .zst too) of the DEBS 2014 schema or, when its first line begins with the column "timestamp"
// (Unix seconds), with a column "w1", taken as one series. Batches hold samples, in runs per series, as the input gives
// them.
absl::StatusOr<std::vector<model::Batch>> read_batches(const std::string& path);

}  // namespace orla::node
