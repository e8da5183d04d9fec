#include "function/executor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/cpu_time.h"

namespace orla::function {
namespace {

constexpr std::chrono::milliseconds kLook{1};            // between two looks of the watcher while there may be news
constexpr std::chrono::milliseconds kSlowLook{20};       // while all tasks are known to be long
constexpr std::chrono::milliseconds kWatcherStays{100};  // awake after the last task
// Who gets a tenth of a processor over up to 50 ms computes; for the first 5 ms it is looked at often.
constexpr int kSharing = 10;
constexpr std::chrono::milliseconds kWindow{50};
constexpr std::chrono::milliseconds kSoon{5};

class FunctionTask final : public Executor::Task {
 public:
  explicit FunctionTask(std::function<void()> what) : what_(std::move(what)) {}
  void run() override { std::exchange(what_, nullptr)(); }

 private:
  std::function<void()> what_;
};

}  // namespace

struct Executor::Worker {
  explicit Worker(Executor& executor) : executor(executor) {}
  Executor& executor;
  pthread_t thread{};
  pid_t number = 0;
  bool begun = false;  // its thread has said its number
  std::condition_variable wake;
  bool woken = false;
  // Guarded by the executor's mutex, as all of it.
  Task* task = nullptr;
  base::SteadyTime since{};
  bool is_long = false;
  bool lowered = false;
  base::SteadyTime looked{};
  std::chrono::nanoseconds used{0};  // processor time, at `looked`
};

Executor::Executor(Settings settings)
    : settings_(std::move(settings)), processors_(std::max(1u, std::thread::hardware_concurrency())) {
  errno = 0;
  usual_nice_ = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  watcher_ = std::thread([this] { watch(); });
}

Executor::~Executor() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    for (Worker* worker : idle_) {
      worker->woken = true;
      worker->wake.notify_one();
      ++looking_;
    }
    idle_.clear();
    all_ended_.wait(lock, [this] { return workers_.empty() && queued_ == 0; });
    join_ended(lock);
    watcher_wake_.notify_all();
  }
  watcher_.join();
}

void Executor::submit(std::function<void()> what) { submit(std::make_shared<FunctionTask>(std::move(what))); }

void Executor::submit(std::shared_ptr<Task> task) {
  After after;
  {
    const std::lock_guard lock(mutex_);
    Task& added = *task;
    added.self_ = std::move(task);
    added.before_ = back_;
    added.after_ = nullptr;
    (back_ != nullptr ? back_->after_ : front_) = &added;
    back_ = &added;
    ++queued_;
    if (added.long_expected() || looking_ < processors_) one_more(after);
    after.watcher = std::exchange(watcher_asleep_, false);
  }
  carry_out(after);
}

void Executor::one_more(After& after) {
  if (!idle_.empty()) {
    after.wake = idle_.back();
    idle_.pop_back();
    after.wake->woken = true;
    ++looking_;
  } else if (workers_.size() < settings_.threads) {
    workers_.push_back(std::make_unique<Worker>(*this));
    after.make = workers_.back().get();
    ++looking_;
  }
}

void Executor::carry_out(const After& after) {
  if (after.wake != nullptr) after.wake->wake.notify_one();
  if (after.make != nullptr) make_thread(*after.make);
  if (after.watcher) watcher_wake_.notify_one();
}

void Executor::make_thread(Worker& worker) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, settings_.stack_bytes);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &attributes, &Executor::enter, &worker);
  ::pthread_attr_destroy(&attributes);
  if (error == 0) return;
  // The machine gives no more threads: the task waits for one of those there are, or for the watcher's next try.
  const std::lock_guard lock(mutex_);
  --looking_;
  std::erase_if(workers_, [&](const auto& other) { return other.get() == &worker; });
  all_ended_.notify_all();
}

void* Executor::enter(void* worker) {
  auto& self = *static_cast<Worker*>(worker);
  self.executor.work(self);
  return nullptr;
}

// Takes the next task. False: the thread is to end.
bool Executor::begin_next(Worker& worker, std::unique_lock<std::mutex>& lock, std::shared_ptr<Task>& task) {
  while (front_ == nullptr) {
    if (stopping_) return false;
    if (task != nullptr) {  // the one before is destroyed without the lock
      lock.unlock();
      task.reset();
      lock.lock();
      continue;
    }
    --looking_;
    idle_.push_back(&worker);
    while (!worker.wake.wait_for(lock, kIdleTime, [&] { return worker.woken; })) {
      if (idle_.size() <= settings_.idle_threads) continue;
      std::erase(idle_, &worker);
      ++looking_;
      return false;
    }
    worker.woken = false;
  }
  Task& next = *front_;
  front_ = next.after_;
  (front_ != nullptr ? front_->before_ : back_) = nullptr;
  --queued_;
  std::swap(task, next.self_);
  // `next.self_` now holds the task before, which goes with the lock released.
  worker.task = &next;
  worker.since = clock_.steady_now();
  worker.is_long = next.long_expected();
  ++running_;
  After after;
  if (worker.is_long) {
    --looking_;
    if (front_ != nullptr && looking_ < std::min(processors_, queued_)) one_more(after);
  }
  lock.unlock();
  const std::shared_ptr<Task> before = std::move(next.self_);
  carry_out(after);
  return true;
}

