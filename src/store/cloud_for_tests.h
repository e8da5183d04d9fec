// What the tests of the cloud's store and reader share: a small fleet and rows of it.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "store/cloud_store.h"

namespace orla::store {

inline constexpr model::Time kNoon = model::from_ns(1'379'073'600'000'000'000);  // 2013-09-13T12:00:00Z

inline model::RollupSpec test_rollup(std::string name, std::vector<std::string> by, std::vector<std::string> windows) {
  model::RollupSpec out;
  out.name = std::move(name);
  out.metric = "load";
  out.by = std::move(by);
  out.slice = std::chrono::minutes(1);
  for (const std::string& window : windows) out.windows.push_back(model::parse_window(window).value());
  return out;
}

// "plug" by house and plug in 1m and 1d, "house" = sum of means in 1m, forecasts of both in 1m steps. Samples may be an
// hour late.
inline model::Fleet small_fleet() {
  model::Fleet fleet;
  fleet.name = "smart-grid";
  fleet.zone = "Europe/Berlin";
  fleet.metrics = {{"load", "W", 3, {}, std::chrono::hours(1)}};
  fleet.rollups = {test_rollup("plug", {"house", "plug"}, {"1m", "1d"}), test_rollup("house", {"house"}, {"1m"})};
  fleet.rollups[1].metric.clear();
  fleet.rollups[1].from = "plug";
  fleet.rollups[1].across = model::Statistic::kSum;
  fleet.forecasts = {{{"plug", "house"}, "debs2014", {std::chrono::minutes(1)}}};
  return fleet;
}

inline std::vector<model::Label> plug(int house, int number) {
  return {{"house", std::to_string(house)}, {"plug", std::to_string(number)}};
}

inline model::Partial partial_of_values(model::Time start, const std::vector<double>& values) {
  model::Partial out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.add(start + std::chrono::seconds(static_cast<int>(i)), values[i], 3);
  }
  return out;
}

// A row of "plug" in 1m.
inline WindowRow merge_row(std::vector<model::Label> labels, model::Time start, const std::vector<double>& values,
                           std::uint64_t revision = 0) {
  WindowRow row;
  row.table = "plug";
  row.window = "1m";
  row.labels = std::move(labels);
  row.start = start;
  row.end = start + std::chrono::minutes(1);
  row.state = partial_of_values(start, values);
  row.shown = model::statistics(row.state, 3);
  row.revision = revision;
  return row;
}

// A row of "house" in 1m.
inline WindowRow across_row(int house, model::Time start, const std::vector<double>& contributions) {
  WindowRow row;
  row.table = "house";
  row.window = "1m";
  row.labels = {{"house", std::to_string(house)}};
  row.start = start;
  row.end = start + std::chrono::minutes(1);
  for (const double v : contributions) row.state.add_contribution(v);
  row.shown = model::statistics(row.state, 3);
  row.has_order = false;
  return row;
}

}  // namespace orla::store
