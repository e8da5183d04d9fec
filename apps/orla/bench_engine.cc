// orla bench engine: an edge's engine alone, on samples that are decoded already.
#include "bench_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "bench.h"
#include "bench_ladder_edge.h"
#include "bench_ladder_load.h"
#include "model/plan.h"
#include "model/power_of_ten.h"
#include "stream/edge_engine.h"

namespace orla::apps {

namespace {

constexpr std::int64_t kWindow = kEngineWindow;
constexpr std::uint64_t kCommitSamples = 4 * 1024 * 1024;
constexpr std::uint64_t kSamplesSorted = 400'000'000;  // of a run, about
constexpr std::uint64_t kSamplesRandom = 60'000'000;
constexpr std::uint64_t kSamplesSketched = 40'000'000;  // sealed rows are kept, and sketches are large
constexpr char kCounted[] =
    "samples (kind a, raw), decoded already, some 1 MiB of batches at a time in the processor's cache: keyed by plug, "
    "accepted by event time, folded into count, sum, sum of "
    "squares, min, max, first and last by plug and 15 minutes, and sealed; a thread a shard, no disk and no network";

// The load of one window, again and again, each time a window later: some batches at a time, which lie in the
// processor's cache as if they had just been decoded.
class Repeated {
 public:
  explicit Repeated(const LadderLoad& load) {
    ladder_batches(load, 0, [&](const model::Batch& batch) {
      batches_.push_back(batch);
      samples_ += batch.size();
      return true;
    });
    for (std::uint32_t plug = 0; plug < load.plugs; ++plug)
      new_series_.push_back({"load", {{"plug", fmt::format("{}", plug)}}});
    std::size_t bytes = 0;
    while (ready_.size() < batches_.size() && bytes < kReadyBytes) {
      const model::Batch& b = batches_[ready_.size()];
      bytes += b.runs.size() * sizeof(b.runs[0]) + b.times.size() * sizeof(b.times[0]) +
               b.paces.size() * sizeof(b.paces[0]) + b.scaled.size() * sizeof(b.scaled[0]);
      ready_.emplace_back();
    }
  }
  std::uint64_t samples() const { return samples_; }  // of a window
  // The next ones; empty at the end of a window, after which the next window follows.
  std::span<const model::InputBatch> next() {
    const std::size_t count = std::min(ready_.size(), batches_.size() - at_);
    const std::chrono::seconds later(kWindow * window_);
    for (std::size_t i = 0; i < count; ++i) {
      model::InputBatch& out = ready_[i];
      out.samples = batches_[at_ + i];
      out.received = out.samples.size();
      out.new_series.clear();
      for (model::Time& time : out.samples.times) time += later;
      for (model::Batch::Pace& pace : out.samples.paces) pace.start += later;
    }
    if (window_ == 0 && at_ == 0) ready_.front().new_series = new_series_;
    at_ += count;
    if (count == 0) {
      at_ = 0;
      ++window_;
    }
    return {ready_.data(), count};
  }

