#include "model/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/hash.h"
#include "model/zone.h"

namespace orla::model {
namespace {

// Windows that hold one sample, up to which each of them is kept up to date: to put them together would cost more.
constexpr std::int64_t kMostFolded = 4;

// Every part is preceded by its length, so that no two definitions give the same text.
std::uint64_t definition_hash(const StreamDef& stream, const std::string& metric) {
  std::string text;
  const auto put = [&](std::string_view part) { text += fmt::format("{}:{};", part.size(), part); };
  put(metric);
  put(stream.whole_series ? "series" : "by");
  for (const std::string& label : stream.by) put(label);
  text += fmt::format("slice_ns={};decimals={}", stream.slice.count(), stream.decimals);
  if (stream.quantiles) text += ";quantiles";
  if (!stream.distinct.empty()) {
    text += ";distinct=";
    for (const std::string& label : stream.distinct) put(label);
  }
  return base::hash64(text);
}

// The shorter of two emit intervals, where 0 means none.
Duration sooner(Duration a, Duration b) {
  if (a == Duration::zero()) return b;
  if (b == Duration::zero()) return a;
  return std::min(a, b);
}

// Index of the window in the table, added as a hidden one if it is not there.
std::size_t need_window(TableDef& table, const WindowSpec& spec) {
  const auto found =
      std::find_if(table.windows.begin(), table.windows.end(), [&](const TableWindow& w) { return w.spec == spec; });
  if (found != table.windows.end()) return static_cast<std::size_t>(found - table.windows.begin());
  table.windows.push_back({spec, true});
  return table.windows.size() - 1;
}

class Planner {
 public:
  explicit Planner(Fleet fleet) { plan_.fleet = std::move(fleet); }

  Plan run() {
    for (const RollupSpec& rollup : plan_.fleet.rollups) table_of(rollup);
    for (StreamDef& stream : plan_.streams) {
      stream.definition = definition_hash(stream, plan_.fleet.metrics[stream.metric].name);
    }
    add_forecasts();
    pass_windows_down();
    add_panes();
    plan_.streams_of_metric.resize(plan_.fleet.metrics.size());
    for (std::size_t i = 0; i < plan_.streams.size(); ++i) {
      plan_.streams_of_metric[plan_.streams[i].metric].push_back(i);
    }
    add_raw_streams();
    return std::move(plan_);
  }

 private:
  void add_raw_streams() {
    for (std::size_t m = 0; m < plan_.fleet.metrics.size(); ++m) {
      const MetricSpec& metric = plan_.fleet.metrics[m];
      if (std::none_of(plan_.fleet.rollups.begin(), plan_.fleet.rollups.end(),
                       [&](const RollupSpec& r) { return r.keep_raw && r.metric == metric.name; }))
        continue;
      RawStreamDef raw;
      raw.name = metric.name + std::string(kRawSuffix);
      raw.metric = m;
      raw.decimals = metric.decimals;
      raw.definition =
          base::hash64(fmt::format("{}:{};raw;decimals={}", metric.name.size(), metric.name, raw.decimals));
      plan_.raw_streams.push_back(std::move(raw));
    }
  }

  std::size_t metric_index(const std::string& name) const {
    return static_cast<std::size_t>(plan_.fleet.metric(name) - plan_.fleet.metrics.data());
  }

  std::size_t root_metric(const RollupSpec& rollup) const {
    const RollupSpec* at = &rollup;
    while (!at->from.empty()) at = plan_.fleet.rollup(at->from);
    return metric_index(at->metric);
  }

  std::optional<std::size_t> find_table(std::string_view name) const {
    for (std::size_t i = 0; i < plan_.tables.size(); ++i) {
      if (plan_.tables[i].name == name) return i;
    }
    return std::nullopt;
  }

  // Adds the rollup's table, after its source's, unless it is there already.
  std::size_t table_of(const RollupSpec& rollup) {
    if (const auto known = find_table(rollup.name)) return *known;
    TableDef table;
    table.name = rollup.name;
    table.by = rollup.by;
    table.metric = root_metric(rollup);
    for (const WindowSpec& spec : rollup.windows) table.windows.push_back({spec, false});
    if (!rollup.from.empty()) {
      // A merge rollup reads the metric itself; its source still comes first, so that tables read like the file.
      const std::size_t source = table_of(*plan_.fleet.rollup(rollup.from));
      if (rollup.across) table.source = source;
    } else if (rollup.across) {
      table.source = whole_series_table(rollup, table.metric);
    }
    if (rollup.across) {
      table.across = rollup.across;
      table.of = rollup.of;
      table.sketches.quantiles = rollup.quantiles;
      emit_below(*table.source, rollup.emit);
    } else {
      StreamDef stream;
      stream.name = rollup.name;
      stream.metric = table.metric;
      stream.by = rollup.by;
      stream.slice = rollup.slice;
      stream.decimals = plan_.fleet.metrics[table.metric].decimals;
      stream.emit = rollup.emit;
      stream.quantiles = rollup.quantiles;
      stream.distinct = rollup.distinct;
      table.sketches = stream.sketches();
      table.stream = plan_.streams.size();
      plan_.streams.push_back(std::move(stream));
    }
    plan_.tables.push_back(std::move(table));
    return plan_.tables.size() - 1;
  }

