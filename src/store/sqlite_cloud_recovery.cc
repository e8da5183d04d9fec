// SqliteCloudStore::recover(): everything but the windows and forecasts, read back.
#include "store/columns.h"
#include "store/origin_rows.h"
#include "store/sqlite_cloud_store.h"

namespace orla::store {

absl::StatusOr<CloudRecovery> SqliteCloudStore::recover() {
  CloudRecovery out;
  absl::StatusOr<std::vector<OriginRow>> origins = read_origins(*database_);
  if (!origins.ok()) return origins.status();
  out.origins = *std::move(origins);
  absl::StatusOr<Statement> closed = database_->prepare("SELECT node,epoch,last FROM closed_epochs");
  if (!closed.ok()) return closed.status();
  absl::StatusOr<bool> row = closed->step();
  for (; row.ok() && *row; row = closed->step()) {
    out.closed.push_back(
        {std::string(closed->text(0)), model::Epoch(from_hex(closed->text(1))), from_column(closed->integer(2)), {}});
  }
  absl::Status status = row.status();
  for (ClosedEpoch& one : out.closed) {
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<model::SequenceRange>> tombstones = read_tombstones(*database_, one.node, one.epoch);
    if (tombstones.ok()) one.tombstones = *std::move(tombstones);
    status = tombstones.status();
  }
  if (status.ok()) status = recover_tables(out);
  if (status.ok()) status = recover_parked(out);
  if (!status.ok()) return status;
  return out;
}

absl::Status SqliteCloudStore::recover_tables(CloudRecovery& into) {
  absl::StatusOr<Statement> rollups =
      database_->prepare("SELECT id,name,published_ns,anchor_ns FROM rollups WHERE current=1 ORDER BY id");
  if (!rollups.ok()) return rollups.status();
  absl::flat_hash_map<std::int64_t, std::string> name_of;
  absl::StatusOr<bool> row = rollups->step();
  for (; row.ok() && *row; row = rollups->step()) {
    const std::string name(rollups->text(1));
    name_of[rollups->integer(0)] = name;
    if (!rollups->is_null(2)) into.publication.emplace_back(name, model::from_ns(rollups->integer(2)));
    if (!rollups->is_null(3)) into.anchors.emplace_back(name, model::from_ns(rollups->integer(3)));
  }
  if (!row.ok()) return row.status();

  absl::StatusOr<Statement> steps = database_->prepare(
      "SELECT rollup,step_ns,next_ns,last_ns FROM forecast_steps WHERE next_ns IS NOT NULL ORDER BY id");
  if (!steps.ok()) return steps.status();
  for (row = steps->step(); row.ok() && *row; row = steps->step()) {
    const auto name = name_of.find(steps->integer(0));
    if (name == name_of.end()) continue;
    into.steps.push_back(
        {name->second, steps->integer(1), model::from_ns(steps->integer(2)), model::from_ns(steps->integer(3))});
  }
  if (!row.ok()) return row.status();

  absl::StatusOr<Statement> groups = database_->prepare("SELECT id,rollup FROM groups ORDER BY id");
  if (!groups.ok()) return groups.status();
  for (row = groups->step(); row.ok() && *row; row = groups->step()) {
    const auto name = name_of.find(groups->integer(1));
    if (name == name_of.end()) continue;
    into.groups.emplace_back(name->second, labels_.at(groups->integer(0)));
  }
  return row.status();
}

absl::Status SqliteCloudStore::recover_parked(CloudRecovery& into) {
  absl::StatusOr<Statement> get = database_->prepare(
      "SELECT g.stream,g.definition,g.slice_ns,g.decimals,g.labels_key,r.slice_ns,r.partial"
      " FROM parked_groups g JOIN parked_rows r ON r.grp=g.id ORDER BY g.id,r.slice_ns");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    absl::StatusOr<std::vector<model::Label>> labels = labels_of(get->blob(4));
    absl::StatusOr<model::Partial> partial = partial_of(get->blob(6));
    if (!labels.ok()) return labels.status();
    if (!partial.ok()) return partial.status();
    ParkedRow parked;
    parked.group = {std::string(get->text(0)), from_hex(get->text(1)), get->integer(2),
                    static_cast<int>(get->integer(3)), *std::move(labels)};
    parked.slice = model::from_ns(get->integer(5));
    parked.partial = *std::move(partial);
    into.parked.push_back(std::move(parked));
  }
  return row.status();
}

absl::StatusOr<std::optional<model::Time>> SqliteCloudStore::next_start(const std::string& name,
                                                                        const std::string& window, model::Time from) {
  absl::StatusOr<CatalogTable*> entry = table(name);
  if (!entry.ok()) return entry.status();
  const auto kind = (*entry)->windows.find(window);
  if (kind == (*entry)->windows.end()) return std::nullopt;
  absl::StatusOr<bool> row = get_next_.bind(1, kind->second).bind(2, model::to_ns(from)).step();
  if (!row.ok()) return row.status();
  std::optional<model::Time> out;
  if (*row && !get_next_.is_null(0)) out = model::from_ns(get_next_.integer(0));
  get_next_.reset();
  return out;
}

}  // namespace orla::store
