#include "function/wasm_replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"
#include "function/wasm_runtime.h"

namespace orla::function {

namespace {

// It has grown to nearly what it may have: the next call would find no room.
bool at_its_limit(const Sandbox& sandbox, const WasmFacts& facts) {
  const std::uint64_t bytes = sandbox.memory_bytes();
  return bytes > sandbox.first_memory_bytes && bytes > facts.memory_bytes / 8 * 7;
}

// The health check's call: nothing comes in, nothing goes out.
class NoBody final : public RequestBody {
 public:
  std::optional<std::string_view> whole() const override { return std::string_view(); }
  absl::StatusOr<std::size_t> read(char*, std::size_t) override { return std::size_t{0}; }
};
class NoResponse final : public Response {
 public:
  absl::Status begin(int, Headers, std::optional<std::uint64_t>) override { return absl::OkStatus(); }
  absl::Status write(std::string_view) override { return absl::OkStatus(); }
};

std::uint32_t concurrency_of(const FunctionOptions& options) {
  return options.max_inflight > 0 ? options.max_inflight : kDefaultWasmConcurrency;
}

CallEnd end_of(const absl::Status& status) {
  return absl::IsUnavailable(status) ? CallEnd::kUnreachable : CallEnd::kFailed;
}

}  // namespace

WasmReplica::WasmReplica(const WasmFunction& function, std::string name)
    : function_(function),
      engine_(function.engine),
      name_(std::move(name)),
      concurrency_(concurrency_of(function.facts.spec.options)) {
  function_.shared.replicas.fetch_add(1, std::memory_order_acq_rel);
  engine_.add(this);
}

WasmReplica::~WasmReplica() {
  engine_.remove(this);
  {
    const std::lock_guard lock(interrupts_.mutex);
    interrupts_.ended.store(true, std::memory_order_release);
  }
  interrupts_.changed.notify_all();
  {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return running_ == 0; });
  }
  for (std::size_t i = 0; i < warm_.size(); ++i) engine_.not_warm();
  warm_.clear();
  function_.shared.replicas.fetch_sub(1, std::memory_order_acq_rel);
}

std::unique_ptr<Sandbox> WasmReplica::enter() {
  const std::lock_guard lock(mutex_);
  ++running_;
  if (warm_.empty()) return nullptr;
  std::unique_ptr<Sandbox> sandbox = std::move(warm_.back());
  warm_.pop_back();
  engine_.not_warm();
  return sandbox;
}

void WasmReplica::leave(std::unique_ptr<Sandbox> kept, std::chrono::nanoseconds used) {
  used_ns_.fetch_add(used.count(), std::memory_order_relaxed);
  if (kept != nullptr) {
    kept->last_used = engine_.clock().steady_now();
    if (at_its_limit(*kept, function_.facts) || !engine_.keep_warm()) kept.reset();
  }
  const std::lock_guard lock(mutex_);
  if (kept != nullptr) warm_.push_back(std::move(kept));
  if (--running_ == 0) left_.notify_all();
}

WasmReplica::Start WasmReplica::start_sandbox(WasmCall& call) {
  Start start;
  const absl::StatusOr<std::shared_ptr<const LoadedWasm>> loaded = function_.shared.get(function_.bytes);
  if (!loaded.ok()) {
    start.message = base::message(loaded.status());
    start.end = end_of(loaded.status());
    return start;
  }
  if (!engine_.take_room()) {
    start.end = CallEnd::kBusy;
    start.message = fmt::format("as many WebAssembly instances run as a node holds: {}", engine_.instances());
    return start;
  }
  absl::StatusOr<std::unique_ptr<Sandbox>> sandbox = Sandbox::create(engine_, *loaded, function_.facts, &call);
  if (!sandbox.ok()) {
    start.message = fmt::format("no instance could be started: {}", base::message(sandbox.status()));
    return start;
  }
  const char* entry = function_.facts.style == WasmStyle::kHandler ? "orla_handle" : "_start";
  (*sandbox)->entry = (*sandbox)->find_function(entry);
  if (function_.facts.style == WasmStyle::kHandler) {
    const std::optional<wasmtime_func> initialize = (*sandbox)->find_function("_initialize");
    if (initialize) {
      const absl::StatusOr<std::int32_t> ran = (*sandbox)->run(*initialize, &call);
      if (!ran.ok()) {
        start.end = (*sandbox)->end_of_failure();
        start.message = call.exit_code ? fmt::format("_initialize ended with exit status {}", *call.exit_code)
                                       : fmt::format("_initialize broke: {}", base::message(ran.status()));
        return start;
      }
    }
  }
  (*sandbox)->first_memory_bytes = (*sandbox)->memory_bytes();
  start.sandbox = *std::move(sandbox);
  return start;
}

