// What an edge's commits cost, and how long it takes to find everything again after a crash.
//
//   edge_store_bench --benchmark_counters_tabular=true
//
// The state directory is in TMPDIR: of a file system in memory the syncs are free, and what is left is the CPU.
#include <benchmark/benchmark.h>

#include "base/files.h"
#include "store/edge_for_tests.h"
#include "store/segment_edge_store.h"

namespace {

using namespace orla;

constexpr std::size_t kStateBytes = 200 << 10;
constexpr std::size_t kChunkBytes = 300 << 10;

store::EdgeCommit commit_of(model::Sequence next, std::size_t state_bytes) {
  store::EdgeCommit out;
  out.meta = store::meta_for_tests(next);
  out.entry.state = std::string(state_bytes, 'x');
  return out;
}

// A journal entry of 200 KB, a snapshot every 64 MiB as an edge makes them, a chunk of 300 KB in every tenth commit,
// which is acknowledged ten chunks later.
void Commit(benchmark::State& state) {
  const base::TemporaryDirectory directory = base::TemporaryDirectory::create("edge-store").value();
  const base::SystemClock clock;
  auto edge = store::SegmentEdgeStore::open(directory.path().string(), clock, store::format_for_tests(),
                                            {.fsync = static_cast<store::FsyncMode>(state.range(0))})
                  .value();
  if (!edge->recover({}).ok()) std::abort();
  model::Sequence next = 1;
  std::uint64_t n = 0;
  for (auto _ : state) {
    store::EdgeCommit commit = commit_of(next, kStateBytes);
    commit.entry.snapshot = n % 320 == 0;
    if (n % 10 == 0) {
      commit.chunks.push_back(store::chunk_for_tests(next, 0));
      commit.chunks.back().rows = std::string(kChunkBytes, 'r');
      commit.meta.next_sequence = ++next;
    }
    if (!edge->commit(commit).ok()) std::abort();
    if (n % 10 == 0 && next > 10 && !edge->trim(next - 10).ok()) std::abort();
    ++n;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(n * kStateBytes));
}
BENCHMARK(Commit)->Arg(0)->Arg(1)->ArgName("fsync_off")->Unit(benchmark::kMicrosecond)->MinTime(2);

// An outbox of so many MiB, left by a process that was killed.
void Recover(benchmark::State& state) {
  const base::TemporaryDirectory directory = base::TemporaryDirectory::create("edge-store").value();
  const base::SystemClock clock;
  const auto open = [&] {
    return store::SegmentEdgeStore::open(directory.path().string(), clock, store::format_for_tests(),
                                         {.fsync = store::FsyncMode::kOff})
        .value();
  };
  {
    auto edge = open();
    if (!edge->recover({}).ok()) std::abort();
    model::Sequence next = 1;
    for (std::int64_t bytes = 0; bytes < state.range(0) << 20; bytes += kChunkBytes) {
      store::EdgeCommit commit = commit_of(next + 1, 20 << 10);
      commit.entry.snapshot = next == 1;
      commit.chunks.push_back(store::chunk_for_tests(next++, 0));
      commit.chunks.back().rows = std::string(kChunkBytes, 'r');
      if (!edge->commit(commit).ok()) std::abort();
    }
  }
  const bool journal = state.range(1) == 0;
  for (auto _ : state) {
    auto edge = open();
    const auto recovery = edge->recover({});
    if (!recovery.ok() || recovery->outbox.empty()) std::abort();
    state.counters["chunks"] = static_cast<double>(recovery->outbox.size());
    if (journal) continue;
    state.PauseTiming();  // once more without its journal
    edge.reset();
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      if (entry.path().filename().native().starts_with("journal-")) base::remove_tree(entry.path()).IgnoreError();
    }
    state.ResumeTiming();
  }
}
BENCHMARK(Recover)
    ->Args({1024, 0})
    ->Args({1024, 1})
    ->ArgNames({"MiB", "without_journal"})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3);

}  // namespace
