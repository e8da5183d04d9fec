// What the cloud engine's tests share: a fleet, a store in memory, and a cloud that can stop and start again.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <tuple>

#include "stream/cloud_engine.h"

namespace orla::stream {

using Labels = std::vector<model::Label>;

// Keeps what the engine's changes say, as the cloud's store does.
class MemoryWindows final : public WindowLoader {
 public:
  using Key = std::tuple<std::string, std::string, model::Time>;  // table, window, start

  absl::StatusOr<std::vector<LoadedRow>> load(const std::string& table, const std::string& window,
                                              model::Time start) override {
    ++loads;
    if (!failure.ok()) return failure;
    std::vector<LoadedRow> out;
    const auto found = rows.find({table, window, start});
    if (found == rows.end()) return out;
    for (const auto& [labels, row] : found->second) out.push_back(row);
    return out;
  }

  absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                        model::Time from) override {
    const auto found = rows.lower_bound({table, window, from});
    if (found == rows.end() || std::get<0>(found->first) != table || std::get<1>(found->first) != window) {
      return std::nullopt;
    }
    return std::get<2>(found->first);
  }

  std::map<Key, std::map<Labels, LoadedRow>> rows;
  std::map<Key, model::Time> ends;
  absl::Status failure;
  int loads = 0;
};

// A cloud of one plan, with everything it keeps.
class TestCloud {
 public:
  explicit TestCloud(model::Fleet fleet, CloudLimits limits = {})
      : plan(std::make_unique<model::Plan>(model::make_plan(std::move(fleet)))), limits_(limits) {
    start();
  }

  // As after a SIGKILL: what was not committed is gone. Optionally with another fleet file.
  void restart() { start(); }
  void restart(model::Fleet fleet) {
    engine.reset();
    plan = std::make_unique<model::Plan>(model::make_plan(std::move(fleet)));
    start();
  }

  absl::Status fold(const std::string& stream, const Labels& labels, model::Time slice, const model::Partial& partial) {
    absl::StatusOr<model::GroupId> id = engine->intern(group(stream, labels));
    if (!id.ok()) return id.status();
    return engine->fold({{*id, slice, partial}});
  }

  model::GroupDef group(const std::string& stream, const Labels& labels) const {
    for (const model::StreamDef& def : plan->streams) {
      if (def.name == stream) return {stream, def.definition, def.slice.count(), def.decimals, labels};
    }
    return {stream, 1, 60'000'000'000, 3, labels};
  }

  void heard(const std::string& edge, model::Time published) {
    engine->heard(edge, {{"load", published}}, now);
    past_.edges.push_back({edge, {{"load", published}}});
  }

  // take_changes(), kept, committed(). Predictions are recorded in `published`, actuals in `actuals`.
  CloudChanges commit() {
    absl::StatusOr<CloudChanges> changes = engine->take_changes(now);
    EXPECT_TRUE(changes.ok()) << changes.status();
    if (!changes.ok()) return {};
    keep(*changes);
    engine->committed();
    return *std::move(changes);
  }

  void keep(const CloudChanges& changes) {
    for (const WindowChange& change : changes.windows) {
      const model::TableDef& table = plan->tables[change.table];
      const MemoryWindows::Key key{table.name, model::to_string(table.windows[change.window].spec), change.start};
      windows.rows[key][*change.labels] = {*change.labels, change.revision, *change.state};
      windows.ends[key] = change.end;
      past_.groups.emplace_back(table.name, *change.labels);
    }
    for (const auto& [table, time] : changes.publication)
      past_.publication.emplace_back(plan->tables[table].name, time);
    for (const auto& [table, time] : changes.anchors) past_.anchors.emplace_back(plan->tables[table].name, time);
    for (const StepState& state : changes.steps) past_.steps.push_back(state);
    for (const auto& [stream, definition] : changes.unparked) {
      std::erase_if(past_.parked, [&](const ParkedPartial& p) {
        return p.group.stream == stream && p.group.definition == definition;
      });
    }
    for (const ParkedPartial& parked : changes.parked) past_.parked.push_back(parked);
  }

  const LoadedRow* row(const std::string& table, const std::string& window, model::Time start,
                       const Labels& labels) const {
    const auto instance = windows.rows.find({table, window, start});
    if (instance == windows.rows.end()) return nullptr;
    const auto found = instance->second.find(labels);
    return found == instance->second.end() ? nullptr : &found->second;
  }

  std::unique_ptr<model::Plan> plan;
  MemoryWindows windows;
  std::unique_ptr<CloudEngine> engine;
  base::SteadyTime now{};

 private:
  void start() {
    engine.reset();
    absl::StatusOr<std::unique_ptr<CloudEngine>> created = CloudEngine::create(*plan, windows, limits_, past_, now);
    ASSERT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }

  CloudLimits limits_;
  CloudPast past_;
};

inline model::RollupSpec test_rollup(std::string name, std::vector<std::string> by, std::vector<std::string> windows) {
  model::RollupSpec out;
  out.name = std::move(name);
  out.metric = "load";
  out.by = std::move(by);
  out.slice = std::chrono::minutes(1);
  for (const std::string& window : windows) out.windows.push_back(model::parse_window(window).value());
  return out;
}

inline model::RollupSpec test_across(std::string name, std::string from, std::vector<std::string> by,
                                     std::vector<std::string> windows, model::Statistic across, model::Statistic of) {
  model::RollupSpec out = test_rollup(std::move(name), std::move(by), std::move(windows));
  out.metric.clear();
  out.from = std::move(from);
  out.across = across;
  out.of = of;
  return out;
}

// Metric "load" with three decimals, produced by the named edges.
inline model::Fleet test_fleet(std::vector<model::RollupSpec> rollups, std::vector<std::string> edges = {"e1"},
                               std::string zone = "UTC") {
  model::Fleet fleet;
  fleet.name = "test";
  fleet.zone = std::move(zone);
  fleet.idle_after = std::chrono::minutes(5);
  fleet.metrics = {{"load", "W", 3, {}, std::chrono::hours(1)}};
  fleet.rollups = std::move(rollups);
  for (const std::string& edge : edges) {
    model::NodeSpec node;
    node.name = edge;
    fleet.nodes.push_back(node);
    model::InputSpec input;
    input.key = edge + "/0";
    input.node = edge;
    fleet.inputs.push_back(input);
  }
  return fleet;
}

inline model::Partial partial_of(model::Time start, const std::vector<double>& values) {
  model::Partial out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.add(start + std::chrono::seconds(static_cast<int>(i)), values[i], 3);
  }
  return out;
}

}  // namespace orla::stream
