// A thin RAII wrapper of SQLite: connection, prepared statement, transaction.
//
// Every error becomes a Status that names the file, what was tried, what SQLite said, and what to do:
//   full disk, file at its size limit, out of memory      ResourceExhausted  (try again later)
//   failed reads and writes, locked, cannot be opened     Unavailable        (try again later)
//   damaged file, not a database                          DataLoss
//   no permission, read-only                              PermissionDenied
//   a constraint was violated, anything else              Internal
// A Database and its statements belong to one thread at a time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace orla::store {

enum class OpenMode : std::uint8_t { kReadWrite, kReadOnly };
// Whether a commit waits until the disk has it. kOff survives SIGKILL, not power loss.
enum class Fsync : std::uint8_t { kOn, kOff };

class Statement;

class Database {
 public:
  // kReadWrite creates the file when it is missing (its folder exists).
  static absl::StatusOr<std::unique_ptr<Database>> open(const std::string& path, OpenMode mode);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() = default;

  const std::string& path() const { return path_; }
  // One or more statements whose rows nobody wants.
  absl::Status execute(const std::string& sql);
  // One statement, kept prepared.
  absl::StatusOr<Statement> prepare(std::string_view sql);
  // The first column of the first row, as a number; `otherwise` when there is no row or it is NULL.
  absl::StatusOr<std::int64_t> number(const std::string& sql, std::int64_t otherwise = 0);
  // WAL, durability, and the size in bytes that the file may reach (0 = no limit of ours).
  absl::Status set_up_writer(Fsync fsync, std::int64_t max_bytes);

  // The Status of the last failed call, whose result code was `code`.
  absl::Status error(int code, std::string_view what) const;
  sqlite3* raw() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  Database(std::unique_ptr<sqlite3, Close> handle, std::string path)
      : handle_(std::move(handle)), path_(std::move(path)) {}
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

// Parameters and columns count from 1 and 0, as SQLite does it. Texts and blobs that are bound are borrowed until the
// statement has been reset. The Database outlives it.
class Statement {
 public:
  Statement() = default;

  Statement& bind(int at, std::int64_t value);
  Statement& bind_real(int at, double value);
  Statement& bind_text(int at, std::string_view value);
  Statement& bind_blob(int at, std::string_view value);
  Statement& bind_null(int at);

  // True: a row is there. After false or an error the statement has been reset.
  absl::StatusOr<bool> step();
  // To the end, for statements without rows of interest.
  absl::Status run();
  void reset();

  std::int64_t integer(int column) const;
  double real(int column) const;
  bool is_null(int column) const;
  // Valid until the next step() or reset().
  std::string_view text(int column) const;
  std::string_view blob(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  absl::Status fail(int code);
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const Database* database_ = nullptr;
  int bind_error_ = 0;
};

// Rolled back when it is destroyed without commit().
class Transaction {
 public:
  static absl::StatusOr<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  // On an error everything has been rolled back.
  absl::Status commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

// The files of a database that nobody has open, under another name ("FILE.damaged", "FILE.damaged-2"), for people.
absl::Status set_aside(const std::string& path);

// Prepares several statements.
absl::Status prepare_all(Database& database, std::initializer_list<std::pair<Statement*, std::string_view>> statements);

// An empty file gets `schema` and `version` in one transaction; a file of another version is a FailedPrecondition.
absl::Status create_or_check_version(Database& database, std::int64_t version, const std::string& schema);

}  // namespace orla::store
