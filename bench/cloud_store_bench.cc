// How many window rows a second the cloud's store takes: one commit writes every window of every plug.
#include <benchmark/benchmark.h>

#include "base/files.h"
#include "store/sqlite_cloud_store.h"

namespace orla::store {
namespace {

constexpr int kPlugs = 4250;
const model::Time kStart = model::from_ns(1'378'000'000'000'000'000);

model::Plan plug_plan() {
  model::Fleet fleet;
  fleet.name = "bench";
  fleet.zone = "Europe/Berlin";
  fleet.metrics = {{"load", "W", 3, {}, std::chrono::hours(1)}};
  model::RollupSpec plugs;
  plugs.name = "plug_load";
  plugs.metric = "load";
  plugs.by = {"house", "household", "plug"};
  plugs.slice = std::chrono::minutes(1);
  for (const char* window : {"1m", "5m", "15m", "1h", "2h", "1d"}) {
    plugs.windows.push_back(model::parse_window(window).value());
  }
  fleet.rollups = {plugs};
  return model::make_plan(fleet);
}

WindowRow row_of(int plug, std::string window) {
  WindowRow row;
  row.table = "plug_load";
  row.window = std::move(window);
  row.labels = {{"house", std::to_string(plug / 100)},
                {"household", std::to_string(plug / 10 % 10)},
                {"plug", std::to_string(plug % 10)}};
  row.start = kStart;
  row.end = kStart + std::chrono::minutes(1);
  for (int k = 0; k < 30; ++k) row.state.add(kStart + std::chrono::seconds(2 * k), (plug * 7 + k * k) / 1000.0, 3);
  row.shown = model::statistics(row.state, 3);
  return row;
}

// state.range(0): 1 = every commit writes new windows, 0 = it writes the same ones again.
void BM_Commit(benchmark::State& state) {
  const auto directory = base::TemporaryDirectory::create("store-bench").value();
  const model::Plan plan = plug_plan();
  const auto store = SqliteCloudStore::open(directory.path().string(), plan, {Fsync::kOn, 0}).value();
  CloudCommit commit;
  for (const model::TableWindow& window : plan.tables[0].windows) {
    for (int i = 0; i < kPlugs; ++i) commit.windows.push_back(row_of(i, model::to_string(window.spec)));
  }
  for (auto _ : state) {
    if (const absl::Status status = store->commit(commit); !status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      break;
    }
    if (state.range(0) == 0) continue;
    for (WindowRow& row : commit.windows) {
      row.start += std::chrono::minutes(1);
      row.end += std::chrono::minutes(1);
      row.state.first_time += std::chrono::minutes(1);
      row.state.last_time += std::chrono::minutes(1);
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(commit.windows.size()));
}
BENCHMARK(BM_Commit)->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond);

void BM_Load(benchmark::State& state) {
  const auto directory = base::TemporaryDirectory::create("store-bench").value();
  const auto store = SqliteCloudStore::open(directory.path().string(), plug_plan(), {Fsync::kOff, 0}).value();
  CloudCommit commit;
  for (int i = 0; i < kPlugs; ++i) commit.windows.push_back(row_of(i, "1m"));
  if (!store->commit(commit).ok()) state.SkipWithError("commit failed");
  for (auto _ : state) benchmark::DoNotOptimize(store->load_windows("plug_load", "1m", kStart));
  state.SetItemsProcessed(state.iterations() * kPlugs);
}
BENCHMARK(BM_Load)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orla::store
