// Starts a program as a child of this process, confined; and ends it with everything it started.
//
// The child shares this process's memory until it is its program (as with vfork(2)), so that a start costs the same
// however big this process is, and runs only raw system calls on a stack of its own.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/spawner.h"

namespace orla::function {

// What a child does to itself before it becomes its program. Descriptors are borrowed; -1: leave that alone.
struct Confinement {
  // Namespaces to enter. With user_ns the others belong to it, and a child of the child becomes the program.
  int user_ns = -1;
  int mount_ns = -1;
  int ipc_ns = -1;
  int net_ns = -1;
  enum class Pids : std::uint8_t { kShared, kOwnNamespace } pids = Pids::kShared;  // own: a /proc of its own with it
  std::optional<uid_t> user;  // also the group; supplementary groups go
  enum class UserNamespace : std::uint8_t {
    kAsIs,
    kFresh
  } fresh_user = UserNamespace::kAsIs;  // counts processes apart
  std::vector<int> cgroup_procs;        // of the cgroups to join
  enum class Privileges : std::uint8_t { kKept, kDropped } privileges = Privileges::kDropped;
  std::vector<sock_filter> filter;         // seccomp; empty: none
  std::optional<std::uint64_t> processes;  // RLIMIT_NPROC
  std::optional<std::uint64_t> open_files;
};

struct SpawnSpec {
  std::string program;  // a path
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string directory;                 // empty: "/"
  int input = -1;                        // what become 0, 1 and 2
  int output = -1;
  int errors = -1;
};

// A child and all that it started: its pid namespace where it has one, else its session's process group. One owner
// thread at a time.
class Child {
 public:
  Child(pid_t pid, base::FileDescriptor pidfd, Confinement::Pids pids);
  // Kills and reaps what still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int descriptor() const { return pidfd_.get(); }  // readable once it has ended

  // SIGTERM to all of it. The first process of a pid namespace gets only signals that it handles, so one that neither
  // handles nor ignores SIGTERM is killed, as SIGTERM would have.
  void terminate();
  void kill();
  // Whether the program has ended; it is not reaped by that. This and wait() may run beside anything else.
  bool ended() const;
  // At most `timeout`; whether it has ended.
  bool wait(std::chrono::nanoseconds timeout) const;
  // Kills all of it and reaps. Returns how the program ended.
  base::ExitStatus finish();
  // SIGTERM, up to `grace`, then finish().
  base::ExitStatus end(std::chrono::nanoseconds grace);
  // Of it and its reaped children, once finished.
  double cpu_seconds() const { return cpu_seconds_; }

 private:
  const pid_t pid_;
  const base::FileDescriptor pidfd_;
  const Confinement::Pids pids_;
  std::optional<base::ExitStatus> status_;
  double cpu_seconds_ = 0;
};

// What a running process has used, from /proc.
struct ProcessUsage {
  double cpu_seconds = 0;
  std::uint64_t memory_bytes = 0;
};
ProcessUsage usage_of(pid_t pid);

// A program that cannot be run is an error here, not a child that ends at once.
absl::StatusOr<std::unique_ptr<Child>> spawn(const SpawnSpec& spec, const Confinement& confinement);

// Runs `body` in a child of this process that shares its memory and descriptors, and waits for its end: for entering
// namespaces. `body` may only use raw system calls; it must not return a value other than an exit code.
int run_apart(int (*body)(void*), void* argument);

// A child is killed when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG), so that nothing survives this
// process. These threads live as long as children may. Thread-safe.
class SpawnThreads {
 public:
  SpawnThreads();
  ~SpawnThreads();
  absl::StatusOr<std::unique_ptr<Child>> spawn(const SpawnSpec& spec, const Confinement& confinement);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orla::function
