// Samples a second through the edge engine, on the shape of the DEBS 2014 month: 2,125 plugs, load and work every 2 s,
// rollups by plug and by house (and whole series of load), committed every 256 Ki samples; and on samples as decoded
// frames hold them.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "stream/edge_engine.h"

namespace {

using orla::model::Time;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kPlugs = 2125;
constexpr std::size_t kBatch = 32 * 1024;

orla::model::Plan debs_plan() {
  orla::model::Fleet fleet;
  fleet.name = std::string("debs");
  fleet.zone = std::string("Europe/Berlin");
  fleet.metrics = {{"load", "W", 3, seconds(30), minutes(60)}, {"work", "kWh", 3, seconds(30), minutes(60)}};
  orla::model::InputSpec input;
  input.key = std::string("e/0");
  fleet.inputs.push_back(input);
  const auto rollup = [&](const char* name, const char* metric, std::vector<std::string> by) {
    orla::model::RollupSpec r;
    r.name = name;
    r.metric = metric;
    r.by = std::move(by);
    r.slice = minutes(1);
    r.windows = {{orla::model::WindowSpec::Kind::kElapsed, minutes(1), {}}};
    fleet.rollups.push_back(r);
  };
  rollup("plug_load", "load", {"house", "household", "plug"});
  rollup("house_pool", "load", {"house"});
  rollup("plug_work", "work", {"house", "household", "plug"});
  rollup("house_load", "load", {"house"});
  fleet.rollups.back().across = orla::model::Statistic::kSum;
  return orla::model::make_plan(fleet);
}

// Ten minutes of everything, in order of time; within a batch in order of the series when `grouped`.
std::vector<orla::model::InputBatch> debs_batches(bool grouped) {
  struct Sample {
    std::uint32_t series;
    Time time;
    double value;
  };
  std::vector<Sample> all;
  const Time start = orla::model::from_ns(1'377'986'400'000'000'000);
  for (int s = 0; s < 600; s += 2)
    for (std::uint32_t series = 0; series < 2 * kPlugs; ++series)
      all.push_back({series, start + seconds(s),
                     static_cast<double>((series * 7919 + static_cast<std::uint32_t>(s) * 131) % 90'000) / 1000});
  std::vector<orla::model::InputBatch> batches;
  for (std::size_t begin = 0; begin < all.size(); begin += kBatch) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), begin + kBatch));
    if (grouped) std::stable_sort(first, last, [](const Sample& a, const Sample& b) { return a.series < b.series; });
    orla::model::InputBatch& batch = batches.emplace_back();
    if (begin == 0)
      for (std::uint32_t series = 0; series < 2 * kPlugs; ++series)
        batch.new_series.push_back({series % 2 == 0 ? "load" : "work",
                                    {{"house", std::to_string(series / 106)},
                                     {"household", std::to_string(series / 12)},
                                     {"plug", std::to_string(series / 2)}}});
    for (auto s = first; s != last; ++s) {
      const auto i = static_cast<std::uint32_t>(batch.samples.times.size());
      const orla::model::SeriesId id{s->series};
      if (batch.samples.runs.empty() || batch.samples.runs.back().series != id)
        batch.samples.runs.push_back({id, i, i});
      batch.samples.runs.back().end = i + 1;
      batch.samples.times.push_back(s->time);
      batch.samples.values.push_back(s->value);
    }
    batch.received = batch.samples.times.size();
  }
  return batches;
}

void apply_and_seal(benchmark::State& state) {
  const orla::model::Plan plan = debs_plan();
  const std::vector<orla::model::InputBatch> batches = debs_batches(state.range(0) == 1);
  std::int64_t samples = 0;
  for (auto _ : state) {
    orla::stream::EdgeEngine engine(plan, {"e/0"});
    std::size_t since_commit = 0;
    for (const orla::model::InputBatch& batch : batches) {
      if (!engine.apply(0, batch, Time{}).ok()) return state.SkipWithError("a batch was refused");
      since_commit += batch.received;
      if (since_commit < 256 * 1024) continue;
      since_commit = 0;
      benchmark::DoNotOptimize(engine.seal(orla::stream::SealScope::kPublished, orla::stream::SealWhen::kSomethingNew));
      benchmark::DoNotOptimize(engine.take_changes());
    }
    engine.end_input(0);
    benchmark::DoNotOptimize(engine.seal(orla::stream::SealScope::kPublished, orla::stream::SealWhen::kAlways));
    samples += static_cast<std::int64_t>(engine.input(0).ledger.aggregated);
  }
  state.SetItemsProcessed(samples);
}
BENCHMARK(apply_and_seal)->ArgName("grouped")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond);

