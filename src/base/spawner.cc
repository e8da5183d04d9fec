#include "base/spawner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <future>
#include <thread>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/thread_loop.h"

extern char** environ;

namespace orla::base {

namespace {

using std::chrono::nanoseconds;

// Milliseconds for poll(2), rounded up so that no wait ends early.
int poll_ms(nanoseconds left) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

SteadyTime deadline_after(SteadyTime now, nanoseconds timeout) {
  return timeout > SteadyTime::max() - now ? SteadyTime::max() : now + timeout;
}

absl::StatusOr<std::array<FileDescriptor, 2>> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno_status(errno, "cannot make a pipe");
  return std::array<FileDescriptor, 2>{FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

// This process's end of an output, and what the child gets as its own.
struct Wiring {
  FileDescriptor ours;    // the pipe's reading end
  FileDescriptor theirs;  // not valid: inherited
};

absl::StatusOr<Wiring> wire(const Output& output) {
  Wiring wiring;
  switch (output.kind) {
    case Output::Kind::kInherited:
      break;
    case Output::Kind::kDiscarded:
      wiring.theirs = FileDescriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
      break;
    case Output::Kind::kFile:
      wiring.theirs = FileDescriptor(::open(output.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      if (!wiring.theirs.valid()) return errno_status(errno, fmt::format("cannot open \"{}\"", output.path));
      break;
    case Output::Kind::kPipe: {
      absl::StatusOr<std::array<FileDescriptor, 2>> pipe = make_pipe();
      if (!pipe.ok()) return pipe.status();
      wiring.ours = std::move((*pipe)[0]);
      wiring.theirs = std::move((*pipe)[1]);
      ::fcntl(wiring.ours.get(), F_SETFL, O_NONBLOCK);
      break;
    }
  }
  return wiring;
}

// This process's environment with the additions, as "NAME=value".
std::vector<std::string> merged_environment(const ProcessSpec& spec) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(spec.environment.begin(), spec.environment.end(),
                                      [&](const auto& addition) { return addition.first == name; });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : spec.environment) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& s : strings) all.push_back(s.data());
  all.push_back(nullptr);
  return all;
}

// What a fork failed at, from the child through the pipe that exec closes.
struct ExecFailure {
  enum Step : int { kDirectory, kExec } step;
  int error;
};

// The child's side of fork: only async-signal-safe calls, everything else has been prepared.
[[noreturn]] void become(const ProcessSpec& spec, char* const* argv, char* const* environment, int null_fd,
                         int output_fd, int errors_fd, int report_fd, pid_t parent) {
  const auto fail = [&](ExecFailure::Step step) {
    const ExecFailure failure{step, errno};
    [[maybe_unused]] const ssize_t n = ::write(report_fd, &failure, sizeof failure);
    ::_exit(127);
  };
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it went before the line above
  if (spec.group == ProcessGroup::kOwn) ::setpgid(0, 0);
  ::dup2(null_fd, 0);
  if (output_fd >= 0) ::dup2(output_fd, 1);
  if (errors_fd >= 0) ::dup2(errors_fd, 2);
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!spec.directory.empty() && ::chdir(spec.directory.c_str()) != 0) fail(ExecFailure::kDirectory);
  ::execvpe(argv[0], argv, environment);
  fail(ExecFailure::kExec);
  ::_exit(127);
}

class SystemChild final : public ChildProcess {
 public:
  SystemChild(pid_t pid, FileDescriptor output, FileDescriptor errors)
      : pid_(pid),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        streams_{Source{std::move(output), {}}, Source{std::move(errors), {}}} {}

  ~SystemChild() override {
    if (poll().has_value()) return;
    kill();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  int pid() const override { return pid_; }

  std::optional<ExitStatus> poll() override {
    if (ended_.has_value()) return ended_;
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      ended_ = WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
    }
    return ended_;
  }

