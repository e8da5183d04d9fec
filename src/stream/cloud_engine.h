// What the cloud makes of partials: windows of merge tables, windows across series, publication, and the steps that
// forecasts are made for. Pure: time is an argument, and rows that left the cache come back through a WindowLoader.
//
// A commit of the cloud is: fold() and heard() for some frames, then take_changes(), whose contents are written in one
// transaction together with the frames' cursors, then committed(). If writing fails, the same contents are written
// again later; until committed() nothing can be folded.
//
// The state after a set of partials does not depend on their order or split: windows hold exact sums, windows across
// series are computed from their sources' windows, never updated from themselves.
//
// Bounded by CloudLimits. Not thread-safe: owned by a node's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/chunk.h"
#include "model/plan.h"
#include "stream/cloud_publication.h"
#include "stream/hopping.h"
#include "stream/step_progress.h"
#include "stream/window_cache.h"

namespace orla::stream {

struct CloudLimits {
  // Rows of unchanged windows are forgotten beyond it; about 150 bytes each.
  std::size_t cached_window_rows = 1'000'000;
  std::size_t groups = 1'000'000;     // of all streams; beyond it intern() refuses
  std::size_t parked_rows = 100'000;  // beyond it fold() refuses
  // Forecast steps that one take_changes() publishes, per step length, and groups times steps; but always one step.
  std::size_t steps_per_change = 32;
  std::size_t step_rows_per_change = 100'000;
  // Rows of hopping windows that one take_changes() publishes, per metric; but always one window.
  std::size_t hopping_rows_per_change = 100'000;
  // Sums of panes kept for the next hopping windows; beyond it they are made anew when needed. About 120 bytes each.
  std::size_t hopping_sums = 1'000'000;
};

// A partial whose definition is not the plan's.
struct ParkedPartial {
  model::GroupDef group;
  model::Time slice{};
  model::Partial partial;
};

// What a cloud that starts again knows (store::CloudRecovery).
struct CloudPast {
  std::vector<std::pair<model::NodeName, std::vector<model::Publication>>> edges;
  std::vector<std::pair<std::string, model::Time>> publication;  // per table
  std::vector<std::pair<std::string, model::Time>> anchors;      // per table
  std::vector<StepState> steps;
  std::vector<std::pair<std::string, std::vector<model::Label>>> groups;  // per table
  std::vector<ParkedPartial> parked;
};

// One changed row. Pointers are good until committed().
struct WindowChange {
  std::size_t table = 0;   // index into Plan::tables
  std::size_t window = 0;  // index into its windows
  model::Time start{};
  model::Time end{};
  const std::vector<model::Label>* labels = nullptr;
  const model::Partial* state = nullptr;
  std::uint64_t revision = 0;
};

// A forecast step whose end has been published: predict step `target` for the forecast's table.
struct PublishedStep {
  std::size_t forecast = 0;  // index into Plan::forecasts
  std::size_t step = 0;      // index into its steps
  model::Time start{};       // of step i
  model::Time target{};      // start of step i+2
};

// What really happened in a published step, for the forecast of it if there is one. Pointer good until committed().
struct StepActual {
  std::size_t forecast = 0;
  std::size_t step = 0;
  model::Time start{};
  const std::vector<model::Label>* labels = nullptr;
  double value = 0;
};

struct CloudChanges {
  std::vector<WindowChange> windows;                             // by table, window, start, group
  std::vector<std::pair<std::size_t, model::Time>> publication;  // per table whose publication changed
  std::vector<std::pair<std::size_t, model::Time>> anchors;      // per table whose anchor changed
  std::vector<StepState> steps;
  std::vector<PublishedStep> published;  // of one step length in order
  std::vector<StepActual> actuals;       // apply them after the predictions for `published`
  std::vector<ParkedPartial> parked;
  std::vector<std::pair<std::string, std::uint64_t>> unparked;  // (stream, definition) folded meanwhile
  bool more = false;  // the limits held something back: take_changes() again soon, even without new frames
};

// What a prediction is made from, for one group of the step's table.
struct StepInput {
  const std::vector<model::Label>* labels = nullptr;  // stable for the engine's life
  std::optional<double> current;                      // avgL of step i
  std::vector<double> history;                        // of the same time of day of earlier days, where present
};

class CloudEngine {
 public:
  // `plan` and `loader` outlive it. `now` is when silence of edges is counted from.
  static absl::StatusOr<std::unique_ptr<CloudEngine>> create(const model::Plan& plan, WindowLoader& loader,
                                                             CloudLimits limits, CloudPast past, base::SteadyTime now);
  CloudEngine(const CloudEngine&) = delete;
  CloudEngine& operator=(const CloudEngine&) = delete;

