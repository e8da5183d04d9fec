// What the roles of a node share: the seams they run on, and how they are asked about themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/logger.h"
#include "base/loop.h"
#include "base/random.h"
#include "model/plan.h"
#include "node/status.h"

namespace orla::node {

// The world of a role. Everything outlives it, and everything is used on the loop only.
struct World {
  base::Loop& loop;
  const base::Clock& clock;
  base::Random& random;
  base::Logger& log;
};

// A setting of the fleet's [limits] by name; every name is filled in by the parser.
std::int64_t limit(const model::Fleet& fleet, std::string_view name);
std::chrono::milliseconds limit_ms(const model::Fleet& fleet, std::string_view name);

// Runs `task` every `period` on the loop until the Ticker is destroyed. Created and destroyed on the loop (or before it
// runs).
class Ticker {
 public:
  Ticker(base::Loop& loop, std::chrono::nanoseconds period, std::function<void()> task);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  struct Shared;
  static void arm(base::Loop& loop, std::chrono::nanoseconds period, const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;  // with the pending task on the loop, which may outlive the Ticker
};

// The latest few things that need a person, each once.
class Alarms {
 public:
  explicit Alarms(base::Logger& log) : log_(log) {}
  void raise(const std::string& text);
  const std::vector<std::string>& latest() const { return latest_; }

 private:
  static constexpr std::size_t kMaxKept = 16;
  base::Logger& log_;
  std::vector<std::string> latest_;
};

// How a role ends.
struct StopReport {
  std::uint64_t unacknowledged_samples = 0;  // lost with this process (memory-only edges)
};

// One role of a node, on its loop. start() once; shutdown() once, whose callback may run at once or within `kShutdown`.
class Role {
 public:
  static constexpr std::chrono::milliseconds kShutdown{4000};
  virtual ~Role() = default;
  virtual absl::Status start() = 0;
  // SIGTERM: seals and persists what it has; publishes nothing.
  virtual void shutdown(std::function<void(StopReport)> done) = 0;
  // orla up --for: inputs stop at a row boundary, what was accepted is published. Nothing for other roles.
  virtual void stop_inputs() {}
  virtual void fill(NodeStatus& status) const = 0;
};

}  // namespace orla::node
