#include "node/gateway_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/absl_view.h"
#include "node/gateway_call.h"

namespace orla::node {

namespace {

// A response up to this size is put behind its head and sent in one piece.
constexpr std::size_t kJoinedBytes = 16 * 1024;
// How often a cancellation is looked for while a client takes nothing.
constexpr std::chrono::milliseconds kLook{100};

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && absl::EqualsIgnoreCase(base::absl_view(a), base::absl_view(b));
}

absl::Status client_gone() { return absl::CancelledError("the client has gone"); }

// Headers that are the connection's affair, or the gateway's.
bool is_dropped(std::string_view name) {
  switch (name.size()) {
    case 2:
      return same(name, "TE");
    case 7:
      return same(name, "Trailer") || same(name, "Upgrade");
    case 10:
      return same(name, "Connection") || same(name, "Keep-Alive");
    case 14:
      return same(name, "Content-Length");
    case 16:
      return same(name, "Proxy-Connection");
    case 17:
      return same(name, "Transfer-Encoding");
    case 18:
      return same(name, "Proxy-Authenticate");
    default:
      return false;
  }
}

}  // namespace

Exchange::Exchange(std::shared_ptr<GatewayCore> core, std::shared_ptr<Wire> wire, RequestHead request,
                   function::CallHead head, ExchangeFacts facts)
    : request(std::move(request)),
      invocation(std::move(head), *this, *this),
      core_(std::move(core)),
      wire_(std::move(wire)),
      descriptor_(wire_->descriptor()),
      facts_(std::move(facts)) {
  core_->running.begin();
}

Exchange::~Exchange() { core_->running.end(); }

// --- The body

void Exchange::stream_body() { streamed_ = true; }

std::size_t Exchange::add_body(std::string& piece) {
  const std::lock_guard lock(mutex_);
  if (waiting_begin_ == waiting_.size()) {
    waiting_.swap(piece);
    waiting_begin_ = 0;
  } else {
    waiting_ += piece;
  }
  piece.clear();
  arrived_.notify_one();
  const std::size_t waits = waiting_.size() - waiting_begin_;
  paused_ = waits >= kBodyAheadBytes;
  return waits;
}

void Exchange::end_body() {
  const std::lock_guard lock(mutex_);
  body_ended_ = true;
  arrived_.notify_one();
}

void Exchange::fail_body(RequestFault fault) {
  const std::lock_guard lock(mutex_);
  if (!body_fault_) body_fault_ = std::move(fault);
  arrived_.notify_one();
}

bool Exchange::wants_body() const {
  const std::lock_guard lock(mutex_);
  return !paused_;
}

std::optional<std::string_view> Exchange::whole() const {
  if (streamed_) return std::nullopt;
  return body;
}

absl::StatusOr<std::size_t> Exchange::read(char* to, std::size_t room) {
  if (!streamed_) {
    const std::size_t n = std::min(room, body.size() - waiting_begin_);
    std::memcpy(to, body.data() + waiting_begin_, n);
    waiting_begin_ += n;
    return n;
  }
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return waiting_begin_ < waiting_.size() || body_ended_ || body_fault_ || discarded_; };
  if (!ready()) {
    lock.unlock();
    const function::Cancellation::Subscription subscription(invocation.cancellation, [this] {
      const std::lock_guard guard(mutex_);
      arrived_.notify_one();
    });
    lock.lock();
    while (!ready() && !invocation.cancellation.cancelled()) {
      const auto left = invocation.head.deadline - core_->clock.steady_now();
      if (left <= std::chrono::nanoseconds::zero()) break;
      arrived_.wait_for(lock, left);
    }
    const bool some = ready();
    lock.unlock();  // before the subscription ends, whose function takes it
    if (!some && !invocation.cancellation.cancelled()) {
      return absl::DeadlineExceededError("the call's deadline has passed while its request's body was read");
    }
    if (!some) return client_gone();
  } else {
    lock.unlock();
  }
  lock.lock();
  if (discarded_) return absl::CancelledError("nobody wants the rest of the body");
  const std::size_t n = std::min(room, waiting_.size() - waiting_begin_);
  if (n == 0) {
    if (body_fault_) return absl::CancelledError(body_fault_->text);
    return 0;
  }
  std::memcpy(to, waiting_.data() + waiting_begin_, n);
  waiting_begin_ += n;
  if (paused_ && waiting_.size() - waiting_begin_ <= kBodyAheadBytes / 2) {
    paused_ = false;
    lock.unlock();
    if (wire_) wire_->more_body();
  }
  return n;
}

void Exchange::discard() {
  const std::lock_guard lock(mutex_);
  discarded_ = true;
  arrived_.notify_one();
}

// --- The response

