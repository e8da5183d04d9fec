#include "store/sqlite_cloud_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/columns.h"

namespace orla::store {
namespace {

constexpr char kLockName[] = "lock";

void bind_optional(Statement& statement, int at, std::optional<double> value) {
  if (value) {
    statement.bind_real(at, *value);
  } else {
    statement.bind_null(at);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteCloudStore>> SqliteCloudStore::open(const std::string& directory,
                                                                         const model::Plan& plan,
                                                                         CloudStoreOptions options) {
  absl::StatusOr<base::FileLock> lock = base::FileLock::acquire(directory + "/" + kLockName);
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<Database>> database =
      Database::open(directory + "/" + kCloudFileName, OpenMode::kReadWrite);
  if (!database.ok()) return database.status();
  absl::Status status = (*database)->set_up_writer(options.fsync, options.max_bytes);
  if (status.ok()) status = upgrade_cloud_schema(**database);
  if (status.ok()) status = create_or_check_version(**database, kCloudSchemaVersion, cloud_schema());
  if (!status.ok()) return status;
  std::unique_ptr<SqliteCloudStore> store(
      new SqliteCloudStore(std::move(*lock), std::move(*database), std::move(options)));

  absl::StatusOr<Transaction> transaction = Transaction::begin(*store->database_);
  if (!transaction.ok()) return transaction.status();
  absl::StatusOr<Catalog> catalog = register_plan(*store->database_, plan);
  if (!catalog.ok()) return catalog.status();
  status = transaction->commit();
  if (!status.ok()) return status;
  store->catalog_ = *std::move(catalog);
  status = store->prepare();
  if (status.ok()) status = store->samples_.prepare();
  if (status.ok()) status = store->load_groups();
  if (!status.ok()) return status;
  return store;
}

absl::Status SqliteCloudStore::prepare() {
  return prepare_all(
      *database_,
      {{&put_group_, "INSERT INTO groups VALUES(?1,?2,?3,?4)"},
       {&put_window_,
        "INSERT OR REPLACE INTO window_rows "
        "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)"},
       {&get_windows_,
        "SELECT grp,revision,count,min,max,first,last,state FROM window_rows WHERE kind=?1 AND start_ns=?2"},
       {&get_next_, "SELECT min(start_ns) FROM window_rows WHERE kind=?1 AND start_ns>=?2"},
       {&put_forecast_, "INSERT OR REPLACE INTO forecast_rows VALUES(?1,?2,?3,?4,?5,?6,?7)"},
       {&put_actual_, "UPDATE forecast_rows SET actual=?4 WHERE kind=?1 AND start_ns=?2 AND grp=?3"},
       {&put_cursor_, "INSERT OR REPLACE INTO cursors VALUES(?1,?2,?3,?4)"},
       {&put_publication_, "INSERT OR REPLACE INTO edge_publications VALUES(?1,?2,?3)"},
       {&put_ledger_, "INSERT OR REPLACE INTO ledgers VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"},
       {&drop_reasons_, "DELETE FROM ledger_reasons WHERE node=?1 AND input=?2"},
       {&put_reason_, "INSERT INTO ledger_reasons VALUES(?1,?2,?3,?4,?5)"},
       {&put_closed_, "INSERT OR REPLACE INTO closed_epochs VALUES(?1,?2,?3)"},
       {&drop_tombstones_, "DELETE FROM tombstones WHERE node=?1 AND epoch=?2"},
       {&put_tombstone_, "INSERT INTO tombstones VALUES(?1,?2,?3,?4)"},
       {&put_lost_chunks_, "INSERT OR REPLACE INTO lost_chunks VALUES(?1,?2,?3,?4)"},
       {&put_lost_samples_, "INSERT OR REPLACE INTO lost_samples VALUES(?1,?2,?3,?4)"},
       {&put_state_, "INSERT INTO states(node,snapshot,bytes) VALUES(?1,?2,?3)"},
       {&drop_states_, "DELETE FROM states WHERE node=?1"},
       {&get_states_, "SELECT snapshot,bytes FROM states WHERE node=?1 ORDER BY number"},
       {&get_parked_group_, "SELECT id FROM parked_groups WHERE key=?1"},
       {&put_parked_group_,
        "INSERT INTO parked_groups(key,stream,definition,slice_ns,decimals,labels,labels_key)"
        " VALUES(?1,?2,?3,?4,?5,?6,?7) RETURNING id"},
       {&get_parked_row_, "SELECT partial FROM parked_rows WHERE grp=?1 AND slice_ns=?2"},
       {&put_parked_row_, "INSERT OR REPLACE INTO parked_rows VALUES(?1,?2,?3)"},
       {&drop_parked_rows_,
        "DELETE FROM parked_rows WHERE grp IN (SELECT id FROM parked_groups WHERE stream=?1 AND definition=?2)"},
       {&drop_parked_groups_, "DELETE FROM parked_groups WHERE stream=?1 AND definition=?2"},
       {&set_published_, "UPDATE rollups SET published_ns=?2 WHERE id=?1"},
       {&set_anchor_, "UPDATE rollups SET anchor_ns=?2 WHERE id=?1"},
       {&set_progress_, "UPDATE forecast_steps SET next_ns=?2,last_ns=?3 WHERE id=?1"}});
}

absl::Status SqliteCloudStore::load_groups() {
  absl::StatusOr<Statement> get = database_->prepare("SELECT id,rollup,key FROM groups ORDER BY id");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    const std::int64_t number = get->integer(0);
    absl::StatusOr<std::vector<model::Label>> labels = labels_of(get->blob(2));
    if (!labels.ok()) return labels.status();
    groups_[get->integer(1)][std::string(get->blob(2))] = number;
    labels_[number] = *std::move(labels);
    next_group_ = std::max(next_group_, number + 1);
  }
  return row.status();
}

absl::StatusOr<CatalogTable*> SqliteCloudStore::table(const std::string& name) const {
  const auto found = catalog_.find(name);
  if (found != catalog_.end()) return found->second.get();
  return absl::InvalidArgumentError(fmt::format("{}: no rollup \"{}\" in the fleet file", database_->path(), name));
}

absl::StatusOr<std::int64_t> SqliteCloudStore::step(const std::string& name, std::int64_t step_ns) const {
  absl::StatusOr<CatalogTable*> entry = table(name);
  if (!entry.ok()) return entry.status();
  const auto found = (*entry)->steps.find(step_ns);
  if (found != (*entry)->steps.end()) return found->second;
  return absl::InvalidArgumentError(fmt::format("{}: rollup \"{}\" has no forecast with steps of {}", database_->path(),
                                                name, model::to_string(model::Duration(step_ns))));
}

absl::StatusOr<std::int64_t> SqliteCloudStore::group(const CatalogTable& table,
                                                     const std::vector<model::Label>& labels) {
  key_.clear();
  put_labels(key_, labels);
  Groups& known = groups_[table.rollup];
  const auto found = known.find(key_);
  if (found != known.end()) return found->second;
  const std::int64_t number = next_group_;
  const std::string json = labels_json(labels);
  const absl::Status status =
      put_group_.bind(1, number).bind(2, table.rollup).bind_text(3, json).bind_blob(4, key_).run();
  if (!status.ok()) return status;
  ++next_group_;
  known[key_] = number;
  labels_[number] = labels;
  new_groups_.emplace_back(table.rollup, key_);
  return number;
}

absl::Status SqliteCloudStore::commit(const CloudCommit& commit) {
  absl::StatusOr<Transaction> transaction = Transaction::begin(*database_);
  if (!transaction.ok()) return transaction.status();
  absl::Status status = write(commit);
  if (status.ok()) status = transaction->commit();
  status.ok() ? samples_.kept() : samples_.given_up();
  if (!status.ok()) {
    // The numbers given out are not in the file.
    for (const auto& [rollup, key] : new_groups_) {
      const auto found = groups_[rollup].find(key);
      labels_.erase(found->second);
      groups_[rollup].erase(found);
      --next_group_;
    }
  }
  new_groups_.clear();
  return status;
}

absl::Status SqliteCloudStore::write(const CloudCommit& commit) {
  absl::Status status;
  for (const OriginRow& origin : commit.origins) {
    status = write_origin(origin);
    if (!status.ok()) return status;
  }
  for (const ClosedEpoch& closed : commit.closed) {
    const std::string epoch = hex(closed.epoch);
    status = put_closed_.bind_text(1, closed.node).bind_text(2, epoch).bind(3, to_column(closed.last)).run();
    if (status.ok()) status = write_tombstones(closed.node, closed.epoch, closed.tombstones);
    if (!status.ok()) return status;
  }
  for (const auto& [node, entry] : commit.states) {
    if (entry.snapshot) status = drop_states_.bind_text(1, node).run();
    if (status.ok()) {
      status = put_state_.bind_text(1, node).bind(2, entry.snapshot ? 1 : 0).bind_blob(3, entry.bytes).run();
    }
    if (!status.ok()) return status;
  }
  status = write_windows(commit.windows);
  if (status.ok()) status = write_forecasts(commit);
  if (status.ok()) status = write_parked(commit);
  if (status.ok()) status = write_progress(commit);
  if (status.ok()) status = samples_.write(commit.sample_series, commit.samples);
  return status;
}

absl::Status SqliteCloudStore::write_origin(const OriginRow& origin) {
  const model::NodeName& node = origin.cursor.node;
  const std::string epoch = hex(origin.cursor.epoch);
  const std::string chain = hex(origin.cursor.chain);
  absl::Status status = put_cursor_.bind_text(1, node)
                            .bind_text(2, epoch)
                            .bind(3, to_column(origin.cursor.last))
                            .bind_text(4, chain)
                            .run();
  for (const model::Publication& publication : origin.publications) {
    if (!status.ok()) return status;
    status = put_publication_.bind_text(1, node)
                 .bind_text(2, publication.metric)
                 .bind(3, model::to_ns(publication.time))
                 .run();
  }
  for (const auto& [input, ledger] : origin.ledgers) {
    if (!status.ok()) return status;
    const std::string late = hex(ledger.late.sum);
    const std::string rejected = hex(ledger.rejected_set.sum);
    status = put_ledger_.bind_text(1, node)
                 .bind_text(2, input)
                 .bind(3, to_column(ledger.received))
                 .bind(4, to_column(ledger.aggregated))
                 .bind(5, to_column(ledger.unmatched))
                 .bind(6, to_column(ledger.late.count))
                 .bind(7, to_column(ledger.rejected_set.count))
                 .bind(8, to_column(ledger.dropped_total()))
                 .bind(9, to_column(ledger.held))
                 .bind_text(10, late)
                 .bind_text(11, rejected)
                 .run();
    if (status.ok()) status = drop_reasons_.bind_text(1, node).bind_text(2, input).run();
    const auto put_reasons = [&, &key = input](std::string_view kind, const model::ReasonCounts& counts) {
      for (const auto& [reason, count] : counts) {
        if (!status.ok()) return;
        status = put_reason_.bind_text(1, node)
                     .bind_text(2, key)
                     .bind_text(3, kind)
                     .bind_text(4, reason)
                     .bind(5, to_column(count))
                     .run();
      }
    };
    put_reasons("rejected", ledger.rejected);
    put_reasons("dropped", ledger.dropped);
  }
  if (status.ok()) status = write_tombstones(node, origin.cursor.epoch, origin.cursor.tombstones);
  for (const model::Loss& loss : origin.losses) {
    if (!status.ok()) return status;
    status = put_lost_chunks_.bind_text(1, node)
                 .bind_text(2, loss.reason)
                 .bind(3, to_column(loss.chunks))
                 .bind(4, to_column(loss.raw_samples))
                 .run();
    for (const auto& [input, samples] : loss.samples) {
      if (!status.ok()) return status;
      status = put_lost_samples_.bind_text(1, node)
                   .bind_text(2, loss.reason)
                   .bind_text(3, input)
                   .bind(4, to_column(samples))
                   .run();
    }
  }
  return status;
}

// Within an epoch there is never one less, so there is nothing to do without any.
absl::Status SqliteCloudStore::write_tombstones(const model::NodeName& node, model::Epoch epoch,
                                                const std::vector<model::SequenceRange>& tombstones) {
  if (tombstones.empty()) return absl::OkStatus();
  const std::string text = hex(epoch);
  absl::Status status = drop_tombstones_.bind_text(1, node).bind_text(2, text).run();
  for (const model::SequenceRange& range : tombstones) {
    if (!status.ok()) return status;
    status = put_tombstone_.bind_text(1, node)
                 .bind_text(2, text)
                 .bind(3, to_column(range.first))
                 .bind(4, to_column(range.last))
                 .run();
  }
  return status;
}

absl::Status SqliteCloudStore::write_windows(const std::vector<WindowRow>& rows) {
  // Rows of one window follow each other: its names are looked up once.
  const WindowRow* before = nullptr;
  const CatalogTable* entry = nullptr;
  std::int64_t kind = 0;
  for (const WindowRow& row : rows) {
    if (before == nullptr || before->window != row.window || before->table != row.table) {
      absl::StatusOr<CatalogTable*> found = table(row.table);
      if (!found.ok()) return found.status();
      entry = *found;
      const auto window = entry->windows.find(row.window);
      if (window == entry->windows.end()) {
        return absl::InvalidArgumentError(fmt::format("{}: rollup \"{}\" has no window \"{}\" in the fleet file",
                                                      database_->path(), row.table, row.window));
      }
      kind = window->second;
      before = &row;
    }
    absl::StatusOr<std::int64_t> number = group(*entry, row.labels);
    if (!number.ok()) return number.status();
    const HasOrder has_order = row.has_order ? HasOrder::kYes : HasOrder::kNo;
    window_state(state_, row.state, row.start, has_order);
    put_window_.bind(1, kind)
        .bind(2, model::to_ns(row.start))
        .bind(3, *number)
        .bind(4, model::to_ns(row.end))
        .bind(5, to_column(row.shown.count))
        .bind_real(6, row.shown.sum)
        .bind_real(7, row.shown.min)
        .bind_real(8, row.shown.max)
        .bind_real(9, row.shown.mean)
        .bind_real(10, row.shown.stddev)
        .bind(13, to_column(row.revision))
        .bind_blob(14, state_);
    bind_optional(put_window_, 15, row.shown.p50);
    bind_optional(put_window_, 16, row.shown.p90);
    bind_optional(put_window_, 17, row.shown.p99);
    bind_optional(put_window_, 18, row.shown.p999);
    if (row.shown.distinct) {
      put_window_.bind(19, to_column(*row.shown.distinct));
    } else {
      put_window_.bind_null(19);
    }
    if (row.has_order) {
      put_window_.bind_real(11, row.shown.first).bind_real(12, row.shown.last);
    } else {
      put_window_.bind_null(11).bind_null(12);
    }
    const absl::Status status = put_window_.run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SqliteCloudStore::write_forecasts(const CloudCommit& commit) {
  for (const ForecastRow& row : commit.forecasts) {
    absl::StatusOr<std::int64_t> kind = step(row.table, row.step_ns);
    if (!kind.ok()) return kind.status();
    absl::StatusOr<std::int64_t> number = group(*catalog_.find(row.table)->second, row.labels);
    if (!number.ok()) return number.status();
    put_forecast_.bind(1, *kind)
        .bind(2, model::to_ns(row.start))
        .bind(3, *number)
        .bind(4, model::to_ns(row.made_at))
        .bind_text(6, row.reason);
    bind_optional(put_forecast_, 5, row.predicted);
    bind_optional(put_forecast_, 7, row.actual);
    const absl::Status status = put_forecast_.run();
    if (!status.ok()) return status;
  }
  for (const ActualRow& row : commit.actuals) {
    absl::StatusOr<std::int64_t> kind = step(row.table, row.step_ns);
    if (!kind.ok()) return kind.status();
    absl::StatusOr<std::int64_t> number = group(*catalog_.find(row.table)->second, row.labels);
    if (!number.ok()) return number.status();
    put_actual_.bind(1, *kind).bind(2, model::to_ns(row.start)).bind(3, *number);
    bind_optional(put_actual_, 4, row.actual);
    const absl::Status status = put_actual_.run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SqliteCloudStore::write_parked(const CloudCommit& commit) {
  for (const auto& [stream, definition] : commit.unparked) {
    const std::string hash = hex(definition);
    absl::Status status = drop_parked_rows_.bind_text(1, stream).bind_text(2, hash).run();
    if (status.ok()) status = drop_parked_groups_.bind_text(1, stream).bind_text(2, hash).run();
    if (!status.ok()) return status;
  }
  for (const ParkedRow& row : commit.parked) {
    const std::string key = model::identity(row.group);
    absl::StatusOr<bool> found = get_parked_group_.bind_blob(1, key).step();
    if (!found.ok()) return found.status();
    std::int64_t number = *found ? get_parked_group_.integer(0) : 0;
    get_parked_group_.reset();
    if (!*found) {
      const std::string hash = hex(row.group.definition);
      const std::string json = labels_json(row.group.labels);
      std::string labels;
      put_labels(labels, row.group.labels);
      absl::StatusOr<bool> put = put_parked_group_.bind_blob(1, key)
                                     .bind_text(2, row.group.stream)
                                     .bind_text(3, hash)
                                     .bind(4, row.group.slice_ns)
                                     .bind(5, row.group.decimals)
                                     .bind_text(6, json)
                                     .bind_blob(7, labels)
                                     .step();
      if (!put.ok()) return put.status();
      number = put_parked_group_.integer(0);
      const absl::Status status = put_parked_group_.run();
      if (!status.ok()) return status;
    }

    model::Partial sum = row.partial;
    found = get_parked_row_.bind(1, number).bind(2, model::to_ns(row.slice)).step();
    if (!found.ok()) return found.status();
    if (*found) {
      absl::StatusOr<model::Partial> old = partial_of(get_parked_row_.blob(0));
      if (!old.ok()) return old.status();
      sum.merge(*old);
    }
    get_parked_row_.reset();
    const std::string bytes = partial_bytes(sum);
    const absl::Status status =
        put_parked_row_.bind(1, number).bind(2, model::to_ns(row.slice)).bind_blob(3, bytes).run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SqliteCloudStore::write_progress(const CloudCommit& commit) {
  const auto set = [&](Statement& statement, const std::vector<std::pair<std::string, model::Time>>& times) {
    for (const auto& [name, time] : times) {
      absl::StatusOr<CatalogTable*> entry = table(name);
      if (!entry.ok()) return entry.status();
      const absl::Status status = statement.bind(1, (*entry)->rollup).bind(2, model::to_ns(time)).run();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  absl::Status status = set(set_published_, commit.publication);
  if (status.ok()) status = set(set_anchor_, commit.anchors);
  for (const StepProgress& progress : commit.steps) {
    if (!status.ok()) return status;
    absl::StatusOr<std::int64_t> kind = step(progress.table, progress.step_ns);
    if (!kind.ok()) return kind.status();
    status =
        set_progress_.bind(1, *kind).bind(2, model::to_ns(progress.next)).bind(3, model::to_ns(progress.last)).run();
  }
  return status;
}

absl::StatusOr<std::vector<WindowRow>> SqliteCloudStore::load_windows(const std::string& name,
                                                                      const std::string& window, model::Time start) {
  absl::StatusOr<CatalogTable*> entry = table(name);
  if (!entry.ok()) return entry.status();
  std::vector<WindowRow> out;
  const auto kind = (*entry)->windows.find(window);
  if (kind == (*entry)->windows.end()) return out;
  get_windows_.bind(1, kind->second).bind(2, model::to_ns(start));
  absl::StatusOr<bool> row = get_windows_.step();
  for (; row.ok() && *row; row = get_windows_.step()) {
    WindowRow& to = out.emplace_back();
    to.table = name;
    to.window = window;
    to.start = start;
    to.has_order = (*entry)->has_order == HasOrder::kYes;
    const auto labels = labels_.find(get_windows_.integer(0));
    if (labels != labels_.end()) to.labels = labels->second;
    to.revision = from_column(get_windows_.integer(1));
    to.state.count = from_column(get_windows_.integer(2));
    to.state.min = get_windows_.real(3);
    to.state.max = get_windows_.real(4);
    if (to.has_order) {
      to.state.first = get_windows_.real(5);
      to.state.last = get_windows_.real(6);
    }
    const absl::Status status = read_window_state(get_windows_.blob(7), start, to.state);
    if (labels == labels_.end() || !status.ok()) {
      get_windows_.reset();
      return absl::DataLossError(
          fmt::format("{}: a row of window {} of {} from {} ns cannot be read; restore the file "
                      "from a copy",
                      database_->path(), window, name, model::to_ns(start)));
    }
  }
  if (!row.ok()) return row.status();
  return out;
}

absl::StatusOr<std::vector<model::StateEntry>> SqliteCloudStore::load_states(const model::NodeName& node) {
  std::vector<model::StateEntry> out;
  get_states_.bind_text(1, node);
  absl::StatusOr<bool> row = get_states_.step();
  for (; row.ok() && *row; row = get_states_.step()) {
    out.push_back({get_states_.integer(0) != 0, std::string(get_states_.blob(1))});
  }
  if (!row.ok()) return row.status();
  return out;
}

}  // namespace orla::store
