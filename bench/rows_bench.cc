// What partials cost on their way: encoded by a child, decoded and merged by an aggregator.
//
//   rows_bench [benchmark flags] FILE...    (see node/read_batches.h for what is read)
//
// The samples of the files are folded into rows per series and slice, as an edge would; `minute` and `hour` are chunks
// as an edge at work seals them, one slice of all series each; `replay` holds minutes as they come when hours are read
// at once, 4,096 rows a chunk; `quantiles` are the minutes with sketches; `made` is a made-up fleet of 20,000 series.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codec/rows.h"
#include "fmt/format.h"
#include "model/partial.h"
#include "node/read_batches.h"

namespace orla::bench {
namespace {

using model::PartialRow;
using model::PartialRows;

constexpr std::uint32_t kRows = 20'000;
constexpr std::size_t kRowsPerChunk = 4'096;
constexpr int kDecimals = 3;

PartialRows made(std::uint32_t first) {
  PartialRows rows;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    PartialRow row;
    row.group = model::GroupId{first + 2 * i};
    row.slice = model::from_ns(1'380'585'600'000'000'000);
    for (int k = 0; k < 10; ++k) {
      row.partial.add(row.slice + std::chrono::seconds(k),
                      static_cast<double>((i * 31U + static_cast<unsigned>(k) * 7U) % 4000U), 0);
    }
    rows.push_back(row);
  }
  return rows;
}

struct Shape {
  const char* name;
  std::int64_t slice_s;
  std::size_t rows_per_chunk;  // 0: those of one slice
  bool quantiles;
};
constexpr Shape kShapes[] = {
    {"minute", 60, 0, false},
    {"hour", 3600, 0, false},
    {"replay", 60, kRowsPerChunk, false},
    {"quantiles", 60, 0, true},
};

struct Chunks {
  std::vector<PartialRows> rows;
  std::size_t count = 0;

  void add(PartialRows chunk) {
    model::canonicalize(chunk);
    count += chunk.size();
    rows.push_back(std::move(chunk));
  }
};

// Series of different files are different ones.
using Files = std::vector<std::vector<model::Batch>>;

Chunks chunks_of(const Files& files, const Shape& shape) {
  std::map<std::pair<std::int64_t, std::uint32_t>, model::Partial> partials;  // by slice and group
  const std::int64_t slice_ns = shape.slice_s * 1'000'000'000;
  std::uint32_t groups = 0;
  for (const std::vector<model::Batch>& batches : files) {
    std::uint32_t series = 0;
    for (model::Batch batch : batches) {
      batch.make_plain();
      for (const model::Batch::Run& run : batch.runs) {
        series = std::max(series, model::index(run.series) + 1);
        for (std::uint32_t i = run.begin; i < run.end; ++i) {
          const std::int64_t slice = model::to_ns(batch.times[i]) / slice_ns * slice_ns;
          model::Partial& partial = partials[{slice, groups + model::index(run.series)}];
          if (partial.count == 0 && shape.quantiles) partial.sketches = model::Sketches({true, false});
          partial.add(batch.times[i], batch.values[i], kDecimals);
        }
      }
    }
    groups += series;
  }
  Chunks chunks;
  PartialRows chunk;
  for (auto& [key, partial] : partials) {
    const model::Time slice = model::from_ns(key.first);
    const bool full = shape.rows_per_chunk == 0 ? !chunk.empty() && chunk.back().slice != slice
                                                : chunk.size() == shape.rows_per_chunk;
    if (full) chunks.add(std::exchange(chunk, {}));
    chunk.push_back({model::GroupId{key.second}, slice, std::move(partial)});
  }
  if (!chunk.empty()) chunks.add(std::move(chunk));
  return chunks;
}

void encode(benchmark::State& state, const Chunks& chunks) {
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    for (const PartialRows& rows : chunks.rows) bytes += codec::encode_rows(rows).size();
  }
  const auto count = static_cast<double>(chunks.count);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(chunks.count));
  state.counters["bytes_per_row"] = static_cast<double>(bytes) / count;
  state.counters["rows_per_chunk"] = count / static_cast<double>(chunks.rows.size());
}

void decode(benchmark::State& state, const Chunks& chunks) {
  std::vector<std::string> encoded;
  for (const PartialRows& rows : chunks.rows) {
    encoded.push_back(codec::encode_rows(rows));
    const absl::StatusOr<PartialRows> back = codec::decode_rows(encoded.back());
    if (!back.ok() || *back != rows) return state.SkipWithError("rows do not come back");
  }
  for (auto _ : state) {
    for (const std::string& bytes : encoded) benchmark::DoNotOptimize(codec::decode_rows(bytes));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(chunks.count));
}

void merge_two(benchmark::State& state) {
  const PartialRows one = made(0);
  const PartialRows two = made(1);
  for (auto _ : state) {
    PartialRows all = one;
    all.insert(all.end(), two.begin(), two.end());
    model::canonicalize(all);
    benchmark::DoNotOptimize(all);
  }
  state.SetItemsProcessed(state.iterations() * 2 * kRows);
}
BENCHMARK(merge_two);

void both_ways(const std::string& name, const Chunks& chunks) {
  benchmark::RegisterBenchmark(fmt::format("{}/encode", name).c_str(),
                               [&chunks](benchmark::State& state) { encode(state, chunks); });
  benchmark::RegisterBenchmark(fmt::format("{}/decode", name).c_str(),
                               [&chunks](benchmark::State& state) { decode(state, chunks); });
}

}  // namespace
}  // namespace orla::bench

int main(int argc, char** argv) {
  namespace b = orla::bench;
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (paths.empty()) paths = {"examples/smart-grid/data/plugs_1min.csv.gz"};
  b::Files files;
  for (const std::string& path : paths) {
    absl::StatusOr<std::vector<orla::model::Batch>> read = orla::node::read_batches(path);
    if (!read.ok()) {
      fmt::print(stderr, "rows_bench: {}\n", read.status().ToString());
      return EXIT_FAILURE;
    }
    files.push_back(*std::move(read));
  }
  b::Chunks made;
  made.add(b::made(0));
  b::both_ways("made", made);
  std::map<std::string, b::Chunks> all;
  for (const b::Shape& shape : b::kShapes) b::both_ways(shape.name, all[shape.name] = b::chunks_of(files, shape));
  benchmark::RunSpecifiedBenchmarks();
  return EXIT_SUCCESS;
}