  std::optional<ExitStatus> wait(nanoseconds timeout) override {
    const SteadyTime deadline = deadline_after(clock_.steady_now(), timeout);
    while (!poll().has_value()) {
      const nanoseconds left = deadline - clock_.steady_now();
      if (left <= nanoseconds(0)) return std::nullopt;
      if (pidfd_.valid()) {
        pollfd event{pidfd_.get(), POLLIN, 0};
        ::poll(&event, 1, poll_ms(left));
      } else {  // a kernel without pidfd_open
        std::this_thread::sleep_for(std::min<nanoseconds>(left, std::chrono::milliseconds(5)));
      }
    }
    return ended_;
  }

  void terminate() override { send_signal(SIGTERM); }
  void kill() override { send_signal(SIGKILL); }
  void send_signal(int signal) override {
    if (!poll().has_value()) ::kill(pid_, signal);  // not reaped, so the number is still this child's
  }

  absl::StatusOr<std::string> read_line(Stream stream, nanoseconds timeout) override {
    Source& source = streams_[stream == Stream::kErrors ? 1 : 0];
    const SteadyTime deadline = deadline_after(clock_.steady_now(), timeout);
    while (true) {
      const std::size_t end = source.buffer.find('\n');
      if (end != std::string::npos) {
        std::string line = source.buffer.substr(0, end);
        source.buffer.erase(0, end + 1);
        return line;
      }
      if (source.buffer.size() > kMaxLineBytes) {
        return absl::ResourceExhaustedError(fmt::format("a line of more than {} bytes", kMaxLineBytes));
      }
      if (!source.fd.valid()) {
        if (!source.buffer.empty()) return std::exchange(source.buffer, {});
        return absl::OutOfRangeError("the end of the stream");
      }
      const nanoseconds left = deadline - clock_.steady_now();
      pollfd event{source.fd.get(), POLLIN, 0};
      if (::poll(&event, 1, poll_ms(left)) == 0 && left <= nanoseconds(0)) {
        return absl::DeadlineExceededError(fmt::format("process {} wrote no line within {} ms", pid_,
                                                       std::chrono::ceil<std::chrono::milliseconds>(timeout).count()));
      }
      char block[4096];
      const ssize_t n = ::read(source.fd.get(), block, sizeof block);
      if (n > 0) source.buffer.append(block, static_cast<std::size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) source.fd.reset();
    }
  }

 private:
  struct Source {
    FileDescriptor fd;
    std::string buffer;
  };
  const SystemClock clock_;
  const pid_t pid_;
  const FileDescriptor pidfd_;  // readable once the child has ended
  std::array<Source, 2> streams_;
  std::optional<ExitStatus> ended_;  // set: the child has been reaped
};

// What is forked, and this process's ends of its pipes.
struct Forked {
  pid_t pid = 0;
  FileDescriptor output;
  FileDescriptor errors;
};

absl::StatusOr<Forked> fork_and_exec(const ProcessSpec& spec) {
  if (spec.argv.empty()) return absl::InvalidArgumentError("a process needs at least its program");
  absl::StatusOr<Wiring> output = wire(spec.output);
  if (!output.ok()) return output.status();
  absl::StatusOr<Wiring> errors = wire(spec.errors);
  if (!errors.ok()) return errors.status();
  absl::StatusOr<std::array<FileDescriptor, 2>> report = make_pipe();
  if (!report.ok()) return report.status();
  const FileDescriptor null_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> arguments = spec.argv;
  std::vector<std::string> environment = merged_environment(spec);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_status(errno, fmt::format("cannot start \"{}\"", spec.argv[0]));
  if (pid == 0) {
    become(spec, argv.data(), envp.data(), null_fd.get(), output->theirs.get(), errors->theirs.get(),
           (*report)[1].get(), parent);
  }
  (*report)[1].reset();
  ExecFailure failure{};
  ssize_t n = 0;
  do {
    n = ::read((*report)[0].get(), &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failure)) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return failure.step == ExecFailure::kDirectory
               ? errno_status(failure.error, fmt::format("cannot run \"{}\" in \"{}\"", spec.argv[0], spec.directory))
               : errno_status(failure.error, fmt::format("cannot run \"{}\"", spec.argv[0]));
  }
  return Forked{pid, std::move(output->ours), std::move(errors->ours)};
}

}  // namespace

