#include "function/process_spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <future>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/thread_loop.h"

// The child's side runs while the parent's thread stands still, on memory that both share: no sanitizer may look.
#define ORLA_CHILD_SIDE __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

namespace orla::function {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kStackBytes = 64 * 1024;
// A nice level: a node's own threads do little, and many wait for them.
constexpr int kNiceOfChildren = 10;
constexpr char kNiceOfChildrenText[] = "10";

// Everything the child needs, as plain pointers, and what it says back.
struct Plan {
  const char* program;
  char* const* argv;
  char* const* environment;
  const char* directory;
  int descriptors[3];
  const Confinement* confinement;
  const int* cgroups;
  std::size_t cgroup_count;
  sock_fprog filter;
  const char* uid_map;  // "N N 1"
  char* second_stack;   // its top

  const char* failed = nullptr;  // the step
  int error = 0;
  pid_t inner = 0;  // of the child's child
};

// Of kernels' struct sigaction, all zero: SIG_DFL.
struct DefaultAction {
  char zeros[64];
};

ORLA_CHILD_SIDE long sys(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e);
}
ORLA_CHILD_SIDE long address(const void* p) { return reinterpret_cast<long>(p); }

[[noreturn]] ORLA_CHILD_SIDE void leave(int code) {
  while (true) sys(SYS_exit_group, code);
}
[[noreturn]] ORLA_CHILD_SIDE void fail(Plan& plan, const char* step) {
  plan.error = errno;
  plan.failed = step;
  leave(127);
}

ORLA_CHILD_SIDE std::size_t length_of(const char* text) {
  std::size_t n = 0;
  while (text[n] != 0) ++n;
  return n;
}

