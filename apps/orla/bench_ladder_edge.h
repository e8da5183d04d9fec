// The edges of `orla bench ladder`: nodes like any other, but for their input, which decodes frames held in memory.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench_ladder_load.h"
#include "commands.h"

namespace orla::apps {

// Of an edge, or of its beginning.
struct LadderFrames {
  std::string bytes;                  // one frame after the other
  std::vector<std::uint64_t> begins;  // of each in `bytes`, and the end of the last
  std::uint64_t measurements = 0;
};
// At most about `max_measurements` of them.
absl::StatusOr<LadderFrames> ladder_frames(const LadderLoad& load, std::uint32_t edge, std::uint64_t max_measurements);

// Those options of a benchmark that make up its load, but for its length and the number of edges.
void add_load_options(CLI::App& command, LadderLoad& load);
// Options by which a ladder's load is handed from the benchmark to its edges.
std::vector<std::string> to_arguments(const LadderLoad& load);

// `orla bench ladder-edge`, not listed: runs an edge of the benchmark's fleet. It makes its frames, opens the pipe
// named by --go for reading, and delivers them once a byte comes.
void add_ladder_edge(CLI::App& group, Chosen& chosen);

}  // namespace orla::apps
