#include "link/grpc_call.h"

#include <utility>

namespace orla::link {

GrpcCall::GrpcCall(GrpcThread& thread, Owner& owner, ConnectionId id) : thread_(thread), owner_(owner), id_(id) {}

bool GrpcCall::send(std::string bytes, Precedence precedence) {
  Lock lock(mutex_);
  if (closing_ || failed_ || read_ended_ || phase_ > Phase::kOpen) return true;
  const std::size_t size = bytes.size();
  if (queue_.bytes() + size > kMaxQueuedBytes) return false;
  queue_.push(std::move(bytes), size, precedence);
  settle(std::move(lock));
  return true;
}

void GrpcCall::close() {
  Lock lock(mutex_);
  if (closing_ || failed_) return;
  // Also before the peer has answered: gRPC 1.51 leaks now and then when a connection is cancelled under way.
  closing_ = true;
  if (!reason_.has_value()) reason_ = absl::OkStatus();
  settle(std::move(lock));
}

void GrpcCall::fail(const absl::Status& why) {
  Lock lock(mutex_);
  if (failed_) return;
  failed_ = true;
  if (!reason_.has_value()) reason_ = why;
  queue_.clear();
  settle(std::move(lock));
}

void GrpcCall::fail_unless_open(const absl::Status& why) {
  {
    const Lock lock(mutex_);
    if (phase_ != Phase::kStarting) return;
  }
  fail(why);
}

void GrpcCall::cut() {
  const Lock lock(mutex_);
  if (phase_ == Phase::kOver) return;
  cancelled_ = true;
  try_cancel();
}

void GrpcCall::delivered(std::size_t bytes) {
  Lock lock(mutex_);
  undelivered_bytes_ -= bytes;
  --undelivered_messages_;
  settle(std::move(lock));
}

std::size_t GrpcCall::queued_bytes() const {
  const Lock lock(mutex_);
  return queue_.bytes() + writing_bytes_;
}

void GrpcCall::begun() {
  const Lock lock(mutex_);
  self_ = shared_from_this();
  thread_.call_begins();
}

void GrpcCall::start_done(bool ok) {
  Lock lock(mutex_);
  phase_ = Phase::kOpen;
  if (!ok) {
    read_ended_ = true;
  } else if (!failed_) {
    owner_.opened(self_);
  }
  settle(std::move(lock));
}

void GrpcCall::refuse(const absl::Status& why) {
  Lock lock(mutex_);
  phase_ = Phase::kOpen;
  failed_ = true;
  reason_ = why;
  settle(std::move(lock));
}

void GrpcCall::read_done(bool ok, std::string_view bytes) {
  absl::Status received;
  if (ok) {
    std::shared_ptr<GrpcCall> self;
    {
      const Lock lock(mutex_);
      undelivered_bytes_ += bytes.size();
      ++undelivered_messages_;
      self = self_;
    }
    received = owner_.received(self, bytes);  // decodes: not under the lock
  }
  Lock lock(mutex_);
  reading_ = false;
  --operations_;
  if (!ok) read_ended_ = true;
  if (!received.ok() && !failed_) {
    failed_ = true;
    if (!reason_.has_value()) reason_ = received;
    queue_.clear();
  }
  settle(std::move(lock));
}

void GrpcCall::write_done(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  writing_bytes_ = 0;
  --operations_;
  if (!ok) {
    write_failed_ = true;
    queue_.clear();
  }
  settle(std::move(lock));
}

void GrpcCall::close_done() {
  Lock lock(mutex_);
  --operations_;
  settle(std::move(lock));
}

void GrpcCall::finish_done(const absl::Status& how) {
  Lock lock(mutex_);
  phase_ = Phase::kFinished;
  finish_ = how;
  settle(std::move(lock));
}

void GrpcCall::settle(Lock lock) {
  const std::shared_ptr<GrpcCall> last = advance();
  lock.unlock();
  if (last != nullptr) thread_.call_ends();
}

std::shared_ptr<GrpcCall> GrpcCall::advance() {
  if (phase_ == Phase::kStarting) {
    if (failed_ && !cancelled_) {
      cancelled_ = true;
      try_cancel();
    }
    return nullptr;
  }
  if (phase_ == Phase::kOpen) {
    const bool writable = !write_failed_ && !failed_ && !read_ended_;
    if (writable && !writing_ && !queue_.empty()) {
      std::string bytes = queue_.pop();
      writing_ = true;
      writing_bytes_ = bytes.size();
      ++operations_;
      begin_write(std::move(bytes), !queue_.empty());
    }
    bool finish = read_ended_ || failed_;
    if (!finish && closing_ && !close_begun_ && !writing_ && queue_.empty()) {
      close_begun_ = true;
      finish = begin_close();
      if (!finish) ++operations_;
    }
    if (finish && (!writing_ || is_caller())) {
      if (is_caller() && !read_ended_ && !cancelled_) {
        cancelled_ = true;
        try_cancel();
      }
      phase_ = Phase::kFinishing;
      begin_finish(reason_.value_or(absl::OkStatus()));
    } else if (finish && !cancelled_) {
      // The write under way would wait for a peer that has nothing to say any more.
      cancelled_ = true;
      try_cancel();
    } else if (!finish && !reading_ && undelivered_bytes_ < kMaxUndeliveredBytes &&
               undelivered_messages_ < kMaxUndeliveredMessages) {
      reading_ = true;
      ++operations_;
      begin_read();
    }
    return nullptr;
  }
  if (phase_ == Phase::kFinished && operations_ == 0) {
    phase_ = Phase::kOver;
    owner_.ended(self_, reason_.value_or(finish_));
    release();
    return std::exchange(self_, nullptr);
  }
  return nullptr;
}

}  // namespace orla::link
