// A fleet's rollups, resolved: which partials edges produce (streams), and what the cloud makes of them (tables).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/fleet.h"
#include "model/sketches.h"

namespace orla::model {

// What edges produce and aggregators merge: partials of one metric by some labels, per slice. Every `merge` rollup is a
// stream, named as the rollup (one from another merge rollup reads the metric with its own `by`); an across-series
// rollup straight from a metric gets a stream of whole series, named "<metric>/series".
struct StreamDef {
  std::string name;
  std::size_t metric = 0;       // index into Fleet::metrics
  bool whole_series = false;    // group = all labels of the series, sorted by name; `by` is empty
  std::vector<std::string> by;  // a label the series lacks has the value ""
  Duration slice{};
  int decimals = 0;
  bool quantiles = false;
  std::vector<std::string> distinct;  // labels; one the series lacks has the value ""
  std::uint64_t definition = 0;       // hash of metric, by, slice, decimals, and of quantiles and distinct when set
  Duration emit{};

  SketchKinds sketches() const { return {quantiles, !distinct.empty()}; }
};

// What edges send of a metric of which every sample is kept, whichever rollups ask: samples of whole series.
struct RawStreamDef {
  std::string name;        // "<metric>/raw"
  std::size_t metric = 0;  // index into Fleet::metrics
  int decimals = 0;
  std::uint64_t definition = 0;  // hash of metric and decimals
};
// Samples are kept in blocks of so much event time; the groups of raw streams have it as their slice.
inline constexpr Duration kRawBlock = std::chrono::hours(1);
// How the name of a raw stream ends; no other stream's does, since names of rollups have no '/'.
inline constexpr std::string_view kRawSuffix = "/raw";
// The group of a series in its metric's raw stream.
GroupDef raw_group(const RawStreamDef& stream, const Series& series);
// The series that such a group stands for; nothing when it is of no raw stream.
std::optional<Series> raw_series(const GroupDef& group);

// One kind of window of one table. Hidden ones serve chains, forecasts and hopping windows and are not shown.
struct TableWindow {
  WindowSpec spec;
  bool hidden = false;
  // Of a paned kind in a merge table: index of the table's windows that it is put together from. They meet each of its
  // starts and ends, and are whole pieces of UTC.
  std::optional<std::size_t> pane = std::nullopt;
};

// Hopping windows of which more than four hold one sample. Their rows appear when they are published (and one open
// window's before that: the one that ends next); rows of all others appear with their first sample. In decision 7.
bool is_paned(const WindowSpec& spec);

// What the cloud keeps: a merge table holds a stream's partials per window; an across table holds, per window, the
// contributions of the groups of its source table.
struct TableDef {
  std::string name;                   // the rollup's name, or the stream's for a hidden table
  bool hidden = false;                // not declared by the user: "<metric>/series"
  std::optional<std::size_t> stream;  // merge tables: index into streams
  std::optional<std::size_t> source;  // across tables: index of an earlier table
  std::optional<Statistic> across;    // with `source`
  Statistic of = Statistic::kMean;    // read from a merge source; from an across source its `across` statistic is read
  std::vector<std::string> by;
  SketchKinds sketches;              // what its rows have beside sums
  std::size_t metric = 0;            // the root metric: unit, decimals, disorder, lateness
  std::vector<TableWindow> windows;  // declared ones, what forecasts and across tables reading this one need, and panes
};

struct ForecastDef {
  std::size_t table = 0;
  std::string model;
  struct Step {
    Duration length{};
    std::size_t window = 0;  // index into the table's windows
  };
  std::vector<Step> steps;
};

struct Plan {
  Fleet fleet;
  std::vector<StreamDef> streams;
  std::vector<TableDef> tables;  // sources before their readers
  std::vector<ForecastDef> forecasts;
  std::vector<std::vector<std::size_t>> streams_of_metric;  // by metric index
  std::vector<RawStreamDef> raw_streams;                    // by metric index, ascending

  const TableDef* table(std::string_view name) const;
  // Null when not every sample of the metric is kept.
  const RawStreamDef* raw_stream(std::size_t metric) const;
  // Edges with an input that can produce the metric: those whose publication the cloud waits for.
  std::vector<std::string> feeders(std::size_t metric) const;
};

// The fleet has passed every check of fleet_file.h.
Plan make_plan(Fleet fleet);

}  // namespace orla::model
