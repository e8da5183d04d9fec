// `orla up`: every node of a fleet on this machine, one process each, watched until it is done.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "model/fleet.h"

namespace orla::node {

enum class Choice : std::uint8_t { kNo, kYes };

struct UpOptions {
  model::Fleet fleet;
  std::string fleet_path;
  std::string program;                              // the `orla` to start nodes with
  std::optional<std::chrono::nanoseconds> run_for;  // stops the inputs after it; nothing: runs until interrupted
  Choice verify = Choice::kNo;
  Choice json = Choice::kNo;
  std::string state;  // empty: a temporary directory, removed at the end
  std::chrono::milliseconds drain_timeout{};
  std::string log_level = "info";
  Choice log_json = Choice::kNo;
};

enum class UpEnd : std::uint8_t { kClean, kDifferent, kDrainTimeout, kFailed };

// Blocks. Prints to stdout what docs/cli.md says; SIGINT and SIGTERM end it cleanly.
UpEnd run_up(UpOptions options);

}  // namespace orla::node
