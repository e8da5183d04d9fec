#include "function/host_impl.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/absl_view.h"
#include "base/files.h"
#include "base/hash.h"

namespace orla::function {
namespace {

constexpr std::string_view kProcessRuntime = "process";
constexpr std::chrono::seconds kCancelledCallsEnd{10};  // how long drain() waits for calls that it has cancelled
constexpr std::chrono::seconds kReplicasEnd{15};        // and for replicas to end

absl::Status no_such(const FunctionKey& key) {
  return absl::NotFoundError(fmt::format("there is no function {}", key.text()));
}

}  // namespace

// Looks at all replicas now and then.
class HostImpl::Sweep final : public HostTimer::Entry {
 public:
  explicit Sweep(HostImpl& host) : host_(&host), context_(host.context_) {}
  void expire() override {
    context_.job_threads.submit([this, self = shared_from_this()] {
      const std::lock_guard lock(mutex_);
      if (host_ == nullptr) return;
      for (const FunctionPtr& function : host_->in_any_order()) function->check_replicas();
      set();
    });
  }
  void set() { context_.timer.set(*this, context_.clock.steady_now() + kSweepInterval); }
  // Waits for a look in progress; there is none after that.
  void end() {
    const std::lock_guard lock(mutex_);
    host_ = nullptr;
    context_.timer.clear(*this);
  }

 private:
  std::mutex mutex_;
  HostImpl* host_;
  HostContext& context_;
};

std::size_t HostImpl::KeyHash::operator()(const FunctionKey& key) const {
  return base::hash64(key.name) * 31 + base::hash64(key.space);
}

// --- Life. ----------------------------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Host>> open_host(HostSettings settings,
                                                const std::vector<std::unique_ptr<Runtime>>& runtimes,
                                                const base::Clock& clock, HostParts parts) {
  auto host = std::make_unique<HostImpl>(std::move(settings), runtimes, clock, std::move(parts));
  if (absl::Status status = host->take_up(); !status.ok()) return status;
  return host;
}

absl::Status HostImpl::take_up() {
  const std::filesystem::path& state = context_.settings.state;
  if (absl::Status status = base::make_directories(state); !status.ok()) return status;
  auto secrets = SecretFiles::open(
      state / "secrets", {.secrets = context_.limits.secrets, .bytes = context_.limits.secret_bytes}, context_.log);
  if (!secrets.ok()) return secrets.status();
  context_.secrets = *std::move(secrets);
  auto specs = SpecFiles::open(state / "specs");
  if (!specs.ok()) return specs.status();
  specs_.emplace(*std::move(specs));
  const auto deployed = specs_->load(context_.log);
  if (!deployed.ok()) return deployed.status();
  for (const Deployed& one : *deployed) take_up_one(one);
  sweep_ = std::make_shared<Sweep>(*this);
  sweep_->set();
  return absl::OkStatus();
}

void HostImpl::take_up_one(const Deployed& deployed) {
  auto function = std::make_shared<HostedFunction>(context_, deployed.spec.key, deployed.created);
  auto generation = generation_of(deployed.spec, &function->log);
  if (!generation.ok()) {
    // It stays deployed: what is missing may come back, and people see why it does not run.
    context_.log.error("the function {} is deployed and cannot run: {}", deployed.spec.key.text(),
                       base::message(generation.status()));
    auto broken = std::make_shared<Generation>();
    broken->wanted.spec = deployed.spec;
    broken->wanted.log = &function->log;
    broken->problem = generation.status();
    generation = std::move(broken);
  }
  function->install(*std::move(generation), HostedFunction::Wanted::kRestored, deployed.replicas);
  functions_.emplace(deployed.spec.key, std::move(function));
  saved_.emplace(deployed.spec.key, deployed.replicas);
}

HostImpl::~HostImpl() {
  drain(std::chrono::nanoseconds(0));
  if (sweep_ != nullptr) sweep_->end();
}

