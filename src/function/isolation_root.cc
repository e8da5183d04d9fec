#include "function/isolation_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>

#include "base/files.h"
#include "function/process_spawn.h"

#define ORLA_CHILD_SIDE __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

namespace orla::function {

namespace {

namespace fs = std::filesystem;

// Directories that are shown as they are, or as the links that they are.
constexpr const char* kSystem[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"};
constexpr const char* kDevices[] = {"null", "zero", "full", "random", "urandom"};
constexpr std::pair<const char*, const char*> kDeviceLinks[] = {{"/dev/fd", "/proc/self/fd"},
                                                                {"/dev/stdin", "/proc/self/fd/0"},
                                                                {"/dev/stdout", "/proc/self/fd/1"},
                                                                {"/dev/stderr", "/proc/self/fd/2"}};
constexpr long kMountSetattr = 442;
struct MountAttributes {  // struct mount_attr of Linux 5.12
  std::uint64_t set, clear, propagation, user_ns;
};
constexpr std::uint64_t kReadOnlyAttribute = 1, kNoSetuidAttribute = 2, kNoDevicesAttribute = 4;

bool below(const std::string& path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

bool is_shown(const std::string& folder) {
  return std::any_of(std::begin(kSystem), std::end(kSystem), [&](const char* path) { return below(folder, path); });
}

std::vector<RootStep> plan_root(const RootRequest& request) {
  using Kind = RootStep::Kind;
  std::vector<RootStep> steps;
  std::set<std::string> made{"/"};
  const auto folders = [&](const fs::path& path) {  // it and those above it
    fs::path so_far = "/";
    for (const fs::path& part : path.relative_path()) {
      so_far /= part;
      if (made.insert(so_far.string()).second) steps.push_back({Kind::kDirectory, so_far.string(), ""});
    }
  };
  const auto host = [](const std::string& path) { return std::string(kHostRoot) + path; };
  for (const char* path : kSystem) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (fs::is_symlink(status)) {
      steps.push_back({Kind::kSymlink, path, fs::read_symlink(path, error).string()});
    } else if (fs::is_directory(status)) {
      folders(path);
      steps.push_back({Kind::kBindReadOnly, path, host(path)});
    }
  }
  for (const char* path : {"/proc", "/run", "/var", "/var/tmp", "/dev", "/tmp", "/dev/shm"}) folders(path);
  const std::string writable = fmt::format("mode=1777,size={},nr_inodes=65536", kTmpBytes);
  steps.push_back({Kind::kTmpfs, "/tmp", writable});
  steps.push_back({Kind::kTmpfs, "/dev/shm", writable});
  for (const char* device : kDevices) {
    const std::string path = fmt::format("/dev/{}", device);
    steps.push_back({Kind::kEmptyFile, path, ""});
    steps.push_back({Kind::kBindDevice, path, host(path)});
  }
  for (const auto& [link, target] : kDeviceLinks) steps.push_back({Kind::kSymlink, link, target});
  std::error_code error;
  // Names are resolved by a file that some systems keep outside /etc.
  const fs::path resolver = fs::canonical("/etc/resolv.conf", error);
  if (!error && fs::is_regular_file(resolver) && !below(resolver.string(), "/etc")) {
    folders(resolver.parent_path());
    steps.push_back({Kind::kEmptyFile, resolver.string(), ""});
    steps.push_back({Kind::kBindReadOnly, resolver.string(), host(resolver.string())});
  }
  if (!is_shown(request.image) && !request.image.empty()) {
    if (fs::is_directory(request.image, error)) {
      folders(request.image);
    } else {
      folders(fs::path(request.image).parent_path());
      steps.push_back({Kind::kEmptyFile, request.image, ""});
    }
    steps.push_back({Kind::kBindReadOnly, request.image, host(request.image)});
  }
  if (request.secrets != nullptr && !request.secrets->empty()) {
    folders(request.secrets_path);
    steps.push_back({Kind::kTmpfs, request.secrets_path, fmt::format("mode=0755,uid={0},gid={0}", request.user)});
    for (const auto& [name, content] : *request.secrets) {
      steps.push_back({Kind::kSecret, fmt::format("{}/{}", request.secrets_path, name), content});
    }
    steps.push_back({Kind::kSeal, request.secrets_path, ""});
  }
  return steps;
}

namespace {

struct PlainStep {
  RootStep::Kind kind;
  const char* path;
  const char* from;
  std::size_t from_bytes;
};

struct Work {
  const PlainStep* steps;
  std::size_t count;
  bool in_user_namespace;
  bool own_network;
  bool seal_root;
  long user;
  const char* uid_map;
  const char* gid_map;
  const char* root_options;
  int user_ns = -1, mount_ns = -1, ipc_ns = -1, net_ns = -1;
  const char* failed = nullptr;
  int error = 0;
};

ORLA_CHILD_SIDE long sys(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e);
}
ORLA_CHILD_SIDE long at(const void* p) { return reinterpret_cast<long>(p); }

[[noreturn]] ORLA_CHILD_SIDE void give_up(Work& work, const char* what) {
  work.error = errno;
  work.failed = what;
  while (true) sys(SYS_exit_group, 1);
}

ORLA_CHILD_SIDE bool write_whole(const char* path, const char* bytes, std::size_t count, int flags, long mode) {
  const long fd = sys(SYS_openat, AT_FDCWD, at(path), flags | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0) return false;
  bool fine = true;
  while (count > 0 && fine) {
    const long n = sys(SYS_write, fd, at(bytes), static_cast<long>(count));
    fine = n > 0;
    if (fine) {
      bytes += n;
      count -= static_cast<std::size_t>(n);
    }
  }
  sys(SYS_close, fd);
  return fine;
}
ORLA_CHILD_SIDE std::size_t length(const char* text) {
  std::size_t n = 0;
  while (text[n] != 0) ++n;
  return n;
}

ORLA_CHILD_SIDE bool read_only(const char* path, bool recursive) {
  MountAttributes attributes{kReadOnlyAttribute | kNoSetuidAttribute | kNoDevicesAttribute, 0, 0, 0};
  if (sys(kMountSetattr, AT_FDCWD, at(path), recursive ? AT_RECURSIVE : 0, at(&attributes), sizeof attributes) == 0) {
    return true;
  }
  if (errno != ENOSYS) return false;
  return sys(SYS_mount, 0, at(path), 0, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV) == 0;
}

ORLA_CHILD_SIDE bool do_step(const Work& work, const PlainStep& step) {
  switch (step.kind) {
    case RootStep::Kind::kDirectory:
      return sys(SYS_mkdirat, AT_FDCWD, at(step.path), 0755) == 0 || errno == EEXIST;
    case RootStep::Kind::kEmptyFile:
      return write_whole(step.path, "", 0, O_CREAT, 0644);
    case RootStep::Kind::kSecret:
      return write_whole(step.path, step.from, step.from_bytes, O_CREAT | O_EXCL, 0400) &&
             (work.in_user_namespace || sys(SYS_fchownat, AT_FDCWD, at(step.path), work.user, work.user, 0) == 0);
    case RootStep::Kind::kSymlink:
      return sys(SYS_symlinkat, at(step.from), AT_FDCWD, at(step.path)) == 0;
    case RootStep::Kind::kBindReadOnly:
      return sys(SYS_mount, at(step.from), at(step.path), 0, MS_BIND | MS_REC) == 0 && read_only(step.path, true);
    case RootStep::Kind::kBindDevice:
      return sys(SYS_mount, at(step.from), at(step.path), 0, MS_BIND) == 0;
    case RootStep::Kind::kTmpfs:
      return sys(SYS_mount, at("tmpfs"), at(step.path), at("tmpfs"), MS_NOSUID | MS_NODEV, at(step.from)) == 0;
    case RootStep::Kind::kSeal:
      return read_only(step.path, false);
  }
  return false;
}

ORLA_CHILD_SIDE int namespace_of(Work& work, const char* path) {
  const long fd = sys(SYS_openat, AT_FDCWD, at(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) give_up(work, path);
  return static_cast<int>(fd);
}

ORLA_CHILD_SIDE int make(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  const long flags =
      CLONE_NEWNS | CLONE_NEWIPC | (work.own_network ? CLONE_NEWNET : 0) | (work.in_user_namespace ? CLONE_NEWUSER : 0);
  if (sys(SYS_unshare, flags) != 0) give_up(work, "cannot make namespaces");
  if (work.in_user_namespace && (!write_whole("/proc/self/setgroups", "deny", 4, 0, 0) ||
                                 !write_whole("/proc/self/gid_map", work.gid_map, length(work.gid_map), 0, 0) ||
                                 !write_whole("/proc/self/uid_map", work.uid_map, length(work.uid_map), 0, 0))) {
    give_up(work, "cannot map the user");
  }
  if (work.in_user_namespace) work.user_ns = namespace_of(work, "/proc/self/ns/user");
  work.mount_ns = namespace_of(work, "/proc/self/ns/mnt");
  work.ipc_ns = namespace_of(work, "/proc/self/ns/ipc");
  if (work.own_network) {
    work.net_ns = namespace_of(work, "/proc/self/ns/net");
    const long fd = sys(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    request.ifr_name[0] = 'l';
    request.ifr_name[1] = 'o';
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (fd < 0 || sys(SYS_ioctl, fd, SIOCSIFFLAGS, at(&request)) != 0) give_up(work, "cannot bring up its loopback");
    sys(SYS_close, fd);
  }
  sys(SYS_umask, 0);
  if (sys(SYS_mount, 0, at("/"), 0, MS_REC | MS_PRIVATE) != 0) give_up(work, "cannot make mounts private");
  if (sys(SYS_mount, at("tmpfs"), at("/tmp"), at("tmpfs"), MS_NOSUID | MS_NODEV, at(work.root_options)) != 0) {
    give_up(work, "cannot mount a root");
  }
  if (sys(SYS_mkdirat, AT_FDCWD, at("/tmp/.host"), 0700) != 0 ||
      sys(SYS_pivot_root, at("/tmp"), at("/tmp/.host")) != 0 || sys(SYS_chdir, at("/")) != 0) {
    give_up(work, "cannot change the root");
  }
  for (std::size_t i = 0; i < work.count; ++i) {
    if (!do_step(work, work.steps[i])) give_up(work, work.steps[i].path);
  }
  // A new /proc may be mounted in a user namespace only where one is seen already.
  if (work.in_user_namespace && sys(SYS_mount, at("/.host/proc"), at("/proc"), 0, MS_BIND | MS_REC) != 0) {
    give_up(work, "cannot show /proc");
  }
  if (sys(SYS_umount2, at("/.host"), MNT_DETACH) != 0) give_up(work, "cannot leave the machine's root");
  sys(SYS_unlinkat, AT_FDCWD, at("/.host"), AT_REMOVEDIR);
  if (work.seal_root && !read_only("/", false)) give_up(work, "cannot make the root read-only");
  while (true) sys(SYS_exit_group, 0);
}

struct SocketWork {
  int user_ns, net_ns;
  int socket = -1;
  int error = 0;
};
ORLA_CHILD_SIDE int make_socket(void* argument) {
  SocketWork& work = *static_cast<SocketWork*>(argument);
  if ((work.user_ns >= 0 && sys(SYS_setns, work.user_ns, CLONE_NEWUSER) != 0) ||
      sys(SYS_setns, work.net_ns, CLONE_NEWNET) != 0) {
    work.error = errno;
  } else {
    work.socket = static_cast<int>(sys(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    work.error = errno;
  }
  while (true) sys(SYS_exit_group, 0);
}

}  // namespace

absl::StatusOr<Namespaces> make_namespaces(const NamespacesRequest& request) {
  std::vector<PlainStep> steps;
  for (const RootStep& step : *request.steps) {
    steps.push_back({step.kind, step.path.c_str(), step.from.c_str(), step.from.size()});
  }
  const std::string uid_map = fmt::format("{0} {0} 1", ::geteuid());
  const std::string gid_map = fmt::format("{0} {0} 1", ::getegid());
  const bool in_user_namespace = request.owner == NamespacesRequest::Owner::kUserNamespace;
  const std::string options = fmt::format("mode=0755,size={},nr_inodes=65536", kRootBytes) +
                              (in_user_namespace ? "" : fmt::format(",uid={0},gid={0}", request.user));
  Work work{steps.data(),
            steps.size(),
            in_user_namespace,
            request.network == NamespacesRequest::Network::kNone,
            request.root == NamespacesRequest::Root::kReadOnly,
            static_cast<long>(request.user),
            uid_map.c_str(),
            gid_map.c_str(),
            options.c_str()};
  const int code = run_apart(make, &work);
  Namespaces made{base::FileDescriptor(work.user_ns), base::FileDescriptor(work.mount_ns),
                  base::FileDescriptor(work.ipc_ns), base::FileDescriptor(work.net_ns)};
  if (work.failed != nullptr) {
    return base::errno_status(work.error, fmt::format("cannot isolate functions: {}", work.failed));
  }
  if (code != 0) return absl::InternalError("cannot isolate functions: the child that makes namespaces was killed");
  return made;
}

absl::StatusOr<base::FileDescriptor> socket_inside(int user, int network) {
  SocketWork work{user, network};
  (void)run_apart(make_socket, &work);
  if (work.socket < 0) return base::errno_status(work.error, "cannot make a socket in the function's network");
  return base::FileDescriptor(work.socket);
}

}  // namespace orla::function
