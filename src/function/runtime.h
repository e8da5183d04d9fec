// runtime -> module -> instance: what can execute functions, a deployed function loaded in it, and one replica of that.
//
// A runtime is one file (and its helpers) and one row of the table in runtimes.cc; runtimes_test.cc walks the table.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "function/call.h"
#include "function/options.h"
#include "function/spec.h"

namespace orla::function {

// Of the threads that Instance::call() and Module::start() run on. Touched pages only cost memory.
inline constexpr std::size_t kCallStackBytes = 1 << 20;

// Takes what functions write to their standard error (and what runtimes say about them), line by line. Thread-safe.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // `text` without line end; `instance` as in Instance::name().
  virtual void line(std::string_view instance, std::string_view text) = 0;
};

// All that a runtime needs to know of a function. `log` outlives the module.
struct ModuleSpec {
  FunctionSpec spec;
  FunctionOptions options;
  std::filesystem::path image;  // the file or directory; of native ones, the name
  // Secrets the function may read: name and content file (mode 0400), present while the module lives.
  std::vector<std::pair<std::string, std::filesystem::path>> secrets;
  LogSink* log = nullptr;
};

struct InstanceUsage {
  double cpu_seconds = 0;          // used since it started
  std::uint64_t memory_bytes = 0;  // now
};

// A replica. call() is thread-safe; everything else belongs to its owner. The destructor ends it at once (SIGKILL to
// whatever it started) and leaves nothing behind: no process, descriptor or memory.
class Instance {
 public:
  virtual ~Instance() = default;
  // "echo-1": unique on this node.
  virtual const std::string& name() const = 0;
  // How many calls it takes at a time; more wait in the host (0 is never returned).
  virtual std::uint32_t concurrency() const = 0;
  // Runs on the caller's thread until the function has answered, failed, or call.head.deadline or a cancellation ends
  // it. Never throws. The response is begun by it only when result.response_begun says so; a failure before that is for
  // the host to answer.
  virtual CallResult call(const Call& call) = 0;
  // Cheap. False: it is dead (its process ended); it will never be usable again.
  virtual bool usable() = 0;
  virtual InstanceUsage usage() = 0;
  // Asks it to end (SIGTERM), waits at most `grace` for calls in progress to finish.
  virtual void stop(std::chrono::nanoseconds grace) = 0;
};

// A function, loaded. Thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  // A new replica, ready: a real health check has passed. Blocks, at most until `deadline` (DEADLINE_EXCEEDED) or until
  // cancelled (CANCELLED). The module outlives it.
  virtual absl::StatusOr<std::unique_ptr<Instance>> start(std::string name, base::SteadyTime deadline,
                                                          Cancellation& cancellation) = 0;
  // What was asked for and could not be applied on this machine (isolation, limits); shown at deploy and in the list.
  virtual std::vector<std::string> notes() const = 0;
  // Gives back what can be loaded again when it is needed: the function has no replicas.
  virtual void idle() {}
};

// Thread-safe. Outlives its modules.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual std::string_view name() const = 0;
  // Checks the image and loads it; may take long (compiling). INVALID_ARGUMENT: not such an image, or a setting that it
  // does not take; UNAVAILABLE: the runtime cannot run here, and what to install.
  virtual absl::StatusOr<std::unique_ptr<Module>> load(const ModuleSpec& spec) = 0;
};

}  // namespace orla::function
