#include "store/call_queue.h"

#include <fmt/format.h>

#include <chrono>

#include "base/bytes.h"

namespace orla::store {

namespace {

// Version 1. `state`: see below. `due`: when it runs at the earliest, nanoseconds since 1970. `headers`: for each the
// name and the value, each as a varint of its length and its bytes. `over`: ids of calls that ended, by age.
constexpr std::int64_t kVersion = 1;
constexpr const char* kSchema = R"sql(
CREATE TABLE calls(
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, function TEXT NOT NULL, state INTEGER NOT NULL,
  due INTEGER NOT NULL, accepted INTEGER NOT NULL, attempts INTEGER NOT NULL, path TEXT NOT NULL, query TEXT NOT NULL,
  headers BLOB NOT NULL, body BLOB NOT NULL, callback TEXT NOT NULL, bytes INTEGER NOT NULL,
  status INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', died INTEGER NOT NULL DEFAULT 0);
CREATE INDEX calls_due ON calls(state, due);
CREATE INDEX calls_of_function ON calls(state, function, due, number);
CREATE TABLE over(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE);
)sql";
constexpr std::int64_t kWaiting = 0;
constexpr std::int64_t kLeased = 1;
constexpr std::int64_t kDead = 2;

std::int64_t number(base::WallTime time) { return time.time_since_epoch().count(); }
base::WallTime time_of(std::int64_t number) { return base::WallTime(std::chrono::nanoseconds(number)); }

std::string to_bytes(const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string bytes;
  base::ByteWriter to(bytes);
  for (const auto& [name, value] : headers) {
    to.text(name);
    to.text(value);
  }
  return bytes;
}

std::optional<std::vector<std::pair<std::string, std::string>>> headers_of(std::string_view bytes) {
  std::vector<std::pair<std::string, std::string>> headers;
  base::ByteReader from(bytes);
  while (from.left() > 0) {
    const std::string_view name = from.text();
    const std::string_view value = from.text();
    if (from.failed()) return std::nullopt;
    headers.emplace_back(name, value);
  }
  return headers;
}

}  // namespace

CallQueue::CallQueue(std::unique_ptr<Database> database, CallQueueLimits limits)
    : database_(std::move(database)), limits_(limits) {}

CallQueue::~CallQueue() = default;

absl::StatusOr<std::unique_ptr<CallQueue>> CallQueue::open(const std::string& path, Fsync fsync,
                                                           CallQueueLimits limits) {
  absl::StatusOr<std::unique_ptr<Database>> database = Database::open(path, OpenMode::kReadWrite);
  if (!database.ok()) return database.status();
  std::unique_ptr<CallQueue> queue(new CallQueue(*std::move(database), limits));
  if (absl::Status status = queue->set_up(fsync); !status.ok()) return status;
  return queue;
}

absl::Status CallQueue::set_up(Fsync fsync) {
  if (absl::Status status = database_->set_up_writer(fsync, 0); !status.ok()) return status;
  if (absl::Status status = create_or_check_version(*database_, kVersion, kSchema); !status.ok()) return status;
  // Leases of a process that is gone.
  if (absl::Status status =
          database_->execute(fmt::format("UPDATE calls SET state={} WHERE state={}", kWaiting, kLeased));
      !status.ok())
    return status;
  absl::Status status = prepare_all(
      *database_,
      {{&add_,
        "INSERT INTO calls(id, function, state, due, accepted, attempts, path, query, headers, body, callback, bytes) "
        "VALUES(?1, ?2, 0, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10)"},
       {&over_, "SELECT 1 FROM over WHERE id=?1"},
       {&look_, "SELECT state, function, bytes FROM calls WHERE id=?1"},
       {&wake_, "UPDATE calls SET due=?1 WHERE state=0 AND due>?2"},
       {&due_,
        "SELECT id, function, path, query, headers, body, callback, accepted, attempts FROM calls "
        "WHERE state=0 AND function=?1 AND due<=?2 ORDER BY due, number LIMIT ?3"},
       {&move_, "UPDATE calls SET state=?2, due=?3, attempts=attempts+?4 WHERE id=?1"},
       {&bury_, "UPDATE calls SET state=2, status=?2, error=?3, died=?4, due=?4 WHERE id=?1"},
       {&remove_, "DELETE FROM calls WHERE id=?1"},
       {&remember_, "INSERT OR IGNORE INTO over(id) VALUES(?1)"},
       {&trim_, "DELETE FROM over WHERE number <= (SELECT max(number) FROM over) - ?1"},
       {&dead_,
        "SELECT id, function, attempts, status, error, accepted, died, length(body) FROM calls "
        "WHERE state=2 AND (?1='' OR function=?1) ORDER BY due, number LIMIT ?2"},
       {&replay_, "UPDATE calls SET state=0, due=?2, attempts=0 WHERE id=?1"},
       {&next_, "SELECT min(due) FROM calls WHERE state=0"}});
  if (!status.ok()) return status;
  absl::StatusOr<Counts> counts = count_all();
  if (counts.ok()) counts_ = *std::move(counts);
  return counts.status();
}

absl::StatusOr<CallQueue::Counts> CallQueue::count_all() {
  absl::StatusOr<Statement> all =
      database_->prepare("SELECT function, state=2, count(*), sum(bytes) FROM calls GROUP BY function, state=2");
  if (!all.ok()) return all.status();
  Counts counts;
  for (;;) {
    const absl::StatusOr<bool> row = all->step();
    if (!row.ok()) return row.status();
    if (!*row) return counts;
    const auto calls = static_cast<std::uint64_t>(all->integer(2));
    if (all->integer(1) != 0) {
      counts.dead += calls;
    } else {
      counts.lengths[std::string(all->text(0))] = calls;
    }
    counts.calls += calls;
    counts.bytes += static_cast<std::uint64_t>(all->integer(3));
  }
}

void CallQueue::count(std::string_view function, std::int64_t by) {
  auto at = counts_.lengths.find(function);
  if (at == counts_.lengths.end()) at = counts_.lengths.emplace(std::string(function), 0).first;
  at->second += static_cast<std::uint64_t>(by);
  if (at->second == 0) counts_.lengths.erase(at);
}

absl::Status CallQueue::begin() {
  absl::StatusOr<Transaction> transaction = Transaction::begin(*database_);
  if (!transaction.ok()) return transaction.status();
  transaction_.emplace(*std::move(transaction));
  return absl::OkStatus();
}

absl::Status CallQueue::commit() {
  const absl::Status status = transaction_->commit();
  transaction_.reset();
  if (status.ok()) return status;
  if (absl::StatusOr<Counts> counts = count_all(); counts.ok()) counts_ = *std::move(counts);
  return status;
}

absl::StatusOr<CallQueue::Added> CallQueue::add(const QueuedCall& call, base::WallTime now) {
  const absl::StatusOr<std::optional<Found>> found = look(call.id);
  if (!found.ok()) return found.status();
  if (*found) return Added::kKnown;
  const absl::StatusOr<bool> over = over_.bind_text(1, call.id).step();
  if (!over.ok()) return over.status();
  over_.reset();
  if (*over) return Added::kKnown;
  const std::string headers = to_bytes(call.headers);
  const std::size_t bytes = call.body.size() + headers.size() + call.path.size() + call.query.size();
  if (counts_.calls >= limits_.calls)
    return absl::ResourceExhaustedError(fmt::format("the queue holds {} calls, its limit", limits_.calls));
  if (counts_.bytes + bytes > limits_.bytes)
    return absl::ResourceExhaustedError(
        fmt::format("the queue holds {} bytes; with {} more it would be over its limit of {}", counts_.bytes, bytes,
                    limits_.bytes));
  add_.bind_text(1, call.id).bind_text(2, call.function).bind(3, number(now)).bind(4, number(now));
  add_.bind_text(5, call.path).bind_text(6, call.query).bind_blob(7, headers).bind_blob(8, call.body);
  add_.bind_text(9, call.callback).bind(10, static_cast<std::int64_t>(bytes));
  if (absl::Status status = add_.run(); !status.ok()) return status;
  count(call.function, 1);
  ++counts_.calls;
  counts_.bytes += bytes;
  return Added::kNew;
}

absl::Status CallQueue::limit_waits(base::WallTime now, std::chrono::nanoseconds longest) {
  return wake_.bind(1, number(now)).bind(2, number(now + longest)).run();
}

absl::StatusOr<std::vector<QueuedCall>> CallQueue::lease(std::string_view function, base::WallTime now,
                                                         std::size_t most) {
  std::vector<QueuedCall> calls;
  due_.bind_text(1, function).bind(2, number(now)).bind(3, static_cast<std::int64_t>(most));
  for (;;) {
    const absl::StatusOr<bool> row = due_.step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    std::optional<std::vector<std::pair<std::string, std::string>>> headers = headers_of(due_.blob(4));
    if (!headers) {
      due_.reset();
      return absl::DataLossError(fmt::format("{}: the headers of call {} are damaged; remove it, or restore the file",
                                             database_->path(), due_.text(0)));
    }
    QueuedCall& call = calls.emplace_back();
    call.id = std::string(due_.text(0));
    call.function = std::string(due_.text(1));
    call.path = std::string(due_.text(2));
    call.query = std::string(due_.text(3));
    call.headers = *std::move(headers);
    call.body = std::string(due_.blob(5));
    call.callback = std::string(due_.text(6));
    call.accepted = time_of(due_.integer(7));
    call.attempts = static_cast<std::uint32_t>(due_.integer(8)) + 1;
  }
  for (const QueuedCall& call : calls)
    if (absl::Status status = move(call.id, kLeased, now, 1); !status.ok()) return status;
  return calls;
}

absl::StatusOr<std::optional<CallQueue::Found>> CallQueue::look(std::string_view id) {
  const absl::StatusOr<bool> row = look_.bind_text(1, id).step();
  if (!row.ok()) return row.status();
  if (!*row) return std::nullopt;
  Found found{look_.integer(0), std::string(look_.text(1)), look_.integer(2)};
  look_.reset();
  return found;
}

absl::StatusOr<CallQueue::Found> CallQueue::expect(std::string_view id, std::int64_t state) {
  absl::StatusOr<std::optional<Found>> found = look(id);
  if (!found.ok()) return found.status();
  if (!*found || (*found)->state != state)
    return absl::NotFoundError(fmt::format("there is no {} call {}",
                                           state == kDead     ? "dead"
                                           : state == kLeased ? "running"
                                                              : "waiting",
                                           id));
  return **std::move(found);
}

absl::Status CallQueue::move(std::string_view id, std::int64_t state, base::WallTime due, std::int64_t attempts) {
  return move_.bind_text(1, id).bind(2, state).bind(3, number(due)).bind(4, attempts).run();
}

absl::Status CallQueue::end(std::string_view id, const Found& call) {
  if (absl::Status status = remove_.bind_text(1, id).run(); !status.ok()) return status;
  if (absl::Status status = remember_.bind_text(1, id).run(); !status.ok()) return status;
  if (absl::Status status = trim_.bind(1, static_cast<std::int64_t>(limits_.remembered)).run(); !status.ok())
    return status;
  if (call.state == kDead) {
    --counts_.dead;
  } else {
    count(call.function, -1);
  }
  --counts_.calls;
  counts_.bytes -= static_cast<std::uint64_t>(call.bytes);
  return absl::OkStatus();
}

absl::Status CallQueue::finish(std::string_view id) {
  const absl::StatusOr<Found> call = expect(id, kLeased);
  return call.ok() ? end(id, *call) : call.status();
}

absl::Status CallQueue::retry(std::string_view id, base::WallTime due) {
  const absl::StatusOr<Found> call = expect(id, kLeased);
  return call.ok() ? move(id, kWaiting, due, 0) : call.status();
}

absl::Status CallQueue::give_back(std::string_view id, base::WallTime due) {
  const absl::StatusOr<Found> call = expect(id, kLeased);
  return call.ok() ? move(id, kWaiting, due, -1) : call.status();
}

absl::Status CallQueue::bury(std::string_view id, int status, std::string_view error, base::WallTime now) {
  const absl::StatusOr<Found> call = expect(id, kLeased);
  if (!call.ok()) return call.status();
  if (absl::Status done = bury_.bind_text(1, id).bind(2, status).bind_text(3, error).bind(4, number(now)).run();
      !done.ok())
    return done;
  count(call->function, -1);
  ++counts_.dead;
  return absl::OkStatus();
}

absl::StatusOr<CallQueue::Cancelled> CallQueue::cancel(std::string_view id) {
  const absl::StatusOr<std::optional<Found>> call = look(id);
  if (!call.ok()) return call.status();
  if (!*call || (*call)->state == kDead) return Cancelled::kUnknown;
  if (absl::Status status = end(id, **call); !status.ok()) return status;
  return (*call)->state == kLeased ? Cancelled::kRunning : Cancelled::kQueued;
}

absl::StatusOr<std::vector<DeadCall>> CallQueue::dead(std::string_view function, std::size_t most) {
  std::vector<DeadCall> calls;
  dead_.bind_text(1, function).bind(2, static_cast<std::int64_t>(most));
  for (;;) {
    const absl::StatusOr<bool> row = dead_.step();
    if (!row.ok()) return row.status();
    if (!*row) return calls;
    calls.push_back({std::string(dead_.text(0)), std::string(dead_.text(1)),
                     static_cast<std::uint32_t>(dead_.integer(2)), static_cast<int>(dead_.integer(3)),
                     std::string(dead_.text(4)), time_of(dead_.integer(5)), time_of(dead_.integer(6)),
                     static_cast<std::uint64_t>(dead_.integer(7))});
  }
}

absl::Status CallQueue::replay(std::string_view id, base::WallTime now) {
  const absl::StatusOr<Found> call = expect(id, kDead);
  if (!call.ok()) return call.status();
  if (absl::Status status = replay_.bind_text(1, id).bind(2, number(now)).run(); !status.ok()) return status;
  count(call->function, 1);
  --counts_.dead;
  return absl::OkStatus();
}

absl::Status CallQueue::forget(std::string_view id) {
  const absl::StatusOr<Found> call = expect(id, kDead);
  return call.ok() ? end(id, *call) : call.status();
}

absl::StatusOr<std::optional<base::WallTime>> CallQueue::next_due() {
  const absl::StatusOr<bool> row = next_.step();
  if (!row.ok()) return row.status();
  std::optional<base::WallTime> due;
  if (*row && !next_.is_null(0)) due = time_of(next_.integer(0));
  next_.reset();
  return due;
}

}  // namespace orla::store