ORLA_CHILD_SIDE bool write_to(const char* path, const char* text) {
  const long fd = sys(SYS_openat, AT_FDCWD, address(path), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const long written = sys(SYS_write, fd, address(text), static_cast<long>(length_of(text)));
  const int error = errno;
  sys(SYS_close, fd);
  errno = error;
  return written >= 0;
}

ORLA_CHILD_SIDE void limit(Plan& plan, int resource, std::uint64_t most) {
  rlimit now{};
  sys(SYS_prlimit64, 0, resource, 0, address(&now));
  rlimit wanted{std::min<rlim_t>(most, now.rlim_max), std::min<rlim_t>(most, now.rlim_max)};
  if (sys(SYS_prlimit64, 0, resource, address(&wanted), 0) != 0) fail(plan, "cannot set its limits");
}

ORLA_CHILD_SIDE void enter_namespaces(Plan& plan) {
  const Confinement& c = *plan.confinement;
  for (std::size_t i = 0; i < plan.cgroup_count; ++i) {
    if (sys(SYS_write, plan.cgroups[i], address("0"), 1) != 1) fail(plan, "cannot join its cgroup");
  }
  if (c.user_ns >= 0 && sys(SYS_setns, c.user_ns, CLONE_NEWUSER) != 0) fail(plan, "cannot enter its user namespace");
  if (c.ipc_ns >= 0 && sys(SYS_setns, c.ipc_ns, CLONE_NEWIPC) != 0) fail(plan, "cannot enter its ipc namespace");
  if (c.net_ns >= 0 && sys(SYS_setns, c.net_ns, CLONE_NEWNET) != 0) fail(plan, "cannot enter its network namespace");
  if (c.mount_ns >= 0 && sys(SYS_setns, c.mount_ns, CLONE_NEWNS) != 0) fail(plan, "cannot enter its mount namespace");
}

ORLA_CHILD_SIDE void drop_privileges(Plan& plan) {
  const Confinement& c = *plan.confinement;
  if (c.user.has_value()) {
    const long id = static_cast<long>(*c.user);
    if (sys(SYS_setgroups, 0, 0) != 0 || sys(SYS_setresgid, id, id, id) != 0 || sys(SYS_setresuid, id, id, id) != 0) {
      fail(plan, "cannot change to its user");
    }
    // A change of user makes the memory, which is still the parent's too, not dumpable; spawn() puts it back.
    sys(SYS_prctl, PR_SET_DUMPABLE, 1);
  }
  if (c.fresh_user == Confinement::UserNamespace::kFresh) {
    if (sys(SYS_unshare, CLONE_NEWUSER) != 0) fail(plan, "cannot make its user namespace");
    if (!write_to("/proc/self/setgroups", "deny") || !write_to("/proc/self/gid_map", plan.uid_map) ||
        !write_to("/proc/self/uid_map", plan.uid_map)) {
      fail(plan, "cannot map its user");
    }
  }
  if (c.processes.has_value()) limit(plan, RLIMIT_NPROC, *c.processes);
  if (c.open_files.has_value()) limit(plan, RLIMIT_NOFILE, *c.open_files);
  limit(plan, RLIMIT_CORE, 0);
  if (c.privileges == Confinement::Privileges::kDropped) {
    sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
    for (long capability = 0; capability < 64; ++capability) {
      if (sys(SYS_prctl, PR_CAPBSET_DROP, capability) != 0)
        break;  // no more of them, or no right to: no_new_privs then
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (sys(SYS_capset, address(&header), address(none)) != 0) fail(plan, "cannot drop its capabilities");
    if (sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1) != 0) fail(plan, "cannot set no_new_privs");
  }
}

// The last part: becomes the program.
ORLA_CHILD_SIDE int become(void* argument) {
  Plan& plan = *static_cast<Plan*>(argument);
  const Confinement& c = *plan.confinement;
  if (c.pids == Confinement::Pids::kOwnNamespace && c.mount_ns >= 0) {
    if (sys(SYS_unshare, CLONE_NEWNS) != 0) fail(plan, "cannot have mounts of its own");
    if (sys(SYS_mount, address("proc"), address("/proc"), address("proc"), MS_NOSUID | MS_NODEV | MS_NOEXEC) != 0) {
      fail(plan, "cannot mount its /proc");
    }
  }
  if (sys(SYS_setsid) < 0) fail(plan, "cannot have a session of its own");
  // What it may not be told does not hinder it. A session is scheduled as a group where the kernel does that.
  if (20 - sys(SYS_getpriority, PRIO_PROCESS, 0) < kNiceOfChildren)
    sys(SYS_setpriority, PRIO_PROCESS, 0, kNiceOfChildren);
  write_to("/proc/self/autogroup", kNiceOfChildrenText);
  for (int i = 0; i < 3; ++i) {
    if (sys(SYS_dup3, plan.descriptors[i], i, 0) < 0) fail(plan, "cannot take its standard streams");
  }
  sys(SYS_close_range, 3, ~0U, 0);
  const DefaultAction standard{};
  for (long signal = 1; signal <= 64; ++signal) sys(SYS_rt_sigaction, signal, address(&standard), 0, 8);
  drop_privileges(plan);
  if (sys(SYS_chdir, address(plan.directory)) != 0) fail(plan, "cannot enter its directory");
  sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);  // after what changes credentials: that clears it
  if (plan.filter.len > 0 && sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, address(&plan.filter)) != 0) {
    fail(plan, "cannot set its system call filter");
  }
  const std::uint64_t no_signals = 0;
  sys(SYS_rt_sigprocmask, SIG_SETMASK, address(&no_signals), 0, 8);
  sys(SYS_execve, address(plan.program), address(plan.argv), address(plan.environment));
  fail(plan, "cannot run it");
}

ORLA_CHILD_SIDE int enter_and_become(void* argument) {
  enter_namespaces(*static_cast<Plan*>(argument));
  return become(argument);
}

// Unprivileged: only inside the user namespace may a pid namespace be made, and it takes in children only. The child's
// child is given to our parent.
ORLA_CHILD_SIDE int enter_and_clone(void* argument) {
  Plan& plan = *static_cast<Plan*>(argument);
  enter_namespaces(plan);
  if (plan.confinement->pids == Confinement::Pids::kOwnNamespace && sys(SYS_unshare, CLONE_NEWPID) != 0) {
    fail(plan, "cannot make its pid namespace");
  }
  const int pid = ::clone(become, plan.second_stack, CLONE_VM | CLONE_VFORK | CLONE_PARENT, argument);
  if (pid < 0) fail(plan, "cannot clone");
  plan.inner = pid;
  leave(0);
}

