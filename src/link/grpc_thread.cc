#include "link/grpc_thread.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/completion_queue.h>
#include <pthread.h>

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

GrpcThread::GrpcThread(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), thread_([this] { serve(); }) {
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

void GrpcThread::serve() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) (*static_cast<Completion*>(tag))(ok);
}

}  // namespace orla::link
