// For tests of the host: a runtime whose functions are scripts, a clock that is moved by hand, and callers.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "function/host.h"
#include "function/host_context.h"

namespace orla::function {

// Thread-safe.
class ManualClock final : public base::Clock {
 public:
  base::WallTime wall_now() const override { return base::WallTime(std::chrono::nanoseconds(now_.load())); }
  base::SteadyTime steady_now() const override { return base::SteadyTime(std::chrono::nanoseconds(now_.load())); }
  void advance(std::chrono::nanoseconds time) { now_.fetch_add(time.count()); }

 private:
  std::atomic<std::int64_t> now_{std::chrono::nanoseconds(std::chrono::hours(1)).count()};
};

// Waits in real time, up to 30 s, until `holds`.
inline bool eventually(const std::function<bool()>& holds) {
  const base::SystemClock clock;
  const base::SteadyTime end = clock.steady_now() + std::chrono::seconds(30);
  while (!holds()) {
    if (clock.steady_now() > end) return false;
    clock.sleep(std::chrono::milliseconds(1));
  }
  return true;
}

// A gate that calls wait at.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // True: it is open; false: cancelled.
  bool wait(Cancellation& cancellation) {
    const Cancellation::Subscription subscription(cancellation, [this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ || cancellation.cancelled(); });
    return open_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

struct FakeInstance;
// How a function behaves, and what has become of it.
struct Script {
  std::function<CallResult(const Call&, FakeInstance&)> call;  // none: answers "ok" at once
  std::atomic<std::uint32_t> concurrency{100};
  std::chrono::milliseconds start_takes{0};
  std::atomic<Gate*> start_gate{nullptr};  // starts wait here
  std::atomic<int> failing_starts{0};      // so many starts fail
  std::atomic<int> stillborn{0};           // so many replicas are dead as soon as they are started
  std::atomic<bool> load_fails{false};
  std::atomic<base::SteadyTime> start_deadline{};  // of the last one
  std::atomic<int> loads{0}, starts{0}, living{0}, stops{0}, idles{0}, calls{0};
  std::string says = "ok";
};

inline CallResult answer(const Call& call, std::string_view body, int status = 200) {
  CallResult result;
  result.response_begun = true;
  if (!call.response.respond(status, {}, body).ok()) result.end = CallEnd::kCancelled;
  return result;
}

struct FakeInstance final : Instance {
  FakeInstance(std::string name, std::shared_ptr<Script> script, LogSink* log)
      : name_(std::move(name)), script(std::move(script)), log(log) {
    ++this->script->living;
  }
  ~FakeInstance() override { --script->living; }
  const std::string& name() const override { return name_; }
  std::uint32_t concurrency() const override { return script->concurrency; }
  CallResult call(const Call& call) override {
    if (dead) return {.end = CallEnd::kUnreachable, .message = "it is dead", .instance_usable = false};
    ++script->calls;
    return script->call ? script->call(call, *this) : answer(call, script->says);
  }
  bool usable() override { return !dead; }
  InstanceUsage usage() override { return {.cpu_seconds = 1.5, .memory_bytes = 1000}; }
  void stop(std::chrono::nanoseconds) override { ++script->stops; }

  const std::string name_;
  const std::shared_ptr<Script> script;
  LogSink* const log;
  std::atomic<bool> dead{false};
};

struct FakeModule final : Module {
  FakeModule(std::shared_ptr<Script> script, LogSink* log) : script(std::move(script)), log(log) {}
  absl::StatusOr<std::unique_ptr<Instance>> start(std::string name, base::SteadyTime deadline,
                                                  Cancellation& cancellation) override {
    script->start_deadline = deadline;
    ++script->starts;
    if (script->start_takes.count() > 0) base::SystemClock().sleep(script->start_takes);
    if (Gate* gate = script->start_gate; gate != nullptr && !gate->wait(cancellation)) {
      return absl::CancelledError("cancelled");
    }
    if (script->failing_starts > 0) {
      --script->failing_starts;
      return absl::InternalError("it is broken");
    }
    auto instance = std::make_unique<FakeInstance>(std::move(name), script, log);
    if (script->stillborn > 0) {
      --script->stillborn;
      instance->dead = true;
    }
    return instance;
  }
  std::vector<std::string> notes() const override { return {"a note"}; }
  void idle() override { ++script->idles; }

  const std::shared_ptr<Script> script;
  LogSink* const log;
};

class FakeRuntime final : public Runtime {
 public:
  explicit FakeRuntime(std::string name = "native") : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  absl::StatusOr<std::unique_ptr<Module>> load(const ModuleSpec& spec) override {
    const std::lock_guard lock(mutex_);
    const auto found = scripts_.find(spec.image.native());
    if (found == scripts_.end() || found->second->load_fails) return absl::InvalidArgumentError("not such an image");
    ++found->second->loads;
    last_secrets = spec.secrets;
    return std::make_unique<FakeModule>(found->second, spec.log);
  }
  std::shared_ptr<Script> script(const std::string& image) {
    const std::lock_guard lock(mutex_);
    auto& script = scripts_[image];
    if (script == nullptr) script = std::make_shared<Script>();
    return script;
  }
  std::vector<std::pair<std::string, std::filesystem::path>> last_secrets;

 private:
  const std::string name_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Script>> scripts_;
};

struct NoBody final : RequestBody {
  std::optional<std::string_view> whole() const override { return std::string_view(); }
  absl::StatusOr<std::size_t> read(char*, std::size_t) override { return 0; }
};
struct FakeResponse final : Response {
  absl::Status begin(int s, Headers, std::optional<std::uint64_t>) override {
    status = s;
    return absl::OkStatus();
  }
  absl::Status write(std::string_view piece) override {
    body += piece;
    return absl::OkStatus();
  }
  int status = 0;
  std::string body;
};

// A call on its way.
struct Caller {
  explicit Caller(base::SteadyTime deadline = {}) {
    CallHead head;
    head.deadline = deadline;
    invocation = std::make_shared<Invocation>(std::move(head), body, response);
  }
  ~Caller() {
    if (begun) result();
  }
  void begin(Host& host, const std::string& name) {
    begun = true;
    host.invoke(key_of(name), invocation, [this](const InvokeResult& r) { promise.set_value(r); });
  }
  // Waits for the end.
  const InvokeResult& result() {
    if (!ended) ended = future.get();
    return *ended;
  }
  bool over() { return ended || future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  NoBody body;
  FakeResponse response;
  std::shared_ptr<Invocation> invocation;
  bool begun = false;
  std::promise<InvokeResult> promise;
  std::future<InvokeResult> future = promise.get_future();
  std::optional<InvokeResult> ended;
};

inline InvokeResult call(Host& host, const std::string& name, std::string* body = nullptr) {
  Caller caller;
  caller.begin(host, name);
  InvokeResult result = caller.result();
  if (body != nullptr) *body = caller.response.body;
  return result;
}

// A host in a folder of its own.
class TestHost {
 public:
  explicit TestHost(HostLimits limits = {}, const base::Clock* clock = nullptr) : limits_(limits), clock_(clock) {
    auto runtime = std::make_unique<FakeRuntime>();
    runtime_ = runtime.get();
    runtimes_.push_back(std::move(runtime));
    open();
  }
  void open() {
    HostSettings settings;
    settings.state = place_.path() / "state";
    settings.limits = limits_;
    settings.log = log;
    HostParts parts;
    parts.find_image = [](const std::filesystem::path&, std::string_view image,
                          std::string_view) -> absl::StatusOr<Image> {
      if (!image.starts_with("native/")) return absl::InvalidArgumentError("no such image");
      return Image{.runtime = "native", .path = image.substr(7)};
    };
    parts.longest_timer_wait = std::chrono::milliseconds(2);
    host_ = *open_host(std::move(settings), runtimes_, clock_ != nullptr ? *clock_ : system_, std::move(parts));
  }
  void close() { host_.reset(); }
  Host& operator*() { return *host_; }
  Host* operator->() { return host_.get(); }
  FakeRuntime& runtime() { return *runtime_; }
  std::shared_ptr<Script> script(const std::string& name) { return runtime_->script(name); }
  const std::filesystem::path state() const { return place_.path() / "state"; }

  static FunctionSpec spec(const std::string& name, std::map<std::string, std::string> labels = {},
                           const std::string& image = {}) {
    FunctionSpec spec;
    spec.key = key_of(name);
    spec.image = "native/" + (image.empty() ? spec.key.name : image);
    for (auto& [label, value] : labels) spec.labels["com.openfaas.scale." + label] = value;
    return spec;
  }
  // The script exists then.
  absl::Status deploy(const std::string& name, std::map<std::string, std::string> labels = {},
                      Deploy how = Deploy::kCreate, const std::string& image = {}) {
    const FunctionSpec wanted = spec(name, std::move(labels), image);
    script(wanted.image.substr(7));
    return host_->deploy(wanted, how);
  }
  std::uint32_t available(const std::string& name) { return host_->find(key_of(name), false)->available; }
  std::uint32_t replicas(const std::string& name) { return host_->find(key_of(name), false)->replicas; }
  FunctionCounts counts(const std::string& name) {
    for (auto& [key, counts] : host_->counts()) {
      if (key == key_of(name)) return counts;
    }
    return {};
  }
  bool ready(const std::string& name, std::uint32_t replicas) {
    return eventually([&] { return available(name) == replicas; });
  }
  base::Logger* log = nullptr;

 private:
  const base::TemporaryDirectory place_ = *base::TemporaryDirectory::create("orla-host");
  const HostLimits limits_;
  const base::Clock* const clock_;
  const base::SystemClock system_;
  FakeRuntime* runtime_ = nullptr;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::unique_ptr<Host> host_;
};

}  // namespace orla::function
