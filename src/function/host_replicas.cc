// The replicas of a function: how many there are to be, their starts and ends.
#include <fmt/format.h>

#include <algorithm>

#include "base/absl_view.h"
#include "function/host_function.h"

namespace orla::function {

std::uint32_t HostedFunction::least_wanted() const { return generation_->wanted.options.scale.min; }

// --- Deployments. ---------------------------------------------------------------------------------------------------

void HostedFunction::install(std::shared_ptr<Generation> generation, Wanted how, std::uint32_t replicas) {
  Todo todo;
  std::shared_ptr<Generation> before;
  {
    const std::lock_guard lock(mutex_);
    const base::SteadyTime now = context_.clock.steady_now();
    before = std::exchange(generation_, std::move(generation));
    const ScaleOptions& scale = generation_->wanted.options.scale;
    // What is deployed anew is to be seen running, even where the one before had gone to none.
    wanted_ = how == Wanted::kRestored ? std::min(replicas, scale.max)
                                       : std::clamp(std::max(wanted_, 1u), scale.min, scale.max);
    memory_ = {};
    if (wanted_ > 0) memory_.set_by_hand(now, wanted_);
    failures_ = 0;
    not_before_ = {};
    active_ = now;
    module_idle_ = false;
    reconcile(now, todo);
    look_at(next_look(now));
  }
  if (before != nullptr && before->secrets != nullptr) before->secrets->let_go();
  carry_out(todo);
}

void HostedFunction::close() {
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    wanted_ = 0;
    const base::SteadyTime now = context_.clock.steady_now();
    if (ready_.empty()) {
      InvokeResult removed;
      removed.end = InvokeEnd::kNotFound;
      removed.message = fmt::format("the function {} was removed", key.text());
      end_held(removed, todo);
    }
    if (generation_->secrets != nullptr) generation_->secrets->let_go();
    reconcile(now, todo);
    release_held(now, todo);
  }
  context_.timer.clear(*this);
  carry_out(todo);
  log.close();
}

std::shared_ptr<Generation> HostedFunction::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

std::uint32_t HostedFunction::wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

std::uint32_t HostedFunction::scale(std::uint32_t replicas) {
  Todo todo;
  std::uint32_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return 0;
    const base::SteadyTime now = context_.clock.steady_now();
    const ScaleOptions& scale = generation_->wanted.options.scale;
    wanted_ = replicas == 0 ? 0 : std::clamp(replicas, scale.min, scale.max);
    memory_.set_by_hand(now, wanted_);
    active_ = now;
    not_before_ = std::min(not_before_, now);  // who asks for it gets a try at once
    reconcile(now, todo);
    release_held(now, todo);
    look_at(next_look(now));
    wanted = wanted_;
  }
  carry_out(todo);
  return wanted;
}

bool HostedFunction::alert(bool firing) {
  std::uint32_t replicas = 0;
  {
    const std::lock_guard lock(mutex_);
    const ScaleOptions& scale = generation_->wanted.options.scale;
    if (closed_ || scale.min == scale.max || (!firing && wanted_ == 0)) return false;
    replicas = firing ? step_up(wanted_, scale) : scale.min;
    if (replicas == wanted_) return false;
  }
  scale(replicas);
  return true;
}

void HostedFunction::set_queue_length(std::uint64_t waiting) {
  const std::lock_guard lock(mutex_);
  queue_ = waiting;
  changed(context_.clock.steady_now(), 0);
}

// --- How many there are to be. --------------------------------------------------------------------------------------

void HostedFunction::reconcile(base::SteadyTime now, Todo& todo) {
  if (closed_) {
    for (const auto& start : starting_) {
      if (!std::exchange(start->unwanted, true)) todo.cancel.push_back(start);
    }
    // Those that are ready serve first what is still held.
    while (held_.empty() && !ready_.empty()) let_go(ready_.all().back(), todo);
    return;
  }
  if (wanted_ == 0 && !held_.empty()) {
    wanted_ = least_wanted();
    module_idle_ = false;
    memory_.set_by_hand(now, wanted_);
  }
  const auto current = static_cast<std::uint32_t>(ready_.count_of(generation_.get()));
  std::uint32_t coming = 0;
  for (const auto& start : starting_) {
    if (start->unwanted) continue;
    if (start->generation != generation_ || current + coming >= wanted_) {
      start->unwanted = true;
      todo.cancel.push_back(start);
    } else {
      ++coming;
    }
  }
  if (current + coming < wanted_) {
    if (now >= not_before_) {
      start_missing(wanted_ - current - coming, now, todo);
    } else {
      look_at(not_before_);
    }
  }
  // Replicas of an earlier generation stay until as many of the present one are ready.
  while (ready_.size() > wanted_) let_go(ready_.first_to_go(generation_.get()), todo);
}

