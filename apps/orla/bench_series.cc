// orla bench series: what a series costs an edge in memory, what many of them cost in speed, and what becomes of more
// than there is room for.
#include <fmt/format.h>
#include <malloc.h>

#include <memory>
#include <utility>

#include "bench.h"
#include "bench_engine.h"
#include "model/plan.h"
#include "stream/edge_engine.h"

namespace orla::apps {

namespace {

constexpr std::int64_t kSlice = 60;  // seconds; each series has a sample in each
constexpr std::uint32_t kFewSeries = 2125;
constexpr std::uint32_t kRunsOfBatch = 256;
constexpr std::uint64_t kCommitSamples = 4 * 1024 * 1024;
constexpr std::uint32_t kMany = 3;  // slices of the many series: the second is open beside the first
constexpr char kCounted[] =
    "samples (kind a, raw) in runs of 60 of a series, decoded already, one thread: from the second slice on, commits "
    "included; bytes: heap in use by the engine for a series of one label with two open slices, labels included";

struct Options {
  std::uint32_t series = 1'000'000;
  std::uint32_t distinct = 10'000'000;
  std::uint32_t alive = 10'000;
};

// The first of a slice; the others follow by kStep.
std::int32_t first_value(std::uint64_t series, std::uint64_t slice) {
  return static_cast<std::int32_t>((series * 7919 + slice * 104'729) % 100'000);
}
constexpr std::int32_t kStep = 31;

model::Time start_of(std::uint64_t slice) {
  return model::from_ns(0) + std::chrono::seconds(kSlice * static_cast<std::int64_t>(slice));
}

std::size_t heap_in_use() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// One slice of series [first, first + runs), `count` samples each.
void fill(model::InputBatch& out, std::uint32_t first, std::uint32_t runs, std::uint64_t slice, std::uint32_t count) {
  model::Batch& b = out.samples;
  b.clear();
  b.decimals = 3;
  for (std::uint32_t r = 0; r < runs; ++r) {
    const auto begin = static_cast<std::uint32_t>(b.scaled.size());
    b.runs.push_back({model::SeriesId{first + r}, begin, begin + count});
    b.paces.push_back({start_of(slice), std::chrono::seconds(1)});
    b.scaled.resize(begin + count);
    std::int32_t* const values = b.scaled.data() + begin;
    const std::int32_t first_one = first_value(first + r, slice);
    for (std::uint32_t i = 0; i < count; ++i) values[i] = first_one + kStep * static_cast<std::int32_t>(i);
  }
  out.received = b.size();
  out.position = {out.position.offset + 1, out.position.row + b.size()};
}

void name(model::InputBatch& out, std::uint32_t first, std::uint32_t count) {
  out.new_series.clear();
  for (std::uint32_t s = first; s < first + count; ++s)
    out.new_series.push_back({"load", {{"meter", fmt::format("m{:08}", s)}}});
}

struct Run {
  const model::Plan& plan;
  std::uint32_t series;
  std::uint32_t slices;
  std::uint64_t samples() const { return std::uint64_t{series} * kSlice * (slices - 1); }  // that are timed
  std::size_t heap = 0;  // of the engine, with two slices open
  std::string problem;
};

struct Nowhere : stream::StateSink {
  void series(std::vector<model::SeriesState>&) override {}
  void open(model::PartialRows&) override {}
};

// What is compared of a sealed row.
struct Row {
  model::GroupId group{};
  std::uint32_t slice = 0;
  std::uint64_t count = 0;
  std::int64_t sum = 0;
};

void verify(Run& run, const stream::EdgeEngine& engine, const std::vector<Row>& sealed, std::uint64_t rows) {
  if (rows != sealed.size()) {
    run.problem = fmt::format("{} rows; expected {}", rows, sealed.size());
    return;
  }
  for (const Row& row : sealed) {
    const auto series = std::stoul(engine.group(row.group).labels.at(0).second.substr(1));
    const std::int64_t sum = kSlice * first_value(series, row.slice) + kStep * (kSlice * (kSlice - 1) / 2);
    if (row.count != kSlice || row.sum != sum)
      run.problem = fmt::format("series {}, slice {}: count {}, sum {}; expected {}, {}", series, row.slice, row.count,
                                row.sum, kSlice, sum);
  }
}

absl::Status go(Run& run, const Timed& timed) {
  model::InputBatch batch;
  fill(batch, 0, kRunsOfBatch, 0, kSlice);  // its memory is not the engine's
  std::vector<Row> sealed(std::uint64_t{run.series} * run.slices);
  std::uint64_t rows = 0;
  Nowhere nowhere;
  const std::size_t before = heap_in_use();
  stream::EdgeEngine engine(run.plan, {"edge/0"});
  const auto slice = [&](std::uint64_t number) {
    for (std::uint32_t first = 0; first < run.series; first += kRunsOfBatch) {
      const std::uint32_t runs = std::min(kRunsOfBatch, run.series - first);
      fill(batch, first, runs, number, kSlice);
      if (number == 0) name(batch, first, runs);
      absl::Status status = engine.apply(0, batch, model::Time{});
      batch.new_series.clear();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  const auto commit = [&](stream::SealScope scope) {
    engine.seal(scope, stream::SealWhen::kSomethingNew, [&](const stream::SealedRows& piece) {
      for (const model::PartialRow& row : piece.rows) {
        if (rows < sealed.size())
          sealed[rows] = {row.group, static_cast<std::uint32_t>(model::to_ns(row.slice) / 1'000'000'000 / kSlice),
                          row.partial.count, static_cast<std::int64_t>(row.partial.sums.decimal_sum())};
        ++rows;
      }
    });
    engine.take_changes(nowhere);
  };
  if (absl::Status status = slice(0); !status.ok()) return status;
  engine.take_changes(nowhere);
  absl::Status status = timed([&]() -> absl::Status {
    std::uint64_t since_commit = 0;
    for (std::uint64_t number = 1; number < run.slices; ++number) {
      if (absl::Status applied = slice(number); !applied.ok()) return applied;
      if (number == 1) {
        const std::size_t now = heap_in_use();
        run.heap = now > before ? now - before : 0;
      }
      since_commit += std::uint64_t{run.series} * kSlice;
      if (since_commit < kCommitSamples) continue;
      since_commit = 0;
      commit(stream::SealScope::kPublished);
    }
    engine.end_input(0);
    commit(stream::SealScope::kEverything);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  verify(run, engine, sealed, rows);
  return absl::OkStatus();
}

absl::StatusOr<BenchRun> measured(Run& run, const BenchOptions& options) {
  const auto runs = measure(options, [&](const Timed& timed) { return go(run, timed); });
  if (!runs.ok()) return runs.status();
  return median_run(*runs);
}

// Within an hour `distinct` series appear, of which `alive` have samples at a time; each has one sample.
absl::Status churn(const model::Plan& plan, const Options& o, BenchReport& report, std::string& problem) {
  const std::size_t before = heap_in_use();
  stream::EdgeEngine engine(plan, {"edge/0"});
  model::InputBatch batch;
  std::uint64_t aggregated = 0;
  std::size_t most = 0;
  for (std::uint32_t first = 0; first < o.distinct; first += o.alive) {
    const std::uint32_t count = std::min(o.alive, o.distinct - first);
    name(batch, first, count);
    fill(batch, first, count, std::uint64_t{first} * 60 / o.distinct, 1);
    if (absl::Status status = engine.apply(0, batch, model::Time{}); !status.ok()) return status;
    if (auto part = engine.seal(stream::SealScope::kPublished, stream::SealWhen::kSomethingNew)) {
      for (const model::PartialRow& row : part->rows) aggregated += row.partial.count;
    }
    engine.take_changes();
    most = std::max(most, heap_in_use());
  }
  engine.end_input(0);
  if (auto part = engine.seal(stream::SealScope::kEverything, stream::SealWhen::kAlways)) {
    for (const model::PartialRow& row : part->rows) aggregated += row.partial.count;
  }
  std::uint64_t dropped = 0;
  for (const auto& [reason, samples] : engine.input(0).ledger.dropped) dropped += samples;
  if (engine.input(0).ledger.aggregated != aggregated || aggregated + dropped != o.distinct)
    problem =
        fmt::format("{} samples of {} series: {} in rows, {} dropped", o.distinct, o.distinct, aggregated, dropped);
  report["distinct"] = o.distinct;
  report["distinct_alive"] = o.alive;
  report["distinct_aggregated"] = aggregated;
  report["distinct_dropped"] = dropped;
  report["distinct_heap_bytes"] = most - before;
  return absl::OkStatus();
}

absl::StatusOr<BenchReport> run(const Options& own, BenchOptions options) {
  const model::Plan plan = engine_plan("meter", std::chrono::seconds(kSlice));
  options.seconds /= 2;
  Run many{plan, own.series, kMany, 0, ""};
  const absl::StatusOr<BenchRun> many_run = measured(many, options);
  if (!many_run.ok()) return many_run.status();
  Run few{plan, kFewSeries, static_cast<std::uint32_t>(1 + many.samples() / (kFewSeries * kSlice)), 0, ""};
  const absl::StatusOr<BenchRun> few_run = measured(few, options);
  if (!few_run.ok()) return few_run.status();
  const double rate = static_cast<double>(many.samples()) / many_run->cpu_seconds;
  const double few_rate = static_cast<double>(few.samples()) / few_run->cpu_seconds;
  BenchReport report;
  report["series"] = own.series;
  report["bytes_per_series"] = static_cast<double>(many.heap) / own.series;
  report["samples"] = many.samples();
  report["rate_per_core_s"] = rate;
  report["rate_per_core_s_of_2125_series"] = few_rate;
  report["times_slower"] = few_rate / rate;
  std::string problem = many.problem.empty() ? few.problem : many.problem;
  if (absl::Status status = churn(plan, own, report, problem); !status.ok()) return status;
  conclude(report, problem, kCounted);
  return report;
}

}  // namespace

RunBench add_series_bench(CLI::App& command) {
  auto own = std::make_shared<Options>();  // with the runner
  command.add_option("--series", own->series, "Series, with a sample each second")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  command.add_option("--distinct", own->distinct, "Series that appear within an hour, in the second part")
      ->check(CLI::Range(1U, 100'000'000U))
      ->capture_default_str();
  command.add_option("--alive", own->alive, "Of these, how many have samples at a time")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  return [own](const BenchOptions& options) { return run(*own, options); };
}

}  // namespace orla::apps
