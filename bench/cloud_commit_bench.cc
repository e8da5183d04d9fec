// The cloud's whole commit path: fold partials, evaluate across series, write one transaction.
#include <benchmark/benchmark.h>

#include "base/files.h"
#include "store/sqlite_cloud_store.h"
#include "stream/cloud_engine.h"

namespace orla {
namespace {

constexpr int kPlugs = 4250;

// Plugs in six kinds of windows, their houses' load in the same.
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
  model::RollupSpec houses = plugs;
  houses.name = "house_load";
  houses.metric.clear();
  houses.from = "plug_load";
  houses.by = {"house"};
  houses.across = model::Statistic::kSum;
  fleet.rollups = {plugs, houses};
  return model::make_plan(fleet);
}

class Loader final : public stream::WindowLoader {
 public:
  explicit Loader(store::CloudStore& store) : store_(store) {}
  absl::StatusOr<std::vector<stream::LoadedRow>> load(const std::string& table, const std::string& window,
                                                      model::Time start) override {
    absl::StatusOr<std::vector<store::WindowRow>> rows = store_.load_windows(table, window, start);
    if (!rows.ok()) return rows.status();
    std::vector<stream::LoadedRow> out;
    for (store::WindowRow& row : *rows) out.push_back({std::move(row.labels), row.revision, std::move(row.state)});
    return out;
  }
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                        model::Time from) override {
    return store_.next_start(table, window, from);
  }

 private:
  store::CloudStore& store_;
};

void add_windows(const model::Plan& plan, const stream::CloudChanges& changes, store::CloudCommit& commit) {
  commit.windows.reserve(changes.windows.size());
  for (const stream::WindowChange& change : changes.windows) {
    const model::TableDef& table = plan.tables[change.table];
    commit.windows.push_back({table.name, model::to_string(table.windows[change.window].spec), *change.labels,
                              change.start, change.end, model::statistics(*change.state, 3), !table.across.has_value(),
                              change.revision, *change.state});
  }
}

// state.range(0): slices of every plug in one commit. Items are partials folded.
void BM_FoldAndCommit(benchmark::State& state) {
  const auto directory = base::TemporaryDirectory::create("cloud-bench").value();
  const model::Plan plan = plug_plan();
  const auto store = store::SqliteCloudStore::open(directory.path().string(), plan, {store::Fsync::kOn, 0}).value();
  Loader loader(*store);
  const auto engine = stream::CloudEngine::create(plan, loader, {}, {}, {}).value();
  model::PartialRows rows;
  model::Time start = model::from_ns(1'378'000'020'000'000'000);
  for (int i = 0; i < kPlugs; ++i) {
    const model::GroupId id = engine
                                  ->intern({"plug_load",
                                            plan.streams[0].definition,
                                            60'000'000'000,
                                            3,
                                            {{"house", std::to_string(i / 100)},
                                             {"household", std::to_string(i / 10 % 10)},
                                             {"plug", std::to_string(i % 10)}}})
                                  .value();
    for (int s = 0; s < state.range(0); ++s) {
      model::PartialRow row{id, start + std::chrono::minutes(s), {}};
      for (int k = 0; k < 30; ++k)
        row.partial.add(row.slice + std::chrono::seconds(2 * k), (i * 7 + k * k) / 1000.0, 3);
      rows.push_back(std::move(row));
    }
  }
  const model::Duration step = std::chrono::minutes(state.range(0));
  for (auto _ : state) {
    absl::Status status = engine->fold(rows);
    absl::StatusOr<stream::CloudChanges> changes = engine->take_changes({});
    if (status.ok()) status = changes.status();
    if (status.ok()) {
      store::CloudCommit commit;
      add_windows(plan, *changes, commit);
      status = store->commit(commit);
    }
    if (!status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      break;
    }
    engine->committed();
    for (model::PartialRow& row : rows) {
      row.slice += step;
      row.partial.first_time += step;
      row.partial.last_time += step;
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows.size()));
}
BENCHMARK(BM_FoldAndCommit)->Arg(1)->Arg(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orla
