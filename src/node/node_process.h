// One node as a process: `orla node FLEET NAME`.
#pragma once

#include <optional>
#include <string>

#include "base/logger.h"
#include "model/fleet.h"

namespace orla::node {

struct NodeOptions {
  model::Fleet fleet;
  std::string node;
  std::string state;  // directory of the fleet's state on this machine; the node keeps its own below
  base::LogLevel log_level = base::LogLevel::kInfo;
  base::LogFormat log_format = base::LogFormat::kText;
};

enum class NodeEnd : std::uint8_t {
  kClean,
  kFailed,     // could not start; the log says why
  kLeftBehind  // a memory-only edge stopped with samples the cloud has not acknowledged
};

// Runs the node until SIGTERM or SIGINT. Blocks. Everything it has to say goes to the log (stderr).
NodeEnd run_node(NodeOptions options);

}  // namespace orla::node
