#include "store/rollup_rows.h"

#include <fmt/format.h>

#include "store/columns.h"

namespace orla::store {
namespace {

// The windows (or steps) of a rollup and where their rows begin and end.
absl::StatusOr<std::vector<WindowInfo>> infos(Database& database, std::int64_t rollup, std::string_view kinds,
                                              std::string_view rows) {
  // Two subqueries: SQLite answers min() and max() from the index only one at a time.
  absl::StatusOr<Statement> get =
      database.prepare(fmt::format("SELECT name,hidden,(SELECT min(start_ns) FROM {1} WHERE kind=k.id),"
                                   "(SELECT max(start_ns) FROM {1} WHERE kind=k.id) FROM ({0}) k ORDER BY k.id",
                                   kinds, rows));
  if (!get.ok()) return get.status();
  std::vector<WindowInfo> out;
  get->bind(1, rollup);
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    WindowInfo& info = out.emplace_back();
    info.name = std::string(get->text(0));
    info.hidden = get->integer(1) != 0;
    if (!get->is_null(2)) info.first = model::from_ns(get->integer(2));
    if (!get->is_null(3)) info.last = model::from_ns(get->integer(3));
  }
  if (!row.ok()) return row.status();
  return out;
}

absl::StatusOr<std::vector<std::string>> names_of(Database& database, std::string_view json) {
  absl::StatusOr<Statement> get = database.prepare("SELECT value FROM json_each(?1)");
  if (!get.ok()) return get.status();
  std::vector<std::string> out;
  get->bind_text(1, json);
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) out.emplace_back(get->text(0));
  if (!row.ok()) return row.status();
  return out;
}

}  // namespace

absl::StatusOr<std::vector<RollupInfo>> read_rollups(Database& database) {
  absl::StatusOr<Statement> get = database.prepare(
      "SELECT r.id,r.name,r.hidden,r.metric,r.unit,r.decimals,r.labels,r.across,r.allowed_lateness_ns,r.published_ns,"
      "(SELECT count(*) FROM groups g WHERE g.rollup=r.id),r.quantiles,r.distinct_labels FROM rollups r WHERE "
      "r.current=1 ORDER BY r.name");
  if (!get.ok()) return get.status();
  std::vector<RollupInfo> out;
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    RollupInfo& info = out.emplace_back();
    const std::int64_t number = get->integer(0);
    info.name = std::string(get->text(1));
    info.hidden = get->integer(2) != 0;
    info.metric = std::string(get->text(3));
    info.unit = std::string(get->text(4));
    info.decimals = static_cast<int>(get->integer(5));
    absl::StatusOr<std::vector<std::string>> labels = names_of(database, get->text(6));
    if (!labels.ok()) return labels.status();
    info.labels = *std::move(labels);
    info.across = std::string(get->text(7));
    info.allowed_lateness = model::Duration(get->integer(8));
    if (!get->is_null(9)) info.published = model::from_ns(get->integer(9));
    info.groups = from_column(get->integer(10));
    info.quantiles = get->integer(11) != 0;
    absl::StatusOr<std::vector<std::string>> distinct = names_of(database, get->text(12));
    if (!distinct.ok()) return distinct.status();
    info.distinct = *std::move(distinct);
    absl::StatusOr<std::vector<WindowInfo>> windows =
        infos(database, number, "SELECT id,window AS name,hidden FROM rollup_windows WHERE rollup=?1", "window_rows");
    if (!windows.ok()) return windows.status();
    info.windows = *std::move(windows);
    absl::StatusOr<std::vector<WindowInfo>> steps = infos(
        database, number, "SELECT id,step AS name,0 AS hidden FROM forecast_steps WHERE rollup=?1", "forecast_rows");
    if (!steps.ok()) return steps.status();
    info.steps = *std::move(steps);
  }
  if (!row.ok()) return row.status();
  return out;
}

}  // namespace orla::store
