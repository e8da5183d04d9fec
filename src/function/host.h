// The functions of one node: what is deployed, its replicas, and the way of each call to one of them.
//
// Deployments and secrets are on disk when deploy() and the like return. A call to a function with no replicas is held
// while one is started (once, however many calls wait), and released when it is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/logger.h"
#include "function/invocation.h"
#include "function/runtime.h"
#include "function/spec.h"

namespace orla::function {

struct HostLimits {
  std::size_t functions = 20'000;
  std::size_t replicas = 20'000;  // of all functions
  std::uint32_t replicas_of_function = 1'000;
  std::size_t running_calls = 1'024;   // each holds a thread
  std::size_t waiting_calls = 10'000;  // of all functions, held from zero or for room; beyond: kOverloaded
  std::size_t secrets = 10'000;
  std::size_t secret_bytes = 1 << 20;
  std::size_t log_lines = 1'000;       // kept per function
  std::size_t log_bytes = 256 * 1024;  // kept per function
  std::size_t log_followers = 256;
  std::chrono::nanoseconds start_timeout{std::chrono::seconds(60)};  // of one replica
};

struct HostSettings {
  std::filesystem::path state;   // specs/, secrets/, modules/ (compiled ones) in it
  std::filesystem::path images;  // images lie under it; empty: only native ones
  bool processes = false;        // whether this node runs executables
  HostLimits limits;
  base::Logger* log = nullptr;  // outlives the host; null: says nothing
};

struct FunctionStatus {
  FunctionSpec spec;
  std::string runtime;
  std::uint32_t replicas = 0;   // wanted
  std::uint32_t available = 0;  // ready
  std::uint64_t invocations = 0;
  base::WallTime created{};
  InstanceUsage usage;             // only when asked for
  std::vector<std::string> notes;  // what could not be applied here
};

struct LogLine {
  std::uint64_t number = 0;  // of its function, from 1
  base::WallTime time{};
  std::string instance;
  std::string text;
};
struct LogQuery {
  std::string instance;  // empty: all
  std::optional<base::WallTime> since;
  std::optional<std::size_t> tail;
};

enum class Deploy : std::uint8_t { kCreate, kUpdate };

// What is counted of a function, for metrics.
struct FunctionCounts {
  std::uint64_t started = 0;
  struct Ended {
    std::uint64_t count = 0;
    double seconds = 0;
    std::vector<std::uint64_t> buckets;  // cumulative, by kSecondsBuckets
  };
  std::map<int, Ended> ended;  // by HTTP status
  std::uint32_t replicas = 0;
  std::uint32_t in_flight = 0;
  std::uint32_t waiting = 0;
};
inline constexpr double kSecondsBuckets[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};

// Thread-safe.
class Host {
 public:
  // Takes up what was deployed before. `runtimes`, `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<Host>> open(HostSettings settings,
                                                    const std::vector<std::unique_ptr<Runtime>>& runtimes,
                                                    const base::Clock& clock);
  virtual ~Host() = default;

  // INVALID_ARGUMENT: says what of the spec; ALREADY_EXISTS (kCreate); NOT_FOUND (kUpdate); FAILED_PRECONDITION: this
  // node does not run such (processes are opt-in, registry images are for later); RESOURCE_EXHAUSTED. An update starts
  // replicas of the new spec before those of the old one are let go: no call fails by it.
  virtual absl::Status deploy(const FunctionSpec& spec, Deploy how) = 0;
  virtual absl::Status remove(const FunctionKey& key) = 0;                     // NOT_FOUND; calls in progress finish
  virtual std::vector<FunctionStatus> list(std::string_view space) const = 0;  // empty: of all; by name
  virtual std::optional<FunctionStatus> find(const FunctionKey& key, bool with_usage) const = 0;
  virtual bool exists(const FunctionKey& key) const = 0;
  // Clamped to the function's bounds (0 is always allowed). Returns what is wanted now.
  virtual absl::StatusOr<std::uint32_t> scale(const FunctionKey& key, std::uint32_t replicas) = 0;
  // An AlertManager alert of the function: firing goes up by a step of its factor, resolved straight to its minimum.
  virtual absl::Status alert(const FunctionKey& key, bool firing) = 0;
  // Calls of it that wait elsewhere (the queue), for scaling.
  virtual void set_queue_length(const FunctionKey& key, std::uint64_t waiting) = 0;

  // `done` runs once, on some thread, maybe before this returns.
  virtual void invoke(const FunctionKey& key, std::shared_ptr<Invocation> invocation, InvokeDone done) = 0;
  // What the gateway answered, for metrics. Nothing for functions that do not exist.
  virtual void count(const FunctionKey& key, int status, double seconds) = 0;
  virtual std::vector<std::pair<FunctionKey, FunctionCounts>> counts() const = 0;

  virtual std::vector<FunctionKey> secrets(std::string_view space) const = 0;
  virtual absl::Status add_secret(const FunctionKey& key, std::string_view value) = 0;     // ALREADY_EXISTS
  virtual absl::Status change_secret(const FunctionKey& key, std::string_view value) = 0;  // NOT_FOUND
  virtual absl::Status remove_secret(const FunctionKey& key) = 0;  // NOT_FOUND; FAILED_PRECONDITION: in use

  // The kept lines that the query asks for. NOT_FOUND.
  virtual absl::StatusOr<std::vector<LogLine>> logs(const FunctionKey& key, const LogQuery& query) const = 0;
  // From now on `line` gets every new line of it, on some thread, until the handle goes (it waits for one in progress).
  // `end` runs when the function is removed. RESOURCE_EXHAUSTED at log_followers.
  virtual absl::StatusOr<std::shared_ptr<void>> follow(const FunctionKey& key, std::function<void(const LogLine&)> line,
                                                       std::function<void()> end) = 0;

  // No new call is taken (kDraining); running ones finish, at most for `timeout`, then they are cancelled. Ends all
  // replicas.
  virtual void drain(std::chrono::nanoseconds timeout) = 0;
};

}  // namespace orla::function