absl::Status Exchange::compose(int status, const function::Headers& headers, std::optional<std::uint64_t> length) {
  if (begun_) return absl::FailedPreconditionError("a second response");
  if (streamed_) {
    // What a function makes of a part of its request is no answer to it.
    const std::lock_guard lock(mutex_);
    if (body_fault_) return absl::CancelledError(body_fault_->text);
  }
  if ((status < 200 && protocol_.empty()) || status > 999) {
    return absl::InvalidArgumentError(fmt::format("the function answered status {}, which is none", status));
  }
  no_body_ = facts_.is_head || status == 204 || status == 304;
  bool length_said = false;
  head_.reserve(512);
  append_status_line(status, head_);
  bool type = false;
  bool date = false;
  bool call_id = !facts_.of_function;
  bool start_time = !facts_.of_function;
  bool served_by = !facts_.of_function;
  bool duration = !facts_.of_function;
  for (const auto& [name, value] : headers) {
    if (!valid_header(name, value)) {
      head_.clear();
      return absl::InvalidArgumentError(fmt::format("the function set a header that is none: \"{:.40}\"", name));
    }
    // Of a response without a body it says what another method would have got.
    if (is_dropped(name)) {
      std::uint64_t said = 0;
      if (no_body_ && status != 204 && length.value_or(0) == 0 && same(name, "Content-Length") &&
          absl::SimpleAtoi(value, &said)) {
        length = said;
        length_said = true;
      }
      continue;
    }
    switch (name.size()) {
      case 4:
        date = date || same(name, "Date");
        break;
      case 9:
        call_id = call_id || same(name, "X-Call-Id");
        break;
      case 11:
        served_by = served_by || same(name, "X-Served-By");
        break;
      case 12:
        type = type || same(name, "Content-Type");
        start_time = start_time || same(name, "X-Start-Time");
        break;
      case 18:
        duration = duration || same(name, "X-Duration-Seconds");
        break;
      default:
        break;
    }
    append_header(name, value, head_);
  }
  if (!type && status >= 200 && status != 204 && status != 304) {
    append_header("Content-Type", facts_.content_type.empty() ? "text/plain" : facts_.content_type, head_);
  }
  if (!call_id) append_header("X-Call-Id", invocation.head.call_id, head_);
  if (!start_time) append_header("X-Start-Time", facts_.start_time, head_);
  if (!served_by) append_header("X-Served-By", core_->served_by, head_);
  if (!duration) {
    const std::chrono::duration<double> seconds = core_->clock.steady_now() - facts_.began;
    fmt::format_to(std::back_inserter(head_), "X-Duration-Seconds: {:.6f}\r\n", seconds.count());
  }
  if (!date) core_->date.append(core_->clock.wall_now(), head_);
  // What another answer would have had, nobody knows unless the function says so.
  if (status == 304 && !length_said) length.reset();
  compose_framing(status, length);
  head_ += "\r\n";
  begun_ = true;
  status_ = status;
  return absl::OkStatus();
}

void Exchange::compose_framing(int status, std::optional<std::uint64_t> length) {
  if (!protocol_.empty()) {
    closes_ = true;
    head_ += "Connection: Upgrade\r\n";
    append_header("Upgrade", protocol_, head_);
    return;
  }
  if (status == 204) {
    left_ = 0;
  } else if (length) {
    left_ = no_body_ ? 0 : *length;
    fmt::format_to(std::back_inserter(head_), "Content-Length: {}\r\n", *length);
  } else if (no_body_) {
    left_ = 0;
  } else if (facts_.http11) {
    chunked_ = true;
    head_ += "Transfer-Encoding: chunked\r\n";
  } else {
    closes_ = true;
  }
  closes_ = closes_ || !facts_.keep_alive || core_->phase != Phase::kServing;
  if (closes_) {
    head_ += "Connection: close\r\n";
  } else if (!facts_.http11) {
    head_ += "Connection: keep-alive\r\n";
  }
}

absl::Status Exchange::begin(int status, function::Headers headers, std::optional<std::uint64_t> length) {
  if (absl::Status composed = compose(status, headers, length); !composed.ok()) return composed;
  // A body of known length follows at once; a stream's client may wait for the head alone.
  if (left_.value_or(0) > 0) return absl::OkStatus();
  iovec piece{head_.data(), head_.size()};
  if (absl::Status sent = send(&piece, 1); !sent.ok()) return sent;
  head_.clear();
  if (left_) complete();
  return absl::OkStatus();
}

absl::Status Exchange::write(std::string_view piece) {
  if (!begun_) return absl::FailedPreconditionError("a body without a response");
  if (failed_) return client_gone();
  if (piece.empty() || no_body_) return absl::OkStatus();
  if (left_ && piece.size() > *left_) {
    return absl::InvalidArgumentError("the function wrote more than the length it gave");
  }
  std::string size;
  iovec pieces[4];
  int count = 0;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) pieces[count++] = {const_cast<char*>(text.data()), text.size()};
  };
  add(head_);
  if (chunked_) {
    size = fmt::format("{:x}\r\n", piece.size());
    add(size);
  }
  add(piece);
  if (chunked_) add("\r\n");
  if (absl::Status sent = send(pieces, count); !sent.ok()) return sent;
  head_.clear();
  if (left_) {
    *left_ -= piece.size();
    if (*left_ == 0) complete();
  }
  return absl::OkStatus();
}

