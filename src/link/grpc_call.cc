#include "link/grpc_call.h"

#include <algorithm>
#include <utility>

namespace orla::link {

GrpcCall::GrpcCall(GrpcThread& thread, Owner& owner, ConnectionId id) : thread_(thread), owner_(owner), id_(id) {}

bool GrpcCall::send(std::string bytes, Precedence precedence) {
  Lock lock(mutex_);
  if (closing_ || failed_ || read_ended_ || phase_ > Phase::kOpen) return true;
  const std::size_t size = bytes.size();
  if (queue_.bytes() + cutting_.size() - cut_bytes_ + size > kMaxQueuedBytes) return false;
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
  drop_queue();
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
  return queue_.bytes() + cutting_.size() - cut_bytes_ + writing_bytes_;
}

void GrpcCall::tick(base::SteadyTime now) {
  Lock lock(mutex_);
  if (phase_ != Phase::kOpen) return;
  std::optional<std::string> heartbeat = owner_.heartbeat(now);
  if (!heartbeat.has_value() || !greeted_ || closing_ || failed_) return;
  if (now - written_ < owner_.heartbeat_interval()) return;
  const std::size_t size = heartbeat->size();
  queue_.push(*std::move(heartbeat), size, Precedence::kHeartbeat);
  settle(std::move(lock));
}

void GrpcCall::begun() {
  const Lock lock(mutex_);
  self_ = shared_from_this();
  thread_.call_begins();
  thread_.add(weak_from_this());
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

void GrpcCall::peer_lives() {
  const base::SteadyTime now = clock_.steady_now();
  if (now - told_alive_ < owner_.heartbeat_interval() / 4) return;
  told_alive_ = now;
  owner_.heard(self_);
}

absl::Status GrpcCall::deliver(std::string_view message) {
  {
    const Lock lock(mutex_);
    undelivered_bytes_ += message.size();
    ++undelivered_messages_;
  }
  return owner_.received(self_, message);  // decodes: not under the lock
}

absl::Status GrpcCall::take(std::string_view bytes) {
  const absl::StatusOr<Parcel> parcel = open_parcel(bytes);
  if (!parcel.ok()) return parcel.status();
  {
    const Lock lock(mutex_);
    if (parcel->kind == Parcel::Kind::kReceived) {
      if (absl::Status status = window_.confirmed(clock_.steady_now(), parcel->received); !status.ok()) return status;
    }
    read_bytes_ += parcel->bytes;
    if (parcel->marked) confirm_ = read_bytes_;
  }
  if (parcel->kind == Parcel::Kind::kMessage && (!parcel->content.empty() || !parcel->marked)) {
    return deliver(parcel->content);
  }
  if (parcel->kind == Parcel::Kind::kPiece || parcel->kind == Parcel::Kind::kLast) {
    if (absl::Status status = joiner_.add(*parcel); !status.ok()) return status;
  }
  if (parcel->kind == Parcel::Kind::kLast) return deliver(joiner_.take());
  peer_lives();
  return absl::OkStatus();
}

void GrpcCall::read_done(bool ok, std::string_view bytes) {
  const absl::Status received = ok ? take(bytes) : absl::OkStatus();
  Lock lock(mutex_);
  reading_ = false;
  --operations_;
  if (!ok) read_ended_ = true;
  if (!received.ok() && !failed_) {
    failed_ = true;
    if (!reason_.has_value()) reason_ = received;
    drop_queue();
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
    drop_queue();
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

void GrpcCall::drop_queue() {
  queue_.clear();
  cutting_.clear();
  cut_bytes_ = 0;
}

bool GrpcCall::may_write() const {
  if (!queue_.empty() && queue_.next() != Precedence::kData) return true;
  return data_waits() && (window_.open() || window_.stuck());
}

std::string GrpcCall::next_data() {
  const std::size_t most = window_.piece_bytes();
  if (cutting_.empty()) {
    if (queue_.next_bytes() <= most) return queue_.pop();
    cutting_ = queue_.pop();
  }
  const std::size_t begin = cut_bytes_;
  cut_bytes_ = std::min(begin + most, cutting_.size());
  const bool last = cut_bytes_ == cutting_.size();
  std::string piece = encode_piece(std::string_view(cutting_).substr(begin, cut_bytes_ - begin), last);
  if (last) {
    cutting_ = {};
    cut_bytes_ = 0;
  }
  return piece;
}

void GrpcCall::write_next() {
  const base::SteadyTime now = clock_.steady_now();
  std::string bytes;
  bool counts = true;
  if (!queue_.empty() && queue_.next() != Precedence::kData) {
    if (queue_.next() == Precedence::kGreeting) greeted_ = true;
    bytes = queue_.pop();
  } else if (confirm_.has_value()) {
    bytes = encode_received(*confirm_);
    confirm_.reset();
    counts = false;
  } else if (data_waits() && window_.stuck()) {
    bytes = kMark;
    window_.mark(now);
    counts = false;
  } else if (data_waits() && window_.open()) {
    bytes = next_data();
  } else {
    return;
  }
  const SendWindow::Next next = data_waits() ? SendWindow::Next::kMore : SendWindow::Next::kNothing;
  const bool marked = counts && window_.sent(now, bytes.size(), next);
  written_ = now;
  writing_ = true;
  writing_bytes_ = bytes.size();
  ++operations_;
  // What gRPC holds back for more to come would never be confirmed: more has to come for certain.
  begin_write({std::move(bytes), marked, may_write()});
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
    if (writable && !writing_) write_next();
    bool finish = read_ended_ || failed_;
    if (!finish && closing_ && !close_begun_ && !writing_ && !data_waits()) {
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
