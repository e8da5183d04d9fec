#include "base/thread_loop.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

namespace orla::base {

ThreadLoop::ThreadLoop(const char* name) : thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), std::string(name).substr(0, 15).c_str());
}

ThreadLoop::~ThreadLoop() { stop(); }

void ThreadLoop::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    tasks_.push_back(std::move(task));
    if (tasks_.size() > 1) return;  // the thread has been woken, or is awake
  }
  wake_.notify_one();
}

void ThreadLoop::post_after(std::chrono::nanoseconds delay, std::function<void()> task) {
  const SteadyTime now = clock_.steady_now();
  // A delay too long to add is "never", which the end of the clock's range is.
  const SteadyTime due = delay > SteadyTime::max() - now ? SteadyTime::max() : now + delay;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    timers_.push_back(Timer{due, timers_posted_++, std::move(task)});
    std::push_heap(timers_.begin(), timers_.end(), later);
  }
  wake_.notify_one();
}

void ThreadLoop::stop() {
  {
    // Declared before the lock, so destroyed after it is released: what a task holds may post when it goes.
    std::deque<std::function<void()>> dropped_tasks;
    std::vector<Timer> dropped_timers;
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped_tasks.swap(tasks_);
    dropped_timers.swap(timers_);
  }
  wake_.notify_one();
  if (on_loop_thread()) return;
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void ThreadLoop::run() {
  std::deque<std::function<void()>> batch;
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!timers_.empty()) {
      const SteadyTime now = clock_.steady_now();
      while (!timers_.empty() && timers_.front().due <= now) {
        std::pop_heap(timers_.begin(), timers_.end(), later);
        batch.push_back(std::move(timers_.back().task));
        timers_.pop_back();
      }
    }
    while (!tasks_.empty()) {
      batch.push_back(std::move(tasks_.front()));
      tasks_.pop_front();
    }
    if (batch.empty()) {
      if (timers_.empty() || timers_.front().due == SteadyTime::max()) {
        wake_.wait(lock);
      } else {
        const SteadyTime due = timers_.front().due;  // a copy: the timers change during the wait
        wake_.wait_until(lock, due);
      }
      continue;
    }
    while (!batch.empty()) {
      if (stopped_) break;
      lock.unlock();
      {
        const std::function<void()> task = std::move(batch.front());
        batch.pop_front();
        task();
      }  // what the task holds goes before the next one runs
      lock.lock();
    }
  }
  lock.unlock();
  batch.clear();
}

}  // namespace orla::base
