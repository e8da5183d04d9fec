#include "node/gateway_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <utility>

#include "node/gateway_call.h"

namespace orla::node {

namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kKeptBufferBytes = 16 * 1024;  // of a connection that waits for a request
// What a client still sends of a request that was answered is read so far, so that it gets to see the answer.
constexpr std::size_t kLingerBytes = 256 * 1024;
constexpr std::chrono::seconds kLinger{1};
// The host ends a call at its deadline; when it does not, this much later the connection does.
constexpr std::chrono::seconds kDeadlineGrace{5};
// A client that has ended its side of the connection may still read: its call is cancelled only when it takes longer.
constexpr std::chrono::milliseconds kHalfClosed{500};

}  // namespace

Connection::Connection(std::shared_ptr<GatewayCore> core, std::unique_ptr<ConnectionSocket> socket, std::string peer,
                       base::Random& random)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      random_(random),
      peer_(std::move(peer)),
      parser_(core_->settings.limits.request) {
  ++core_->connections;
}

void Connection::start(Take take) {
  set_deadline(core_->settings.limits.header_timeout);
  if (take == Take::kServe) return step();
  send({503, "text/plain; charset=utf-8", {{"Retry-After", "1"}}, "too many connections\n", true});
}

void Connection::on_read(std::size_t bytes, Gone gone) {
  reading_ = false;
  if (state_ == State::kEnded) return;
  if (gone != Gone::kNo) {
    gone_ = true;
    broken_ = gone == Gone::kBroken;
    gone_at_ = core_->clock.steady_now();
  }
  in_.append(room_.data(), bytes);
  step();
}

void Connection::on_written(Gone gone) {
  if (state_ != State::kAnswer) return;
  answered_ = true;
  if (gone != Gone::kNo) return end();
  if (close_after_) {
    begin_linger();
  } else {
    next_request();
  }
  step();
}

void Connection::tick(base::SteadyTime now) {
  const bool refusing = core_->phase == Phase::kRefusing;
  bool idle = state_ == State::kHead && in_.size() == used_;
  if (state_ == State::kCall) {
    const std::lock_guard lock(mutex_);
    idle = turn_ == Turn::kReleased && !backlog_;
  }
  if (idle && refusing && answered_) return end();
  if (idle && state_ == State::kCall) return step();  // a connection that waits keeps nothing of its last call
  if (state_ == State::kCall && gone_ && !broken_ && now - gone_at_ >= kHalfClosed) {
    broken_ = true;
    cancel(function::CancelReason::kClientGone);
  }
  if (now.time_since_epoch().count() < deadline_.load(std::memory_order_relaxed)) return;
  if (idle && (answered_ || in_.size() == used_)) return end();
  switch (state_) {
    case State::kHead:
      return fault({408, "the request's head was not there in time"});
    case State::kBody:
      return fault({408, "the request's body was not there in time"});
    case State::kCall:
      if (streams_ && !tunnels_ && !body_done_ && exchange_->wants_body()) {
        return fail_stream({408, "the request's body stopped coming"});
      }
      set_deadline(kDeadlineGrace);
      return cancel(function::CancelReason::kTimeout);
    case State::kSkip:
    case State::kAnswer:
    case State::kLinger:
    case State::kEnded:
      return end();
  }
}

void Connection::end() {
  if (state_ == State::kEnded) return;
  const bool called = state_ == State::kCall;
  state_ = State::kEnded;
  if (called) cancel(function::CancelReason::kClientGone);
  exchange_.reset();
  socket_->end(shared_from_this());
}

void Connection::released(After after) {
  const auto now = core_->clock.steady_now();
  bool post = false;
  {
    const std::lock_guard lock(mutex_);
    turn_ = Turn::kReleased;
    closes_ = closes_ || after == After::kClose;
    // Otherwise the next bytes to come wake the connection.
    post = backlog_ || closes_ || !body_done_;
    deadline_ = (now + core_->settings.limits.keep_alive).time_since_epoch().count();
  }
  if (post) socket_->step_later(shared_from_this());
}

