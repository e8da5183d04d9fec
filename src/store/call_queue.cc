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
// What calls ended with whose callback is not over; a file of version 1 may lack the table.
constexpr const char* kAnswersSchema = R"sql(
CREATE TABLE IF NOT EXISTS answers(
  id TEXT PRIMARY KEY, status INTEGER NOT NULL, headers BLOB NOT NULL, body BLOB NOT NULL, seconds REAL NOT NULL,
  most_attempts INTEGER NOT NULL, dead INTEGER NOT NULL, error TEXT NOT NULL, tries INTEGER NOT NULL,
  bytes INTEGER NOT NULL);
)sql";
constexpr std::int64_t kWaiting = 0;
constexpr std::int64_t kLeased = 1;
constexpr std::int64_t kDead = 2;
constexpr std::int64_t kAnswered = 3;    // waits to be called back
constexpr std::int64_t kCalledBack = 4;  // is being called back

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

// RESOURCE_EXHAUSTED says that a limit of the queue is reached; a full disk is another thing.
absl::Status of_disk(absl::Status status) {
  return absl::IsResourceExhausted(status) ? absl::UnavailableError(status.message()) : status;
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
  if (absl::Status status = database_->execute(kAnswersSchema); !status.ok()) return status;
  // Leases of a process that is gone.
  if (absl::Status status = database_->execute(
          fmt::format("UPDATE calls SET state={} WHERE state={}; UPDATE calls SET state={} WHERE state={}", kWaiting,
                      kLeased, kAnswered, kCalledBack));
      !status.ok())
    return status;
  absl::Status status = prepare_all(
      *database_,
      {{&add_,
        "INSERT INTO calls(id, function, state, due, accepted, attempts, path, query, headers, body, callback, bytes) "
        "VALUES(?1, ?2, 0, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10)"},
       {&over_, "SELECT 1 FROM over WHERE id=?1"},
       {&look_, "SELECT state, function, bytes FROM calls WHERE id=?1"},
       {&wake_, "UPDATE calls SET due=?1 WHERE state IN (0, 3) AND due>?2"},
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
       {&next_,
        "SELECT min(due) FROM (SELECT min(due) AS due FROM calls WHERE state=0 UNION ALL "
        "SELECT min(due) AS due FROM calls WHERE state=3)"},
       {&answer_,
        "INSERT OR REPLACE INTO answers(id, status, headers, body, seconds, most_attempts, dead, error, tries, bytes) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9)"},
       {&empty_, "UPDATE calls SET headers=x'', body=x'' WHERE id=?1"},
       {&bytes_, "UPDATE calls SET bytes=?2 WHERE id=?1"},
       {&answered_,
        "SELECT id, function, callback, attempts, status, headers, body, seconds, most_attempts, dead, error, tries "
        "FROM (SELECT id, function, callback, attempts, due, number FROM calls WHERE state=3 AND due<=?1 "
        "ORDER BY due, number LIMIT ?2) JOIN answers USING(id) ORDER BY due, number"},
       {&try_, "UPDATE answers SET tries=tries+1 WHERE id=?1"},
       {&take_answer_, "SELECT dead, status, error, bytes FROM answers WHERE id=?1"},
       {&forget_answer_, "DELETE FROM answers WHERE id=?1"}});
  if (!status.ok()) return status;
  absl::StatusOr<Counts> counts = count_all();
  if (counts.ok()) counts_ = *std::move(counts);
  return counts.status();
}

