// One gRPC completion queue and the thread that serves it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace grpc {
class CompletionQueue;
}

namespace orla::link {

// gRPC's log to stderr when `verbose`, else nowhere. Only the first call of a process counts.
void settle_grpc_log(bool verbose);

class GrpcThread {
 public:
  // What wants to be looked at now and then, on the thread.
  class Ticking {
   public:
    virtual ~Ticking() = default;
    virtual void tick(base::SteadyTime now) = 0;
  };
  // What runs, on the thread, when an operation is done. gRPC gets its address, so it stays until then.
  using Completion = std::function<void(bool ok)>;

  // Calls tick() of what has been added about every `interval`.
  GrpcThread(std::unique_ptr<grpc::CompletionQueue> queue, std::chrono::milliseconds interval);
  ~GrpcThread();  // as stop()
  GrpcThread(const GrpcThread&) = delete;
  GrpcThread& operator=(const GrpcThread&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }

  // Calls are counted, so that the queue ends after the last operation of the last call.
  void call_begins();
  void call_ends();
  void wait_for_calls();
  // Until it is gone.
  void add(std::weak_ptr<Ticking> ticking);
  // Serves what is outstanding, then ends the thread. No operation is begun any more. Idempotent.
  void stop();

 private:
  void serve();
  void tick(base::SteadyTime now);

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  const std::chrono::milliseconds interval_;
  const base::SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int calls_ = 0;                                // guarded by mutex_
  std::vector<std::weak_ptr<Ticking>> ticking_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace orla::link