void HostedFunction::start_missing(std::uint32_t missing, base::SteadyTime now, Todo& todo) {
  for (std::uint32_t i = 0; i < missing; ++i) {
    if (context_.replicas.fetch_add(1) >= context_.limits.replicas) {
      context_.replicas.fetch_sub(1);
      start_failed(fmt::format("this node has {} replicas already (limit replicas)", context_.limits.replicas),
                   Failed::kAtStart, now, todo);
      return;
    }
    auto start = std::make_shared<Start>();
    start->generation = generation_;
    start->name = fmt::format("{}-{}", key.name, context_.next_replica.fetch_add(1));
    starting_.push_back(start);
    todo.start.push_back(std::move(start));
  }
}

// A replica did not come to take a call. One that was ready and then died is given one more chance at once.
void HostedFunction::start_failed(std::string reason, Failed how, base::SteadyTime now, Todo& todo) {
  last_failure_ = std::move(reason);
  ++failures_;
  not_before_ = now + backoff_after(how == Failed::kWhenReady ? failures_ - 1 : failures_);
  if (not_before_ <= now) return;
  look_at(not_before_);
  const bool others =
      std::any_of(starting_.begin(), starting_.end(), [](const auto& start) { return !start->unwanted; });
  if (ready_.empty() && !others) end_held(no_endpoints(now), todo);
}

// Takes no more calls, and ends after those it has.
void HostedFunction::let_go(const std::shared_ptr<Replica>& given, Todo& todo) {
  const std::shared_ptr<Replica> replica = given;  // `given` may be the set's own
  ready_.remove(*replica);
  retire_when_empty(replica, todo);
}

void HostedFunction::retire_when_empty(const std::shared_ptr<Replica>& replica, Todo& todo) {
  if (replica->place != Replica::kNone || replica->in_flight > 0 || std::exchange(replica->retired, true)) return;
  todo.retire.push_back(replica);
}

void HostedFunction::evict(const std::shared_ptr<Replica>& given, base::SteadyTime now, Todo& todo) {
  const std::shared_ptr<Replica> replica = given;
  if (std::exchange(replica->dead, true)) return;
  const bool took_calls = replica->place != Replica::kNone;
  ready_.remove(*replica);
  retire_when_empty(replica, todo);  // otherwise with the last of its calls (run())
  if (!took_calls) return;
  todo.say.emplace_back(replica->instance->name(), "orla: this replica has ended and is replaced");
  if (closed_ || replica->generation != generation_) {
    if (closed_ && ready_.empty()) {
      InvokeResult removed;
      removed.end = InvokeEnd::kNotFound;
      removed.message = fmt::format("the function {} was removed", key.text());
      end_held(removed, todo);
    }
  } else if (!replica->served) {
    start_failed(fmt::format("{} ended before it took a call", replica->instance->name()), Failed::kWhenReady, now,
                 todo);
  }
  reconcile(now, todo);
}

void HostedFunction::check_replicas() {
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    if (ready_.empty()) return;
    std::vector<std::shared_ptr<Replica>> dead;
    for (const auto& replica : ready_.all()) {
      if (!replica->instance->usable()) dead.push_back(replica);
    }
    if (dead.empty()) return;
    const base::SteadyTime now = context_.clock.steady_now();
    for (const auto& replica : dead) evict(replica, now, todo);
  }
  carry_out(todo);
}

// --- Starts and ends. -----------------------------------------------------------------------------------------------

