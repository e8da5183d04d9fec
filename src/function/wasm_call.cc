#include "function/wasm_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/absl_view.h"
#include "function/http_environment.h"
#include "function/time_limit.h"

namespace orla::function {

namespace {

base::SteadyTime deadline_of(const WasmFacts& facts, const Call& call, base::SteadyTime now) {
  base::SteadyTime deadline = base::SteadyTime::max();
  if (call.head.deadline != base::SteadyTime{}) deadline = call.head.deadline;
  const std::chrono::nanoseconds own = time_limit(call.head, facts.spec.options);
  if (own.count() > 0 && own < deadline - now) deadline = now + own;
  return deadline;
}

bool is_token(std::string_view name) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

}  // namespace

WasmCall::WasmCall(const WasmFacts& facts, const Call& call, WasmInterrupts& interrupts, std::string_view instance)
    : facts_(facts),
      call_(call),
      interrupts_(interrupts),
      started_(facts.clock.steady_now()),
      deadline_(deadline_of(facts, call, started_)),
      log_(facts.spec.log, instance, call.head.call_id, facts.spec.options),
      whole_(call.body.whole()) {}

bool WasmCall::must_end() {
  if (end_) return true;
  if (interrupts_.ended.load(std::memory_order_acquire)) {
    end_with(CallEnd::kFailed, "the replica was ended while the call ran");
  } else if (const CancelReason reason = call_.cancellation.reason(); reason == CancelReason::kTimeout) {
    end_with(CallEnd::kTimedOut, "the call's time was over");
  } else if (reason != CancelReason::kNone) {
    end_with(CallEnd::kCancelled, "the call was cancelled");
  } else if (facts_.clock.steady_now() >= deadline_) {
    const std::chrono::duration<double> after = deadline_ - started_;
    end_with(CallEnd::kTimedOut, fmt::format("timed out after {:.3g} s", after.count()));
  }
  return end_.has_value();
}

void WasmCall::end_with(CallEnd end, std::string message) {
  if (end_) return;
  end_ = end;
  message_ = std::move(message);
}

bool WasmCall::check(const absl::Status& written) {
  if (written.ok()) return true;
  if (!must_end()) {
    const bool gone = absl::IsCancelled(written);
    end_with(gone ? CallEnd::kCancelled : CallEnd::kFailed, base::message(written));
  }
  return false;
}

absl::StatusOr<std::size_t> WasmCall::read_body(char* to, std::size_t room) {
  if (whole_) {
    const std::size_t n = std::min(room, whole_->size() - read_);
    if (n > 0) std::memcpy(to, whole_->data() + read_, n);
    read_ += n;
    return n;
  }
  if (room == 0) return std::size_t{0};
  if (must_end()) return absl::CancelledError(message_);
  const base::SteadyTime before = facts_.clock.steady_now();
  absl::StatusOr<std::size_t> n = call_.body.read(to, room);
  waited_ += facts_.clock.steady_now() - before;
  if (!check(n.status())) return n.status();
  return n;
}

Headers WasmCall::take_headers() {
  const std::string& type = facts_.spec.options.content_type;
  if (!type.empty() && !find_header(headers_, "Content-Type")) headers_.emplace_back("Content-Type", type);
  return std::move(headers_);
}

bool WasmCall::begin() {
  if (begun_) return true;
  begun_ = true;
  return check(call_.response.begin(status_, take_headers(), std::nullopt));
}

bool WasmCall::write_output(std::string_view piece) {
  if (facts_.streaming || begun_ || buffered_.size() + piece.size() > kWasmBufferedBytes) {
    if (must_end() || !flush_output()) return false;
    if (piece.empty()) return true;
    const base::SteadyTime before = facts_.clock.steady_now();
    const absl::Status written = call_.response.write(piece);
    waited_ += facts_.clock.steady_now() - before;
    return check(written);
  }
  buffered_ += piece;
  return true;
}

bool WasmCall::flush_output() {
  if (end_ || !begin()) return false;
  if (buffered_.empty()) return true;
  const absl::Status written = call_.response.write(buffered_);
  buffered_ = std::string();
  return check(written);
}

bool WasmCall::set_status(std::int32_t status) {
  if (begun_ || status < 200 || status > 999) return false;
  status_ = status;
  return true;
}

bool WasmCall::add_header(std::string_view name, std::string_view value) {
  const bool clean = value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
  if (begun_ || !is_token(name) || !clean) return false;
  if (headers_.size() >= kWasmResponseHeaders) return false;
  if (header_bytes_ + name.size() + value.size() > kWasmResponseHeaderBytes) return false;
  header_bytes_ += name.size() + value.size();
  headers_.emplace_back(name, value);
  return true;
}

bool WasmCall::wait_until(base::SteadyTime time) {
  const Cancellation::Subscription told(call_.cancellation, [this] {
    const std::lock_guard lock(interrupts_.mutex);
    interrupts_.changed.notify_all();
  });
  std::unique_lock lock(interrupts_.mutex);
  const base::SteadyTime before = facts_.clock.steady_now();
  base::SteadyTime now = before;
  while (!must_end() && now < time) {
    // In steps, so that a far time does not overflow the condition variable's clock.
    interrupts_.changed.wait_for(
        lock, std::min<std::chrono::nanoseconds>(std::min(time, deadline_) - now, std::chrono::seconds(10)));
    now = facts_.clock.steady_now();
  }
  waited_ += now - before;
  return !end_;
}

const std::vector<std::string>& WasmCall::environment() {
  if (facts_.style == WasmStyle::kHandler) return facts_.environment;
  if (environment_.empty()) {
    environment_ = facts_.environment;
    for (const auto& [name, value] : http_environment(call_.head)) environment_.push_back(name + "=" + value);
  }
  return environment_;
}

CallResult WasmCall::result(CallEnd end, std::string message) {
  log_.end();
  CallResult result;
  result.end = end;
  result.message = std::move(message);
  result.response_begun = begun_;
  const std::chrono::duration<double> took = facts_.clock.steady_now() - started_;
  result.seconds = took.count();
  return result;
}

CallResult WasmCall::finish_well() {
  if (end_) return result(*end_, std::move(message_));
  bool sent = true;
  if (begun_ || facts_.streaming) {
    sent = flush_output();
  } else {
    begun_ = true;
    sent = check(call_.response.respond(status_, take_headers(), buffered_));
  }
  if (!sent) return result(*end_, std::move(message_));
  return result(CallEnd::kDone, "");
}

CallResult WasmCall::finish_badly(CallEnd end, std::string message) {
  end_with(end, std::move(message));
  return result(*end_, std::move(message_));
}

}  // namespace orla::function
