// The commands of orla-sim, one file each. Each adds itself and, once parsed, runs by its exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace orla::apps {

inline constexpr int kOk = 0;
inline constexpr int kWrong = 1;
inline constexpr int kUsage = 2;

// Fleets from seeds: what orla-sim does without a command.
std::function<int()> add_seeds(CLI::App& app);
// orla-sim fleet: what a fleet of some size carries.
CLI::App* add_fleet(CLI::App& app, int& exit_code);

}  // namespace orla::apps
