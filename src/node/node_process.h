// One node as a process: `orla node FLEET NAME`.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/logger.h"
#include "ingest/input.h"
#include "model/fleet.h"

namespace orla::node {

struct NodeOptions {
  model::Fleet fleet;
  std::string node;
  std::string state;  // directory of the fleet's state on this machine; the node keeps its own below
  base::LogLevel log_level = base::LogLevel::kInfo;
  base::LogFormat log_format = base::LogFormat::kText;
  // An edge reads no input, and ends once its outbox is empty, or after this time.
  std::optional<std::chrono::nanoseconds> drain_limit;
  ingest::MakeInput make_input = ingest::make_input;  // of an edge's inputs, pushes excepted
};

enum class NodeEnd : std::uint8_t {
  kClean,
  kFailed,      // could not start; the log says why
  kNotDrained,  // drain_limit has passed
  kLeftBehind   // a memory-only edge stopped with samples the cloud has not acknowledged
};

// Runs the node until SIGTERM or SIGINT (or until it is drained). Blocks. Everything it has to say goes to the log
// (stderr).
NodeEnd run_node(NodeOptions options);

}  // namespace orla::node
