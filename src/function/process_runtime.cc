#include "function/process_runtime.h"

#include <fmt/format.h>

#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/absl_view.h"
#include "base/signals.h"
#include "function/isolation_root.h"

namespace orla::function {

namespace {

constexpr std::size_t kMaxSecretBytes = 1 << 20;

std::map<std::string, std::string> given_to_functions(const base::Environment& environment) {
  std::map<std::string, std::string> given;
  for (const char* name : {"PATH", "LANG", "TZ"}) {
    if (std::optional<std::string> value = environment.get(name); value.has_value()) given[name] = *std::move(value);
  }
  return given;
}

// Of PATH, what a replica can see.
std::string searched_path(const Isolation& isolation, std::string_view path) {
  if (isolation.namespaces == Isolation::Namespaces::kNone) return std::string(path);
  return absl::StrJoin(absl::StrSplit(base::absl_view(path), ':',
                                      [](absl::string_view folder) { return is_shown(std::string(folder)); }),
                       ":");
}

class ProcessModule final : public Module {
 public:
  ProcessModule(ProcessTools& tools, const Isolation& isolation, ProcessFunction function, SandboxRequest request)
      : tools_(tools), isolation_(isolation), function_(std::move(function)), request_(std::move(request)) {}

  absl::StatusOr<std::unique_ptr<Instance>> start(std::string name, base::SteadyTime deadline,
                                                  Cancellation& cancellation) override {
    if (cancellation.cancelled()) return absl::CancelledError(fmt::format("the start of {} was cancelled", name));
    SandboxRequest request = request_;
    request.name = name;
    request.secrets.clear();
    for (const auto& [secret, path] : function_.spec.secrets) {  // as they are now
      absl::StatusOr<std::string> content = base::read_file(path, kMaxSecretBytes);
      if (!content.ok()) return content.status();
      request.secrets.emplace_back(secret, *std::move(content));
    }
    absl::StatusOr<std::unique_ptr<ProcessSandbox>> sandbox = ProcessSandbox::create(isolation_, request);
    if (!sandbox.ok()) return sandbox.status();
    if (function_.spec.options.mode == WatchdogMode::kHttp) {
      return make_http_instance(tools_, function_, std::move(name), *std::move(sandbox), deadline, cancellation);
    }
    return make_fork_instance(tools_, function_, std::move(name), *std::move(sandbox));
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = sandbox_notes(isolation_, request_);
    const FunctionOptions& options = function_.spec.options;
    if (options.mode == WatchdogMode::kHttp && !options.upstream_url.empty() &&
        options.upstream_url.find("$PORT") == std::string::npos && request_.network == SandboxRequest::Network::kHost) {
      notes.push_back(
          fmt::format("upstream_url \"{}\" names one port of this machine: only one replica can listen there",
                      options.upstream_url));
    }
    return notes;
  }

 private:
  ProcessTools& tools_;
  const Isolation& isolation_;
  const ProcessFunction function_;
  SandboxRequest request_;
};

}  // namespace

ProcessRuntime::ProcessRuntime(const base::Clock& clock, const base::Environment& environment)
    : clock_(clock), environment_(given_to_functions(environment)) {}
ProcessRuntime::ProcessRuntime(const base::Clock& clock, const base::Environment& environment, Isolation isolation)
    : clock_(clock), environment_(given_to_functions(environment)), isolation_(std::move(isolation)) {}

absl::StatusOr<std::unique_ptr<Module>> ProcessRuntime::load(const ModuleSpec& spec) {
  absl::StatusOr<SandboxRequest> request = sandbox_request(spec);
  if (!request.ok()) return request.status();
  if (spec.options.mode == WatchdogMode::kHttp) {
    if (absl::Status upstream = check_upstream(spec.options); !upstream.ok()) return upstream;
  }
  const std::lock_guard lock(mutex_);
  if (tools_ == nullptr) {
    base::ignore_sigpipe();  // a child may close its input before it is written whole
    if (!isolation_.has_value()) isolation_ = probe_isolation();
    tools_ = std::make_unique<ProcessTools>(clock_);
  }
  ProcessFunction function{spec, {}, function_environment(spec.spec, environment_)};
  const std::string path = searched_path(*isolation_, value_in(function.environment, "PATH"));
  absl::StatusOr<Command> command = make_command(spec.image, spec.spec.env_process, path);
  if (!command.ok()) return command.status();
  function.command = *std::move(command);
  return std::make_unique<ProcessModule>(*tools_, *isolation_, std::move(function), *std::move(request));
}

}  // namespace orla::function