  // The engine's number of a group. InvalidArgument when it names a definition of the plan and contradicts it,
  // ResourceExhausted at the limit.
  absl::StatusOr<model::GroupId> intern(const model::GroupDef& group);

  // Adds the rows to every window they lie in that is kept row by row (hopping.h says which are not); rows of unknown
  // definitions are parked. On an error nothing happened: InvalidArgument for rows that cannot be (an unknown number, a
  // slice that is none), ResourceExhausted at the bound of parked rows, FailedPrecondition between take_changes() and
  // committed(), and what the loader says.
  absl::Status fold(const model::PartialRows& rows);

  // A frame of this edge was folded: it is not silent, and says how far it has published.
  void heard(const model::NodeName& edge, const std::vector<model::Publication>& publications, base::SteadyTime now);

  // Everything that changed since the last call. After an error (of the loader) it can be called again.
  absl::StatusOr<CloudChanges> take_changes(base::SteadyTime now);
  // What take_changes() returned is kept for good.
  void committed();

  // Rows changed since take_changes(): a node commits before they are too many.
  std::size_t changed_rows() const { return cache_.changed_rows(); }
  std::size_t cached_rows() const { return cache_.cached_rows(); }
  std::size_t parked_rows() const { return parked_count_; }
  const HoppingWindows& hopping() const { return hopping_; }
  model::Time publication(std::size_t table) const { return publication_.of(plan_.tables[table].metric); }

  // For every group of the step's table, in the order of its numbers. Contains what take_changes() returned.
  absl::StatusOr<std::vector<StepInput>> step_inputs(const PublishedStep& step);

 private:
  struct Group {
    std::optional<std::size_t> stream;    // of the plan; none: parked
    std::vector<std::uint32_t> in_table;  // number in each table of tables_of_stream_[*stream]
    model::GroupDef definition;
  };

  CloudEngine(const model::Plan& plan, WindowLoader& loader, CloudLimits limits, Calendar calendar,
              base::SteadyTime now);
  absl::Status restore(CloudPast past);
  model::Duration length_of(const StepProgress& progress) const;
  absl::StatusOr<std::optional<std::size_t>> stream_of(const model::GroupDef& group) const;
  absl::Status check(const model::PartialRow& row) const;
  void move_anchor(std::size_t metric, model::Time slice);
  absl::Status advance_hopping(std::vector<model::Time>& published, CloudChanges& changes);
  absl::Status evaluate_across();
  absl::Status evaluate_across(std::size_t table, std::size_t window);
  void collect_windows(CloudChanges& changes);
  absl::Status collect_steps(const std::vector<model::Time>& published, std::vector<StepProgress>& progress,
                             CloudChanges& changes);
  absl::Status publish_steps(model::Time published, StepProgress& at, CloudChanges& changes);
  void put_actuals(const StepProgress& at, const WindowInstance& instance, const std::vector<std::uint32_t>& groups,
                   CloudChanges& changes) const;
  double value(std::size_t table, const model::Partial& partial) const;

  const model::Plan& plan_;
  const CloudLimits limits_;
  Calendar calendar_;
  CloudPublication publication_;
  WindowCache cache_;
  HoppingWindows hopping_;
  std::vector<std::vector<std::size_t>> tables_of_stream_;
  std::vector<Group> groups_;
  absl::flat_hash_map<std::string, model::GroupId> group_ids_;  // by identity
  std::vector<model::Time> anchors_;                            // per metric; kMinTime: none yet
  std::vector<model::Time> kept_anchors_;                       // per table, as taken last
  std::vector<model::Time> kept_publications_;                  // per table, as taken last
  std::vector<StepProgress> progress_;                          // every step of every forecast
  std::vector<ParkedPartial> parked_;
  std::vector<std::pair<std::string, std::uint64_t>> unparked_;
  std::size_t parked_count_ = 0;
  bool taken_ = false;  // between take_changes() and committed()
};

}  // namespace orla::stream
