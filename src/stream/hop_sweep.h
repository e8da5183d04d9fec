// Sums over a window that moves forward through panes: two stacks, of which the front one keeps few of its sums.
//
// The panes in the window are cut in two. Of the later ones, the back, there is one sum per group, to which each new
// pane is merged. Of the earlier ones, the front, there are sums from some pane to the end of the front. A window that
// starts at a pane of the front is that sum and the back's: two merges. When the front is used up, what is in the back
// becomes the new front. So a pane is merged once when it enters the back and once when it becomes part of the front,
// and nothing is ever subtracted: O(1) merges per pane and group, amortized, with any commutative monoid (the "two
// stacks" of Tangwongsan, Hirzel, Schneider: Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time, DEBS
// 2017).
//
// Sums from every pane of the front would be as many as there are panes, 1,440 of a day by minutes. Kept are those from
// every sqrt(n)-th pane on, and within the one stretch that the window's start lies in, those from each pane to the end
// of the stretch. A stretch is summed up, from its panes, when the start enters it: a third merge per pane. So a group
// needs 2 sqrt(n) + 1 sums.
//
// What is added to a pane that was merged already is merged to each sum that the pane is part of: at most 2 sqrt(n).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "model/partial.h"
#include "model/time.h"
#include "stream/calendar.h"

namespace orla::stream {

// Groups are dense numbers. A value; time is an argument. Not thread-safe.
class HopSweep {
 public:
  using Visit = absl::FunctionRef<void(std::uint32_t group, const model::Partial& partial)>;
  // Visits all groups of the pane that starts at `start`; those without samples may be left out.
  using ReadPane = absl::FunctionRef<absl::Status(model::Time start, Visit visit)>;

  // Windows start and end at multiples of `pane`, counted in UTC. size > 0.
  HopSweep(model::Duration pane, model::Duration size);

  // To the panes of this window. Neither its start nor its end lies before those of the last move; then, and after an
  // error, which is read_pane's, all of its panes are read.
  absl::Status move(const Window& window, ReadPane read_pane);

  // The groups with samples in the window of the last move, ascending, and their sums.
  void visit(Visit visit);

  // Whether a row of this slice is in a pane that was read already: then it is to be added here, too.
  bool holds(model::Time slice) const { return number(slice) >= first_ && number(slice) < end_; }
  void add(model::Time slice, std::uint32_t group, const model::Partial& more);

  // Everything is read again at the next move.
  void forget();

  std::size_t sums() const;                         // held in memory: about 120 bytes each
  std::uint64_t merges() const { return merges_; }  // since construction

 private:
  using Sums = std::vector<model::Partial>;  // by group number; those beyond the end are empty

  std::int64_t number(model::Time t) const;
  void merge(Sums& into, std::uint32_t group, const model::Partial& more);
  void merge(Sums& into, const Sums& more);
  absl::Status read(std::int64_t pane, Sums& into, ReadPane read_pane);
  absl::Status flip(std::int64_t first, ReadPane read_pane);
  absl::Status open_stretch(ReadPane read_pane);

  model::Duration pane_;
  std::int64_t stretch_;  // panes
  // Panes by their numbers: [first_, middle_) are the front, [middle_, end_) the back.
  std::int64_t first_ = 0;
  std::int64_t middle_ = 0;
  std::int64_t end_ = 0;
  Sums back_;
  std::vector<Sums> from_;   // [k]: of [middle_ - (k + 1) * stretch_, middle_)
  std::deque<Sums> within_;  // [i]: of [first_ + i, within_end_)
  std::int64_t within_end_ = 0;
  std::uint64_t merges_ = 0;
};

}  // namespace orla::stream
