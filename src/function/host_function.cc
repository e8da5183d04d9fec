#include "function/host_function.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/absl_view.h"

namespace orla::function {
namespace {

// A call that needs its thread for longer than this gets one of its own; handing over costs a few microseconds.
constexpr double kLongCallSeconds = 150e-6;
constexpr std::uint32_t kShortCallsInARow = 16;

std::chrono::seconds whole_seconds(std::chrono::nanoseconds time) {
  return std::max(std::chrono::ceil<std::chrono::seconds>(time), std::chrono::seconds(1));
}

InvokeResult ended(InvokeEnd end, std::string message) {
  InvokeResult result;
  result.end = end;
  result.message = std::move(message);
  return result;
}

// Of a call that was cancelled before it had a replica, or whose replica said so.
InvokeResult cancelled(CancelReason reason) {
  switch (reason) {
    case CancelReason::kTimeout:
      return ended(InvokeEnd::kTimedOut, "the call was not answered in time");
    case CancelReason::kDraining:
      return ended(InvokeEnd::kDraining, "this node is going down");
    default:
      return ended(InvokeEnd::kCancelled, "the call was cancelled");
  }
}

InvokeResult result_of(CallResult& call, const Invocation& invocation, base::SteadyTime now) {
  InvokeResult result;
  result.seconds = call.seconds;
  result.message = std::move(call.message);
  if (call.end == CallEnd::kDone && call.response_begun) return result;
  if (call.response_begun) {
    result.end = InvokeEnd::kBroken;
    return result;
  }
  const CancelReason reason = invocation.cancellation.reason();
  switch (call.end) {
    case CallEnd::kDone:
      result.end = InvokeEnd::kFailed;
      result.from_runtime = true;
      result.message = "the function ended without an answer";
      break;
    case CallEnd::kFailed:
    case CallEnd::kOutOfMemory:
      result.end = InvokeEnd::kFailed;
      result.from_runtime = true;
      break;
    case CallEnd::kTimedOut:
      result.end = InvokeEnd::kTimedOut;
      result.from_runtime = now < invocation.head.deadline && reason != CancelReason::kTimeout;
      break;
    case CallEnd::kCancelled:
      result.end = cancelled(reason).end;
      if (result.message.empty()) result.message = cancelled(reason).message;
      break;
    case CallEnd::kUnreachable:
      result.end = InvokeEnd::kCantReach;
      break;
    case CallEnd::kBusy:
      result.end = InvokeEnd::kOverloaded;
      break;
  }
  return result;
}

}  // namespace

void HostCall::run() { function->run(*this); }
bool HostCall::long_expected() const { return function->calls_are_long(); }
void HostCall::runs_long() { function->saw_long_call(); }

HostedFunction::HostedFunction(HostContext& context, FunctionKey key, base::WallTime created)
    : key(std::move(key)),
      created(created),
      log(context.clock, context.log_limits, context.post, context.followers),
      context_(context) {}

HostedFunction::~HostedFunction() { context_.timer.clear(*this); }

void HostedFunction::note_length(bool was_long) {
  if (was_long) {
    short_calls_.store(0, std::memory_order_relaxed);
    calls_are_long_.store(true, std::memory_order_relaxed);
  } else if (calls_are_long_.load(std::memory_order_relaxed) &&
             short_calls_.fetch_add(1, std::memory_order_relaxed) + 1 >= kShortCallsInARow) {
    calls_are_long_.store(false, std::memory_order_relaxed);
  }
}

void HostedFunction::changed(base::SteadyTime now, std::uint32_t begun) {
  // Calls that wait for the first replica say nothing about how many are needed.
  const auto calls = static_cast<std::uint32_t>(running_ + held_.size());
  load_.change(now, ready_.empty() ? 0 : calls, begun);
  if (look_due_ > now + kLookInterval) look_at(now + kLookInterval);
}

// A place for one call: of a thread and at a replica. Null: none now.
std::shared_ptr<Replica> HostedFunction::take_place(Todo& todo) {
  if (ready_.empty() || running_ >= share_of_one_function(context_.limits.running_calls)) return nullptr;
  if (!context_.take_running_place()) {
    if (!std::exchange(starved_, true)) context_.starve(std::static_pointer_cast<HostedFunction>(shared_from_this()));
    // One that was given back just before would have told nobody.
    if (!context_.take_running_place()) return nullptr;
  }
  while (std::shared_ptr<Replica> replica = ready_.take()) {
    if (replica->instance->usable()) {
      ++running_;
      return replica;
    }
    ready_.give(*replica);
    evict(replica, context_.clock.steady_now(), todo);
  }
  context_.give_running_place();
  return nullptr;
}

void HostedFunction::invoke(std::shared_ptr<HostCall> call) {
  begun_.fetch_add(1, std::memory_order_relaxed);
  const base::SteadyTime now = context_.clock.steady_now();
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && held_.empty()) call->replica = take_place(todo);
    if (call->replica != nullptr) changed(now, 1);
  }
  if (call->replica != nullptr) {
    context_.call_threads.submit(std::move(call));
  } else {
    // It will have to wait. Who cancels it meanwhile must not wait for this function's mutex, so a job looks at it.
    call->subscription.emplace(call->invocation->cancellation,
                               [weak = std::weak_ptr<HostTimer::Entry>(call->weak_from_this()), &context = context_] {
                                 const auto entry = weak.lock();
                                 if (entry == nullptr) return;
                                 context.job_threads.submit([call = std::static_pointer_cast<HostCall>(entry)] {
                                   call->function->withdraw(call);
                                 });
                               });
    const std::lock_guard lock(mutex_);
    if (hold(call, now, todo)) changed(now, 1);
  }
  carry_out(todo);
}