// One rollup by plug, over slices of 15 minutes; a sample a second of each plug.
orla::model::Plan plug_plan() {
  orla::model::Plan plan = debs_plan();
  orla::model::Fleet fleet = plan.fleet;
  fleet.metrics.resize(1);
  fleet.rollups.resize(1);
  fleet.rollups[0].slice = minutes(15);
  fleet.rollups[0].windows = {{orla::model::WindowSpec::Kind::kElapsed, minutes(15), {}}};
  return orla::model::make_plan(fleet);
}

// As decoded frames hold them: `minutes_long` minutes of every plug, in runs of 60 or (random) of 1, and in the second
// case a second in any order before the next.
std::vector<orla::model::InputBatch> decoded_batches(bool random, int minutes_long, std::size_t batch_size) {
  std::vector<std::pair<std::uint32_t, int>> runs;  // plug, first second
  std::uint32_t state = 1;
  for (int at = 0; at < minutes_long * 60; at += random ? 1 : 60) {
    const std::size_t from = runs.size();
    for (std::uint32_t plug = 0; plug < kPlugs; ++plug) runs.emplace_back(plug, at);
    for (std::size_t i = runs.size(); random && i > from + 1; --i) {
      state = state * 1664525 + 1013904223;
      std::swap(runs[i - 1], runs[from + state % (i - from)]);
    }
  }
  const Time start = orla::model::from_ns(1'377'986'400'000'000'000);
  std::vector<orla::model::InputBatch> batches;
  for (const auto& [plug, second] : runs) {
    if (batches.empty() || batches.back().samples.scaled.size() >= batch_size) batches.emplace_back();
    orla::model::Batch& b = batches.back().samples;
    b.decimals = 3;
    const auto begin = static_cast<std::uint32_t>(b.scaled.size());
    const std::uint32_t length = random ? 1 : 60;
    for (std::uint32_t i = 0; i < length; ++i)
      b.scaled.push_back(
          static_cast<std::int32_t>((plug * 7919 + static_cast<std::uint32_t>(second) * 131 + i * 17) % 90'000));
    b.runs.push_back({orla::model::SeriesId{plug}, begin, begin + length});
    if (random)
      b.times.push_back(start + seconds(second));
    else
      b.paces.push_back({start + seconds(second), seconds(1)});
  }
  for (std::uint32_t plug = 0; plug < kPlugs; ++plug)
    batches[0].new_series.push_back({"load", {{"house", "1"}, {"household", "1"}, {"plug", std::to_string(plug)}}});
  for (orla::model::InputBatch& b : batches) b.received = b.samples.size();
  return batches;
}

// Samples already decoded, in batches of 1,000 or 10,000, as time goes on; committed every 4 Mi samples.
void decoded(benchmark::State& state) {
  const bool random = state.range(0) == 1;
  constexpr int kMinutes = 4;
  const orla::model::Plan plan = plug_plan();
  std::vector<orla::model::InputBatch> batches =
      decoded_batches(random, kMinutes, static_cast<std::size_t>(state.range(1)));
  orla::stream::EdgeEngine engine(plan, {"e/0"});
  std::size_t since_commit = 0;
  std::int64_t samples = 0;
  for (auto _ : state) {
    for (orla::model::InputBatch& batch : batches) {
      if (!engine.apply(0, batch, Time{}).ok()) return state.SkipWithError("a batch was refused");
      batch.new_series.clear();
      for (Time& time : batch.samples.times) time += minutes(kMinutes);
      for (orla::model::Batch::Pace& pace : batch.samples.paces) pace.start += minutes(kMinutes);
      since_commit += batch.received;
      samples += static_cast<std::int64_t>(batch.received);
      if (since_commit < 4 * 1024 * 1024) continue;
      since_commit = 0;
      benchmark::DoNotOptimize(engine.seal(orla::stream::SealScope::kPublished, orla::stream::SealWhen::kSomethingNew));
      benchmark::DoNotOptimize(engine.take_changes());
    }
  }
  if (engine.input(0).ledger.aggregated != static_cast<std::uint64_t>(samples))
    return state.SkipWithError("not every sample was aggregated");
  state.SetItemsProcessed(samples);
}
BENCHMARK(decoded)->ArgNames({"random", "batch"})->ArgsProduct({{0, 1}, {1000, 10000}})->Unit(benchmark::kMillisecond);

}  // namespace