 private:
  static constexpr std::size_t kReadyBytes = std::size_t{1} << 20;
  std::vector<model::Batch> batches_;
  std::vector<model::Series> new_series_;
  std::vector<model::InputBatch> ready_;
  std::uint64_t samples_ = 0;
  std::size_t at_ = 0;
  std::int64_t window_ = 0;
};

// Every sealed row against the one window that there is of its plug.
std::string difference(const std::vector<model::PartialRows>& sealed, const stream::EdgeEngine& engine,
                       const std::vector<LadderCell>& truth, std::uint64_t windows) {
  std::uint64_t found = 0;
  for (const model::PartialRows& rows : sealed) {
    for (const model::PartialRow& row : rows) {
      const auto plug = std::stoul(engine.group(row.group).labels.at(0).second);
      const LadderCell& right = truth.at(plug);
      const double unit = model::power_of_ten(3);
      if (row.partial.count != right.count || row.partial.sums.decimal_sum() != right.sum ||
          row.partial.min != right.min / unit || row.partial.max != right.max / unit)
        return fmt::format("plug {}: count {}, sum {}; expected {}, {}", plug, row.partial.count,
                           static_cast<std::int64_t>(row.partial.sums.decimal_sum()), right.count, right.sum);
      ++found;
    }
  }
  return found == windows ? "" : fmt::format("{} windows; expected {}", found, windows);
}

}  // namespace

void report_load(BenchReport& report, const LadderLoad& load) {
  report["plugs"] = load.plugs;
  report["batch"] = load.batch;
  report["run_length"] = load.run_length();
  report["seed"] = load.seed;
}

model::Plan engine_plan(const std::string& label, std::chrono::seconds slice, model::SketchKinds sketches) {
  model::Fleet fleet;
  fleet.name = "bench";
  fleet.zone = "UTC";
  model::InputSpec input;
  input.key = "edge/0";
  fleet.inputs.push_back(std::move(input));
  fleet.metrics.push_back({"load", "W", 3, std::chrono::seconds(0), std::chrono::hours(1)});
  model::RollupSpec rollup;
  rollup.name = label + "_load";
  rollup.metric = "load";
  rollup.by = {label};
  rollup.slice = slice;
  rollup.windows = {{model::WindowSpec::Kind::kElapsed, slice, {}}};
  rollup.quantiles = sketches.quantiles;
  fleet.rollups.push_back(std::move(rollup));
  return model::make_plan(std::move(fleet));
}

absl::StatusOr<EngineRuns> run_engine(LadderLoad load, const BenchOptions& options, model::SketchKinds sketches,
                                      const CheckSealed& check, std::size_t shards) {
  load.seconds = kWindow / load.run_length() * load.run_length();
  const model::Plan plan = engine_plan("plug", std::chrono::seconds(kWindow), sketches);
  std::vector<LadderCell> truth;
  for (std::uint32_t plug = 0; plug < load.plugs; ++plug) truth.push_back(ladder_truth(load, plug, kWindow).at(0));
  EngineRuns out;
  stream::ThreadShards workers(shards);
  absl::StatusOr<std::vector<BenchRun>> runs = measure(options, [&](const Timed& timed) {
    Repeated repeated(load);
    stream::EdgeEngine engine(plan, {"edge/0"}, stream::EngineLimits{}, &workers);
    std::vector<model::PartialRows> sealed;
    const std::uint64_t wanted = sketches.any()                       ? kSamplesSketched
                                 : load.order == LadderOrder::kSorted ? kSamplesSorted
                                                                      : kSamplesRandom;
    const std::uint64_t cycles = std::max<std::uint64_t>(2, wanted / repeated.samples());
    std::uint64_t since_commit = 0;
    const auto apply = [&](std::span<const model::InputBatch> batches) -> absl::Status {
      for (const model::InputBatch& batch : batches) {
        if (absl::Status applied = engine.apply(0, batch, model::Time{}); !applied.ok()) return applied;
        since_commit += batch.received;
        if (since_commit < kCommitSamples) continue;
        since_commit = 0;
        if (auto part = engine.seal(stream::SealScope::kPublished, stream::SealWhen::kSomethingNew))
          sealed.push_back(std::move(part->rows));
        engine.take_changes();
      }
      return absl::OkStatus();
    };
    for (std::uint64_t cycle = 0; cycle < cycles; ++cycle) {
      for (auto batches = repeated.next(); !batches.empty(); batches = repeated.next())
        if (absl::Status status = timed([&] { return apply(batches); }); !status.ok()) return status;
    }
    const absl::Status status = timed([&] {
      engine.end_input(0);
      if (auto part = engine.seal(stream::SealScope::kEverything, stream::SealWhen::kAlways))
        sealed.push_back(std::move(part->rows));
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    out.samples = cycles * repeated.samples();
    if (engine.input(0).ledger.aggregated != out.samples)
      out.problem = fmt::format("{} samples aggregated; expected {}", engine.input(0).ledger.aggregated, out.samples);
    if (out.problem.empty()) out.problem = difference(sealed, engine, truth, cycles * load.plugs);
    if (out.problem.empty() && check) out.problem = check(load, engine, sealed);
    return absl::OkStatus();
  });
  if (!runs.ok()) return runs.status();
  out.runs = *std::move(runs);
  return out;
}

namespace {

absl::StatusOr<BenchReport> run(const LadderLoad& load, std::size_t shards, const BenchOptions& options) {
  const absl::StatusOr<EngineRuns> engine = run_engine(load, options, {}, nullptr, shards);
  if (!engine.ok()) return engine.status();
  const BenchRun middle = median_run(engine->runs);
  BenchReport report;
  report["samples"] = engine->samples;
  report["runs"] = engine->runs.size();
  report["seconds"] = middle.seconds;
  report["cpu_seconds"] = middle.cpu_seconds;
  report["rate_per_s"] = static_cast<double>(engine->samples) / middle.seconds;
  report["rate_per_core_s"] = static_cast<double>(engine->samples) / middle.cpu_seconds;
  report["shards"] = shards;
  report_load(report, load);
  conclude(report, engine->problem, kCounted);
  return report;
}

}  // namespace

RunBench add_engine_bench(CLI::App& command) {
  auto load = std::make_shared<LadderLoad>();  // with the runner
  load->plugs = 2125;
  add_load_options(command, *load);
  auto shards = std::make_shared<std::size_t>(1);
  command.add_option("--shards", *shards, "Of the engine, each with a thread")
      ->check(CLI::Range(std::size_t{1}, stream::kMaxShards))
      ->capture_default_str();
  return [load, shards](const BenchOptions& options) { return run(*load, *shards, options); };
}

}  // namespace orla::apps
