#include "store/sqlite_edge_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"

namespace orla::store {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr char kLockName[] = "lock";

constexpr char kSchema[] = R"sql(
CREATE TABLE meta(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  node TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  next_sequence INTEGER NOT NULL,
  acknowledged INTEGER NOT NULL,
  chain BLOB NOT NULL);
CREATE TABLE journal(
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  snapshot INTEGER NOT NULL,
  state BLOB NOT NULL,
  checksum INTEGER NOT NULL);
CREATE TABLE outbox(
  sequence INTEGER PRIMARY KEY,
  node TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  chain_before BLOB NOT NULL,
  chain_after BLOB NOT NULL,
  note BLOB NOT NULL,
  rows BLOB NOT NULL,
  checksum INTEGER NOT NULL);
)sql";

std::int64_t to_column(std::uint64_t v) { return static_cast<std::int64_t>(v); }
std::uint64_t from_column(std::int64_t v) { return static_cast<std::uint64_t>(v); }

std::string digest_bytes(const base::Digest& digest) {
  std::string out;
  base::ByteWriter to(out);
  to.u64(digest.high);
  to.u64(digest.low);
  return out;
}

base::Digest digest_of(std::string_view bytes) {
  base::ByteReader from(bytes);
  base::Digest digest;
  digest.high = from.u64();
  digest.low = from.u64();
  return digest;
}

std::uint64_t entry_checksum(bool snapshot, std::string_view state) { return base::hash64(state, snapshot ? 1 : 0); }