void Executor::work(Worker& worker) {
  ::pthread_setname_np(::pthread_self(), settings_.name.c_str());
  std::shared_ptr<Task> task;
  std::unique_lock lock(mutex_);
  worker.thread = ::pthread_self();
  worker.number = ::gettid();
  worker.begun = true;
  while (begin_next(worker, lock, task)) {
    task->run();
    lock.lock();
    worker.task = nullptr;
    --running_;
    if (worker.is_long) ++looking_;
    worker.is_long = false;
    if (!worker.lowered) continue;
    // Where the right to raise it again is missing, the thread has had its time, and a new one takes its place.
    if (::setpriority(PRIO_PROCESS, static_cast<id_t>(worker.number), usual_nice_) != 0) break;
    worker.lowered = false;
  }
  --looking_;
  const auto self = std::find_if(workers_.begin(), workers_.end(), [&](const auto& w) { return w.get() == &worker; });
  ended_.push_back(std::move(*self));
  workers_.erase(self);
  After after;
  if (front_ != nullptr && looking_ < std::min(processors_, queued_)) one_more(after);
  if (stopping_ && workers_.empty()) all_ended_.notify_all();
  lock.unlock();
  task.reset();
  carry_out(after);
}

void Executor::join_ended(std::unique_lock<std::mutex>& lock) {
  while (!ended_.empty()) {
    const std::unique_ptr<Worker> worker = std::move(ended_.back());
    ended_.pop_back();
    lock.unlock();
    ::pthread_join(worker->thread, nullptr);
    lock.lock();
  }
}

// True: it may have news at the next look.
bool Executor::look_at(Worker& worker, base::SteadyTime now) {
  if (worker.task == nullptr) return false;
  if (now - worker.since < kLongTask) return true;
  if (!worker.is_long) {
    worker.is_long = true;
    --looking_;
    worker.task->runs_long();
  }
  if (worker.lowered) return false;
  const bool first = worker.looked < worker.since;
  const std::chrono::nanoseconds window = now - worker.looked;
  if (!first && window < kLongTask) return true;
  const std::chrono::nanoseconds used = base::thread_cpu_time(worker.thread);
  const std::chrono::nanoseconds spent = used - worker.used;
  // Many that compute share the processors, so that each gets a small part of the time.
  const bool computes = !first && spent >= kLongTask && spent > window / kSharing;
  if (computes && ::setpriority(PRIO_PROCESS, static_cast<id_t>(worker.number), usual_nice_ + kLowerBy) == 0) {
    worker.lowered = true;
  }
  if (first || computes || window >= kWindow) {
    worker.used = used;
    worker.looked = now;
  }
  return first || computes || window < kSoon;
}

void Executor::watch() {
  ::pthread_setname_np(::pthread_self(), (settings_.name + "-watch").substr(0, 15).c_str());
  base::SteadyTime busy = clock_.steady_now();
  std::unique_lock lock(mutex_);
  const auto over = [this] { return stopping_ && workers_.empty() && queued_ == 0; };
  while (!over()) {
    const base::SteadyTime now = clock_.steady_now();
    bool news = queued_ > 0;
    for (const auto& worker : workers_) {
      if (worker->begun && look_at(*worker, now)) news = true;
    }
    join_ended(lock);
    for (std::size_t i = 0; i < processors_ && looking_ < std::min(processors_, queued_); ++i) {
      After after;
      one_more(after);
      lock.unlock();
      carry_out(after);
      lock.lock();
    }
    if (running_ > 0 || queued_ > 0) busy = now;
    if (now - busy > kWatcherStays) {
      watcher_asleep_ = true;
      // Threads that ended meanwhile are joined now and then.
      watcher_wake_.wait_for(lock, kIdleTime, [&] { return !watcher_asleep_ || over(); });
      watcher_asleep_ = false;
      busy = clock_.steady_now();
    } else {
      watcher_wake_.wait_for(lock, news || running_ == 0 ? kLook : kSlowLook);
    }
  }
}

std::size_t Executor::threads() const {
  const std::lock_guard lock(mutex_);
  return workers_.size();
}

std::size_t Executor::lowered() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->lowered; }));
}

}  // namespace orla::function
