#include "link/grpc_thread.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/completion_queue.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

namespace orla::link {

void settle_grpc_log(bool verbose) {
  static std::once_flag once;
  std::call_once(once, [verbose] {
    if (verbose) {
      gpr_set_log_verbosity(GPR_LOG_SEVERITY_INFO);
      return;
    }
    gpr_set_log_function([](gpr_log_func_args*) {});
    google::protobuf::SetLogHandler(nullptr);
  });
}

GrpcThread::GrpcThread(std::unique_ptr<grpc::CompletionQueue> queue, std::chrono::milliseconds interval)
    : queue_(std::move(queue)), interval_(interval), thread_([this] { serve(); }) {
  pthread_setname_np(thread_.native_handle(), "grpc-carrier");
}

GrpcThread::~GrpcThread() { stop(); }

void GrpcThread::call_begins() {
  const std::lock_guard lock(mutex_);
  ++calls_;
}

void GrpcThread::call_ends() {
  // Notified under the lock: who waits may destroy this object next.
  const std::lock_guard lock(mutex_);
  --calls_;
  ended_.notify_all();
}

void GrpcThread::wait_for_calls() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return calls_ == 0; });
}

void GrpcThread::stop() {
  if (!thread_.joinable()) return;
  queue_->Shutdown();
  thread_.join();
}

void GrpcThread::add(std::weak_ptr<Ticking> ticking) {
  const std::lock_guard lock(mutex_);
  ticking_.push_back(std::move(ticking));
}

void GrpcThread::tick(base::SteadyTime now) {
  std::vector<std::shared_ptr<Ticking>> all;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(ticking_, [&all](const std::weak_ptr<Ticking>& one) {
      std::shared_ptr<Ticking> still = one.lock();
      if (still == nullptr) return true;
      all.push_back(std::move(still));
      return false;
    });
  }
  for (const std::shared_ptr<Ticking>& one : all) one->tick(now);
}

void GrpcThread::serve() {
  const gpr_timespec interval = gpr_time_from_millis(interval_.count(), GPR_TIMESPAN);
  base::SteadyTime next_tick = clock_.steady_now() + interval_;
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue_->AsyncNext(&tag, &ok, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), interval));
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) (*static_cast<Completion*>(tag))(ok);
    const base::SteadyTime now = clock_.steady_now();
    if (now < next_tick) continue;
    tick(now);
    next_tick = now + interval_;
  }
}

}  // namespace orla::link