// Each field with its length, so that nothing can move from one into the next.
std::uint64_t chunk_checksum(model::Sequence sequence, std::uint64_t epoch, std::string_view node,
                             std::string_view chain_before, std::string_view chain_after, std::string_view note,
                             std::string_view rows) {
  std::string head;
  base::ByteWriter to(head);
  to.u64(sequence);
  to.u64(epoch);
  to.text(node);
  to.text(chain_before);
  to.text(chain_after);
  to.text(note);
  return base::hash64(rows, base::hash64(head));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteEdgeStore>> SqliteEdgeStore::open(const std::string& directory, NoteFormat notes,
                                                                       EdgeStoreOptions options) {
  absl::StatusOr<base::FileLock> lock = base::FileLock::acquire(directory + "/" + kLockName);
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<Database>> database =
      Database::open(directory + "/" + kFileName, OpenMode::kReadWrite);
  if (!database.ok()) return database.status();
  // Nobody else reads this file: without shared memory and its locks a commit is cheaper.
  absl::Status status = (*database)->execute("PRAGMA locking_mode=EXCLUSIVE");
  if (status.ok()) status = (*database)->set_up_writer(options.fsync, options.max_bytes);
  if (status.ok()) status = create_or_check_version(**database, kVersion, kSchema);
  if (!status.ok()) return status;
  std::unique_ptr<SqliteEdgeStore> store(new SqliteEdgeStore(std::move(*lock), std::move(*database), std::move(notes)));
  status = store->prepare();
  if (!status.ok()) return status;
  return store;
}

absl::Status SqliteEdgeStore::prepare() {
  return prepare_all(
      *database_,
      {{&put_meta_, "INSERT OR REPLACE INTO meta VALUES(1,?1,?2,?3,?4,?5)"},
       {&put_entry_, "INSERT INTO journal(snapshot,state,checksum) VALUES(?1,?2,?3)"},
       {&drop_entries_, "DELETE FROM journal"},
       {&put_chunk_, "INSERT INTO outbox VALUES(?1,?2,?3,?4,?5,?6,?7,?8)"},
       {&drop_chunks_, "DELETE FROM outbox WHERE sequence<=?1"},
       {&acknowledge_, "UPDATE meta SET acknowledged=?1 WHERE acknowledged<?1"},
       {&get_chunk_, "SELECT node,epoch,chain_before,chain_after,note,rows,checksum FROM outbox WHERE sequence=?1"}});
}

absl::Status SqliteEdgeStore::damaged(std::string_view what, std::string_view consequence) const {
  return absl::DataLossError(
      fmt::format("{}: {} is damaged on disk: its checksum differs; {}", database_->path(), what, consequence));
}

absl::StatusOr<EdgeRecovery> SqliteEdgeStore::recover(const Progress& /*progress*/) {
  EdgeRecovery out;
  absl::StatusOr<Statement> meta =
      database_->prepare("SELECT node,epoch,next_sequence,acknowledged,chain FROM meta WHERE id=1");
  if (!meta.ok()) return meta.status();
  absl::StatusOr<bool> row = meta->step();
  if (!row.ok()) return row.status();
  if (*row) {
    out.meta.node = std::string(meta->text(0));
    out.meta.epoch = model::Epoch(from_column(meta->integer(1)));
    out.meta.next_sequence = from_column(meta->integer(2));
    out.meta.acknowledged = from_column(meta->integer(3));
    out.meta.chain = digest_of(meta->blob(4));
  }

  absl::StatusOr<Statement> journal =
      database_->prepare("SELECT number,snapshot,state,checksum FROM journal ORDER BY number");
  if (!journal.ok()) return journal.status();
  for (row = journal->step(); row.ok() && *row; row = journal->step()) {
    const bool snapshot = journal->integer(1) != 0;
    const std::string_view state = journal->blob(2);
    if (entry_checksum(snapshot, state) != from_column(journal->integer(3))) {
      return damaged(fmt::format("journal entry {}", journal->integer(0)),
                     "the state of this edge cannot be restored: restore the directory from a copy, or start with an "
                     "empty one (its inputs are then read, and counted, again)");
    }
    if (snapshot) out.journal.clear();
    out.journal.emplace_back(state);
  }
  if (!row.ok()) return row.status();

  absl::StatusOr<Statement> outbox =
      database_->prepare("SELECT sequence,length(rows)+length(note) FROM outbox ORDER BY sequence");
  if (!outbox.ok()) return outbox.status();
  for (row = outbox->step(); row.ok() && *row; row = outbox->step()) {
    OutboxEntry& entry = out.outbox.emplace_back();
    entry.sequence = from_column(outbox->integer(0));
    entry.bytes = static_cast<std::size_t>(outbox->integer(1));
  }
  if (!row.ok()) return row.status();
  return out;
}

absl::Status SqliteEdgeStore::write_meta(const EdgeMeta& meta) {
  const std::string chain = digest_bytes(meta.chain);
  return put_meta_.bind_text(1, meta.node)
      .bind(2, to_column(static_cast<std::uint64_t>(meta.epoch)))
      .bind(3, to_column(meta.next_sequence))
      .bind(4, to_column(meta.acknowledged))
      .bind_blob(5, chain)
      .run();
}

absl::Status SqliteEdgeStore::write_chunk(const StoredChunk& chunk) {
  const model::Range& range = chunk.range;
  if (range.first != range.last || range.first == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a chunk to keep has one number; found {} to {}", database_->path(), range.first, range.last));
  }
  const auto epoch = static_cast<std::uint64_t>(range.epoch);
  const std::string before = digest_bytes(range.chain_before);
  const std::string after = digest_bytes(range.chain_after);
  const std::string note = notes_.encode(range.note);
  return put_chunk_.bind(1, to_column(range.first))
      .bind_text(2, range.node)
      .bind(3, to_column(epoch))
      .bind_blob(4, before)
      .bind_blob(5, after)
      .bind_blob(6, note)
      .bind_blob(7, chunk.rows)
      .bind(8, to_column(chunk_checksum(range.first, epoch, range.node, before, after, note, chunk.rows)))
      .run();
}

absl::Status SqliteEdgeStore::commit(const EdgeCommit& commit) {
  const auto& [meta, entry, chunks, tombstones] = commit;
  if (!tombstones.empty()) return absl::UnimplementedError("tombstones");
  absl::StatusOr<Transaction> transaction = Transaction::begin(*database_);
  if (!transaction.ok()) return transaction.status();
  absl::Status status = write_meta(meta);
  if (status.ok() && entry.snapshot) status = drop_entries_.run();
  if (status.ok()) {
    status = put_entry_.bind(1, entry.snapshot ? 1 : 0)
                 .bind_blob(2, entry.state)
                 .bind(3, to_column(entry_checksum(entry.snapshot, entry.state)))
                 .run();
  }
  for (const StoredChunk& chunk : chunks) {
    if (!status.ok()) break;
    status = write_chunk(chunk);
  }
  if (!status.ok()) return status;
  return transaction->commit();
}

absl::Status SqliteEdgeStore::trim(model::Sequence through) {
  absl::StatusOr<Transaction> transaction = Transaction::begin(*database_);
  if (!transaction.ok()) return transaction.status();
  absl::Status status = drop_chunks_.bind(1, to_column(through)).run();
  if (status.ok()) status = acknowledge_.bind(1, to_column(through)).run();
  if (!status.ok()) return status;
  return transaction->commit();
}

absl::Status SqliteEdgeStore::renumber(const EdgeMeta& meta, const std::vector<StoredChunk>& outbox) {
  absl::StatusOr<Transaction> transaction = Transaction::begin(*database_);
  if (!transaction.ok()) return transaction.status();
  absl::Status status = write_meta(meta);
  if (status.ok()) status = drop_chunks_.bind(1, INT64_MAX).run();
  for (const StoredChunk& chunk : outbox) {
    if (!status.ok()) break;
    status = write_chunk(chunk);
  }
  if (!status.ok()) return status;
  return transaction->commit();
}

absl::StatusOr<StoredChunk> SqliteEdgeStore::load(model::Sequence sequence) {
  absl::StatusOr<bool> row = get_chunk_.bind(1, to_column(sequence)).step();
  if (!row.ok()) return row.status();
  if (!*row) {
    return absl::NotFoundError(fmt::format("{}: chunk {} is not in the outbox", database_->path(), sequence));
  }
  const std::string_view node = get_chunk_.text(0);
  const std::uint64_t epoch = from_column(get_chunk_.integer(1));
  const std::string_view before = get_chunk_.blob(2);
  const std::string_view after = get_chunk_.blob(3);
  const std::string_view note = get_chunk_.blob(4);
  const std::string_view rows = get_chunk_.blob(5);
  const bool sound =
      chunk_checksum(sequence, epoch, node, before, after, note, rows) == from_column(get_chunk_.integer(6));
  absl::StatusOr<StoredChunk> out = StoredChunk{};
  if (sound) {
    absl::StatusOr<model::OriginNote> decoded = notes_.decode(note);
    if (decoded.ok()) {
      out->range = {std::string(node), model::Epoch(epoch), sequence,           sequence,
                    digest_of(before), digest_of(after),    *std::move(decoded)};
      out->rows = std::string(rows);
    } else {
      out = absl::DataLossError(fmt::format("{}: the note of chunk {} cannot be decoded: {}", database_->path(),
                                            sequence, std::string(decoded.status().message())));
    }
  } else {
    out = damaged(fmt::format("chunk {} of the outbox", sequence), "only what this chunk holds is lost");
  }
  get_chunk_.reset();
  return out;
}

}  // namespace orla::store
