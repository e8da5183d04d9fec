#include "store/cloud_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace orla::store {
namespace {

// An expression for nanoseconds as RFC 3339 text in UTC, with nine digits after the second only where they are needed.
std::string rfc3339(std::string_view ns) {
  constexpr std::string_view kForm =
      "CASE WHEN {0} % 1000000000 = 0 THEN strftime('%Y-%m-%dT%H:%M:%SZ', {0} / 1000000000, 'unixepoch') "
      "ELSE strftime('%Y-%m-%dT%H:%M:%S', ({0} - ({0} % 1000000000 + 1000000000) % 1000000000) / 1000000000, "
      "'unixepoch') || printf('.%09dZ', ({0} % 1000000000 + 1000000000) % 1000000000) END";
  return fmt::format(fmt::runtime(kForm), ns);
}

constexpr char kTables[] = R"sql(
CREATE TABLE info(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE rollups(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  definition TEXT NOT NULL,
  current INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  metric TEXT NOT NULL,
  unit TEXT NOT NULL,
  decimals INTEGER NOT NULL,
  labels TEXT NOT NULL,
  across TEXT,
  allowed_lateness_ns INTEGER NOT NULL,
  published_ns INTEGER,
  anchor_ns INTEGER,
  UNIQUE(name, definition));

CREATE TABLE rollup_windows(
  id INTEGER PRIMARY KEY,
  rollup INTEGER NOT NULL REFERENCES rollups(id),
  window TEXT NOT NULL,
  hidden INTEGER NOT NULL,
  UNIQUE(rollup, window));

CREATE TABLE groups(
  id INTEGER PRIMARY KEY,
  rollup INTEGER NOT NULL REFERENCES rollups(id),
  labels TEXT NOT NULL,
  key BLOB NOT NULL,
  UNIQUE(rollup, key));

CREATE TABLE window_rows(
  kind INTEGER NOT NULL REFERENCES rollup_windows(id),
  start_ns INTEGER NOT NULL,
  grp INTEGER NOT NULL REFERENCES groups(id),
  end_ns INTEGER NOT NULL,
  count INTEGER NOT NULL,
  sum REAL, min REAL, max REAL, mean REAL, stddev REAL, first REAL, last REAL,
  revision INTEGER NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY(kind, start_ns, grp)) WITHOUT ROWID;

CREATE TABLE forecast_steps(
  id INTEGER PRIMARY KEY,
  rollup INTEGER NOT NULL REFERENCES rollups(id),
  step TEXT NOT NULL,
  step_ns INTEGER NOT NULL,
  next_ns INTEGER,
  last_ns INTEGER,
  UNIQUE(rollup, step_ns));

CREATE TABLE forecast_rows(
  kind INTEGER NOT NULL REFERENCES forecast_steps(id),
  start_ns INTEGER NOT NULL,
  grp INTEGER NOT NULL REFERENCES groups(id),
  made_at_ns INTEGER NOT NULL,
  predicted REAL,
  reason TEXT NOT NULL,
  actual REAL,
  PRIMARY KEY(kind, start_ns, grp)) WITHOUT ROWID;

CREATE TABLE cursors(
  node TEXT PRIMARY KEY,
  epoch TEXT NOT NULL,
  last INTEGER NOT NULL,
  chain TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE closed_epochs(
  node TEXT NOT NULL,
  epoch TEXT NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY(node, epoch)) WITHOUT ROWID;

CREATE TABLE edge_publications(
  node TEXT NOT NULL,
  metric TEXT NOT NULL,
  published_ns INTEGER NOT NULL,
  PRIMARY KEY(node, metric)) WITHOUT ROWID;

CREATE TABLE ledgers(
  node TEXT NOT NULL,
  input TEXT NOT NULL,
  received INTEGER NOT NULL,
  aggregated INTEGER NOT NULL,
  unmatched INTEGER NOT NULL,
  late INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  held INTEGER NOT NULL,
  late_set TEXT NOT NULL,
  rejected_set TEXT NOT NULL,
  PRIMARY KEY(node, input)) WITHOUT ROWID;

CREATE TABLE ledger_reasons(
  node TEXT NOT NULL,
  input TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('rejected', 'dropped')),
  reason TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY(node, input, kind, reason)) WITHOUT ROWID;

CREATE TABLE states(
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  node TEXT NOT NULL,
  snapshot INTEGER NOT NULL,
  bytes BLOB NOT NULL);
CREATE INDEX states_by_node ON states(node, number);

CREATE TABLE parked_groups(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  stream TEXT NOT NULL,
  definition TEXT NOT NULL,
  slice_ns INTEGER NOT NULL,
  decimals INTEGER NOT NULL,
  labels TEXT NOT NULL,
  labels_key BLOB NOT NULL);
CREATE INDEX parked_by_definition ON parked_groups(stream, definition);

CREATE TABLE parked_rows(
  grp INTEGER NOT NULL REFERENCES parked_groups(id),
  slice_ns INTEGER NOT NULL,
  partial BLOB NOT NULL,
  PRIMARY KEY(grp, slice_ns)) WITHOUT ROWID;
)sql";

// New in version 2.
constexpr char kTombstoneTables[] = R"sql(
CREATE TABLE tombstones(
  node TEXT NOT NULL,
  epoch TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY(node, epoch, first)) WITHOUT ROWID;

CREATE TABLE lost_chunks(
  node TEXT NOT NULL,
  reason TEXT NOT NULL,
  chunks INTEGER NOT NULL,
  PRIMARY KEY(node, reason)) WITHOUT ROWID;

CREATE TABLE lost_samples(
  node TEXT NOT NULL,
  reason TEXT NOT NULL,
  input TEXT NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY(node, reason, input)) WITHOUT ROWID;
)sql";