absl::Status WasmReplica::check(base::SteadyTime deadline, Cancellation& cancellation) {
  CallHead head;
  head.deadline = deadline;
  NoBody body;
  NoResponse response;
  const Call call{head, body, response, cancellation};
  const WasmEngine::Running running(engine_);
  WasmCall wasm(function_.facts, call, interrupts_, name_);
  std::unique_ptr<Sandbox> none = enter();
  Start start = start_sandbox(wasm);
  wasm.log().end();
  const bool started = start.sandbox != nullptr;
  // The first call of a handler finds it warm.
  leave(function_.facts.style == WasmStyle::kHandler ? std::move(start.sandbox) : nullptr, std::chrono::nanoseconds(0));
  if (started) return absl::OkStatus();
  const CallResult result = wasm.finish_badly(start.end, std::move(start.message));
  switch (result.end) {
    case CallEnd::kTimedOut:
      return absl::DeadlineExceededError(result.message);
    case CallEnd::kCancelled:
      return absl::CancelledError(result.message);
    case CallEnd::kBusy:
    case CallEnd::kOutOfMemory:
      return absl::ResourceExhaustedError(result.message);
    default:
      return absl::FailedPreconditionError(result.message);
  }
}

CallResult WasmReplica::broke(WasmCall& call, const Sandbox& sandbox, const absl::Status& why) {
  last_memory_.store(sandbox.memory_bytes(), std::memory_order_relaxed);
  if (call.end()) return call.finish_badly(*call.end(), "");
  const CallEnd end = sandbox.end_of_failure();
  std::string message = call.exit_code ? fmt::format("exit status {}", *call.exit_code) : base::message(why);
  if (end == CallEnd::kOutOfMemory) {
    message += fmt::format(" (out of memory: {} of {} KiB were in use)", sandbox.memory_bytes() >> 10,
                           function_.facts.memory_bytes >> 10);
  }
  call.log().end();
  if (!call.exit_code && function_.facts.spec.log != nullptr) function_.facts.spec.log->line(name_, "trap: " + message);
  return call.finish_badly(end, std::move(message));
}

CallResult WasmReplica::run(WasmCall& call, std::unique_ptr<Sandbox>& sandbox) {
  if (call.must_end()) return call.finish_badly(*call.end(), "");
  if (sandbox == nullptr) {
    Start start = start_sandbox(call);
    if (start.sandbox == nullptr) return call.finish_badly(start.end, std::move(start.message));
    sandbox = std::move(start.sandbox);
  }
  const absl::StatusOr<std::int32_t> ran = sandbox->run(*sandbox->entry, &call);
  const bool exited_well = call.exit_code && *call.exit_code == 0 && !call.end();
  if (!ran.ok() && !exited_well) {
    const CallResult result = broke(call, *sandbox, ran.status());
    sandbox.reset();
    return result;
  }
  last_memory_.store(sandbox->memory_bytes(), std::memory_order_relaxed);
  if (ran.ok() && function_.facts.style == WasmStyle::kHandler) {
    if (*ran != 0) return call.finish_badly(CallEnd::kFailed, fmt::format("the handler returned {}", *ran));
  } else {
    sandbox.reset();  // its memory is given back before a slow client takes the response
  }
  return call.finish_well();
}

CallResult WasmReplica::call(const Call& call) {
  const WasmEngine::Running running(engine_);
  WasmCall wasm(function_.facts, call, interrupts_, name_);
  std::unique_ptr<Sandbox> sandbox = enter();
  CallResult result = run(wasm, sandbox);
  const std::chrono::nanoseconds took(static_cast<std::int64_t>(result.seconds * 1e9));
  leave(std::move(sandbox), std::max(took - wasm.waited(), std::chrono::nanoseconds(0)));
  return result;
}

InstanceUsage WasmReplica::usage() {
  InstanceUsage usage;
  usage.cpu_seconds = static_cast<double>(used_ns_.load(std::memory_order_relaxed)) / 1e9;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Sandbox>& sandbox : warm_) usage.memory_bytes += sandbox->memory_bytes();
  // Of running ones only their own thread may ask; they are like the one that ended last.
  usage.memory_bytes += running_ * last_memory_.load(std::memory_order_relaxed);
  return usage;
}

void WasmReplica::stop(std::chrono::nanoseconds grace) {
  std::unique_lock lock(mutex_);
  left_.wait_for(lock, grace, [this] { return running_ == 0; });
}

void WasmReplica::let_go_before(base::SteadyTime time) {
  std::vector<std::unique_ptr<Sandbox>> old;
  const std::lock_guard lock(mutex_);
  const auto first =
      std::find_if(warm_.begin(), warm_.end(), [&](const auto& warm) { return warm->last_used >= time; });
  for (auto at = warm_.begin(); at != first; ++at) {
    engine_.not_warm();
    old.push_back(std::move(*at));
  }
  warm_.erase(warm_.begin(), first);
}

}  // namespace orla::function
