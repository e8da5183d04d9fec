// The surroundings of one replica's processes: what they see, may do and may use. What the machine does not permit is
// left out and said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "function/isolation_cgroup.h"
#include "function/process_spawn.h"
#include "function/runtime.h"

namespace orla::function {

// What a machine permits, found by trying it once.
struct Isolation {
  enum class Namespaces : std::uint8_t {
    kNone,
    kPrivileged,  // as root: made by root, functions run as kFunctionUser
    kUserOwned    // in a user namespace: functions run as the node's own user
  } namespaces = Namespaces::kNone;
  bool fresh_user = false;       // processes can be counted per call
  std::string namespaces_error;  // why there are none
  CgroupPlaces cgroups;
};
Isolation probe_isolation();

inline constexpr uid_t kFunctionUser = 65534;
inline constexpr std::uint64_t kMaxProcesses = 512;
inline constexpr std::uint64_t kMaxOpenFiles = 1024;
inline constexpr std::string_view kSecretsPath = "/var/openfaas/secrets";
inline constexpr std::string_view kNetworkAnnotation = "com.orla.process.network";

struct SandboxRequest {
  std::string name;             // of the replica
  std::filesystem::path image;  // shown at the same path, read-only
  enum class Root : std::uint8_t { kWritable, kReadOnly } root = Root::kWritable;
  enum class Network : std::uint8_t { kHost, kNone } network = Network::kHost;
  std::vector<std::pair<std::string, std::string>> secrets;  // name and content
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> cpu_cores;
};
// INVALID_ARGUMENT: the annotation's value.
absl::StatusOr<SandboxRequest> sandbox_request(const ModuleSpec& spec);
// What of the request this machine cannot do.
std::vector<std::string> sandbox_notes(const Isolation& isolation, const SandboxRequest& request);

// Belongs to one replica and goes after its last process.
class ProcessSandbox {
 public:
  static absl::StatusOr<std::unique_ptr<ProcessSandbox>> create(const Isolation& isolation,
                                                                const SandboxRequest& request);
  ProcessSandbox(const ProcessSandbox&) = delete;
  ProcessSandbox& operator=(const ProcessSandbox&) = delete;

  const Confinement& confinement() const { return confinement_; }
  // "NAME=value": where secrets are.
  const std::vector<std::string>& environment() const { return environment_; }
  std::uint64_t oom_kills() const { return cgroup_ == nullptr ? 0 : cgroup_->oom_kills(); }
  std::optional<InstanceUsage> usage() const;
  bool own_network() const { return net_ns_.valid(); }
  // A TCP socket in the network that the processes have. Not connected.
  absl::StatusOr<base::FileDescriptor> socket() const;

 private:
  ProcessSandbox() = default;
  absl::Status put_secrets(const SandboxRequest& request);

  Confinement confinement_;
  std::vector<std::string> environment_;
  std::optional<base::TemporaryDirectory> secrets_;  // where there is no mount namespace
  std::unique_ptr<Cgroup> cgroup_;                   // null: none
  base::FileDescriptor user_ns_, mount_ns_, ipc_ns_, net_ns_;
};

}  // namespace orla::function