// New in version 3: of rollups that ask for sketches.
constexpr char kSketchColumns[] = R"sql(
ALTER TABLE rollups ADD COLUMN quantiles INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN distinct_labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE window_rows ADD COLUMN p50 REAL;
ALTER TABLE window_rows ADD COLUMN p90 REAL;
ALTER TABLE window_rows ADD COLUMN p99 REAL;
ALTER TABLE window_rows ADD COLUMN p999 REAL;
ALTER TABLE window_rows ADD COLUMN distinct_count INTEGER;
)sql";

// New in version 4.
constexpr char kSampleTables[] = R"sql(
CREATE TABLE sample_metrics(
  metric TEXT PRIMARY KEY,
  current INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE sample_series(
  id INTEGER PRIMARY KEY,
  metric TEXT NOT NULL,
  labels TEXT NOT NULL,
  key BLOB NOT NULL,
  UNIQUE(metric, key));

CREATE TABLE sample_blocks(
  id INTEGER PRIMARY KEY,
  series INTEGER NOT NULL REFERENCES sample_series(id),
  hour_ns INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL,
  count INTEGER NOT NULL,
  samples BLOB NOT NULL);
CREATE INDEX sample_blocks_by_hour ON sample_blocks(series, hour_ns);

CREATE TABLE sample_tail(
  id INTEGER PRIMARY KEY,
  count INTEGER NOT NULL,
  samples BLOB NOT NULL);

ALTER TABLE lost_chunks ADD COLUMN raw_samples INTEGER NOT NULL DEFAULT 0;
)sql";

// CROSS JOIN keeps SQLite to this order of loops: names first, then one range of the big table.
std::string views() {
  return fmt::format(
      R"sql(
CREATE VIEW windows AS
  SELECT r.name AS rollup, k.window AS window, g.labels AS labels, {0} AS start, {1} AS "end", w.start_ns AS start_ns,
         w.end_ns AS end_ns, w.count AS count, w.sum AS sum, w.min AS min, w.max AS max, w.mean AS mean,
         w.stddev AS stddev, w.first AS first, w.last AS last, w.p50 AS p50, w.p90 AS p90, w.p99 AS p99,
         w.p999 AS p999, w.distinct_count AS distinct_count, w.revision AS revision,
         coalesce(r.published_ns >= w.end_ns + r.allowed_lateness_ns, 0) AS final
  FROM rollups r CROSS JOIN rollup_windows k ON k.rollup = r.id CROSS JOIN window_rows w ON w.kind = k.id
       CROSS JOIN groups g ON g.id = w.grp
  WHERE r.current = 1 AND r.hidden = 0 AND k.hidden = 0;

CREATE VIEW forecasts AS
  SELECT r.name AS rollup, s.step AS step, g.labels AS labels, {2} AS made_at, {3} AS start, {4} AS "end",
         f.made_at_ns AS made_at_ns, f.start_ns AS start_ns, f.start_ns + s.step_ns AS end_ns,
         f.predicted AS predicted, f.actual AS actual, f.predicted - f.actual AS error, f.reason AS reason
  FROM rollups r CROSS JOIN forecast_steps s ON s.rollup = r.id CROSS JOIN forecast_rows f ON f.kind = s.id
       CROSS JOIN groups g ON g.id = f.grp
  WHERE r.current = 1 AND r.hidden = 0;

CREATE VIEW publication AS
  SELECT name AS rollup, metric, published_ns,
         CASE WHEN published_ns = 9223372036854775807 THEN 'everything' ELSE {5} END AS published
  FROM rollups WHERE current = 1 AND hidden = 0;
)sql",
      rfc3339("w.start_ns"), rfc3339("w.end_ns"), rfc3339("f.made_at_ns"), rfc3339("f.start_ns"),
      rfc3339("(f.start_ns + s.step_ns)"), rfc3339("published_ns"));
}

