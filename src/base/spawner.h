// The seam to other processes of this machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::base {

// Where a child's standard output or error goes.
struct Output {
  enum class Kind : std::uint8_t {
    kInherited,  // where this process's goes
    kDiscarded,
    kFile,  // appended to `path`
    kPipe,  // read with ChildProcess::read_line()
  };
  Kind kind = Kind::kInherited;
  std::string path;

  static Output inherited() { return {}; }
  static Output discarded() { return {Kind::kDiscarded, {}}; }
  static Output file(std::string path) { return {Kind::kFile, std::move(path)}; }
  static Output pipe() { return {Kind::kPipe, {}}; }
};

// What reaches the child when the terminal is asked to interrupt (Ctrl-C).
enum class ProcessGroup : std::uint8_t {
  kShared,  // the child gets the terminal's signals as well
  kOwn,     // only what it is sent by pid
};

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is a path, or a name that is looked up in $PATH
  std::vector<std::pair<std::string, std::string>> environment;  // set in addition to this process's own
  std::string directory;                                         // where it runs; empty = here
  Output output;                                                 // standard output
  Output errors;                                                 // standard error
  ProcessGroup group = ProcessGroup::kShared;
};

// How a process ended.
struct ExitStatus {
  int code = 0;    // of exit(), when it was not a signal
  int signal = 0;  // 0 = none
  bool success() const { return code == 0 && signal == 0; }
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};
// "exit code 3", "signal 9 (Killed)"
std::string to_string(const ExitStatus& status);

// One child. One owner thread at a time. At the end of its life a child that still runs is killed; none is left as a
// zombie.
class ChildProcess {
 public:
  enum class Stream : std::uint8_t { kOutput, kErrors };

  virtual ~ChildProcess() = default;
  virtual int pid() const = 0;
  // How it ended; nothing while it runs.
  virtual std::optional<ExitStatus> poll() = 0;
  // Waits for its end, at most `timeout`; nothing when it still runs then.
  virtual std::optional<ExitStatus> wait(std::chrono::nanoseconds timeout) = 0;
  // Nothing happens when it has ended.
  virtual void terminate() = 0;              // SIGTERM
  virtual void kill() = 0;                   // SIGKILL
  virtual void send_signal(int signal) = 0;  // SIGSTOP, SIGCONT, ...
  // The next line without its end, of an output that is a pipe; the last one may lack a line end. Errors: the timeout
  // (DeadlineExceeded), the end of the stream (OutOfRange), a line longer than kMaxLineBytes (ResourceExhausted).
  virtual absl::StatusOr<std::string> read_line(Stream stream, std::chrono::nanoseconds timeout) = 0;
};

inline constexpr std::size_t kMaxLineBytes = 1 << 20;

// Thread-safe. Outlives its children.
class Spawner {
 public:
  virtual ~Spawner() = default;
  // A program that cannot be run is an error here, not a child that ends at once.
  virtual absl::StatusOr<std::unique_ptr<ChildProcess>> start(const ProcessSpec& spec) = 0;
};

// The machine's processes. A child gets SIGTERM when this process ends, however it ends (prctl(2), PR_SET_PDEATHSIG);
// it has no descriptors of ours but 0 (/dev/null), 1 and 2, no blocked and no ignored signals.
class SystemSpawner final : public Spawner {
 public:
  SystemSpawner();
  ~SystemSpawner() override;
  absl::StatusOr<std::unique_ptr<ChildProcess>> start(const ProcessSpec& spec) override;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

// Of a process that is not a child of ours, by pid. Runs: it exists and may be sent signals.
bool process_runs(std::int64_t pid);
void terminate_process(std::int64_t pid);  // SIGTERM; nothing happens when there is none

// A program run to its end.
struct Finished {
  ExitStatus status;
  std::string output;
  std::string errors;
};
// Runs `spec` (both outputs become pipes). At the timeout it is killed and the error (DeadlineExceeded) shows the end
// of what it wrote. More than `max_bytes` of output or errors is an error as well.
absl::StatusOr<Finished> run_to_end(const ProcessSpec& spec, std::chrono::nanoseconds timeout,
                                    std::size_t max_bytes = 64 << 20);

}  // namespace orla::base
