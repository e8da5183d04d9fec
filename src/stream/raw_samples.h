// The accepted samples of raw streams since the last seal, as they came: runs are copied, nothing is looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/batch.h"
#include "model/series.h"

namespace orla::stream {

// Samples as they leave: runs in the order of groups, and of one group in order of acceptance. The batch's runs are
// numbered 0, 1, 2, ...; groups has that of each.
struct RawBatch {
  model::Batch samples;
  std::vector<model::GroupId> groups;
  model::Time from = model::kMaxTime;  // the least time
  model::Time last = model::kMinTime;  // the greatest
};

// Not thread-safe. Memory is used again.
class RawSamples {
 public:
  // Samples [begin, end) of the batch, which lie in its run `run`.
  void add(model::GroupId group, const model::Batch& batch, std::size_t run, std::uint32_t begin, std::uint32_t end);
  // decimals: of the metric; kept as an integer where the others are.
  void add(model::GroupId group, model::Time time, double value, int decimals);

  std::size_t size() const { return size_; }
  void clear();
  // Hands everything over, in batches of at most `most` samples.
  std::vector<RawBatch> take(std::size_t most);
  // The same of several that have no group in common, together.
  static std::vector<RawBatch> take(std::span<RawSamples* const> all, std::size_t most);

 private:
  // Samples of one form; the number of a run's series is its group's.
  model::Batch& part(bool paced, bool scaled, int decimals);
  // A part's runs, by group.
  struct Ordered {
    const model::Batch* part = nullptr;
    std::span<const std::uint32_t> runs;
  };
  Ordered ordered(const model::Batch& part);
  static void take_parts(std::vector<Ordered>& parts, std::size_t most, std::vector<RawBatch>& out);

  std::vector<model::Batch> parts_;  // the first used_ of them hold something
  std::size_t used_ = 0;
  std::size_t size_ = 0;
  std::vector<std::uint32_t> order_;   // scratch: runs of a part by group
  std::vector<std::uint32_t> counts_;  // scratch
};

}  // namespace orla::stream
