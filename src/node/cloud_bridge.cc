#include "node/cloud_bridge.h"

#include <cstdint>
#include <string>
#include <utility>

namespace orla::node {

absl::StatusOr<std::vector<stream::LoadedRow>> StoredWindows::load(const std::string& table, const std::string& window,
                                                                   model::Time start) {
  absl::StatusOr<std::vector<store::WindowRow>> rows = store_.load_windows(table, window, start);
  if (!rows.ok()) return rows.status();
  std::vector<stream::LoadedRow> out;
  out.reserve(rows->size());
  for (store::WindowRow& row : *rows) out.push_back({std::move(row.labels), row.revision, std::move(row.state)});
  return out;
}

absl::StatusOr<std::optional<model::Time>> StoredWindows::next_start(const std::string& table,
                                                                     const std::string& window, model::Time from) {
  return store_.next_start(table, window, from);
}

stream::CloudPast past_of(const store::CloudRecovery& recovery) {
  stream::CloudPast past;
  for (const store::OriginRow& origin : recovery.origins) {
    past.edges.emplace_back(origin.cursor.node, origin.publications);
  }
  past.publication = recovery.publication;
  past.anchors = recovery.anchors;
  past.groups = recovery.groups;
  for (const store::StepProgress& step : recovery.steps) {
    past.steps.push_back({step.table, step.step_ns, step.next, step.last});
  }
  for (const store::ParkedRow& row : recovery.parked) past.parked.push_back({row.group, row.slice, row.partial});
  return past;
}

void add_changes(const model::Plan& plan, const stream::CloudChanges& changes, store::CloudCommit& commit) {
  commit.windows.reserve(changes.windows.size());
  // They come by table and window: the name is made once for each.
  std::size_t named_table = SIZE_MAX;
  std::size_t named_window = SIZE_MAX;
  std::string name;
  for (const stream::WindowChange& change : changes.windows) {
    const model::TableDef& table = plan.tables[change.table];
    if (change.table != named_table || change.window != named_window) {
      named_table = change.table;
      named_window = change.window;
      name = model::to_string(table.windows[change.window].spec);
    }
    const int decimals = table.across ? 0 : plan.fleet.metrics[table.metric].decimals;
    commit.windows.push_back({table.name, name, *change.labels, change.start, change.end,
                              model::statistics(*change.state, decimals), !table.across.has_value(), change.revision,
                              *change.state});
  }
  for (const auto& [table, time] : changes.publication) {
    commit.publication.emplace_back(plan.tables[table].name, time);
  }
  for (const auto& [table, time] : changes.anchors) commit.anchors.emplace_back(plan.tables[table].name, time);
  for (const stream::StepState& s : changes.steps) commit.steps.push_back({s.table, s.step_ns, s.next, s.last});
  for (const stream::StepActual& actual : changes.actuals) {
    const model::ForecastDef& forecast = plan.forecasts[actual.forecast];
    commit.actuals.push_back({plan.tables[forecast.table].name, forecast.steps[actual.step].length.count(),
                              *actual.labels, actual.start, actual.value});
  }
  for (const stream::ParkedPartial& p : changes.parked) commit.parked.push_back({p.group, p.slice, p.partial});
  commit.unparked = changes.unparked;
}

}  // namespace orla::node
