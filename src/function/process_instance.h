// Replicas of process functions: what the two kinds share, and how each is made.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/random.h"
#include "function/call_gate.h"
#include "function/isolation_sandbox.h"
#include "function/process_command.h"
#include "function/process_log.h"
#include "function/process_spawn.h"
#include "function/runtime.h"

namespace orla::function {

// What a replica takes at a time when max_inflight does not say.
inline constexpr std::uint32_t kForkConcurrency = 64;   // streaming, serializing: each call is a process
inline constexpr std::uint32_t kHttpConcurrency = 100;  // http
// Between SIGTERM and SIGKILL.
inline constexpr std::chrono::milliseconds kKillGrace{500};
// Of a request or a response that has to be in memory whole (mode serializing, http_buffer_req_body).
inline constexpr std::size_t kMaxWholeBytes = std::size_t{256} << 20;

// Ports of this machine's loopback that replicas were given.
class HttpPort;
class Ports {
 public:
  // A free one, which the system gives to nobody who asks for any, or `wanted`. RESOURCE_EXHAUSTED: that is taken.
  absl::StatusOr<HttpPort> take(std::optional<std::uint16_t> wanted);

 private:
  friend class HttpPort;
  void give_back(std::uint16_t port);
  std::mutex mutex_;
  std::set<std::uint16_t> taken_;
  base::SystemRandom random_;
};
// Given back at the end of its life. `ports` may be null.
class HttpPort {
 public:
  HttpPort(Ports* ports, std::uint16_t number) : ports_(ports), number_(number) {}
  HttpPort(HttpPort&& other) noexcept : ports_(std::exchange(other.ports_, nullptr)), number_(other.number_) {}
  HttpPort& operator=(HttpPort&&) = delete;
  ~HttpPort() {
    if (ports_ != nullptr) ports_->give_back(number_);
  }
  std::uint16_t number() const { return number_; }

 private:
  Ports* ports_;
  std::uint16_t number_;
};
// INVALID_ARGUMENT: upstream_url names no port.
absl::Status check_upstream(const FunctionOptions& options);

// One of each runtime; outlives its modules.
struct ProcessTools {
  explicit ProcessTools(const base::Clock& clock) : clock(clock) {}
  const base::Clock& clock;
  SpawnThreads spawner;
  LogReader logs;
  Ports ports;
};

// One of each module; outlives its replicas.
struct ProcessFunction {
  ModuleSpec spec;
  Command command;
  std::vector<std::string> environment;
};

// A descriptor that becomes readable when the call is cancelled.
class CancelSignal {
 public:
  explicit CancelSignal(Cancellation& cancellation);
  int descriptor() const { return event_.get(); }

 private:
  base::FileDescriptor event_;
  Cancellation::Subscription subscription_;  // last: it uses the descriptor
};

// How a call that was ended from outside ends.
CallResult cancelled_result(CancelReason reason);

std::unique_ptr<Instance> make_fork_instance(ProcessTools& tools, const ProcessFunction& function, std::string name,
                                             std::unique_ptr<ProcessSandbox> sandbox);
absl::StatusOr<std::unique_ptr<Instance>> make_http_instance(ProcessTools& tools, const ProcessFunction& function,
                                                             std::string name, std::unique_ptr<ProcessSandbox> sandbox,
                                                             base::SteadyTime deadline, Cancellation& cancellation);

}  // namespace orla::function
