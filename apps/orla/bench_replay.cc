// orla bench replay: an edge's way of rows, from the file to sealed partials, without disk and network.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench.h"
#include "bench_replay_truth.h"
#include "ingest/input.h"
#include "model/plan.h"
#include "stream/edge_engine.h"

namespace orla::apps {

namespace {

// What is published is sealed after so many, more often than an edge would at this rate.
constexpr std::uint64_t kCommitSamples = 256 * 1024;
constexpr char kCounted[] =
    "rows of the file (kind a, raw measurements): read, parsed, keyed by property, house, household and plug, accepted "
    "by event time, folded into count, sum, sum of squares, min, max, first and last by plug and minute, and sealed";

struct Options {
  std::string path;
  std::size_t threads = 1;
};

model::Plan make_plan(const std::string& path) {
  model::Fleet fleet;
  fleet.name = "bench";
  fleet.zone = "UTC";
  model::InputSpec input;
  input.key = "edge/0";
  input.path = path;
  fleet.inputs.push_back(std::move(input));
  for (const auto& [metric, unit] : {std::pair{"load", "W"}, {"work", "kWh"}}) {
    fleet.metrics.push_back({metric, unit, 3, std::chrono::seconds(30), std::chrono::hours(1)});
    model::RollupSpec rollup;
    rollup.name = fmt::format("plug_{}", metric);
    rollup.metric = metric;
    rollup.by = {"house", "household", "plug"};
    rollup.slice = std::chrono::minutes(1);
    rollup.windows = {{model::WindowSpec::Kind::kElapsed, std::chrono::minutes(1), {}}};
    fleet.rollups.push_back(std::move(rollup));
  }
  return model::make_plan(std::move(fleet));
}

// One reading of the file through an input and an engine.
class Replay {
 public:
  Replay(const model::Plan& plan, std::size_t threads) : plan_(plan), threads_(threads), engine_(plan, {"edge/0"}) {}

  absl::Status run() {
    absl::StatusOr<std::unique_ptr<ingest::Input>> input =
        ingest::make_threaded_input(plan_.fleet.inputs[0], {}, threads_);
    if (!input.ok()) return input.status();
    model::InputBatch batch;
    std::uint64_t since_commit = 0;
    for (;;) {
      const absl::StatusOr<bool> more = (*input)->next(batch);
      if (!more.ok()) return more.status();
      if (!*more) break;
      if (absl::Status applied = engine_.apply(0, batch, model::Time{}); !applied.ok()) return applied;
      since_commit += batch.received;
      if (since_commit < kCommitSamples) continue;
      since_commit = 0;
      seal(stream::SealScope::kPublished);
    }
    seal(stream::SealScope::kEverything);
    return absl::OkStatus();
  }

  std::uint64_t received() const { return engine_.input(0).ledger.received; }

  ReplayTotals totals() const {
    ReplayTotals all;
    const model::Ledger& ledger = engine_.input(0).ledger;
    all.rows = ledger.aggregated;
    all.rejected = ledger.received - ledger.aggregated;
    for (const model::PartialRows& rows : sealed_) {
      for (const model::PartialRow& row : rows) {
        const model::GroupDef group = engine_.group(row.group);
        const auto label = [&](std::size_t i) { return group.labels[i].second; };
        const std::string metric = group.stream == "plug_work" ? "work" : "load";
        const std::int64_t minute = model::to_ns(row.slice) / 60'000'000'000;
        const auto sum = static_cast<std::int64_t>(row.partial.sums.decimal_sum());
        const PlugMinute fresh{row.partial.count, sum, row.partial.min, row.partial.max};
        const auto [cell, is_new] = all.plugs[{metric, label(0), label(1), label(2)}].try_emplace(minute, fresh);
        if (is_new) continue;
        cell->second.count += fresh.count;
        cell->second.sum_thousandths += fresh.sum_thousandths;
        cell->second.min = std::min(cell->second.min, fresh.min);
        cell->second.max = std::max(cell->second.max, fresh.max);
      }
    }
    return all;
  }

 private:
  void seal(stream::SealScope scope) {
    std::optional<stream::Sealed> sealed = engine_.seal(scope, stream::SealWhen::kSomethingNew);
    if (sealed) sealed_.push_back(std::move(sealed->rows));
  }

  const model::Plan& plan_;
  std::size_t threads_;
  stream::EdgeEngine engine_;
  std::vector<model::PartialRows> sealed_;
};

absl::StatusOr<BenchReport> run(const Options& own, const BenchOptions& options) {
  const model::Plan plan = make_plan(own.path);
  const absl::StatusOr<ReplayTotals> expected = plain_totals(own.path);
  if (!expected.ok()) return expected.status();
  if (expected->rows == 0) return absl::InvalidArgumentError(fmt::format("{} has no rows", own.path));
  std::string problem;
  std::uint64_t rows = 0;
  const absl::StatusOr<std::vector<BenchRun>> runs = measure(options, [&](const Timed& timed) {
    Replay replay(plan, own.threads);
    const absl::Status status = timed([&] { return replay.run(); });
    rows = replay.received();
    if (status.ok() && problem.empty()) problem = difference(replay.totals(), *expected);
    return status;
  });
  if (!runs.ok()) return runs.status();
  const BenchRun middle = median_run(*runs);
  BenchReport report;
  report["rows"] = rows;
  std::uint64_t cells = 0;
  std::int64_t thousandths = 0;
  for (const auto& [series, minutes] : expected->plugs) {
    cells += minutes.size();
    for (const auto& [minute, cell] : minutes) thousandths += cell.sum_thousandths;
  }
  report["cells"] = cells;  // of a plug, a metric and a minute
  report["sum"] = static_cast<double>(thousandths) / 1000;
  report["threads"] = own.threads;
  report["runs"] = runs->size();
  report["seconds"] = middle.seconds;
  report["cpu_seconds"] = middle.cpu_seconds;
  report["rate_per_s"] = static_cast<double>(rows) / middle.seconds;
  report["rate_per_core_s"] = static_cast<double>(rows) / middle.cpu_seconds;
  report["verified"] = problem.empty();
  if (!problem.empty()) report["difference"] = problem;
  report["counted"] = kCounted;
  return report;
}

}  // namespace

RunBench add_replay_bench(CLI::App& command) {
  auto own = std::make_shared<Options>();  // with the function returned
  command.add_option("FILE", own->path, "CSV file of the DEBS 2014 schema; .gz and .zst too")->required();
  command.add_option("--threads", own->threads, "That parse; one of them also aggregates")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.footer("Example:\n  orla generate --houses 40 --for 1h > plugs.csv && orla bench replay plugs.csv");
  return [own](const BenchOptions& options) { return run(*own, options); };
}

}  // namespace orla::apps