void HostedFunction::start(const std::shared_ptr<Start>& start) {
  const base::SteadyTime begin = context_.clock.steady_now();
  absl::StatusOr<std::unique_ptr<Instance>> instance = absl::CancelledError("not wanted any more");
  if (!start->cancellation.cancelled()) {
    if (const auto module = start->generation->load(); module.ok()) {
      instance = (*module)->start(start->name, begin + context_.limits.start_timeout, start->cancellation);
    } else {
      instance = module.status();
    }
  }
  Todo todo;
  std::shared_ptr<Replica> replica;
  if (instance.ok()) {
    replica = std::make_shared<Replica>();
    replica->generation = start->generation;
    replica->instance = *std::move(instance);
  } else {
    context_.count_down(context_.replicas);
  }
  {
    const std::lock_guard lock(mutex_);
    const base::SteadyTime now = context_.clock.steady_now();
    std::erase(starting_, start);
    if (replica != nullptr) {
      if (start->unwanted || closed_ || start->generation != generation_) {
        todo.retire.push_back(replica);
      } else {
        ready_.add(replica);
        // Its failures are forgotten when it has served a call or lived a while: see look().
        active_ = std::max(active_, now);
        changed(now, 0);
      }
    } else if (!start->unwanted && !closed_ && start->generation == generation_) {
      start_failed(base::message(instance.status()), Failed::kAtStart, now, todo);
      todo.say.emplace_back(start->name, fmt::format("orla: this replica did not start: {}", last_failure_));
    }
    if (!closed_) reconcile(now, todo);
    release_held(now, todo);
    look_at(next_look(now));
  }
  carry_out(todo);
}

void HostedFunction::retire(const std::shared_ptr<Replica>& replica) {
  if (!replica->dead) replica->instance->stop(kStopGrace);
  replica->instance.reset();
  replica->generation.reset();
  context_.count_down(context_.replicas);
}

// --- Looks. ---------------------------------------------------------------------------------------------------------

void HostedFunction::look_at(base::SteadyTime due) {
  if (closed_ || due >= look_due_) return;
  look_due_ = due;
  context_.timer.set(*this, due);
}

void HostedFunction::expire() {
  Todo todo;
  {
    const std::lock_guard lock(mutex_);
    look_due_ = kNever;
    if (closed_) return;
    const base::SteadyTime now = context_.clock.steady_now();
    look(now, todo);
    look_at(next_look(now));
  }
  carry_out(todo);
}

void HostedFunction::look(base::SteadyTime now, Todo& todo) {
  load_.mark(now);
  if (failures_ > 0 && !ready_.empty() && now >= not_before_ + kLongestBackoff) failures_ = 0;
  const auto calls = static_cast<std::uint32_t>(running_ + held_.size());
  if (wanted_ > 0) {
    const ScaleOptions& options = generation_->wanted.options.scale;
    wanted_ = decide_replicas({.now = now,
                               .wanted = wanted_,
                               .ready = static_cast<std::uint32_t>(ready_.size()),
                               .concurrency = ready_.least_concurrency(),
                               .stable = load_.means(now, kStableWindow),
                               .panic = load_.means(now, kPanicWindow),
                               .queue = queue_,
                               .calls = calls,
                               .idle = now - active_},
                              options, memory_);
    if (wanted_ == 0) active_ = now;
  }
  reconcile(now, todo);
  if (wanted_ == 0 && ready_.empty() && starting_.empty() && !module_idle_ && now - active_ >= kModuleIdle) {
    module_idle_ = true;
    todo.idle = generation_;
  }
}

base::SteadyTime HostedFunction::next_look(base::SteadyTime now) const {
  if (!load_.empty() || running_ > 0 || !held_.empty()) return now + kLookInterval;
  base::SteadyTime due = kNever;
  const ScaleOptions& scale = generation_->wanted.options.scale;
  if (wanted_ == 0) return module_idle_ ? kNever : active_ + kModuleIdle;
  if (wanted_ > scale.min) {
    // It comes down when what was recommended before is old enough.
    const base::SteadyTime old =
        memory_.recommended.empty() ? now : memory_.recommended.front().first + scale.down_window;
    due = std::min(due, std::max(old, now + kLookInterval));
  }
  if (queue_ > 0) due = std::min(due, now + kLookInterval);
  if (scale.zero) due = std::min(due, std::max(active_ + scale.zero_duration, now + kLookInterval));
  if (not_before_ > now) due = std::min(due, not_before_);
  return due;
}

FunctionStatus HostedFunction::status(bool with_usage) const {
  FunctionStatus status;
  status.created = created;
  status.invocations = begun_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  status.spec = generation_->wanted.spec;
  status.runtime = generation_->runtime_name;
  status.replicas = wanted_;
  status.available = static_cast<std::uint32_t>(ready_.size());
  if (const Module* module = generation_->loaded()) status.notes = module->notes();
  if (ready_.empty() && failures_ > 0) status.notes.push_back(fmt::format("does not start: {}", last_failure_));
  if (!with_usage) return status;
  for (const auto& replica : ready_.all()) {
    const InstanceUsage usage = replica->instance->usage();
    status.usage.cpu_seconds += usage.cpu_seconds;
    status.usage.memory_bytes += usage.memory_bytes;
  }
  return status;
}

}  // namespace orla::function