// Takes it up among those that wait, or ends it. False: it was ended.
bool HostedFunction::hold(const std::shared_ptr<HostCall>& call, base::SteadyTime now, Todo& todo) {
  const auto end = [&](InvokeResult result) {
    todo.end.emplace_back(call, std::move(result));
    return false;
  };
  if (closed_) return end(ended(InvokeEnd::kNotFound, fmt::format("the function {} was removed", key.text())));
  if (call->invocation->cancellation.cancelled()) return end(cancelled(call->invocation->cancellation.reason()));
  if (ready_.empty() && starting_.empty() && now < not_before_) return end(no_endpoints(now));
  const FunctionOptions& options = generation_->wanted.options;
  const std::uint32_t most = options.scale.min == options.scale.max ? wanted_ : options.scale.max;
  if (options.max_inflight > 0 && held_.empty() && !ready_.empty() && starting_.empty() && ready_.size() >= most) {
    call->replica = take_place(todo);
    if (call->replica == nullptr && ready_.size() >= most) {
      return end(
          ended(InvokeEnd::kOverloaded, fmt::format("each of the {} replicas of {} has its max_inflight of {} calls",
                                                    ready_.size(), key.text(), options.max_inflight)));
    }
    if (call->replica != nullptr) {
      todo.run.push_back(call);
      return true;
    }
  }
  const HostLimits& limits = context_.limits;
  if (held_.size() >= share_of_one_function(limits.waiting_calls)) {
    return end(ended(InvokeEnd::kOverloaded,
                     fmt::format("{} calls of {} wait already: three quarters of this node's limit waiting_calls, {}",
                                 held_.size(), key.text(), limits.waiting_calls)));
  }
  if (context_.waiting.fetch_add(1) >= limits.waiting_calls) {
    context_.waiting.fetch_sub(1);
    return end(ended(InvokeEnd::kOverloaded,
                     fmt::format("{} calls wait on this node already (limit waiting_calls)", limits.waiting_calls)));
  }
  call->held = true;
  call->place = held_.insert(held_.end(), call);
  if (ready_.empty() && starting_.empty()) reconcile(now, todo);
  release_held(now, todo);
  return true;
}

void HostedFunction::unlink(HostCall& call) {
  held_.erase(call.place);
  call.held = false;
  context_.waiting.fetch_sub(1);
}

// First come, first served, as many as there are places.
void HostedFunction::release_held(base::SteadyTime now, Todo& todo) {
  bool any = false;
  while (!held_.empty()) {
    std::shared_ptr<Replica> replica = take_place(todo);
    if (replica == nullptr || held_.empty()) {
      if (replica == nullptr) break;
      ready_.give(*replica);
      --running_;
      context_.give_running_place();
      break;
    }
    std::shared_ptr<HostCall> call = held_.front();
    unlink(*call);
    call->replica = std::move(replica);
    todo.run.push_back(std::move(call));
    any = true;
  }
  if (any) changed(now, 0);
  if (closed_ && held_.empty()) reconcile(now, todo);
}

void HostedFunction::end_held(const InvokeResult& result, Todo& todo) {
  while (!held_.empty()) {
    std::shared_ptr<HostCall> call = held_.front();
    unlink(*call);
    todo.end.emplace_back(std::move(call), result);
  }
}

InvokeResult HostedFunction::no_endpoints(base::SteadyTime now) const {
  InvokeResult result = ended(InvokeEnd::kNoEndpoints, fmt::format("no replica could be started: {}", last_failure_));
  result.retry_after = whole_seconds(not_before_ - now);
  return result;
}

