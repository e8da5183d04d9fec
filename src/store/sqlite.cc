#include "store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "base/file_folder.h"
#include "base/files.h"

namespace orla::store {
namespace {

constexpr int kBusyTimeoutMs = 2000;
// The log is copied back into the file when it has this many bytes; every page is copied once however often it changed.
constexpr std::int64_t kCheckpointBytes = 32 << 20;
constexpr std::int64_t kPageBytes = 8192;

absl::StatusCode code_of(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

std::string_view advice(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_FULL:
      return "free space on this disk, or raise the limit of the file";
    case SQLITE_NOMEM:
      return "free memory";
    case SQLITE_IOERR:
      return "look at the disk and its mount; nothing was changed, it is tried again";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "close the program that keeps the file locked";
    case SQLITE_CANTOPEN:
      return "the folder must exist and be accessible";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "restore it from a copy, or move it away to start with an empty one";
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return "give this user write access to the file and its folder";
    default:
      return "this is a defect of the program, please report it";
  }
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

absl::StatusOr<std::unique_ptr<Database>> Database::open(const std::string& path, OpenMode mode) {
  const int flags = (mode == OpenMode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  std::unique_ptr<Database> database(new Database(std::unique_ptr<sqlite3, Close>(raw), path));
  if (raw == nullptr) return absl::ResourceExhaustedError(fmt::format("{}: no memory to open it", path));
  if (code != SQLITE_OK) return database->error(code, "open it");
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return database;
}

absl::Status Database::error(int code, std::string_view what) const {
  return absl::Status(code_of(code), fmt::format("{}: cannot {}: {} (SQLite code {}); {}", path_, what,
                                                 sqlite3_errmsg(handle_.get()), code, advice(code)));
}

absl::Status Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code, fmt::format("run \"{}\"", std::string_view(sql).substr(0, 120)));
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return error(code, fmt::format("prepare \"{}\"", sql.substr(0, 120)));
  Statement statement;
  statement.statement_.reset(raw);
  statement.database_ = this;
  return statement;
}

absl::StatusOr<std::int64_t> Database::number(const std::string& sql, std::int64_t otherwise) {
  absl::StatusOr<Statement> statement = prepare(sql);
  if (!statement.ok()) return statement.status();
  absl::StatusOr<bool> row = statement->step();
  if (!row.ok()) return row.status();
  return *row && !statement->is_null(0) ? statement->integer(0) : otherwise;
}

absl::Status Database::set_up_writer(Fsync fsync, std::int64_t max_bytes) {
  // The page size counts only while the file is empty.
  absl::Status status =
      execute(fmt::format("PRAGMA page_size={}; PRAGMA journal_mode=WAL; PRAGMA synchronous={};"
                          "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;"
                          "PRAGMA journal_size_limit={};",
                          kPageBytes, fsync == Fsync::kOn ? "FULL" : "OFF", 2 * kCheckpointBytes));
  if (!status.ok()) return status;
  absl::StatusOr<std::int64_t> page = number("PRAGMA page_size", kPageBytes);
  if (!page.ok()) return page.status();
  status = execute(fmt::format("PRAGMA wal_autocheckpoint={}", kCheckpointBytes / *page));
  if (status.ok() && max_bytes > 0) {
    status = execute(fmt::format("PRAGMA max_page_count={}", std::max<std::int64_t>(1, max_bytes / *page)));
  }
  return status;
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::bind(int at, std::int64_t value) {
  bind_error_ |= sqlite3_bind_int64(statement_.get(), at, value);
  return *this;
}

Statement& Statement::bind_real(int at, double value) {
  bind_error_ |= sqlite3_bind_double(statement_.get(), at, value);
  return *this;
}

Statement& Statement::bind_text(int at, std::string_view value) {
  bind_error_ |= sqlite3_bind_text(statement_.get(), at, value.empty() ? "" : value.data(),
                                   static_cast<int>(value.size()), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_blob(int at, std::string_view value) {
  bind_error_ |=
      sqlite3_bind_blob64(statement_.get(), at, value.empty() ? "" : value.data(), value.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null(int at) {
  bind_error_ |= sqlite3_bind_null(statement_.get(), at);
  return *this;
}

absl::Status Statement::fail(int code) {
  absl::Status status =
      database_->error(code, fmt::format("run \"{}\"", std::string_view(sqlite3_sql(statement_.get())).substr(0, 120)));
  reset();
  return status;
}

absl::StatusOr<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) {
    // Codes of several parameters may be mixed: only that one failed is certain.
    const int code = std::exchange(bind_error_, SQLITE_OK) == SQLITE_NOMEM ? SQLITE_NOMEM : SQLITE_MISUSE;
    return fail(code);
  }
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) return fail(code);
  sqlite3_reset(statement_.get());
  return false;
}

absl::Status Statement::run() {
  while (true) {
    absl::StatusOr<bool> row = step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
  }
}

void Statement::reset() {
  bind_error_ = SQLITE_OK;
  sqlite3_reset(statement_.get());
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

absl::StatusOr<Transaction> Transaction::begin(Database& database) {
  absl::Status status = database.execute("BEGIN IMMEDIATE");
  if (!status.ok()) return status;
  return Transaction(&database);
}

Transaction::Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // Some errors have rolled back already; another ROLLBACK would only be an error of its own.
  if (database_ != nullptr && sqlite3_get_autocommit(database_->raw()) == 0) {
    sqlite3_exec(database_->raw(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

absl::Status Transaction::commit() {
  const absl::Status status = database_->execute("COMMIT");
  if (status.ok()) database_ = nullptr;
  return status;
}

absl::Status set_aside(const std::string& path) {
  std::string aside = path + ".damaged";
  for (int number = 2; base::exists(aside); ++number) aside = fmt::format("{}.damaged-{}", path, number);
  for (const std::string_view end : {"", "-wal", "-shm"}) {
    const std::string file = fmt::format("{}{}", path, end);
    if (!base::exists(file)) continue;
    if (absl::Status status = base::rename_file(file, fmt::format("{}{}", aside, end)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status prepare_all(Database& database,
                         std::initializer_list<std::pair<Statement*, std::string_view>> statements) {
  for (const auto& [statement, sql] : statements) {
    absl::StatusOr<Statement> prepared = database.prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status create_or_check_version(Database& database, std::int64_t version, const std::string& schema) {
  absl::StatusOr<std::int64_t> found = database.number("PRAGMA user_version");
  if (!found.ok()) return found.status();
  if (*found == version) return absl::OkStatus();
  absl::StatusOr<std::int64_t> tables = database.number("SELECT count(*) FROM sqlite_master");
  if (!tables.ok()) return tables.status();
  if (*found != 0 || *tables != 0) {
    return absl::FailedPreconditionError(
        fmt::format("{}: found schema version {}, expected {}; it was written by another version of this program: use "
                    "that one, or move the file away to start with an empty one",
                    database.path(), *found, version));
  }
  absl::StatusOr<Transaction> transaction = Transaction::begin(database);
  if (!transaction.ok()) return transaction.status();
  absl::Status status = database.execute(schema);
  if (status.ok()) status = database.execute(fmt::format("PRAGMA user_version={}", version));
  if (!status.ok()) return status;
  return transaction->commit();
}

}  // namespace orla::store