std::string_view name_of(model::Statistic statistic) {
  switch (statistic) {
    case model::Statistic::kSum:
      return "sum";
    case model::Statistic::kMin:
      return "min";
    case model::Statistic::kMax:
      return "max";
    case model::Statistic::kMean:
      return "mean";
    case model::Statistic::kLast:
      return "last";
  }
  return "";
}

// The number of the table under its present definition.
absl::StatusOr<std::int64_t> rollup_number(Database& database, const model::Plan& plan, const model::TableDef& table) {
  const model::MetricSpec& metric = plan.fleet.metrics[table.metric];
  const std::string definition = definition_text(plan, table);
  absl::StatusOr<Statement> put = database.prepare(
      "INSERT INTO rollups(name,definition,current,hidden,metric,unit,decimals,labels,across,allowed_lateness_ns,"
      "quantiles,distinct_labels) VALUES(?1,?2,1,?3,?4,?5,?6,?7,?8,?9,?10,?11) ON CONFLICT(name,definition) DO UPDATE "
      "SET current=1,hidden=?3,unit=?5,"
      "allowed_lateness_ns=?9 RETURNING id");
  if (!put.ok()) return put.status();
  const std::string labels = names_json(table.by);
  const std::string distinct =
      names_json(table.stream ? plan.streams[*table.stream].distinct : std::vector<std::string>());
  put->bind_text(1, table.name)
      .bind_text(2, definition)
      .bind(3, table.hidden ? 1 : 0)
      .bind_text(4, metric.name)
      .bind_text(5, metric.unit)
      .bind(6, metric.decimals)
      .bind_text(7, labels)
      .bind(9, metric.allowed_lateness.count())
      .bind(10, table.sketches.quantiles ? 1 : 0)
      .bind_text(11, distinct);
  if (table.across) {
    put->bind_text(8, name_of(*table.across));
  } else {
    put->bind_null(8);
  }
  absl::StatusOr<bool> row = put->step();
  if (!row.ok()) return row.status();
  const std::int64_t id = put->integer(0);
  const absl::Status status = put->run();
  if (!status.ok()) return status;
  return id;
}

absl::Status check_fleet(Database& database, const std::string& fleet) {
  absl::StatusOr<Statement> get = database.prepare("SELECT value FROM info WHERE name='fleet'");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  if (!row.ok()) return row.status();
  if (*row) {
    if (get->text(0) == fleet) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{}: found the windows of fleet \"{}\", expected \"{}\"; use another state directory",
                    database.path(), get->text(0), fleet));
  }
  absl::StatusOr<Statement> put = database.prepare("INSERT INTO info VALUES('fleet',?1)");
  if (!put.ok()) return put.status();
  return put->bind_text(1, fleet).run();
}