void HostedFunction::withdraw(const std::shared_ptr<HostCall>& call) {
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    if (!call->held) return;
    unlink(*call);
    InvokeResult result = cancelled(call->invocation->cancellation.reason());
    if (result.end == InvokeEnd::kTimedOut && ready_.empty()) {
      result = ended(InvokeEnd::kNoEndpoints, "no replica became ready in time");
    }
    todo.end.emplace_back(call, std::move(result));
    const base::SteadyTime now = context_.clock.steady_now();
    changed(now, 0);
    if (closed_ && held_.empty()) reconcile(now, todo);
  }
  carry_out(todo);
}

void HostedFunction::pump() {
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    starved_ = false;
    release_held(context_.clock.steady_now(), todo);
  }
  carry_out(todo);
}

// Its replica was dead. True: another one takes it, now or later.
bool HostedFunction::retry(const std::shared_ptr<HostCall>& call, base::SteadyTime now, Todo& todo) {
  if (++call->tries >= kTries || call->invocation->cancellation.cancelled()) return false;
  call->replica = take_place(todo);
  if (call->replica != nullptr) {
    todo.run.push_back(call);
    return true;
  }
  if (closed_ || (ready_.empty() && starting_.empty() && now < not_before_)) return false;
  // It was taken already, so it waits whatever the limits say, before all others.
  call->held = true;
  call->place = held_.insert(held_.begin(), call);
  context_.waiting.fetch_add(1);
  return true;
}

void HostedFunction::run(HostCall& running) {
  const auto call = std::static_pointer_cast<HostCall>(running.shared_from_this());
  Invocation& invocation = *call->invocation;
  const std::shared_ptr<Replica> replica = std::move(call->replica);
  CallResult result;
  if (invocation.cancellation.cancelled()) {
    result.end = CallEnd::kCancelled;
  } else {
    result = replica->instance->call({.head = invocation.head,
                                      .body = invocation.body,
                                      .response = invocation.response,
                                      .cancellation = invocation.cancellation});
  }
  note_length(result.seconds > kLongCallSeconds);
  context_.give_running_place();
  const base::SteadyTime now = context_.clock.steady_now();
  const bool not_reached = result.end == CallEnd::kUnreachable && !result.response_begun;
  bool again = false;
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    ready_.give(*replica);
    --running_;
    active_ = now;
    if (!not_reached && !std::exchange(replica->served, true)) failures_ = 0;
    if (not_reached || !result.instance_usable || (result.end != CallEnd::kDone && !replica->instance->usable())) {
      evict(replica, now, todo);
    }
    retire_when_empty(replica, todo);
    if (not_reached) {
      again = retry(call, now, todo);
      if (!again) call->replica = nullptr;
    }
    changed(now, 0);
    if (!held_.empty() || closed_) release_held(now, todo);
  }
  carry_out(todo);
  if (const std::shared_ptr<HostedFunction> other = context_.next_starved()) other->pump();
  if (!again) finish(call, result_of(result, invocation, now));
}

void HostedFunction::finish(const std::shared_ptr<HostCall>& call, const InvokeResult& result) {
  context_.timer.clear(*call);
  const InvokeDone done = std::move(call->done);
  done(result);
  // The invocation stays with the call: the timer may be about to cancel it.
  call->subscription.reset();
  context_.count_down(context_.calls);
}

void HostedFunction::carry_out(Todo& todo) {
  for (const auto& [instance, text] : todo.say) log.line(instance, text);
  for (auto& call : todo.run) context_.call_threads.submit(std::move(call));
  for (const auto& start : todo.cancel) start->cancellation.cancel(CancelReason::kCancelled);
  for (const auto& start : todo.start) {
    context_.job_threads.submit([self = self(), start] { self->start(start); });
  }
  for (const auto& replica : todo.retire) {
    context_.job_threads.submit([self = self(), replica] { self->retire(replica); });
  }
  for (auto& [call, result] : todo.end) finish(call, result);
  if (todo.idle != nullptr) {
    context_.job_threads.submit([self = self(), idle = std::move(todo.idle)] {
      if (Module* module = idle->loaded()) module->idle();
    });
  }
}

FunctionCounts HostedFunction::read_counts() const {
  FunctionCounts all;
  all.started = begun_.load(std::memory_order_relaxed);
  all.ended = counts.ended();
  const std::lock_guard lock(mutex_);
  all.replicas = wanted_;
  all.in_flight = running_;
  all.waiting = static_cast<std::uint32_t>(held_.size());
  return all;
}

}  // namespace orla::function
