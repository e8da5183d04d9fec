// A plan, inputs and a node around an EdgeEngine, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stream/edge_engine.h"

namespace orla::stream::edge_tests {

using model::Duration;
using model::EdgeState;
using model::from_ns;
using model::InputBatch;
using model::kMaxTime;
using model::kMinTime;
using model::Partial;
using model::Publication;
using model::Time;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr Time kStart = from_ns(1'377'986'400'000'000'000);  // 2013-08-31T22:00:00Z, on a minute
inline Time at(double s) { return kStart + Duration(static_cast<std::int64_t>(s * 1e9)); }

struct Sample {
  std::size_t input;
  model::Series series;
  Time time;
  double value;
};

inline model::Series plug(const std::string& metric, int house, int number) {
  return {metric, {{"house", std::to_string(house)}, {"plug", std::to_string(number)}}};
}

// Metrics load and work; load by plug (1 min), by house (2 min) and by whole series (1 min); work by house.
inline model::Plan make_test_plan(std::size_t inputs = 1, Duration max_jump = {}, Duration idle_after = {}) {
  model::Fleet fleet;
  fleet.name = "f";
  fleet.zone = "UTC";
  fleet.nodes.push_back(
      {.name = "e", .layer = model::Layer::kEdge, .site = "", .listen = "", .http = "", .parents = {}, .gateway = {}});
  fleet.metrics = {{"load", "W", 1, seconds(5), seconds(100)}, {"work", "kWh", 3, seconds(0), seconds(50)}};
  for (std::size_t i = 0; i < inputs; ++i) {
    model::InputSpec input;
    input.key = "e/" + std::to_string(i);
    input.node = "e";
    input.max_jump = max_jump;
    input.idle_after = idle_after;
    fleet.inputs.push_back(input);
  }
  const auto rollup = [&](const char* name, const char* metric, std::vector<std::string> by, Duration slice) {
    model::RollupSpec r;
    r.name = name;
    r.metric = metric;
    r.by = std::move(by);
    r.slice = slice;
    r.windows = {{model::WindowSpec::Kind::kElapsed, minutes(10), {}}};
    fleet.rollups.push_back(r);
  };
  rollup("plug_load", "load", {"house", "plug"}, minutes(1));
  rollup("house_load", "load", {"house"}, minutes(2));
  rollup("house_work", "work", {"house", "floor"}, minutes(1));
  rollup("total_load", "load", {"house"}, minutes(1));
  fleet.rollups.back().across = model::Statistic::kSum;
  return model::make_plan(fleet);
}

// The same with sketches: quantiles of load by plug and by house, distinct plugs of a house (both metrics).
inline model::Plan make_sketched_plan(std::size_t inputs = 1, Duration max_jump = {}) {
  model::Fleet fleet = make_test_plan(inputs, max_jump).fleet;
  fleet.rollups[0].quantiles = true;
  fleet.rollups[1].quantiles = true;
  fleet.rollups[1].distinct = {"plug"};
  fleet.rollups[2].distinct = {"house", "plug"};
  return model::make_plan(std::move(fleet));
}

inline std::vector<std::string> keys(const model::Plan& plan) {
  std::vector<std::string> out;
  for (const model::InputSpec& input : plan.fleet.inputs) out.push_back(input.key);
  return out;
}

// Makes batches as an input would: its own dense numbers, from 0 again after a restart.
class Feed {
 public:
  InputBatch batch(const std::vector<Sample>& samples, std::size_t row) {
    InputBatch b;
    for (const Sample& s : samples) {
      const std::string id = model::identity(s.series);
      if (!numbers_.contains(id)) {
        numbers_.emplace(id, static_cast<std::uint32_t>(numbers_.size()));
        b.new_series.push_back(s.series);
      }
      const model::SeriesId number{numbers_.at(id)};
      const auto i = static_cast<std::uint32_t>(b.samples.times.size());
      if (b.samples.runs.empty() || b.samples.runs.back().series != number) b.samples.runs.push_back({number, i, i});
      b.samples.runs.back().end = i + 1;
      b.samples.times.push_back(s.time);
      b.samples.values.push_back(s.value);
    }
    b.received = samples.size();
    b.position = {row, row};
    return b;
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
};

using Cell = std::pair<std::string, std::pair<std::string, Time>>;  // stream, labels, slice
using Cells = std::map<Cell, Partial>;

inline std::string text(const std::vector<model::Label>& labels) { return model::to_string(model::Series{"", labels}); }

inline void collect(Cells& cells, const EdgeEngine& engine, const Sealed& sealed) {
  model::PartialRows sorted = sealed.rows;
  model::canonicalize(sorted);
  EXPECT_EQ(sorted, sealed.rows);
  for (const model::PartialRow& row : sealed.rows) {
    const model::GroupDef group = engine.group(row.group);
    EXPECT_GT(row.partial.count, 0u);
    cells[{group.stream, {text(group.labels), row.slice}}].merge(row.partial);
  }
}

// An engine with what a node keeps of it: commits, kills, restarts.
class Life {
 public:
  Life(const model::Plan& plan, SealScope scope, std::vector<std::string> input_keys)
      : plan_(plan), scope_(scope), keys_(std::move(input_keys)) {
    engine = std::make_unique<EdgeEngine>(plan_, keys_);
    feeds_.resize(keys_.size());
  }

  void apply(const std::vector<Sample>& samples, std::size_t row) {
    std::map<std::size_t, std::vector<Sample>> by_input;
    for (const Sample& s : samples) by_input[s.input].push_back(s);
    for (const auto& [input, part] : by_input) {
      const absl::Status status = engine->apply(input, feeds_[input].batch(part, row), Time{});
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::optional<Sealed> commit(SealWhen when, bool snapshot) {
    std::optional<Sealed> sealed = engine->seal(scope_, when);
    EdgeState state = engine->take_changes();
    model::PartialRows canonical = state.open;
    model::canonicalize(canonical);
    EXPECT_EQ(canonical, state.open);
    if (snapshot) {
      state = engine->snapshot();
      journal_.clear();
    }
    journal_.push_back(std::move(state));
    if (sealed) collect(cells, *engine, *sealed);
    return sealed;
  }

  void restart(std::vector<std::string> input_keys) {
    keys_ = std::move(input_keys);
    engine = std::make_unique<EdgeEngine>(plan_, keys_);
    feeds_.assign(keys_.size(), Feed());
    for (const EdgeState& state : journal_) {
      const absl::Status status = engine->restore(state);
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::unique_ptr<EdgeEngine> engine;
  Cells cells;

 private:
  const model::Plan& plan_;
  const SealScope scope_;
  std::vector<std::string> keys_;
  std::vector<Feed> feeds_;
  std::vector<EdgeState> journal_;
};

inline Time load_publication(EdgeEngine& engine) {
  for (const Publication& p : engine.publications())
    if (p.metric == "load") return p.time;
  return kMaxTime;
}

}  // namespace orla::stream::edge_tests
