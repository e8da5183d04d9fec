// The benchmarks of `orla bench`. Each is one row of the table in bench.cc: it declares its options, and runs.
//
// What a benchmark owes: it measures several runs, and reports medians; it says what it counted; it checks its result
// against a plain computation, outside the measured time.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::apps {

// Options of every benchmark.
struct BenchOptions {
  bool json = false;
  double seconds = 5;  // of measuring, about: runs go on until they have passed
};

// What is printed: "bench" first, in this order; as it is with --json, else one line a field.
// "verified" (bool) and "counted" (a sentence: what a unit of the rate is) must be in it. verified = false makes the
// command fail.
using BenchReport = nlohmann::ordered_json;
using RunBench = std::function<absl::StatusOr<BenchReport>(const BenchOptions&)>;

struct Bench {
  const char* name;
  const char* about;
  // Declares the benchmark's own options on its command; what it returns runs it once they are read.
  RunBench (*add)(CLI::App& command);
};

// One run, measured.
struct BenchRun {
  double seconds = 0;      // that passed
  double cpu_seconds = 0;  // of this process, all threads
};
inline constexpr std::size_t kLeastBenchRuns = 3;
// Runs `once` at least kLeastBenchRuns times, and again until options.seconds have passed. `once` prepares, calls
// `timed` with what is to be measured, once or several times, which are added up, and may then check its result.
using Timed = std::function<absl::Status(const std::function<absl::Status()>& work)>;
absl::StatusOr<std::vector<BenchRun>> measure(const BenchOptions& options,
                                              const std::function<absl::Status(const Timed& timed)>& once);
// values not empty; of an even number the lower of the middle two.
double median(std::vector<double> values);
BenchRun median_run(const std::vector<BenchRun>& runs);  // each member's own median

// Every report's last fields; `problem` is empty when the result is right.
void conclude(BenchReport& report, const std::string& problem, const char* counted);

// The rows of the table.
RunBench add_replay_bench(CLI::App& command);
RunBench add_ladder_bench(CLI::App& command);
RunBench add_engine_bench(CLI::App& command);
RunBench add_series_bench(CLI::App& command);
RunBench add_sketch_bench(CLI::App& command);
RunBench add_link_bench(CLI::App& command);
RunBench add_codec_bench(CLI::App& command);
RunBench add_window_bench(CLI::App& command);
RunBench add_functions_bench(CLI::App& command);

}  // namespace orla::apps