void HostImpl::drain(std::chrono::nanoseconds timeout) {
  const std::lock_guard once(drain_mutex_);
  if (std::exchange(drained_, true)) return;
  context_.draining = true;
  if (!context_.wait_for_none(context_.calls, timeout)) {
    for (const auto& entry : context_.timer.entries()) {
      if (const auto call = std::dynamic_pointer_cast<HostCall>(entry)) {
        call->invocation->cancellation.cancel(CancelReason::kDraining);
      }
    }
    if (!context_.wait_for_none(context_.calls, kCancelledCallsEnd)) {
      context_.log.error("{} calls were cancelled {} s ago and have not ended", context_.calls.load(),
                         kCancelledCallsEnd.count());
    }
  }
  if (specs_) save_scales();
  for (const FunctionPtr& function : all()) function->close();
  if (!context_.wait_for_none(context_.replicas, kReplicasEnd)) {
    context_.log.error("{} replicas have not ended after {} s", context_.replicas.load(), kReplicasEnd.count());
  }
}

absl::Status HostImpl::check_not_draining() const {
  return context_.draining ? absl::UnavailableError("this node is going down") : absl::OkStatus();
}

// --- Deployments. ---------------------------------------------------------------------------------------------------

HostImpl::FunctionPtr HostImpl::look_up(const FunctionKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = functions_.find(key);
  return found == functions_.end() ? nullptr : found->second;
}

std::vector<HostImpl::FunctionPtr> HostImpl::in_any_order() const {
  std::vector<FunctionPtr> all;
  const std::shared_lock lock(mutex_);
  all.reserve(functions_.size());
  for (const auto& [key, function] : functions_) all.push_back(function);
  return all;
}

std::vector<HostImpl::FunctionPtr> HostImpl::all() const {
  std::vector<FunctionPtr> all = in_any_order();
  std::sort(all.begin(), all.end(), [](const FunctionPtr& a, const FunctionPtr& b) { return a->key < b->key; });
  return all;
}

std::mutex& HostImpl::changes_of(const FunctionKey& key) { return changes_[KeyHash()(key) % changes_.size()]; }

absl::StatusOr<std::shared_ptr<Generation>> HostImpl::generation_of(const FunctionSpec& spec, LogSink* log) {
  auto generation = std::make_shared<Generation>();
  auto options = read_options(spec);
  if (!options.ok()) return options.status();
  const auto image = context_.parts.find_image(context_.settings.images, spec.image, spec.env_process);
  if (!image.ok()) return image.status();
  if (image->runtime == kProcessRuntime && !context_.settings.processes) {
    return absl::FailedPreconditionError(fmt::format(
        "the image \"{}\" is an executable, and this node runs none: switch processes on in its settings", spec.image));
  }
  for (const auto& runtime : context_.runtimes) {
    if (runtime->name() == image->runtime) generation->runtime = runtime.get();
  }
  if (generation->runtime == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "the image \"{}\" needs the runtime {}, which this node does not have", spec.image, image->runtime));
  }
  generation->runtime_name = generation->runtime->name();
  auto secrets = context_.secrets->lease(spec.key.space, spec.secrets);
  if (!secrets.ok()) return secrets.status();
  generation->secrets = *std::move(secrets);
  generation->wanted = {.spec = spec,
                        .options = *std::move(options),
                        .image = image->path,
                        .secrets = generation->secrets->files(),
                        .log = log};
  return generation;
}

