// What the cloud must hold, computed directly from the rows of the inputs: the rules of the design under "Semantics",
// on code that shares only `model` with the engine (its plain types and the plan, not its sums or partials).
//
//   Oracle oracle = *Oracle::create(plan);
//   for each input: oracle.read(index, {position, ended}, *open_csv_rows(plan.fleet.inputs[index]));
//   oracle.finish();
//   Comparison comparison(oracle); ...                       (compare.h)
//
// Scope. Windows of declared rollups, in the windows their rollups declare; hidden tables and windows, which serve
// chains and forecasts, are computed only where a declared one needs them. Of each input the ledger as it must be:
// `dropped` is 0. Every input keeps acceptance state of its own: where two inputs of one edge carry the same series,
// the engine's decision about late ones depends on how they interleave, which nobody can repeat; such series are named
// in shared_series().
//
// Memory: one cell (about 300 bytes) per window and group; with quantiles 8 bytes per sample and window that holds it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/batch.h"
#include "model/ledger.h"
#include "model/plan.h"
#include "verify/acceptance.h"
#include "verify/rows.h"
#include "verify/sheet.h"

namespace orla::verify {

// Where an input stood when the fleet had drained.
struct InputEnd {
  model::Position position;
  bool ended = false;  // there was nothing more to read; else held samples are still undecided
};

// One window as it must be shown.
struct ExpectedWindow {
  model::Time end{};
  model::Statistics shown;
  bool has_order = true;  // false: first and last are null (across-series rollups)
  // How far a quantile may be from that in `shown`, as a part of it, and the distinct count.
  double quantile_error = 0;
  double distinct_error = 0;
};

// Not thread-safe. `plan` outlives it.
class Oracle {
 public:
  static absl::StatusOr<std::unique_ptr<Oracle>> create(const model::Plan& plan);

  // Takes the rows up to the position; each input once. An error when the rows cannot be read that far.
  absl::Status read(std::size_t input, const InputEnd& end, RowSource& rows);
  // After the last input: computes the across-series rollups.
  void finish();

  // All below: after finish().

  // A declared rollup's declared window kind.
  struct Table {
    std::string name;    // of the rollup
    std::string window;  // model::to_string(WindowSpec)
    bool across = false;
    bool quantiles = false;
    bool distinct = false;
    int decimals = 0;
    const Groups* groups = nullptr;
    const Sheet* sheet = nullptr;
  };
  const std::vector<Table>& tables() const { return tables_; }
  ExpectedWindow expected(const Table& table, const Cell& cell) const;

  // A series of a metric that is kept raw, and its accepted samples as a multiset of raw_hash().
  struct RawSeries {
    model::Series series;
    model::SetDigest samples;
    friend bool operator==(const RawSeries&, const RawSeries&) = default;
  };
  using RawSamples = std::map<std::string, RawSeries>;
  // By identity of the series.
  const RawSamples& raw_series() const { return raw_series_; }
  static std::uint64_t raw_hash(std::string_view identity, model::Time time, double value);

  // By input key; only inputs that were read.
  const std::map<std::string, model::Ledger>& ledgers() const { return ledgers_; }
  // "edge-1: load{plug=7}", at most 20 of them.
  const std::vector<std::string>& shared_series() const { return shared_series_; }
  std::size_t shared_series_count() const { return shared_series_count_; }

 private:
  // A table's windows of one kind. Merge tables are filled by samples, across tables by finish().
  struct Filled {
    std::size_t table = 0;  // index into plan.tables
    model::WindowSpec spec;
    Sheet sheet;
    bool done = false;
    bool quantiles = false;
    bool distinct = false;
    // The windows of the slice looked up last.
    model::Time last_slice = model::kMinTime;
    std::vector<Interval> last_windows;
  };
  // What the samples of one series go into.
  struct Target {
    std::uint32_t group = 0;
    std::size_t filled = 0;  // index into filled_
    model::Duration slice{};
    model::Time last_slice = model::kMinTime;
    std::vector<Cell*> last_cells;
    std::string thing;  // that the group counts once
  };
  struct SeriesState {
    bool matched = false;  // some rollup wants it
    int decimals = 0;
    model::Duration allowed_lateness{};
    std::string identity;
    Acceptance acceptance;
    std::vector<Target> targets;
    RawSeries* raw = nullptr;  // its metric is kept raw
  };

  Oracle(const model::Plan& plan, absl::TimeZone zone) : plan_(plan), zone_(zone) {}
  std::size_t need(std::size_t table, const model::WindowSpec& spec);
  SeriesState new_series(std::size_t input, const model::Series& series);
  void apply(SeriesState& series, const Acceptance::Decided& decided, model::Ledger& ledger);
  void fold(SeriesState& series, const TimedValue& sample);
  void evaluate_across(std::size_t filled);
  int decimals_of(std::size_t table) const;

  const model::Plan& plan_;
  const absl::TimeZone zone_;
  std::vector<std::unique_ptr<Groups>> groups_;  // by table
  std::vector<std::unique_ptr<Filled>> filled_;
  std::vector<Table> tables_;
  std::map<std::string, model::Ledger> ledgers_;
  std::map<std::pair<std::string, std::string>, std::size_t> first_input_;  // (node, series identity) -> input
  RawSamples raw_series_;
  std::vector<std::string> shared_series_;
  std::size_t shared_series_count_ = 0;
};

}  // namespace orla::verify
