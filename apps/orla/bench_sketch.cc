// orla bench sketch: quantile sketches, alone and in an edge's engine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/cpu_time.h"
#include "bench_engine.h"
#include "bench_ladder_edge.h"
#include "model/partial.h"
#include "stream/run_kernels.h"

namespace orla::apps {

namespace {

constexpr std::uint64_t kInserted = 50'000'000;  // into one sketch
constexpr std::uint64_t kMerged = 100'000;       // sketches of a plug's window
constexpr std::size_t kRun = 512;
constexpr int kDecimals = 3;
constexpr double kStatedError = 1.0 / 256;
constexpr char kCounted[] =
    "rate: samples (kind a, raw), decoded already, through an edge's engine as in `bench engine`, by plug and 15 "
    "minutes, with quantiles; insert: decimals into one sketch, in runs of 512; merge: sketches of a plug and 15 "
    "minutes into one; one thread. Verified: every row's p50, p90, p99 and p999 against the sorted samples";

// Of q = 0.5, 0.9, 0.99, 0.999, the nearest-rank samples.
std::array<double, 4> exact_quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::array<double, 4> out{};
  const std::array<std::uint64_t, 4> thousandths = {500, 900, 990, 999};
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = values[(values.size() * thousandths[k] + 999) / 1000 - 1];
  return out;
}

// What the sealed rows say, against the samples.
struct Checked {
  double worst = 0;  // relative error
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;   // encoded
  std::uint64_t memory = 0;  // as they are after decoding
  std::vector<model::QuantileSketch> some;
};

std::string check(const LadderLoad& load, const stream::EdgeEngine& engine,
                  const std::vector<model::PartialRows>& sealed, Checked& out) {
  std::vector<std::array<double, 4>> exact;
  std::vector<double> values;
  for (std::uint32_t plug = 0; plug < load.plugs; ++plug) {
    values.clear();
    for (std::int64_t second = 0; second < load.seconds; ++second)
      values.push_back(ladder_value(load, plug, second) / 1000.0);
    exact.push_back(exact_quantiles(values));
  }
  out = {};
  for (const model::PartialRows& rows : sealed) {
    for (const model::PartialRow& row : rows) {
      const auto plug = std::stoul(engine.group(row.group).labels.at(0).second);
      const model::Statistics shown = model::statistics(row.partial, kDecimals);
      if (!shown.p50) return fmt::format("plug {}: no quantiles", plug);
      const std::array<double, 4> found = {*shown.p50, *shown.p90, *shown.p99, *shown.p999};
      for (std::size_t k = 0; k < found.size(); ++k) {
        const double right = exact[plug][k];
        const double error = right == found[k] ? 0 : std::fabs(found[k] - right) / std::fabs(right);
        if (!(error <= kStatedError))
          return fmt::format("plug {}: a quantile is {}; expected {} within {}", plug, found[k], right, kStatedError);
        out.worst = std::max(out.worst, error);
      }
      const std::string bytes = row.partial.sketches.encode();
      const absl::StatusOr<model::Sketches> back = model::Sketches::decode(bytes);
      if (!back.ok() || *back != row.partial.sketches)
        return fmt::format("plug {}: the sketch does not come back from its bytes", plug);
      ++out.rows;
      out.bytes += bytes.size();
      out.memory += back->memory_bytes();
      if (out.some.size() < load.plugs) out.some.push_back(*back->quantiles());
    }
  }
  return "";
}

double cpu_seconds(const std::function<void()>& work) {
  const std::chrono::nanoseconds before = base::process_cpu_time();
  work();
  return std::chrono::duration<double>(base::process_cpu_time() - before).count();
}

// Samples a core inserts in a second into one sketch.
double insert_rate(const LadderLoad& load, std::string& problem) {
  std::vector<std::int32_t> values;
  for (std::int64_t second = 0; second < 1 << 20; ++second)
    values.push_back(ladder_value(load, static_cast<std::uint32_t>(second % load.plugs), second));
  model::QuantileSketch sketch;
  std::array<std::int32_t, kRun> keys;
  const double seconds = cpu_seconds([&] {
    for (std::size_t done = 0; done < kInserted; done += kRun) {
      stream::quantile_keys(std::span(values).subspan(done % values.size(), kRun), kDecimals, keys);
      sketch.add_keys(keys);
    }
  });
  const std::uint64_t inserted = (kInserted + kRun - 1) / kRun * kRun;
  if (sketch.count() != inserted) problem = fmt::format("{} inserted; expected {}", sketch.count(), inserted);
  return static_cast<double>(inserted) / seconds;
}

double merge_rate(const std::vector<model::QuantileSketch>& some, std::string& problem) {
  model::QuantileSketch sketch;
  std::uint64_t samples = 0;
  for (std::uint64_t n = 0; n < kMerged; ++n) samples += some[n % some.size()].count();
  const double seconds = cpu_seconds([&] {
    for (std::uint64_t n = 0; n < kMerged; ++n) sketch.merge(some[n % some.size()]);
  });
  if (sketch.count() != samples) problem = fmt::format("{} samples merged; expected {}", sketch.count(), samples);
  return kMerged / seconds;
}

absl::StatusOr<BenchReport> run(const LadderLoad& load, const BenchOptions& options) {
  Checked checked;
  absl::StatusOr<EngineRuns> engine =
      run_engine(load, options, {true, false},
                 [&](const LadderLoad& window, const stream::EdgeEngine& edge,
                     const std::vector<model::PartialRows>& sealed) { return check(window, edge, sealed, checked); });
  if (!engine.ok()) return engine.status();
  std::string& problem = engine->problem;
  std::vector<double> inserts;
  std::vector<double> merges;
  for (std::size_t run = 0; run < kLeastBenchRuns && problem.empty(); ++run) {
    inserts.push_back(insert_rate(load, problem));
    merges.push_back(merge_rate(checked.some, problem));
  }
  const BenchRun middle = median_run(engine->runs);
  const auto rows = static_cast<double>(std::max<std::uint64_t>(1, checked.rows));
  BenchReport report;
  report["samples"] = engine->samples;
  report["runs"] = engine->runs.size();
  report["seconds"] = middle.seconds;
  report["cpu_seconds"] = middle.cpu_seconds;
  report["rate_per_s"] = static_cast<double>(engine->samples) / middle.seconds;
  report["rate_per_core_s"] = static_cast<double>(engine->samples) / middle.cpu_seconds;
  if (problem.empty()) {
    report["insert_per_core_s"] = median(inserts);
    report["merges_per_core_s"] = median(merges);
  }
  report["bytes_per_sketch"] = static_cast<double>(checked.bytes) / rows;
  report["memory_per_sketch"] = static_cast<double>(checked.memory) / rows;
  report["max_relative_error"] = checked.worst;
  report["stated_relative_error"] = kStatedError;
  report["values"] = load.values == LadderValues::kWide ? "wide" : "plugs";
  report_load(report, load);
  conclude(report, problem, kCounted);
  return report;
}

}  // namespace

RunBench add_sketch_bench(CLI::App& command) {
  auto load = std::make_shared<LadderLoad>();  // with the runner
  load->plugs = 2125;
  add_load_options(command, *load);
  const std::map<std::string, LadderValues> values = {{"plugs", LadderValues::kPlugs}, {"wide", LadderValues::kWide}};
  command
      .add_option("--values", load->values,
                  "plugs: as in the ladder, mostly few different ones; wide: up to 4 kW evenly")
      ->transform(CLI::CheckedTransformer(values, CLI::ignore_case))
      ->default_str("plugs");
  return [load](const BenchOptions& options) { return run(*load, options); };
}

}  // namespace orla::apps
