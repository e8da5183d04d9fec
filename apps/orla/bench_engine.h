// An edge's engine under a benchmark: what `orla bench engine` and `orla bench sketch` have in common.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench.h"
#include "bench_ladder_load.h"
#include "model/plan.h"
#include "model/sketches.h"
#include "stream/edge_engine.h"

namespace orla::apps {

inline constexpr std::int64_t kEngineWindow = 900;  // seconds: the load repeats after one

// One input "edge/0", the metric load, and one rollup of it by `label`, of which slices and windows are `slice` long.
model::Plan engine_plan(const std::string& label, std::chrono::seconds slice, model::SketchKinds sketches = {});

// What a report says of the load.
void report_load(BenchReport& report, const LadderLoad& load);

struct EngineRuns {
  std::vector<BenchRun> runs;
  std::uint64_t samples = 0;  // of one run
  std::string problem;        // empty: count, sum, min and max of every row are right
};

// What else is wrong with a run's sealed rows; not measured. `load` is that of one window.
using CheckSealed = std::function<std::string(const LadderLoad& load, const stream::EdgeEngine& engine,
                                              const std::vector<model::PartialRows>& sealed)>;

// The load of one window again and again through an engine whose rollup is by plug and 15 minutes, and asks for
// `sketches`.
absl::StatusOr<EngineRuns> run_engine(LadderLoad load, const BenchOptions& options, model::SketchKinds sketches,
                                      const CheckSealed& check, std::size_t shards = 1);

}  // namespace orla::apps
