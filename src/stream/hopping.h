// Hopping windows of merge tables, put together from panes (docs/decisions/0007-hopping-windows.md).
//
// A slice's row is folded into its pane, a hidden window that hopping ones with the same borders share. A window is
// computed from its panes when it is published, and the one open window that ends next is computed as soon as data
// lies in its last hop. A window that was computed is kept up to date like any other: later rows are folded into it.
// So a row that is there is exact, and one that ends by computed_to() is there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan.h"
#include "stream/calendar.h"
#include "stream/hop_sweep.h"
#include "stream/window_cache.h"

namespace orla::stream {

struct HoppingLimits {
  std::size_t rows_per_advance = 100'000;  // that advance() computes; but always one window of each kind
  std::size_t sums = 1'000'000;            // in memory after advance(); beyond it they are made anew when needed
};

// Owned by the CloudEngine, which it serves between fold() and take_changes(). Not thread-safe.
class HoppingWindows {
 public:
  // All outlive it.
  HoppingWindows(const model::Plan& plan, WindowCache& cache, Calendar& calendar, HoppingLimits limits);

  // The windows of a paned kind that hold the slice and were computed, and so must be kept up to date; `published`: of
  // the kind's metric, as committed. `out` is replaced. An error of the loader.
  absl::Status computed(std::size_t table, std::size_t window, model::Time slice, model::Time published,
                        std::vector<Window>& out);
  // The kinds of one table that have sums of a pane with this slice in them: give them to add().
  void holding(std::size_t table, model::Time slice, std::vector<std::size_t>& out) const;
  void add(std::size_t kind, model::Time slice, std::uint32_t group, const model::Partial& more) {
    kinds_[kind].sweep.add(slice, group, more);
  }
  // Rows of this slice were folded into a table's panes.
  void saw(std::size_t table, model::Time slice);

  // Computes what is published at `to` and was not yet, into the cache. Returns how far that is done: `to`, or less
  // when it would be too much at once; then the metric is published so far only, and it is to be called again. After an
  // error of the loader it can be called again.
  absl::StatusOr<model::Time> advance(std::size_t metric, model::Time published, model::Time to);

  std::size_t sums() const;
  std::uint64_t merges() const;

 private:
  struct Kind {
    std::size_t table = 0;
    std::size_t window = 0;
    std::size_t pane = 0;  // window of the same table
    model::WindowSpec spec;
    HopSweep sweep;
    // Windows that end by it are computed. Nothing: not looked up since the start.
    std::optional<model::Time> computed_to;
    model::Time newest = model::kMinTime;  // slice folded since the start
  };

  absl::Status begin(Kind& kind, model::Time published);
  absl::StatusOr<std::optional<Window>> next(const Kind& kind, model::Time by);
  absl::StatusOr<std::size_t> compute(Kind& kind, const Window& window);
  absl::Status show_open(Kind& kind, model::Time to);
  void bound_sums();

  const model::Plan& plan_;
  WindowCache& cache_;
  Calendar& calendar_;
  const HoppingLimits limits_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<std::size_t>> kinds_of_table_;
};

}  // namespace orla::stream
