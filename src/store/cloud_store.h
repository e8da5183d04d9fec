// What the cloud keeps: cursors, windows, forecasts, what it cannot place yet. The schema is docs/cloud-schema.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/batch.h"
#include "model/chunk.h"
#include "model/loss.h"

namespace orla::store {

// One window of one group. `table` is a rollup's (or hidden table's) name and `window` model::to_string(WindowSpec).
struct WindowRow {
  std::string table;
  std::string window;
  std::vector<model::Label> labels;  // in the order of the table's `by`
  model::Time start{};
  model::Time end{};
  model::Statistics shown;
  bool has_order = true;  // first and last are meaningful (false for across tables: NULL)
  std::uint64_t revision = 0;
  model::Partial state;  // exact contents
};

struct ForecastRow {
  std::string table;
  std::int64_t step_ns = 0;
  std::vector<model::Label> labels;
  model::Time made_at{};  // start of step i
  model::Time start{};    // start of the target step i+2
  std::optional<double> predicted;
  std::string reason;  // why there is no prediction; empty when there is one
  std::optional<double> actual;
};

// What really happened in a step: changes `actual` of its forecast and nothing else; without a forecast, nothing.
struct ActualRow {
  std::string table;
  std::int64_t step_ns = 0;
  std::vector<model::Label> labels;
  model::Time start{};  // of the target step
  std::optional<double> actual;
};

// How far the steps of one length of one table have been published, whatever publication time says: steps are numbered
// and published one by one.
struct StepProgress {
  std::string table;
  std::int64_t step_ns = 0;
  model::Time next{};  // start of the next step to publish
  model::Time last{};  // start of the last step that holds data
  friend bool operator==(const StepProgress&, const StepProgress&) = default;
};

struct ParkedRow {  // partials whose definition the cloud does not know yet
  model::GroupDef group;
  model::Time slice{};
  model::Partial partial;
};

// An origin as the cloud knows it.
struct OriginRow {
  model::Cursor cursor;
  std::vector<model::Publication> publications;
  std::vector<std::pair<std::string, model::Ledger>> ledgers;
  std::vector<model::Loss> losses;  // by reason; of all its epochs
};

struct ClosedEpoch {
  model::NodeName node;
  model::Epoch epoch{};
  model::Sequence last = 0;
  std::vector<model::SequenceRange> tombstones = {};  // as of its last cursor
};

// Everything one commit changes.
struct CloudCommit {
  std::vector<OriginRow> origins;
  std::vector<ClosedEpoch> closed;
  std::vector<std::pair<model::NodeName, model::StateEntry>>
      states;                                                    // appended; a snapshot deletes the node's earlier ones
  std::vector<WindowRow> windows;                                // replace the row with the same key
  std::vector<ForecastRow> forecasts;                            // likewise
  std::vector<ActualRow> actuals;                                // after the forecasts
  std::vector<ParkedRow> parked;                                 // merged with what is parked
  std::vector<std::pair<std::string, std::uint64_t>> unparked;   // (stream, definition): delete what is parked
  std::vector<std::pair<std::string, model::Time>> publication;  // per table
  std::vector<std::pair<std::string, model::Time>> anchors;      // per table: where its steps are numbered from
  std::vector<StepProgress> steps;
  // Raw samples, appended in this order; the series of a run is an index into sample_series.
  std::vector<model::Series> sample_series;
  std::vector<model::Batch> samples;
};

struct CloudRecovery {
  std::vector<OriginRow> origins;
  std::vector<ClosedEpoch> closed;
  std::vector<std::pair<std::string, model::Time>> publication;
  std::vector<std::pair<std::string, model::Time>> anchors;
  std::vector<StepProgress> steps;
  std::vector<std::pair<std::string, std::vector<model::Label>>> groups;  // per table: every group it ever had
  std::vector<ParkedRow> parked;
};

// Not thread-safe: called on the owning node's loop. commit() is one transaction that survives SIGKILL and power loss.
class CloudStore {
 public:
  virtual ~CloudStore() = default;
  virtual absl::StatusOr<CloudRecovery> recover() = 0;
  virtual absl::Status commit(const CloudCommit& commit) = 0;
  // All rows of one window instance: (table, window, start). Of every row only labels, revision and state are filled.
  virtual absl::StatusOr<std::vector<WindowRow>> load_windows(const std::string& table, const std::string& window,
                                                              model::Time start) = 0;
  // The least start >= from of a window that has rows.
  virtual absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                                model::Time from) = 0;
  virtual absl::StatusOr<std::vector<model::StateEntry>> load_states(const model::NodeName& node) = 0;
};

}  // namespace orla::store