absl::Status register_windows(Database& database, const model::TableDef& table, CatalogTable& entry) {
  absl::Status status =
      database.execute(fmt::format("UPDATE rollup_windows SET hidden=1 WHERE rollup={}", entry.rollup));
  if (!status.ok()) return status;
  absl::StatusOr<Statement> put = database.prepare(
      "INSERT INTO rollup_windows(rollup,window,hidden) VALUES(?1,?2,?3)"
      " ON CONFLICT(rollup,window) DO UPDATE SET hidden=?3 RETURNING id");
  if (!put.ok()) return put.status();
  for (const model::TableWindow& window : table.windows) {
    const std::string name = model::to_string(window.spec);
    absl::StatusOr<bool> row = put->bind(1, entry.rollup).bind_text(2, name).bind(3, window.hidden ? 1 : 0).step();
    if (!row.ok()) return row.status();
    entry.windows[name] = put->integer(0);
    status = put->run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status register_samples(Database& database, const model::Plan& plan) {
  absl::Status status = database.execute("UPDATE sample_metrics SET current=0");
  if (!status.ok()) return status;
  absl::StatusOr<Statement> put = database.prepare("INSERT OR REPLACE INTO sample_metrics VALUES(?1,1)");
  if (!put.ok()) return put.status();
  for (const model::RawStreamDef& raw : plan.raw_streams) {
    status = put->bind_text(1, plan.fleet.metrics[raw.metric].name).run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status register_steps(Database& database, const model::ForecastDef& forecast, CatalogTable& entry) {
  absl::StatusOr<Statement> put = database.prepare(
      "INSERT INTO forecast_steps(rollup,step,step_ns) VALUES(?1,?2,?3)"
      " ON CONFLICT(rollup,step_ns) DO UPDATE SET step=?2 RETURNING id");
  if (!put.ok()) return put.status();
  for (const model::ForecastDef::Step& step : forecast.steps) {
    const std::string name = model::to_string(step.length);
    absl::StatusOr<bool> row = put->bind(1, entry.rollup).bind_text(2, name).bind(3, step.length.count()).step();
    if (!row.ok()) return row.status();
    entry.steps[step.length.count()] = put->integer(0);
    const absl::Status status = put->run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::string cloud_schema() {
  return std::string(kTables) + kTombstoneTables + kSketchColumns + kSampleTables + views();
}

absl::Status upgrade_cloud_schema(Database& database) {
  absl::StatusOr<std::int64_t> version = database.number("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*version < 1 || *version >= kCloudSchemaVersion) return absl::OkStatus();
  absl::StatusOr<Transaction> transaction = Transaction::begin(database);
  if (!transaction.ok()) return transaction.status();
  absl::Status status = *version < 2 ? database.execute(kTombstoneTables) : absl::OkStatus();
  if (status.ok() && *version < 3) {
    status = database.execute(kSketchColumns);
    if (status.ok()) status = database.execute("DROP VIEW windows; DROP VIEW forecasts; DROP VIEW publication");
    if (status.ok()) status = database.execute(views());
  }
  if (status.ok()) status = database.execute(kSampleTables);
  if (status.ok()) status = database.execute(fmt::format("PRAGMA user_version={}", kCloudSchemaVersion));
  if (!status.ok()) return status;
  return transaction->commit();
}

absl::StatusOr<std::unique_ptr<Database>> open_cloud_file(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Database>> database = Database::open(path, OpenMode::kReadOnly);
  if (!database.ok()) {
    return absl::Status(absl::IsUnavailable(database.status()) ? absl::StatusCode::kNotFound : database.status().code(),
                        database.status().message());
  }
  absl::StatusOr<std::int64_t> version = (*database)->number("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*version != kCloudSchemaVersion) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: found schema version {}, expected {}: no cloud has written it yet, or one of another version of this "
        "program",
        path, *version, kCloudSchemaVersion));
  }
  return database;
}

std::string definition_text(const model::Plan& plan, const model::TableDef& table) {
  std::string out;
  if (table.stream) {
    const model::StreamDef& stream = plan.streams[*table.stream];
    out = fmt::format("stream {:016x} ({} by {} per {}, decimals {})", stream.definition,
                      plan.fleet.metrics[stream.metric].name, stream.whole_series ? "series" : names_json(stream.by),
                      model::to_string(stream.slice), stream.decimals);
    return out + fmt::format(" in {}", plan.fleet.zone);
  }
  const model::TableDef& source = plan.tables[*table.source];
  // An across source contributes its own statistic, whatever `of` says.
  const std::string_view of = name_of(source.across ? *source.across : table.of);
  return fmt::format("{} of {} by {} from [{}]{}", name_of(*table.across), of, names_json(table.by),
                     definition_text(plan, source), table.sketches.quantiles ? " with quantiles" : "");
}

absl::StatusOr<Catalog> register_plan(Database& database, const model::Plan& plan) {
  absl::Status status = check_fleet(database, plan.fleet.name);
  if (status.ok()) status = database.execute("UPDATE rollups SET current=0");
  if (!status.ok()) return status;
  Catalog catalog;
  for (const model::TableDef& table : plan.tables) {
    absl::StatusOr<std::int64_t> number = rollup_number(database, plan, table);
    if (!number.ok()) return number.status();
    auto entry = std::make_unique<CatalogTable>();
    entry->rollup = *number;
    entry->has_order = table.across ? HasOrder::kNo : HasOrder::kYes;
    status = register_windows(database, table, *entry);
    if (!status.ok()) return status;
    catalog[table.name] = std::move(entry);
  }
  status = register_samples(database, plan);
  if (!status.ok()) return status;
  for (const model::ForecastDef& forecast : plan.forecasts) {
    status = register_steps(database, forecast, *catalog[plan.tables[forecast.table].name]);
    if (!status.ok()) return status;
  }
  return catalog;
}

}  // namespace orla::store