absl::Status Exchange::respond(int status, function::Headers headers, std::string_view text) {
  if (absl::Status composed = compose(status, headers, text.size()); !composed.ok()) return composed;
  const std::string_view shown = no_body_ ? std::string_view() : text;
  absl::Status sent;
  if (shown.size() <= kJoinedBytes) {
    head_ += shown;
    iovec piece{head_.data(), head_.size()};
    sent = send(&piece, 1);
  } else {
    iovec pieces[2] = {{head_.data(), head_.size()}, {const_cast<char*>(shown.data()), shown.size()}};
    sent = send(pieces, 2);
  }
  if (!sent.ok()) return sent;
  head_.clear();
  left_ = 0;
  complete();
  return absl::OkStatus();
}

absl::Status Exchange::switch_protocols(function::Headers headers, std::string_view protocol) {
  if (invocation.head.upgrade.empty()) return absl::UnimplementedError("the client offers no other protocol");
  protocol_ = protocol.empty() ? invocation.head.upgrade : std::string(protocol);
  if (absl::Status composed = compose(101, headers, std::nullopt); !composed.ok()) return composed;
  iovec piece{head_.data(), head_.size()};
  if (absl::Status sent = send(&piece, 1); !sent.ok()) return sent;
  head_.clear();
  streamed_ = true;
  wire_->upgraded();
  return absl::OkStatus();
}

absl::Status Exchange::send(iovec* pieces, int count) {
  if (failed_) return client_gone();
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = static_cast<std::size_t>(count);
  std::optional<base::SteadyTime> stuck;
  while (message.msg_iovlen > 0) {
    const ssize_t n = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        failed_ = true;
        return client_gone();
      }
      if (!stuck) stuck = core_->clock.steady_now();
      if (absl::Status room = wait_for_room(*stuck); !room.ok()) {
        failed_ = true;
        return room;
      }
      continue;
    }
    stuck.reset();
    sent_ = true;
    auto left = static_cast<std::size_t>(n);
    while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
      left -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + left;
      message.msg_iov->iov_len -= left;
    }
  }
  return absl::OkStatus();
}

// One look long: who calls it tries again.
absl::Status Exchange::wait_for_room(base::SteadyTime since) {
  if (invocation.cancellation.cancelled()) return client_gone();
  if (!facts_.of_function && core_->phase == Phase::kRefusing) return client_gone();
  if (core_->clock.steady_now() - since >= core_->settings.limits.write_idle) {
    return absl::CancelledError("the client takes nothing of its response");
  }
  pollfd look{descriptor_, POLLOUT, 0};
  ::poll(&look, 1, static_cast<int>(kLook.count()));
  return absl::OkStatus();
}

// The response is out: the connection is free, and may be in the next call before this returns.
void Exchange::complete() {
  complete_ = true;
  const std::shared_ptr<Wire> wire = std::move(wire_);
  wire_.reset();
  wire->released(closes_ ? Wire::After::kClose : Wire::After::kKeep);
}

// --- The end

// Of a response that its writer says is whole.
void Exchange::end_response() {
  if (complete_) return;
  if (failed_ || left_.value_or(0) > 0) return wire_->break_off();
  if (chunked_) {
    iovec last{const_cast<char*>("0\r\n\r\n"), 5};
    if (!send(&last, 1).ok()) return wire_->break_off();
  }
  complete();
}

void Exchange::give(Answer answer) {
  status_ = answer.status;
  if (facts_.of_function) {
    answer.headers.emplace_back("X-Call-Id", invocation.head.call_id);
    answer.headers.emplace_back("X-Start-Time", facts_.start_time);
    answer.headers.emplace_back("X-Served-By", core_->served_by);
  }
  const std::shared_ptr<Wire> wire = std::move(wire_);
  wire_.reset();
  wire->answer(std::move(answer));
}

int Exchange::finish(const function::InvokeResult& result, std::string_view function_name) {
  using function::InvokeEnd;
  if (complete_) return status_;
  std::optional<RequestFault> fault;
  {
    const std::lock_guard lock(mutex_);
    fault = body_fault_;
  }
  if (begun_ && result.end == InvokeEnd::kAnswered && !failed_) {
    end_response();
    return status_;
  }
  if (sent_ || (failed_ && !fault)) {
    wire_->break_off();
    return sent_ ? status_ : kClientGone;
  }
  if (fault) {
    give({fault->status, "text/plain; charset=utf-8", {}, fault->text + "\n", true});
  } else if (invocation.cancellation.reason() == function::CancelReason::kClientGone) {
    wire_->break_off();
    return kClientGone;
  } else {
    give(answer_of(result, function_name));
  }
  return status_;
}

void Exchange::finish() {
  if (!begun_) return give({500, "text/plain; charset=utf-8", {}, "no answer\n", true});
  end_response();
}

void Exchange::finish(Answer answer) {
  if (begun_) return end_response();
  give(std::move(answer));
}

}  // namespace orla::node