void Connection::answer(Answer answer) {
  socket_->run([self = shared_from_this(), answer = std::move(answer)]() mutable {
    if (self->state_ != State::kCall) return;
    self->leave_call();
    self->reply(std::move(answer));
  });
}

void Connection::break_off() {
  socket_->run([self = shared_from_this()] {
    if (self->state_ != State::kCall) return;
    self->leave_call();
    self->end();
  });
}

void Connection::more_body() { socket_->step_later(shared_from_this()); }

void Connection::upgraded() {
  socket_->run([self = shared_from_this()] {
    if (self->state_ != State::kCall) return;
    {
      const std::lock_guard lock(self->mutex_);
      if (self->turn_ != Turn::kCalled) return;
      self->body_done_ = false;
    }
    self->streams_ = self->tunnels_ = true;
    self->step();
  });
}

void Connection::set_deadline(std::chrono::nanoseconds patience) {
  deadline_ = (core_->clock.steady_now() + patience).time_since_epoch().count();
}

void Connection::step() {
  while (true) {
    switch (state_) {
      case State::kHead:
        if (!read_head()) return;
        break;
      case State::kBody:
        if (!read_body()) return;
        break;
      case State::kCall:
        if (!attend_call()) return;
        break;
      case State::kSkip:
        if (!skip_body()) return;
        break;
      case State::kAnswer:
        return;
      case State::kLinger:
        linger();
        return;
      case State::kEnded:
        return;
    }
  }
}

void Connection::read_more() {
  if (reading_ || state_ == State::kEnded) return;
  if (gone_) {
    if (state_ != State::kAnswer && state_ != State::kCall) end();
    return;
  }
  reading_ = true;
  // What was used is cut off where there is little left to move.
  if (used_ > 0 && (used_ == in_.size() || used_ >= kReadBytes)) {
    in_.erase(0, used_);
    used_ = 0;
  }
  if (in_.empty() && in_.capacity() > kKeptBufferBytes && state_ == State::kHead) std::string().swap(in_);
  if (room_.empty()) room_.resize(kReadBytes);
  socket_->read(shared_from_this(), room_);
}

bool Connection::read_head() {
  std::size_t taken = 0;
  if (used_ == in_.size()) {
    read_more();
    return false;
  }
  if (!begun_) {
    begun_ = true;
    request_began_ = core_->clock.steady_now();
    deadline_ = (request_began_ + core_->settings.limits.header_timeout).time_since_epoch().count();
  }
  switch (parser_.head(unread(), taken)) {
    case RequestParser::Progress::kMore:
      read_more();
      return false;
    case RequestParser::Progress::kFault:
      fault(parser_.fault());
      return false;
    case RequestParser::Progress::kDone:
      used_ += taken;
      begun_ = false;
      take_request();
      return state_ != State::kAnswer;
  }
  return false;
}