absl::Status HostImpl::deploy(const FunctionSpec& spec, Deploy how) {
  if (absl::Status status = check_not_draining(); !status.ok()) return status;
  if (absl::Status status = check_label("function name", spec.key.name); !status.ok()) return status;
  if (absl::Status status = check_label("namespace", spec.key.space); !status.ok()) return status;
  const std::lock_guard one_at_a_time(changes_of(spec.key));
  FunctionPtr function = look_up(spec.key);
  if (how == Deploy::kUpdate && function == nullptr) return no_such(spec.key);
  if (how == Deploy::kCreate && function != nullptr) {
    return absl::AlreadyExistsError(fmt::format("the function {} is deployed already", spec.key.text()));
  }
  if (spec.image.empty())
    return absl::InvalidArgumentError("the image is empty; expected a file, a directory or native/NAME");
  const HostLimits& limits = context_.limits;
  const bool is_new = function == nullptr;
  if (is_new) function = std::make_shared<HostedFunction>(context_, spec.key, context_.clock.wall_now());
  auto generation = generation_of(spec, &function->log);
  if (!generation.ok()) return generation.status();
  const ScaleOptions& scale = (*generation)->wanted.options.scale;
  if (scale.min > limits.replicas_of_function) {
    return absl::InvalidArgumentError(
        fmt::format("com.openfaas.scale.min is {}; this node starts at most {} replicas of a function (limit "
                    "replicas_of_function)",
                    scale.min, limits.replicas_of_function));
  }
  (*generation)->wanted.options.scale.max = std::min(scale.max, limits.replicas_of_function);
  if (is_new && context_.replicas.load() + scale.min > limits.replicas) {
    return absl::ResourceExhaustedError(fmt::format("there are {} replicas on this node already (limit replicas, {})",
                                                    context_.replicas.load(), limits.replicas));
  }
  if (const auto module = (*generation)->load(); !module.ok()) return module.status();
  {
    const std::shared_lock lock(mutex_);
    if (is_new && functions_.size() >= limits.functions) {
      return absl::ResourceExhaustedError(
          fmt::format("there are {} functions on this node already (limit functions)", limits.functions));
    }
  }
  const std::uint32_t replicas = std::clamp(std::max(function->wanted(), 1u), scale.min, scale.max);
  if (absl::Status saved = specs_->save({.spec = spec, .replicas = replicas, .created = function->created});
      !saved.ok()) {
    return saved;
  }
  function->install(*std::move(generation), HostedFunction::Wanted::kNew, replicas);
  const std::unique_lock lock(mutex_);
  functions_[spec.key] = std::move(function);
  saved_[spec.key] = replicas;
  return absl::OkStatus();
}

absl::Status HostImpl::remove(const FunctionKey& key) {
  if (absl::Status status = check_not_draining(); !status.ok()) return status;
  const std::lock_guard one_at_a_time(changes_of(key));
  const FunctionPtr function = look_up(key);
  if (function == nullptr) return no_such(key);
  if (absl::Status status = specs_->remove(key); !status.ok()) return status;
  {
    const std::unique_lock lock(mutex_);
    functions_.erase(key);
    saved_.erase(key);
  }
  function->close();
  return absl::OkStatus();
}

absl::Status HostImpl::save(HostedFunction& function, std::uint32_t replicas) {
  {
    const std::shared_lock lock(mutex_);
    const auto saved = saved_.find(function.key);
    if (saved != saved_.end() && saved->second == replicas) return absl::OkStatus();
  }
  const std::shared_ptr<Generation> generation = function.generation();
  if (absl::Status status =
          specs_->save({.spec = generation->wanted.spec, .replicas = replicas, .created = function.created});
      !status.ok()) {
    return status;
  }
  const std::unique_lock lock(mutex_);
  saved_[function.key] = replicas;
  return absl::OkStatus();
}

// What the autoscaler has changed.
void HostImpl::save_scales() {
  for (const FunctionPtr& function : all()) {
    const std::lock_guard one_at_a_time(changes_of(function->key));
    if (absl::Status status = save(*function, function->wanted()); !status.ok()) {
      context_.log.error("the number of replicas of {} is not kept: {}", function->key.text(), base::message(status));
    }
  }
}

absl::StatusOr<std::uint32_t> HostImpl::scale(const FunctionKey& key, std::uint32_t replicas) {
  if (absl::Status status = check_not_draining(); !status.ok()) return status;
  const std::lock_guard one_at_a_time(changes_of(key));
  const FunctionPtr function = look_up(key);
  if (function == nullptr) return no_such(key);
  const std::uint32_t wanted = function->scale(replicas);
  if (absl::Status status = save(*function, wanted); !status.ok()) return status;
  return wanted;
}

