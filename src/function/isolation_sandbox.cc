#include "function/isolation_sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/absl_view.h"
#include "function/isolation_root.h"
#include "function/isolation_seccomp.h"

namespace orla::function {

namespace {

constexpr std::size_t kMaxProcBytes = 4 << 20;

uid_t user_of(const Isolation& isolation) {
  return isolation.namespaces == Isolation::Namespaces::kPrivileged ? kFunctionUser : ::geteuid();
}

// Whether a program runs in these surroundings.
absl::Status try_out(const Confinement& confinement) {
  const base::FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const SpawnSpec spec{"/bin/true", {"true"}, {}, "/", null.get(), null.get(), null.get()};
  absl::StatusOr<std::unique_ptr<Child>> child = spawn(spec, confinement);
  if (!child.ok()) return child.status();
  (void)(*child)->wait(std::chrono::seconds(5));
  const base::ExitStatus status = (*child)->finish();
  return status.success() ? absl::OkStatus()
                          : absl::InternalError(fmt::format("/bin/true ended with {}", base::to_string(status)));
}

absl::Status try_namespaces(Isolation& isolation, Isolation::Namespaces kind) {
  Isolation tried = isolation;
  tried.namespaces = kind;
  tried.cgroups = {};
  const absl::StatusOr<std::unique_ptr<ProcessSandbox>> sandbox = ProcessSandbox::create(tried, {});
  if (!sandbox.ok()) return sandbox.status();
  if (absl::Status works = try_out((*sandbox)->confinement()); !works.ok()) return works;
  isolation.namespaces = kind;
  if (kind != Isolation::Namespaces::kPrivileged) return absl::OkStatus();
  Confinement counted = (*sandbox)->confinement();
  counted.fresh_user = Confinement::UserNamespace::kFresh;
  isolation.fresh_user = try_out(counted).ok();
  return absl::OkStatus();
}

}  // namespace

Isolation probe_isolation() {
  Isolation isolation;
  absl::Status tried = absl::PermissionDeniedError("not root");
  if (::geteuid() == 0) tried = try_namespaces(isolation, Isolation::Namespaces::kPrivileged);
  if (!tried.ok()) {
    const absl::Status owned = try_namespaces(isolation, Isolation::Namespaces::kUserOwned);
    if (!owned.ok()) isolation.namespaces_error = base::message(owned);
  }
  isolation.cgroups = find_cgroups(base::read_file("/proc/self/mountinfo", kMaxProcBytes).value_or(""),
                                   base::read_file("/proc/self/cgroup", kMaxProcBytes).value_or(""));
  sweep_cgroups(isolation.cgroups);
  return isolation;
}

absl::StatusOr<SandboxRequest> sandbox_request(const ModuleSpec& spec) {
  SandboxRequest request;
  request.image = spec.image;
  request.memory_bytes = spec.options.memory_bytes;
  request.cpu_cores = spec.options.cpu_cores;
  if (spec.spec.read_only_root) request.root = SandboxRequest::Root::kReadOnly;
  for (const auto& [name, path] : spec.secrets) request.secrets.emplace_back(name, "");
  const auto network = spec.spec.annotations.find(std::string(kNetworkAnnotation));
  if (network != spec.spec.annotations.end()) {
    if (network->second != "none" && network->second != "host") {
      return absl::InvalidArgumentError(fmt::format("annotation {} is \"{}\"; \"none\" or \"host\" was expected",
                                                    kNetworkAnnotation, network->second));
    }
    if (network->second == "none") request.network = SandboxRequest::Network::kNone;
  }
  return request;
}

std::vector<std::string> sandbox_notes(const Isolation& isolation, const SandboxRequest& request) {
  std::vector<std::string> notes;
  if (isolation.namespaces == Isolation::Namespaces::kNone) {
    notes.push_back(
        fmt::format("isolation: no namespaces on this machine ({}): the function sees the node's files and "
                    "processes as the node's user; processes that leave their group may outlive a call",
                    isolation.namespaces_error));
    if (request.root == SandboxRequest::Root::kReadOnly) {
      notes.push_back("readOnlyRootFilesystem is not applied: there are no namespaces on this machine");
    }
    if (request.network == SandboxRequest::Network::kNone) {
      notes.push_back(
          fmt::format("{}: none is not applied: there are no namespaces on this machine", kNetworkAnnotation));
    }
    if (!request.secrets.empty()) {
      notes.push_back(
          fmt::format("secrets are not at {} but where the environment variable secret_mount_path says", kSecretsPath));
    }
  }
  if (function_filter().empty()) notes.push_back("isolation: no system call filter for this processor");
  if (request.memory_bytes.has_value() && !isolation.cgroups.memory.has_value()) {
    notes.push_back("limits.memory is not applied: no memory cgroup can be written on this machine");
  }
  if (request.cpu_cores.has_value() && !isolation.cgroups.cpu.has_value()) {
    notes.push_back("limits.cpu is not applied: no cpu cgroup can be written on this machine");
  }
  if (isolation.namespaces != Isolation::Namespaces::kUserOwned && !isolation.fresh_user &&
      !isolation.cgroups.pids.has_value()) {
    notes.push_back("the number of processes is not limited: no user namespace and no pids cgroup on this machine");
  }
  return notes;
}

absl::StatusOr<std::unique_ptr<ProcessSandbox>> ProcessSandbox::create(const Isolation& isolation,
                                                                       const SandboxRequest& request) {
  std::unique_ptr<ProcessSandbox> sandbox(new ProcessSandbox);
  Confinement& confinement = sandbox->confinement_;
  confinement.open_files = kMaxOpenFiles;
  confinement.filter = function_filter();
  const bool namespaces = isolation.namespaces != Isolation::Namespaces::kNone;
  if (namespaces) {
    const bool owned = isolation.namespaces == Isolation::Namespaces::kUserOwned;
    const std::vector<RootStep> steps =
        plan_root({request.image.string(), std::string(kSecretsPath), &request.secrets, user_of(isolation)});
    NamespacesRequest wanted;
    wanted.owner = owned ? NamespacesRequest::Owner::kUserNamespace : NamespacesRequest::Owner::kRoot;
    if (request.network == SandboxRequest::Network::kNone) wanted.network = NamespacesRequest::Network::kNone;
    if (request.root == SandboxRequest::Root::kReadOnly) wanted.root = NamespacesRequest::Root::kReadOnly;
    wanted.steps = &steps;
    wanted.user = user_of(isolation);
    absl::StatusOr<Namespaces> made = make_namespaces(wanted);
    if (!made.ok()) return made.status();
    sandbox->user_ns_ = std::move(made->user);
    sandbox->mount_ns_ = std::move(made->mount);
    sandbox->ipc_ns_ = std::move(made->ipc);
    sandbox->net_ns_ = std::move(made->network);
    confinement.user_ns = sandbox->user_ns_.get();
    confinement.mount_ns = sandbox->mount_ns_.get();
    confinement.ipc_ns = sandbox->ipc_ns_.get();
    confinement.net_ns = sandbox->net_ns_.get();
    confinement.pids = Confinement::Pids::kOwnNamespace;
    if (!owned) confinement.user = kFunctionUser;
    if (!owned && isolation.fresh_user) confinement.fresh_user = Confinement::UserNamespace::kFresh;
    if (owned || isolation.fresh_user) confinement.processes = kMaxProcesses;
  }
  CgroupLimits limits{request.memory_bytes, request.cpu_cores, std::nullopt};
  // A group of processes only where they are not counted otherwise: joining one costs time.
  if (!confinement.processes.has_value() || request.memory_bytes.has_value()) limits.processes = kMaxProcesses;
  absl::StatusOr<std::unique_ptr<Cgroup>> cgroup = Cgroup::create(isolation.cgroups, limits);
  if (!cgroup.ok()) return cgroup.status();
  sandbox->cgroup_ = *std::move(cgroup);
  confinement.cgroup_procs = sandbox->cgroup_->procs();
  if (!request.secrets.empty()) {
    if (absl::Status put = sandbox->put_secrets(request); !put.ok()) return put;
  }
  return sandbox;
}

absl::Status ProcessSandbox::put_secrets(const SandboxRequest& request) {
  std::string path(kSecretsPath);
  if (!mount_ns_.valid()) {
    absl::StatusOr<base::TemporaryDirectory> folder = base::TemporaryDirectory::create("orla-secrets-");
    if (!folder.ok()) return folder.status();
    secrets_ = *std::move(folder);
    for (const auto& [name, content] : request.secrets) {
      const std::filesystem::path file = secrets_->path() / name;
      const base::FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400));
      if (!fd.valid() || ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
        return base::errno_status(errno, fmt::format("cannot write the secret \"{}\"", name));
      }
    }
    path = secrets_->path().string();
  }
  environment_.push_back(fmt::format("secret_mount_path={}", path));
  return absl::OkStatus();
}

std::optional<InstanceUsage> ProcessSandbox::usage() const {
  const std::optional<std::uint64_t> memory = cgroup_->memory_bytes();
  const std::optional<double> cpu = cgroup_->cpu_seconds();
  if (!memory.has_value() || !cpu.has_value()) return std::nullopt;
  return InstanceUsage{*cpu, *memory};
}

absl::StatusOr<base::FileDescriptor> ProcessSandbox::socket() const {
  if (net_ns_.valid()) return socket_inside(confinement_.user_ns, confinement_.net_ns);
  base::FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.valid()) return base::errno_status(errno, "cannot make a socket");
  return made;
}

}  // namespace orla::function