void Connection::take_request() {
  const RequestHead& request = parser_.request();
  keep_alive_ = request.keep_alive && core_->phase == Phase::kServing;
  is_head_ = request.method == "HEAD";
  http11_ = request.http11;
  body_done_ = !request.has_body();
  plan_ = plan_request(*core_, request);
  if (!body_done_ && request.content_length.value_or(0) > plan_.body_limit && !plan_.answer) {
    plan_.answer =
        Answer{413, "text/plain; charset=utf-8", {}, fmt::format("a body over {} bytes\n", plan_.body_limit), true};
  }
  if (plan_.answer) {
    // A small body is read, so that the connection can go on.
    const bool small = !request.expects_continue && request.content_length &&
                       *request.content_length <= kWholeBodyBytes && !plan_.answer->close;
    if (body_done_ || !small) return reply(*std::exchange(plan_.answer, std::nullopt));
    plan_.body_limit = kWholeBodyBytes;
    plan_.whole = true;
  }
  if (request.expects_continue && !body_done_ && unread().empty()) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    // It fits: nothing else is on its way to a client that waits for it.
    (void)::send(socket_->descriptor(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  body_.clear();
  const bool length_is_small = request.content_length && *request.content_length <= kWholeBodyBytes;
  if (body_done_ || plan_.whole || length_is_small) {
    deadline_ = (request_began_ + core_->settings.limits.read_timeout).time_since_epoch().count();
    streams_ = false;
    state_ = State::kBody;
    return;
  }
  // Of unknown length: when it is all there, it is whole.
  std::size_t taken = 0;
  const auto progress = parser_.body(unread(), plan_.body_limit, body_, taken);
  used_ += taken;
  if (progress == RequestParser::Progress::kFault) return fault(parser_.fault());
  body_done_ = progress == RequestParser::Progress::kDone;
  streams_ = !body_done_;
  start_call();
}

bool Connection::read_body() {
  if (!body_done_) {
    std::size_t taken = 0;
    const auto progress = parser_.body(unread(), plan_.body_limit, body_, taken);
    used_ += taken;
    if (progress == RequestParser::Progress::kFault) {
      fault(parser_.fault());
      return false;
    }
    if (progress == RequestParser::Progress::kMore) {
      read_more();
      return false;
    }
    body_done_ = true;
  }
  if (plan_.answer) {
    reply(*std::exchange(plan_.answer, std::nullopt));
    return state_ != State::kAnswer;
  }
  start_call();
  return true;
}

void Connection::start_call() {
  answered_ = true;
  tunnels_ = false;
  CallFacts facts{peer_, start_time(), request_began_ + core_->settings.upstream_timeout};
  StartedRequest started{parser_.request(), plan_.route, facts, keep_alive_, request_began_};
  exchange_ = make_exchange(core_, shared_from_this(), started, random_);
  exchange_->body = std::move(body_);
  if (streams_) {
    exchange_->stream_body();
    if (!exchange_->body.empty()) exchange_->add_body(exchange_->body);
    set_deadline(core_->settings.limits.body_idle);
  } else {
    deadline_ = (facts.deadline + kDeadlineGrace).time_since_epoch().count();
  }
  {
    const std::lock_guard lock(mutex_);
    turn_ = Turn::kCalled;
    backlog_ = false;
    closes_ = false;
  }
  state_ = State::kCall;
  run_exchange(core_, exchange_);
}

bool Connection::attend_call() {
  if (streams_ && !body_done_) tunnels_ ? feed_tunnel() : feed();
  if (state_ != State::kCall) return false;
  {
    const std::unique_lock lock(mutex_);
    if (turn_ == Turn::kReleased) {
      resume();
      return true;
    }
    if (gone_ || (body_done_ && used_ < in_.size())) backlog_ = true;
  }
  if (gone_) {
    if (broken_) cancel(function::CancelReason::kClientGone);
    return false;  // else tick() looks after it
  }
  // Requests that were sent ahead wait here, as many as fit.
  if (body_done_ ? in_.size() - used_ < kWholeBodyBytes : exchange_->wants_body()) read_more();
  return false;
}

void Connection::feed() {
  while (used_ < in_.size() && exchange_->wants_body()) {
    std::size_t taken = 0;
    piece_.clear();
    const auto progress = parser_.body(unread(), plan_.body_limit, piece_, taken);
    used_ += taken;
    if (!piece_.empty()) exchange_->add_body(piece_);
    {
      const std::lock_guard lock(mutex_);
      if (turn_ != Turn::kCalled) return;
      if (progress == RequestParser::Progress::kDone) body_done_ = true;
      deadline_ = (body_done_ ? exchange_->invocation.head.deadline + kDeadlineGrace
                              : core_->clock.steady_now() + core_->settings.limits.body_idle)
                      .time_since_epoch()
                      .count();
    }
    if (progress == RequestParser::Progress::kDone) return exchange_->end_body();
    if (progress == RequestParser::Progress::kFault) return fail_stream(parser_.fault());
    if (taken == 0) break;
  }
  if (gone_ && used_ == in_.size()) fail_stream({400, "the request's body was cut off"});
}

void Connection::feed_tunnel() {
  if (used_ < in_.size() && exchange_->wants_body()) {
    piece_ = unread();
    used_ = in_.size();
    exchange_->add_body(piece_);
  }
  if (!gone_ || broken_ || used_ < in_.size()) return;
  {
    const std::lock_guard lock(mutex_);
    body_done_ = true;
  }
  exchange_->end_body();
}

void Connection::fail_stream(RequestFault what) {
  exchange_->fail_body(std::move(what));
  {
    const std::lock_guard lock(mutex_);
    closes_ = true;
    body_done_ = true;  // no more of it is read
  }
  set_deadline(kDeadlineGrace);
  cancel(function::CancelReason::kClientGone);
}

void Connection::cancel(function::CancelReason reason) {
  if (const std::shared_ptr<Exchange> exchange = exchange_) exchange->invocation.cancellation.cancel(reason);
}

void Connection::leave_call() {
  const std::lock_guard lock(mutex_);
  turn_ = Turn::kOurs;
  exchange_.reset();
}

void Connection::resume() {
  turn_ = Turn::kOurs;
  exchange_.reset();
  if (closes_ || !keep_alive_) {
    state_ = State::kLinger;
    return begin_linger();
  }
  next_request();
}

void Connection::next_request() {
  skipped_ = 0;
  if (!body_done_) {
    state_ = State::kSkip;
    set_deadline(kLinger);
    return;
  }
  parser_.next();
  state_ = State::kHead;
  set_deadline(core_->settings.limits.keep_alive);
}

bool Connection::skip_body() {
  std::size_t taken = 0;
  piece_.clear();
  const auto progress = parser_.body(unread(), UINT64_MAX, piece_, taken);
  piece_.clear();  // nothing of it may come to the next request
  used_ += taken;
  skipped_ += taken;
  if (progress == RequestParser::Progress::kDone) {
    body_done_ = true;
    next_request();
    return true;
  }
  if (progress == RequestParser::Progress::kFault || skipped_ > kLingerBytes) {
    begin_linger();
    return true;
  }
  read_more();
  return false;
}

void Connection::fault(RequestFault what) {
  body_done_ = false;
  Answer answer{what.status, "text/plain; charset=utf-8", {}, what.text + "\n", true};
  reply(std::move(answer));
}

void Connection::reply(Answer answer) {
  answer.close = answer.close || !keep_alive_ || !body_done_;
  keep_alive_ = keep_alive_ && !answer.close;
  send(std::move(answer));
}

void Connection::send(Answer answer) {
  state_ = State::kAnswer;
  set_deadline(core_->settings.limits.write_idle);
  out_.clear();
  append_status_line(answer.status, out_);
  for (const auto& [name, value] : answer.headers) append_header(name, value, out_);
  if (answer.status != 204) {
    if (!answer.content_type.empty() && !answer.body.empty()) {
      append_header("Content-Type", answer.content_type, out_);
      append_header("X-Content-Type-Options", "nosniff", out_);
    }
    append_header("Content-Length", fmt::format_int(answer.body.size()).str(), out_);
  }
  core_->date.append(core_->clock.wall_now(), out_);
  if (answer.close) {
    append_header("Connection", "close", out_);
  } else if (!http11_) {
    append_header("Connection", "keep-alive", out_);
  }
  out_ += "\r\n";
  if (!is_head_) out_ += answer.body;
  close_after_ = answer.close;
  socket_->write(shared_from_this(), out_);
}

void Connection::begin_linger() {
  state_ = State::kLinger;
  socket_->end_sending();
  set_deadline(kLinger);
  skipped_ = 0;
}

void Connection::linger() {
  skipped_ += in_.size() - used_;
  used_ = in_.size();
  if (gone_ || skipped_ > kLingerBytes) return end();
  read_more();
}

std::string Connection::start_time() const {
  return fmt::format_int(core_->clock.wall_now().time_since_epoch().count()).str();
}

}  // namespace orla::node