  // The hidden table of whole series of a metric. Across rollups with different slices share it: its slice is the
  // longest that makes up all of theirs.
  std::size_t whole_series_table(const RollupSpec& reader, std::size_t metric) {
    const MetricSpec& spec = plan_.fleet.metrics[metric];
    const std::string name = spec.name + "/series";
    if (const auto known = find_table(name)) {
      StreamDef& stream = plan_.streams[*plan_.tables[*known].stream];
      stream.slice = Duration(std::gcd(stream.slice.count(), reader.slice.count()));
      return *known;
    }
    StreamDef stream;
    stream.name = name;
    stream.metric = metric;
    stream.whole_series = true;
    stream.slice = reader.slice;
    stream.decimals = spec.decimals;
    TableDef table;
    table.name = name;
    table.hidden = true;
    table.stream = plan_.streams.size();
    table.metric = metric;
    plan_.streams.push_back(std::move(stream));
    plan_.tables.push_back(std::move(table));
    return plan_.tables.size() - 1;
  }

  // An across rollup shows open windows as often as it asks only if the stream below it is sent that often.
  void emit_below(std::size_t table, Duration emit) {
    while (plan_.tables[table].source) table = *plan_.tables[table].source;
    StreamDef& stream = plan_.streams[*plan_.tables[table].stream];
    stream.emit = sooner(stream.emit, emit);
  }

  void add_forecasts() {
    if (plan_.fleet.forecasts.empty()) return;
    const std::vector<Duration> offsets = utc_offsets(plan_.fleet.zone).value();
    for (const ForecastSpec& spec : plan_.fleet.forecasts) {
      for (const std::string& rollup : spec.of) {
        ForecastDef forecast;
        forecast.table = *find_table(rollup);
        forecast.model = spec.model;
        for (const Duration length : spec.steps) {
          forecast.steps.push_back({length, need_window(plan_.tables[forecast.table], step_window(length, offsets))});
        }
        plan_.forecasts.push_back(std::move(forecast));
      }
    }
  }

  // The plain window that coincides with steps of this length, if no clock change ever moves midnights against them.
  static WindowSpec step_window(Duration length, const std::vector<Duration>& offsets) {
    if (!tiles_days(length, offsets)) return {WindowSpec::Kind::kSteps, length, {}};
    if (length == std::chrono::hours(24)) return {WindowSpec::Kind::kDay, {}, {}};
    return {WindowSpec::Kind::kElapsed, length, {}};
  }

  // An across table reads the same windows of its source. Sources come before readers, so one pass from the back does.
  void pass_windows_down() {
    for (std::size_t i = plan_.tables.size(); i-- > 0;) {
      const TableDef& table = plan_.tables[i];
      if (!table.source) continue;
      for (const TableWindow& window : table.windows) need_window(plan_.tables[*table.source], window.spec);
    }
  }

  // The longest pieces of UTC that meet every local midnight, and so every start and end of the window.
  void add_panes() {
    for (TableDef& table : plan_.tables) {
      if (!table.stream) continue;
      for (std::size_t w = 0; w < table.windows.size(); ++w) {
        const WindowSpec spec = table.windows[w].spec;
        if (!is_paned(spec)) continue;
        Duration pane(
            std::gcd(std::gcd(spec.size.count(), spec.hop.count()), Duration(std::chrono::hours(24)).count()));
        const std::vector<Duration> offsets = utc_offsets(plan_.fleet.zone).value();
        for (const Duration offset : offsets) pane = Duration(std::gcd(pane.count(), offset.count()));
        const std::size_t number = need_window(table, step_window(pane, offsets));
        table.windows[w].pane = number;
      }
    }
  }

  Plan plan_;
};

}  // namespace

bool is_paned(const WindowSpec& spec) {
  return spec.kind == WindowSpec::Kind::kHopping && spec.size > kMostFolded * spec.hop;
}

const TableDef* Plan::table(std::string_view name) const {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const TableDef& t) { return t.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

const RawStreamDef* Plan::raw_stream(std::size_t metric) const {
  const auto found = std::find_if(raw_streams.begin(), raw_streams.end(),
                                  [&](const RawStreamDef& raw) { return raw.metric == metric; });
  return found == raw_streams.end() ? nullptr : &*found;
}

GroupDef raw_group(const RawStreamDef& stream, const Series& series) {
  GroupDef group;
  group.stream = stream.name;
  group.definition = stream.definition;
  group.slice_ns = kRawBlock.count();
  group.decimals = stream.decimals;
  group.labels = series.labels;
  return group;
}

std::optional<Series> raw_series(const GroupDef& group) {
  if (!std::string_view(group.stream).ends_with(kRawSuffix)) return std::nullopt;
  return Series{group.stream.substr(0, group.stream.size() - kRawSuffix.size()), group.labels};
}

std::vector<std::string> Plan::feeders(std::size_t metric) const {
  const std::string& name = fleet.metrics[metric].name;
  std::vector<std::string> edges;
  for (const NodeSpec& node : fleet.nodes) {
    const bool feeds = std::any_of(fleet.inputs.begin(), fleet.inputs.end(), [&](const InputSpec& input) {
      if (input.node != node.name) return false;
      const std::vector<std::string> metrics = metrics_of(input);
      return std::find(metrics.begin(), metrics.end(), name) != metrics.end();
    });
    if (feeds) edges.push_back(node.name);
  }
  return edges;
}

Plan make_plan(Fleet fleet) { return Planner(std::move(fleet)).run(); }

}  // namespace orla::model
