// The rows of an input as the oracle reads them, one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/series.h"
#include "model/time.h"

namespace orla::verify {

struct Row {
  struct Sample {
    std::uint32_t series = 0;  // index into RowSource::series()
    model::Time time{};
    double value = 0;  // finite
  };
  std::uint64_t number = 0;        // 1, 2, 3, ... as model::Position counts: lines of a CSV file, rows of a generator
  std::vector<Sample> samples;     // of the series the input selects; may be empty
  const char* rejected = nullptr;  // why the row cannot be read, if so: then it is one rejected and has no samples
};

// Not thread-safe: one owner.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Overwrites `row` with the next one; false at the end.
  virtual absl::StatusOr<bool> next(Row& row) = 0;
  // The series met so far; grows with next().
  virtual const std::vector<model::Series>& series() const = 0;
};

}  // namespace orla::verify
