// Threads that run what may block: calls of functions, starts of replicas. There are as many as are needed, up to a
// bound; a few idle ones are kept.
//
// Handing a task over is cheap where tasks are short: while enough threads are awake that will soon look for work, none
// is woken. A thread whose task turns out to be long does not count for that any more; a watcher looks for such every
// millisecond, wakes others in their place, and lowers the priority of those that compute all the time, so that a
// function that loops does not slow its neighbours.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace orla::function {

// Thread-safe.
class Executor {
 public:
  // Runs once, on one of the threads.
  class Task {
   public:
    virtual ~Task() = default;
    virtual void run() = 0;
    // Whether it is expected to need its thread for longer than a few hand-overs cost. Wrong answers cost time only.
    virtual bool long_expected() const { return true; }
    // It was not expected to be long, and is. On the watcher's thread while run() runs; short, takes no lock.
    virtual void runs_long() {}

   private:
    friend class Executor;
    std::shared_ptr<Task> self_;  // while it is in the queue
    Task* before_ = nullptr;
    Task* after_ = nullptr;
  };

  struct Settings {
    std::string name;              // of its threads, as debuggers and `ps -L` show it; at most 15 bytes
    std::size_t threads = 64;      // at most
    std::size_t idle_threads = 4;  // kept
    std::size_t stack_bytes = 1 << 20;
  };
  static constexpr std::chrono::milliseconds kLongTask{1};      // longer ones get no others behind them
  static constexpr std::chrono::milliseconds kIdleTime{5'000};  // threads beyond the kept ones end after that
  static constexpr int kLowerBy = 15;                           // nice levels, of threads that compute all the time

  explicit Executor(Settings settings);
  // Runs what is queued, then ends the threads.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void submit(std::shared_ptr<Task> task);
  void submit(std::function<void()> what);

  // Threads there are now.
  std::size_t threads() const;
  // Of these, those whose priority is lowered now.
  std::size_t lowered() const;

 private:
  struct Worker;
  static void* enter(void* worker);
  void work(Worker& worker);
  bool begin_next(Worker& worker, std::unique_lock<std::mutex>& lock, std::shared_ptr<Task>& task);
  // Wakes or makes one more thread; what is to be done after the lock was given back goes to `after`.
  struct After {
    Worker* wake = nullptr;
    Worker* make = nullptr;
    bool watcher = false;
  };
  void one_more(After& after);
  void carry_out(const After& after);
  void make_thread(Worker& worker);
  void join_ended(std::unique_lock<std::mutex>& lock);
  void watch();
  bool look_at(Worker& worker, base::SteadyTime now);

  const Settings settings_;
  const base::SystemClock clock_;
  const std::size_t processors_;
  int usual_nice_ = 0;

  mutable std::mutex mutex_;  // guards all below
  Task* front_ = nullptr;
  Task* back_ = nullptr;
  std::size_t queued_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;                   // the last one to go idle is the first to be woken
  std::vector<std::unique_ptr<Worker>> ended_;  // to be joined
  std::size_t looking_ = 0;                     // awake and not in a long task
  std::size_t running_ = 0;
  bool stopping_ = false;
  bool watcher_asleep_ = false;
  std::condition_variable watcher_wake_;
  std::condition_variable all_ended_;
  std::thread watcher_;
};

}  // namespace orla::function
