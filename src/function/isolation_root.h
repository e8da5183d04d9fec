// The file system and the namespaces of a replica: made once, entered by each of its processes.
//
// The root is a small tmpfs with the machine's programs and libraries (/usr, /bin, /lib..., /etc, /opt) and the image
// at their own paths, read-only; /tmp and /dev/shm of its own; a few devices; secrets as files of mode 0400. The rest
// of the machine's files is not there.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace orla::function {

inline constexpr std::size_t kTmpBytes = std::size_t{256} << 20;  // of /tmp, and as much of /dev/shm
inline constexpr std::size_t kRootBytes = std::size_t{64} << 20;  // of the root itself

// One thing to do when the root is made; the machine's own root is at kHostRoot meanwhile.
struct RootStep {
  enum class Kind : unsigned char {
    kDirectory,
    kEmptyFile,
    kSecret,
    kSymlink,
    kBindReadOnly,
    kBindDevice,
    kTmpfs,
    kSeal
  };
  Kind kind = Kind::kDirectory;
  std::string path;
  std::string from;  // what is bound, the link's target, the secret's content, the tmpfs's options
};
inline constexpr std::string_view kHostRoot = "/.host";

struct RootRequest {
  std::string image;  // absolute
  std::string secrets_path;
  const std::vector<std::pair<std::string, std::string>>* secrets = nullptr;
  uid_t user = 0;
};
std::vector<RootStep> plan_root(const RootRequest& request);
// Whether the root shows that folder of the machine, whatever the image.
bool is_shown(const std::string& folder);

struct NamespacesRequest {
  enum class Owner : unsigned char { kRoot, kUserNamespace } owner = Owner::kRoot;
  enum class Network : unsigned char { kHost, kNone } network = Network::kHost;
  enum class Root : unsigned char { kWritable, kReadOnly } root = Root::kWritable;
  const std::vector<RootStep>* steps = nullptr;
  uid_t user = 0;  // whose the root is
};
struct Namespaces {
  base::FileDescriptor user, mount, ipc, network;  // not valid: the machine's
};
absl::StatusOr<Namespaces> make_namespaces(const NamespacesRequest& request);

// A TCP socket made inside `network` (of `user`).
absl::StatusOr<base::FileDescriptor> socket_inside(int user, int network);

}  // namespace orla::function
