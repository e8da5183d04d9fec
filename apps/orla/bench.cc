// orla bench
#include "bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/absl_view.h"
#include "base/clock.h"
#include "base/cpu_time.h"
#include "bench_ladder_edge.h"
#include "commands.h"

namespace orla::apps {

namespace {

constexpr Bench kBenches[] = {
    {"replay", "Rows a second of a DEBS 2014 file: read, parsed, keyed, aggregated by plug and minute",
     add_replay_bench},
    {"ladder", "Measurements a second through four layers: sensors' frames, edges, aggregators, cloud; a process each",
     add_ladder_bench},
    {"engine", "Samples a second through an edge's engine, decoded already: no disk, no network", add_engine_bench},
    {"series", "Memory and speed of an edge's engine with very many series, and more of them than there is room for",
     add_series_bench},
    {"sketch", "Samples a second into quantile sketches, alone and through an edge's engine; their size and error",
     add_sketch_bench},
    {"codec", "Bytes and time that each encoding of samples takes, on a file's measurements or on made-up ones",
     add_codec_bench},
    {"window", "Rows a second through the cloud's engine, and what a hop costs when windows overlap 60 and 1440 times",
     add_window_bench},
    {"link", "Bytes a second that the gRPC carrier moves over loopback, both ends in one process", add_link_bench},
    {"functions", "Calls of functions through a real node's gateway: cold, warm, at saturation; memory; each runtime",
     add_functions_bench},
};

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string shown(const BenchReport& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  return number >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

// Objects with the same fields, as a table.
void print_rows(const BenchReport& rows) {
  for (const auto& field : rows[0].items()) fmt::print("{:<20}", field.key());
  fmt::print("\n");
  for (const BenchReport& row : rows) {
    for (const auto& field : row.items()) fmt::print("{:<20}", shown(field.value()));
    fmt::print("\n");
  }
}

void print(const BenchReport& report, bool json) {
  if (json) {
    fmt::print("{}\n", report.dump());
    return;
  }
  for (const auto& field : report.items()) {
    const BenchReport& value = field.value();
    if (value.is_array() && !value.empty() && value[0].is_object()) {
      print_rows(value);
      continue;
    }
    fmt::print("{:<20} {}\n", field.key(), shown(value));
  }
}

int run(const Bench& bench, const RunBench& work, const BenchOptions& options) {
  const absl::StatusOr<BenchReport> found = work(options);
  if (!found.ok()) {
    fmt::print(stderr, "orla bench {}: {}\n", bench.name, base::message(found.status()));
    return found.status().code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailed;
  }
  BenchReport report;
  report["bench"] = bench.name;
  report.update(*found);
  print(report, options.json);
  const auto verified = report.find("verified");
  return verified != report.end() && *verified == true ? kOk : kDifferent;
}

}  // namespace

absl::StatusOr<std::vector<BenchRun>> measure(const BenchOptions& options,
                                              const std::function<absl::Status(const Timed& timed)>& once) {
  const base::SystemClock clock;
  std::vector<BenchRun> runs;
  double measured = 0;
  BenchRun run;
  const Timed timed = [&](const std::function<absl::Status()>& work) {
    const base::SteadyTime begin = clock.steady_now();
    const std::chrono::nanoseconds cpu_begin = base::process_cpu_time();
    const absl::Status status = work();
    const std::chrono::nanoseconds cpu = base::process_cpu_time() - cpu_begin;
    run.seconds += seconds_of(clock.steady_now() - begin);
    run.cpu_seconds += seconds_of(cpu);
    return status;
  };
  while (runs.size() < kLeastBenchRuns || measured < options.seconds) {
    run = {};
    if (absl::Status status = once(timed); !status.ok()) return status;
    if (run.seconds <= 0) return absl::InternalError("a run was not measured");
    runs.push_back(run);
    measured += run.seconds;
  }
  return runs;
}

void conclude(BenchReport& report, const std::string& problem, const char* counted) {
  report["verified"] = problem.empty();
  if (!problem.empty()) report["problem"] = problem;
  report["counted"] = counted;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

BenchRun median_run(const std::vector<BenchRun>& runs) {
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  for (const BenchRun& run : runs) {
    seconds.push_back(run.seconds);
    cpu_seconds.push_back(run.cpu_seconds);
  }
  return {median(seconds), median(cpu_seconds)};
}

void add_bench(CLI::App& app, Chosen& chosen) {
  CLI::App* group = app.add_subcommand("bench", "Measure this program on this machine, each result verified");
  group->require_subcommand(1);
  add_ladder_edge(*group, chosen);
  for (const Bench& bench : kBenches) {
    CLI::App* command = group->add_subcommand(bench.name, bench.about);
    auto options = std::make_shared<BenchOptions>();  // with the callback
    const RunBench work = bench.add(*command);
    command->add_flag("--json", options->json, "Print one JSON object");
    command->add_option("--seconds", options->seconds, "Measure for about this long, and at least three runs")
        ->check(CLI::Range(0.0, 86400.0))
        ->capture_default_str();
    command->callback([&bench, work, options, &chosen] {
      chosen.run = [&bench, work, options] { return run(bench, work, *options); };
    });
  }
}

}  // namespace orla::apps