absl::Status HostImpl::alert(const FunctionKey& key, bool firing) {
  if (absl::Status status = check_not_draining(); !status.ok()) return status;
  const std::lock_guard one_at_a_time(changes_of(key));
  const FunctionPtr function = look_up(key);
  if (function == nullptr) return no_such(key);
  return function->alert(firing) ? save(*function, function->wanted()) : absl::OkStatus();
}

void HostImpl::set_queue_length(const FunctionKey& key, std::uint64_t waiting) {
  if (const FunctionPtr function = look_up(key)) function->set_queue_length(waiting);
}

std::vector<FunctionStatus> HostImpl::list(std::string_view space) const {
  std::vector<FunctionStatus> list;
  for (const FunctionPtr& function : all()) {
    if (space.empty() || function->key.space == space) list.push_back(function->status(false));
  }
  return list;
}

std::optional<FunctionStatus> HostImpl::find(const FunctionKey& key, bool with_usage) const {
  const FunctionPtr function = look_up(key);
  if (function == nullptr) return std::nullopt;
  return function->status(with_usage);
}

// --- Calls. ---------------------------------------------------------------------------------------------------------

void HostImpl::invoke(const FunctionKey& key, std::shared_ptr<Invocation> invocation, InvokeDone done) {
  InvokeResult refused;
  // Counted first: drain() waits for what has passed the look at `draining`.
  context_.count_up(context_.calls);
  FunctionPtr function;
  if (context_.draining) {
    refused.end = InvokeEnd::kDraining;
    refused.message = "this node is going down";
  } else if (function = look_up(key); function == nullptr) {
    refused.end = InvokeEnd::kNotFound;
    refused.message = base::message(no_such(key));
  }
  if (function == nullptr) {
    done(refused);
    context_.count_down(context_.calls);
    return;
  }
  auto call = std::make_shared<HostCall>();
  if (invocation->head.deadline == base::SteadyTime{}) invocation->head.deadline = base::SteadyTime::max();
  const base::SteadyTime deadline = invocation->head.deadline;
  call->function = function;
  call->invocation = std::move(invocation);
  call->done = std::move(done);
  context_.timer.set(*call, deadline);
  function->invoke(std::move(call));
}

void HostImpl::count(const FunctionKey& key, int status, double seconds) {
  if (const FunctionPtr function = look_up(key)) function->counts.add(status, seconds);
}

std::vector<std::pair<FunctionKey, FunctionCounts>> HostImpl::counts() const {
  std::vector<std::pair<FunctionKey, FunctionCounts>> counts;
  for (const FunctionPtr& function : all()) counts.emplace_back(function->key, function->read_counts());
  return counts;
}

// --- Secrets and logs. ----------------------------------------------------------------------------------------------

absl::Status HostImpl::add_secret(const FunctionKey& key, std::string_view value) {
  return context_.secrets->add(key, value);
}
absl::Status HostImpl::change_secret(const FunctionKey& key, std::string_view value) {
  return context_.secrets->change(key, value);
}
absl::Status HostImpl::remove_secret(const FunctionKey& key) { return context_.secrets->remove(key); }

absl::StatusOr<std::vector<LogLine>> HostImpl::logs(const FunctionKey& key, const LogQuery& query) const {
  const FunctionPtr function = look_up(key);
  if (function == nullptr) return no_such(key);
  return function->log.read(query);
}

absl::StatusOr<std::shared_ptr<void>> HostImpl::follow(const FunctionKey& key, std::function<void(const LogLine&)> line,
                                                       std::function<void()> end) {
  const FunctionPtr function = look_up(key);
  if (function == nullptr) return no_such(key);
  return function->log.follow(std::move(line), std::move(end));
}

}  // namespace orla::function