absl::StatusOr<CallQueue::Counts> CallQueue::count_all() {
  absl::StatusOr<Statement> all =
      database_->prepare("SELECT function, max(state, 1), count(*), sum(bytes) FROM calls GROUP BY 1, 2");
  if (!all.ok()) return all.status();
  Counts counts;
  for (;;) {
    const absl::StatusOr<bool> row = all->step();
    if (!row.ok()) return row.status();
    if (!*row) return counts;
    const auto calls = static_cast<std::uint64_t>(all->integer(2));
    if (all->integer(1) == kDead) {
      counts.dead += calls;
    } else if (all->integer(1) >= kAnswered) {
      counts.answered += calls;
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
  if (!transaction.ok()) return of_disk(transaction.status());
  transaction_.emplace(*std::move(transaction));
  return absl::OkStatus();
}

absl::Status CallQueue::commit() {
  const absl::Status status = transaction_->commit();
  transaction_.reset();
  if (status.ok()) return status;
  if (absl::StatusOr<Counts> counts = count_all(); counts.ok()) counts_ = *std::move(counts);
  return of_disk(status);
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
  if (absl::Status status = add_.run(); !status.ok()) return of_disk(status);
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
  std::vector<std::string> damaged;
  due_.bind_text(1, function).bind(2, number(now)).bind(3, static_cast<std::int64_t>(most));
  for (;;) {
    const absl::StatusOr<bool> row = due_.step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    std::optional<std::vector<std::pair<std::string, std::string>>> headers = headers_of(due_.blob(4));
    if (!headers) {
      damaged.emplace_back(due_.text(0));
      continue;
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
  // It cannot be made, and must not be in the way of others.
  for (const std::string& id : damaged) {
    if (absl::Status status = move(id, kLeased, now, 0); !status.ok()) return status;
    if (absl::Status status = bury(id, 0, "its headers are damaged on the disk", now); !status.ok()) return status;
  }
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
                                           state == kDead         ? "dead"
                                           : state == kLeased     ? "running"
                                           : state == kCalledBack ? "called back"
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
  if (call.state >= kAnswered) {
    if (absl::Status status = forget_answer_.bind_text(1, id).run(); !status.ok()) return status;
  }
  uncount(call);
  --counts_.calls;
  counts_.bytes -= static_cast<std::uint64_t>(call.bytes);
  return absl::OkStatus();
}

void CallQueue::uncount(const Found& call) {
  if (call.state == kDead) {
    --counts_.dead;
  } else if (call.state >= kAnswered) {
    --counts_.answered;
  } else {
    count(call.function, -1);
  }
}

absl::Status CallQueue::set_bytes(std::string_view id, std::int64_t before, std::int64_t after) {
  counts_.bytes += static_cast<std::uint64_t>(after - before);
  return bytes_.bind_text(1, id).bind(2, after).run();
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

absl::Status CallQueue::answer(std::string_view id, const CallAnswer& answer, base::WallTime now) {
  const absl::StatusOr<Found> call = expect(id, kLeased);
  if (!call.ok()) return call.status();
  const bool dead = answer.then == CallAnswer::Then::kDead;
  const std::string headers = to_bytes(answer.headers);
  const auto bytes = static_cast<std::int64_t>(headers.size() + answer.body.size() + answer.error.size());
  answer_.bind_text(1, id).bind(2, answer.status).bind_blob(3, headers).bind_blob(4, answer.body);
  answer_.bind_real(5, answer.seconds).bind(6, answer.most_attempts).bind(7, dead ? 1 : 0);
  answer_.bind_text(8, answer.error).bind(9, bytes);
  if (absl::Status status = answer_.run(); !status.ok()) return status;
  // The request is wanted again only where it may be replayed.
  if (!dead) {
    if (absl::Status status = empty_.bind_text(1, id).run(); !status.ok()) return status;
  }
  if (absl::Status status = set_bytes(id, call->bytes, bytes + (dead ? call->bytes : 0)); !status.ok()) return status;
  if (absl::Status status = move(id, kAnswered, now, 0); !status.ok()) return status;
  uncount(*call);
  ++counts_.answered;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AnsweredCall>> CallQueue::lease_answered(base::WallTime now, std::size_t most) {
  std::vector<AnsweredCall> calls;
  answered_.bind(1, number(now)).bind(2, static_cast<std::int64_t>(most));
  for (;;) {
    const absl::StatusOr<bool> row = answered_.step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    std::optional<std::vector<std::pair<std::string, std::string>>> headers = headers_of(answered_.blob(5));
    AnsweredCall& call = calls.emplace_back();
    call.id = std::string(answered_.text(0));
    call.function = std::string(answered_.text(1));
    call.callback = std::string(answered_.text(2));
    call.attempts = static_cast<std::uint32_t>(answered_.integer(3));
    call.answer.status = static_cast<int>(answered_.integer(4));
    call.answer.body = std::string(answered_.blob(6));
    if (headers) {
      call.answer.headers = *std::move(headers);
    } else {
      call.answer.status = 500;
      call.answer.body = "this call's answer was damaged on the disk\n";
    }
    call.answer.seconds = answered_.real(7);
    call.answer.most_attempts = static_cast<std::uint32_t>(answered_.integer(8));
    call.answer.then = answered_.integer(9) != 0 ? CallAnswer::Then::kDead : CallAnswer::Then::kOver;
    call.answer.error = std::string(answered_.text(10));
    call.tries = static_cast<std::uint32_t>(answered_.integer(11)) + 1;
  }
  for (const AnsweredCall& call : calls) {
    if (absl::Status status = move(call.id, kCalledBack, now, 0); !status.ok()) return status;
    if (absl::Status status = try_.bind_text(1, call.id).run(); !status.ok()) return status;
  }
  return calls;
}

absl::Status CallQueue::call_back_again(std::string_view id, base::WallTime due) {
  const absl::StatusOr<Found> call = expect(id, kCalledBack);
  return call.ok() ? move(id, kAnswered, due, 0) : call.status();
}

absl::Status CallQueue::called_back(std::string_view id, base::WallTime now) {
  absl::StatusOr<Found> call = expect(id, kCalledBack);
  if (!call.ok()) return call.status();
  const absl::StatusOr<bool> row = take_answer_.bind_text(1, id).step();
  if (!row.ok()) return row.status();
  const bool dead = *row && take_answer_.integer(0) != 0;
  if (!dead) {
    take_answer_.reset();
    return end(id, *call);
  }
  const std::int64_t status_code = take_answer_.integer(1);
  const std::string error(take_answer_.text(2));
  const std::int64_t bytes = call->bytes - take_answer_.integer(3);
  take_answer_.reset();
  if (absl::Status status = forget_answer_.bind_text(1, id).run(); !status.ok()) return status;
  if (absl::Status status = set_bytes(id, call->bytes, bytes); !status.ok()) return status;
  if (absl::Status status = bury_.bind_text(1, id).bind(2, status_code).bind_text(3, error).bind(4, number(now)).run();
      !status.ok())
    return status;
  --counts_.answered;
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
