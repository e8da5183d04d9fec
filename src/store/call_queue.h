// Calls accepted for later: on disk when they are acknowledged, leased while they run, tried again when they fail, kept
// as dead letters when nothing helped.
//
// One thread at a time, one process at a time. Changes become durable together: begin(), any of them, commit().
//
// A lease has no length: it lasts until the call is over, waits again, or its process has ended, and so needs no
// renewal and does not depend on the clock. What a killed process had leased is due again when the file is opened: a
// call runs at least once, and never twice at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "store/sqlite.h"

namespace orla::store {

struct QueuedCall {
  std::string id;        // X-Call-Id; unique
  std::string function;  // name.namespace
  std::string path;
  std::string query;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string callback;        // URL; empty: none
  base::WallTime accepted{};   // when it was queued
  std::uint32_t attempts = 0;  // that were begun
};

struct DeadCall {
  std::string id;
  std::string function;
  std::uint32_t attempts = 0;
  int status = 0;     // of the last attempt
  std::string error;  // of the last attempt
  base::WallTime accepted{};
  base::WallTime died{};
  std::uint64_t body_bytes = 0;
};

// What a call ended with, kept until its callback was taken or given up.
struct CallAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  double seconds = 0;
  std::uint32_t most_attempts = 1;
  enum class Then : std::uint8_t { kOver, kDead } then = Then::kOver;
  std::string error;  // of a dead one
};

struct AnsweredCall {
  std::string id;
  std::string function;
  std::string callback;
  std::uint32_t attempts = 0;
  std::uint32_t tries = 0;  // callbacks that were begun, this one too
  CallAnswer answer;
};

struct CallQueueLimits {
  std::uint64_t calls = 1'000'000;  // queued, running, not called back, and dead; beyond it add() is RESOURCE_EXHAUSTED
  std::uint64_t bytes = std::uint64_t{1} << 30;  // of their bodies and headers, and answers; the same
  std::uint64_t remembered = 1'000'000;          // ids of calls that are over, the oldest forgotten first
};

class CallQueue {
 public:
  // Creates the file when there is none.
  static absl::StatusOr<std::unique_ptr<CallQueue>> open(const std::string& path, Fsync fsync, CallQueueLimits limits);
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Everything between is one transaction. After an error of commit() nothing of it was done. A disk that is full is
  // UNAVAILABLE.
  absl::Status begin();
  absl::Status commit();

  enum class Added : std::uint8_t { kNew, kKnown };  // kKnown: a call of that id came before, and nothing is done
  absl::StatusOr<Added> add(const QueuedCall& call, base::WallTime now);

  // Calls of the function that are due, the longest waiting first, at most `most`; each is leased and its attempt
  // counted.
  absl::StatusOr<std::vector<QueuedCall>> lease(std::string_view function, base::WallTime now, std::size_t most);
  // Calls that would wait for longer than that are due now: the clock was set back.
  absl::Status limit_waits(base::WallTime now, std::chrono::nanoseconds longest);
  // What follows is of leased calls. NOT_FOUND: it is not leased any more (it was cancelled).
  // It is over.
  absl::Status finish(std::string_view id);
  // It waits until `due`; and as if the attempt had never begun.
  absl::Status retry(std::string_view id, base::WallTime due);
  absl::Status give_back(std::string_view id, base::WallTime due);
  // It is dead.
  absl::Status bury(std::string_view id, int status, std::string_view error, base::WallTime now);
  // It ended so, and waits to be called back.
  absl::Status answer(std::string_view id, const CallAnswer& answer, base::WallTime now);

  // Calls whose callback is due, the longest waiting first, at most `most`; each is leased to be called back.
  absl::StatusOr<std::vector<AnsweredCall>> lease_answered(base::WallTime now, std::size_t most);
  // What follows is of those. NOT_FOUND: it was cancelled.
  // The callback is tried again at `due`.
  absl::Status call_back_again(std::string_view id, base::WallTime due);
  // The callback was taken or given up: the call is over, or dead.
  absl::Status called_back(std::string_view id, base::WallTime now);

  enum class Cancelled : std::uint8_t { kUnknown, kQueued, kRunning };
  // A queued or running call is over, and one that waits to be called back too. (Of a running one the caller ends the
  // attempt.)
  absl::StatusOr<Cancelled> cancel(std::string_view id);

  // Dead ones, the oldest first; of all functions when `function` is empty.
  absl::StatusOr<std::vector<DeadCall>> dead(std::string_view function, std::size_t most);
  // A dead one is due now, with its attempts forgotten. NOT_FOUND.
  absl::Status replay(std::string_view id, base::WallTime now);
  absl::Status forget(std::string_view id);  // a dead one; NOT_FOUND

  // When the next call or callback that waits is due; nothing when none waits.
  absl::StatusOr<std::optional<base::WallTime>> next_due();
  // Queued and running calls by function.
  const std::map<std::string, std::uint64_t, std::less<>>& lengths() const { return counts_.lengths; }
  std::uint64_t dead_count() const { return counts_.dead; }
  std::uint64_t answered_count() const { return counts_.answered; }  // that are not called back yet
  std::uint64_t calls() const { return counts_.calls; }
  std::uint64_t bytes() const { return counts_.bytes; }

 private:
  CallQueue(std::unique_ptr<Database> database, CallQueueLimits limits);
  absl::Status set_up(Fsync fsync);
  struct Found {
    std::int64_t state = 0;
    std::string function;
    std::int64_t bytes = 0;
  };
  absl::StatusOr<std::optional<Found>> look(std::string_view id);
  // The call, which has to be in that state.
  absl::StatusOr<Found> expect(std::string_view id, std::int64_t state);
  absl::Status move(std::string_view id, std::int64_t state, base::WallTime due, std::int64_t attempts_change);
  absl::Status end(std::string_view id, const Found& call);
  // Out of the count of its state.
  void uncount(const Found& call);

  struct Counts {
    std::map<std::string, std::uint64_t, std::less<>> lengths;
    std::uint64_t dead = 0;
    std::uint64_t answered = 0;
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
  };
  absl::StatusOr<Counts> count_all();
  void count(std::string_view function, std::int64_t by);
  absl::Status set_bytes(std::string_view id, std::int64_t before, std::int64_t after);

  std::unique_ptr<Database> database_;
  const CallQueueLimits limits_;
  std::optional<Transaction> transaction_;
  Statement add_, over_, look_, wake_, due_, move_, bury_, remove_, remember_, trim_, dead_, replay_, next_;
  Statement answer_, empty_, bytes_, answered_, try_, take_answer_, forget_answer_;
  Counts counts_;  // with what the open transaction does
};

}  // namespace orla::store