std::string to_string(const ExitStatus& status) {
  if (status.signal == 0) return fmt::format("exit code {}", status.code);
  const char* name = ::sigdescr_np(status.signal);
  return fmt::format("signal {} ({})", status.signal, name == nullptr ? "unknown" : name);
}

// PR_SET_PDEATHSIG counts the end of the *thread* that forked as the parent's death, so one thread that lives as long
// as the spawner does all forks.
class SystemSpawner::Thread {
 public:
  absl::StatusOr<Forked> fork_there(const ProcessSpec& spec) {
    std::promise<absl::StatusOr<Forked>> result;
    loop_.post([&] { result.set_value(fork_and_exec(spec)); });
    return result.get_future().get();
  }

 private:
  ThreadLoop loop_{"spawner"};
};

SystemSpawner::SystemSpawner() : thread_(std::make_unique<Thread>()) {}
SystemSpawner::~SystemSpawner() = default;

absl::StatusOr<std::unique_ptr<ChildProcess>> SystemSpawner::start(const ProcessSpec& spec) {
  absl::StatusOr<Forked> forked = thread_->fork_there(spec);
  if (!forked.ok()) return forked.status();
  return std::make_unique<SystemChild>(forked->pid, std::move(forked->output), std::move(forked->errors));
}

bool process_runs(std::int64_t pid) { return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) == 0; }

void terminate_process(std::int64_t pid) {
  if (pid > 0) (void)::kill(static_cast<pid_t>(pid), SIGTERM);
}

absl::StatusOr<Finished> run_to_end(const ProcessSpec& spec, nanoseconds timeout, std::size_t max_bytes) {
  const SystemClock clock;
  const SteadyTime deadline = deadline_after(clock.steady_now(), timeout);
  ProcessSpec piped = spec;
  piped.output = Output::pipe();
  piped.errors = Output::pipe();
  absl::StatusOr<Forked> forked = fork_and_exec(piped);
  if (!forked.ok()) return forked.status();
  SystemChild child(forked->pid, FileDescriptor(), FileDescriptor());
  Finished finished;
  struct Source {
    FileDescriptor fd;
    std::string& text;
  };
  std::array<Source, 2> sources{Source{std::move(forked->output), finished.output},
                                Source{std::move(forked->errors), finished.errors}};
  while (sources[0].fd.valid() || sources[1].fd.valid()) {
    const nanoseconds left = deadline - clock.steady_now();
    if (left <= nanoseconds(0)) break;
    std::array<pollfd, 2> events{};
    for (std::size_t i = 0; i < 2; ++i) {
      events[i] = pollfd{sources[i].fd.valid() ? sources[i].fd.get() : -1, POLLIN, 0};
    }
    ::poll(events.data(), events.size(), poll_ms(left));
    for (Source& source : sources) {
      if (!source.fd.valid()) continue;
      char block[1 << 16];
      const ssize_t n = ::read(source.fd.get(), block, sizeof block);
      if (n > 0) source.text.append(block, static_cast<std::size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) source.fd.reset();
      if (source.text.size() > max_bytes) {
        return absl::ResourceExhaustedError(fmt::format("\"{}\" wrote more than {} bytes", spec.argv[0], max_bytes));
      }
    }
  }
  const std::optional<ExitStatus> status = child.wait(std::max(nanoseconds(0), deadline - clock.steady_now()));
  if (!status.has_value()) {
    const auto tail = [](const std::string& text) {
      return text.substr(text.size() - std::min<std::size_t>(text.size(), 2000));
    };
    return absl::DeadlineExceededError(fmt::format(
        "\"{}\" still ran after {} ms and was killed; its last output: {}\nits last errors: {}", spec.argv[0],
        std::chrono::ceil<std::chrono::milliseconds>(timeout).count(), tail(finished.output), tail(finished.errors)));
  }
  finished.status = *status;
  return finished;
}

}  // namespace orla::base
