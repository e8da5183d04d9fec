// The real Loop: one thread that runs tasks and timers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"

namespace orla::base {

// The thread starts in the constructor. Timers run on the steady clock, never early; those due at the same instant run
// in the order in which they were posted. Tasks due together with posted ones run first.
class ThreadLoop final : public Loop {
 public:
  // `name` is shown by debuggers and `ps -L` (its first 15 bytes).
  explicit ThreadLoop(const char* name = "loop");
  // Stops. Not called on the loop's own thread.
  ~ThreadLoop() override;
  ThreadLoop(const ThreadLoop&) = delete;
  ThreadLoop& operator=(const ThreadLoop&) = delete;

  void post(std::function<void()> task) override;
  void post_after(std::chrono::nanoseconds delay, std::function<void()> task) override;

  // Lets the running task finish and starts no other; tasks and timers that wait, and those posted from now on, are
  // destroyed without running. Returns once the thread has ended, except on the loop's own thread, where it returns at
  // once. Idempotent, thread-safe.
  void stop();

  bool on_loop_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  struct Timer {
    SteadyTime due;
    std::uint64_t order;  // among timers due together
    std::function<void()> task;
  };
  static bool later(const Timer& a, const Timer& b) { return a.due != b.due ? a.due > b.due : a.order > b.order; }
  void run();

  const SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_, as all below
  std::vector<Timer> timers_;                // a heap, the next one due in front
  std::uint64_t timers_posted_ = 0;
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::thread thread_;  // last: it uses all above
};

}  // namespace orla::base