struct Stacks {
  Stacks()
      : memory(
            ::mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {}
  ~Stacks() {
    if (memory != MAP_FAILED) ::munmap(memory, 2 * kStackBytes);
  }
  char* top(int number) const { return static_cast<char*>(memory) + static_cast<std::size_t>(number) * kStackBytes; }
  void* const memory;
};

// No signal handler may run in a child on our memory.
struct SignalsBlocked {
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before{};
};

void reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (const std::string& s : strings) all.push_back(const_cast<char*>(s.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

int run_apart(int (*body)(void*), void* argument) {
  const Stacks stacks;
  if (stacks.memory == MAP_FAILED) return -1;
  pid_t pid = -1;
  int status = 0;
  {
    const SignalsBlocked blocked;
    pid = ::clone(body, stacks.top(1), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, argument);
  }
  if (pid < 0) return -1;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

absl::StatusOr<std::unique_ptr<Child>> spawn(const SpawnSpec& spec, const Confinement& confinement) {
  const Stacks stacks;
  if (stacks.memory == MAP_FAILED) return base::errno_status(errno, "cannot start a process");
  const std::vector<char*> argv = pointers(spec.argv);
  const std::vector<char*> environment = pointers(spec.environment);
  const uid_t user = confinement.user.value_or(::geteuid());
  const std::string uid_map = fmt::format("{} {} 1", user, user);
  Plan plan{};
  plan.program = spec.program.c_str();
  plan.argv = argv.data();
  plan.environment = environment.data();
  plan.directory = spec.directory.empty() ? "/" : spec.directory.c_str();
  plan.confinement = &confinement;
  plan.cgroups = confinement.cgroup_procs.data();
  plan.cgroup_count = confinement.cgroup_procs.size();
  plan.filter.len = static_cast<unsigned short>(confinement.filter.size());
  plan.filter.filter = const_cast<sock_filter*>(confinement.filter.data());
  plan.uid_map = uid_map.c_str();
  plan.second_stack = stacks.top(2);
  // Above 2, so that taking one as a standard stream does not overwrite another.
  std::array<base::FileDescriptor, 3> moved;
  const int given[3] = {spec.input, spec.output, spec.errors};
  for (std::size_t i = 0; i < 3; ++i) {
    plan.descriptors[i] = given[i];
    if (given[i] > 2) continue;
    moved[i] = base::FileDescriptor(::fcntl(given[i], F_DUPFD_CLOEXEC, 3));
    if (!moved[i].valid()) return base::errno_status(errno, "cannot duplicate a descriptor");
    plan.descriptors[i] = moved[i].get();
  }

  const bool two_steps = confinement.user_ns >= 0;
  // Whether it is dumpable is a property of the memory, so of this process and of every child that is not its program
  // yet: only one of them may change it at a time.
  static std::mutex changing_user;
  std::unique_lock<std::mutex> lock(changing_user, std::defer_lock);
  if (confinement.user.has_value()) lock.lock();
  const int dumpable = confinement.user.has_value() ? ::prctl(PR_GET_DUMPABLE) : -1;
  pid_t pid = -1;
  int error = 0;
  {
    const SignalsBlocked blocked;
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    if (!two_steps && confinement.pids == Confinement::Pids::kOwnNamespace) flags |= CLONE_NEWPID;
    pid = ::clone(two_steps ? enter_and_clone : enter_and_become, stacks.top(1), flags, &plan);
    error = errno;
  }
  if (dumpable == 0 || dumpable == 1) ::prctl(PR_SET_DUMPABLE, dumpable);
  if (lock.owns_lock()) lock.unlock();
  if (pid < 0) return base::errno_status(error, fmt::format("cannot start \"{}\"", spec.program));
  if (two_steps) reap(pid);
  const pid_t program = two_steps ? plan.inner : pid;
  if (plan.failed != nullptr || program == 0) {
    if (program != 0) reap(program);
    return base::errno_status(plan.error, fmt::format("cannot start \"{}\": {}", spec.program,
                                                      plan.failed == nullptr ? "it was killed" : plan.failed));
  }
  base::FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, program, 0)));
  if (!pidfd.valid()) {
    const int why = errno;
    ::kill(program, SIGKILL);
    reap(program);
    return base::errno_status(why, "cannot watch a child (pidfd_open, Linux 5.3)");
  }
  return std::make_unique<Child>(program, std::move(pidfd), confinement.pids);
}

// --- Child -----------------------------------------------------------------------------------------------------------

namespace {

// Whether `signal` is in the mask that /proc/PID/status shows under `name` ("SigCgt:").
bool in_signal_mask(std::string_view status, std::string_view name, int signal) {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) return false;
  std::string_view digits = status.substr(at + name.size());
  digits.remove_prefix(std::min(digits.find_first_not_of(" \t"), digits.size()));
  std::uint64_t mask = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

}  // namespace

Child::Child(pid_t pid, base::FileDescriptor pidfd, Confinement::Pids pids)
    : pid_(pid), pidfd_(std::move(pidfd)), pids_(pids) {}

Child::~Child() { finish(); }

void Child::terminate() {
  if (status_.has_value()) return;
  if (pids_ == Confinement::Pids::kOwnNamespace) {
    const absl::StatusOr<std::string> status = base::read_file(fmt::format("/proc/{}/status", pid_), 64 * 1024);
    if (status.ok() && !in_signal_mask(*status, "SigCgt:", SIGTERM) && !in_signal_mask(*status, "SigIgn:", SIGTERM)) {
      return kill();
    }
  }
  ::kill(-pid_, SIGTERM);
}

void Child::kill() {
  if (status_.has_value()) return;
  ::kill(-pid_, SIGKILL);  // it leads its session, so this number is its group's until it is reaped
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

bool Child::ended() const { return wait(nanoseconds(0)); }

bool Child::wait(nanoseconds timeout) const {
  const base::SystemClock clock;
  const base::SteadyTime deadline = clock.steady_now() + std::min<nanoseconds>(timeout, std::chrono::hours(1));
  while (true) {
    const nanoseconds left = std::max(nanoseconds(0), nanoseconds(deadline - clock.steady_now()));
    pollfd event{pidfd_.get(), POLLIN, 0};
    const int n = ::poll(&event, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    if (n > 0) return true;
    if (n == 0 && left == nanoseconds(0)) return false;
  }
}

base::ExitStatus Child::finish() {
  if (status_.has_value()) return *status_;
  if (!ended()) kill();
  // Not reaped yet while what is left of its group is killed, so that the number cannot be another's.
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  rusage used{};
  pid_t got = 0;
  do {
    got = ::wait4(pid_, &status, 0, &used);
  } while (got < 0 && errno == EINTR);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  cpu_seconds_ = seconds(used.ru_utime) + seconds(used.ru_stime);
  status_ = WIFSIGNALED(status) ? base::ExitStatus{0, WTERMSIG(status)} : base::ExitStatus{WEXITSTATUS(status), 0};
  return *status_;
}

base::ExitStatus Child::end(nanoseconds grace) {
  if (!ended()) {
    terminate();
    (void)wait(grace);
  }
  return finish();
}

ProcessUsage usage_of(pid_t pid) {
  ProcessUsage usage;
  const absl::StatusOr<std::string> stat = base::read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat.ok()) return usage;
  // After the name, which may hold anything but ends with the last ')': state, ... utime is the 12th, stime the 13th,
  // rss (pages) the 22nd.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return usage;
  std::string_view rest = std::string_view(*stat).substr(name_end + 1);
  std::uint64_t ticks = 0;
  for (int field = 1; field <= 22 && !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    std::uint64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (field == 12 || field == 13) ticks += number;
    if (field == 22) usage.memory_bytes = number * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    rest.remove_prefix(word.size());
  }
  usage.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return usage;
}

// --- SpawnThreads ----------------------------------------------------------------------------------------------------

class SpawnThreads::Impl {
 public:
  absl::StatusOr<std::unique_ptr<Child>> spawn(const SpawnSpec& spec, const Confinement& confinement) {
    std::promise<absl::StatusOr<std::unique_ptr<Child>>> result;
    loops_[next_.fetch_add(1, std::memory_order_relaxed) % loops_.size()].post(
        [&] { result.set_value(function::spawn(spec, confinement)); });
    return result.get_future().get();
  }

 private:
  std::atomic<unsigned> next_{0};
  std::array<base::ThreadLoop, 2> loops_{base::ThreadLoop("spawn-1"), base::ThreadLoop("spawn-2")};
};

SpawnThreads::SpawnThreads() : impl_(std::make_unique<Impl>()) {}
SpawnThreads::~SpawnThreads() = default;
absl::StatusOr<std::unique_ptr<Child>> SpawnThreads::spawn(const SpawnSpec& spec, const Confinement& confinement) {
  return impl_->spawn(spec, confinement);
}

}  // namespace orla::function
