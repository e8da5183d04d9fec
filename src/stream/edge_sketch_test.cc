// Sketches of the rows that an edge seals, against those of the samples themselves.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/bytes.h"
#include "base/hash.h"
#include "model/power_of_ten.h"
#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

std::uint64_t hash_of(std::initializer_list<std::string> values) {
  std::string bytes;
  base::ByteWriter to(bytes);
  for (const std::string& value : values) to.text(value);
  return base::hash64(bytes);
}

// Samples of two houses with three plugs each in runs, on all the engine's ways: sealed and restored in between.
TEST(EdgeSketches, HoldExactlyTheSamplesOfTheirRow) {
  const model::Plan plan = make_sketched_plan();
  std::mt19937_64 random(5);
  Feed feed;
  auto engine = std::make_unique<EdgeEngine>(plan, keys(plan));
  std::map<Cell, std::vector<double>> values;
  std::map<Cell, std::set<std::uint64_t>> plugs;
  Cells cells;
  double clock = 0;
  for (int step = 0; step < 60; ++step) {
    std::vector<Sample> samples;
    for (int house = 0; house < 2; ++house) {
      for (int number = 0; number < 3; ++number) {
        if (random() % 4 == 0) continue;
        const int count = random() % 3 == 0 ? 1 : static_cast<int>(random() % 40);
        for (int i = 0; i < count; ++i) {
          const double when = clock + i * 0.25 - (random() % 10 == 0 ? 4 : 0);
          double value = (static_cast<double>(random() % 40'000) - 10'000) / 10;
          if (random() % 100 == 0) value = 1.0 / 3;  // no decimal
          samples.push_back({0, plug(random() % 2 == 0 ? "load" : "work", house, number), at(when), value});
        }
      }
    }
    clock += 10;
    ASSERT_EQ(engine->apply(0, feed.batch(samples, static_cast<std::size_t>(step)), kStart), absl::OkStatus());
    for (const Sample& s : samples) {
      const std::string house = s.series.labels[0].second;
      const std::string number = s.series.labels[1].second;
      const auto add = [&](const char* stream, std::vector<model::Label> labels, Duration slice, std::uint64_t hash) {
        const Cell cell{stream, {text(labels), model::slice_start(s.time, slice)}};
        values[cell].push_back(s.value);
        plugs[cell].insert(hash);
      };
      if (s.series.metric == "work") {
        add("house_work", {{"house", house}, {"floor", ""}}, minutes(1), hash_of({house, number}));
      } else {
        add("plug_load", s.series.labels, minutes(1), 0);
        add("house_load", {{"house", house}}, minutes(2), hash_of({number}));
      }
    }
    if (step % 5 == 4) {
      if (const auto sealed = engine->seal(SealScope::kPublished, SealWhen::kSomethingNew))
        collect(cells, *engine, *sealed);
    }
    if (step % 12 == 11) {  // killed, and restored from what was kept
      const EdgeState state = engine->snapshot();
      engine = std::make_unique<EdgeEngine>(plan, keys(plan));
      ASSERT_EQ(engine->restore(state), absl::OkStatus());
      feed = Feed();
    }
  }
  if (const auto sealed = engine->seal(SealScope::kEverything, SealWhen::kAlways)) collect(cells, *engine, *sealed);
  std::size_t compared = 0;
  for (const auto& [cell, partial] : cells) {
    if (!values.contains(cell)) continue;  // whole series, without sketches
    const model::Sketches& sketches = partial.sketches;
    ASSERT_EQ(sketches.kinds().quantiles, cell.first != "house_work");
    ASSERT_EQ(sketches.kinds().distinct, cell.first != "plug_load");
    if (const model::QuantileSketch* quantiles = sketches.quantiles()) {
      model::QuantileSketch right;
      for (const double v : values[cell]) right.add(v);
      EXPECT_EQ(*quantiles, right) << cell.first << cell.second.first;
    }
    if (const model::DistinctSketch* distinct = sketches.distinct()) {
      model::DistinctSketch right;
      for (const std::uint64_t hash : plugs[cell]) right.add(hash);
      EXPECT_EQ(*distinct, right) << cell.first << cell.second.first;
    }
    ++compared;
  }
  EXPECT_EQ(compared, values.size());
  EXPECT_GT(compared, 60u);
}

}  // namespace
}  // namespace orla::stream::edge_tests
