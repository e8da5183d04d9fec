// One gRPC completion queue and the thread that serves it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace grpc {
class CompletionQueue;
}

namespace orla::link {

// gRPC's log to stderr when `verbose`, else nowhere. Only the first call of a process counts.
void settle_grpc_log(bool verbose);

class GrpcThread {
 public:
  // What runs, on the thread, when an operation is done. gRPC gets its address, so it stays until then.
  using Completion = std::function<void(bool ok)>;

  explicit GrpcThread(std::unique_ptr<grpc::CompletionQueue> queue);
  ~GrpcThread();  // as stop()
  GrpcThread(const GrpcThread&) = delete;
  GrpcThread& operator=(const GrpcThread&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }

  // Calls are counted, so that the queue ends after the last operation of the last call.
  void call_begins();
  void call_ends();
  void wait_for_calls();
  // Serves what is outstanding, then ends the thread. No operation is begun any more. Idempotent.
  void stop();

 private:
  void serve();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int calls_ = 0;
  std::thread thread_;
};

}  // namespace orla::link
