// The functions of one node: runtimes, host and gateway, built in this order and taken down in reverse.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/logger.h"
#include "model/fleet.h"

namespace orla::node {

// Thread-safe.
class NodeFunctions {
 public:
  virtual ~NodeFunctions() = default;
  // "127.0.0.1:8080", with the real port.
  virtual std::string address() const = 0;
  // In Prometheus' text format.
  virtual std::string metrics() const = 0;
  // Blocks, once, before the end: see Gateway::drain().
  virtual void drain() = 0;

  // Of a node with a `gateway`. Takes up what was deployed before, and deploys the fleet file's functions; one that
  // cannot be deployed is an error in the log and harms nothing else. Keeps its state under `state`.
  static absl::StatusOr<std::unique_ptr<NodeFunctions>> start(const model::Fleet& fleet, const model::NodeSpec& node,
                                                              const std::filesystem::path& state,
                                                              const base::Clock& clock, base::Logger& log);
};

// How long drain() and what follows may take, at most.
std::chrono::nanoseconds drain_patience(const model::NodeSpec& node);

}  // namespace orla::node
