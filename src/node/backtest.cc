#include "node/backtest.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "forecast/backtest.h"
#include "ingest/input.h"

namespace orla::node {
namespace {

constexpr std::uint64_t kMaxShownRows = 5;

struct RowCounts {
  std::uint64_t loads = 0;
  std::uint64_t rejected = 0;
};

// Number of each of the input's series in the backtest; kNoLoad for other metrics.
constexpr std::uint32_t kNoLoad = UINT32_MAX;

std::uint32_t plug_of(forecast::Backtest& backtest, const model::Series& series) {
  if (series.metric != "load") return kNoLoad;
  std::string house, household, plug;
  for (const auto& [name, value] : series.labels) {
    if (name == "house") house = value;
    if (name == "household") household = value;
    if (name == "plug") plug = value;
  }
  return backtest.plug(house, household, plug);
}

absl::StatusOr<RowCounts> feed(const std::string& file, forecast::Backtest& backtest, std::ostream& notes) {
  model::InputSpec spec;
  spec.key = file;
  spec.path = file;
  auto input = ingest::make_input(spec, {});
  if (!input.ok()) return input.status();
  RowCounts counts;
  std::vector<std::uint32_t> plugs;
  model::InputBatch batch;
  for (;;) {
    const absl::StatusOr<bool> more = (*input)->next(batch);
    if (!more.ok()) return more.status();
    if (!*more) return counts;
    for (const model::Series& series : batch.new_series) plugs.push_back(plug_of(backtest, series));
    batch.samples.make_plain();
    for (const model::Batch::Run& run : batch.samples.runs) {
      const std::uint32_t plug = plugs[model::index(run.series)];
      if (plug == kNoLoad) continue;
      counts.loads += run.end - run.begin;
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const absl::Status added = backtest.add(plug, batch.samples.times[i], batch.samples.values[i]);
        if (!added.ok()) return added;
      }
    }
    std::uint64_t shown = counts.rejected;
    for (const auto& [reason, count] : batch.rejected) counts.rejected += count;
    for (const model::Rejection& row : batch.rejections) {
      if (shown++ >= kMaxShownRows) break;
      notes << fmt::format("{}, line {}: {}: {}\n", file, row.row, row.reason, row.message);
    }
  }
}

std::string name_of(model::Duration step) { return fmt::format("{}m", step / std::chrono::minutes(1)); }

nlohmann::ordered_json json_of(const forecast::ForecastError& error) {
  const auto number = [](double v) { return std::isnan(v) ? nlohmann::ordered_json() : nlohmann::ordered_json(v); };
  return {{"mae", number(error.mae)}, {"rmse", number(error.rmse)}};
}

nlohmann::ordered_json json_of(const forecast::BacktestScore& score) {
  return {{"n", score.n},
          {"formula", json_of(score.formula)},
          {"persistence", json_of(score.persistence)},
          {"day_median", json_of(score.day_median)}};
}

void write_json(const std::vector<forecast::BacktestRow>& rows, std::ostream& out) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const forecast::BacktestRow& row : rows) {
    all[name_of(row.step)] = {{"plug", json_of(row.plug)}, {"house", json_of(row.house)}};
  }
  out << all.dump(2) << "\n";
}

void write_table_row(const std::string& step, const char* of, const forecast::BacktestScore& score, std::ostream& out) {
  out << fmt::format("{:<6}{:<6}{:>10}", step, of, score.n);
  for (const forecast::ForecastError* error : {&score.formula, &score.persistence, &score.day_median}) {
    for (const double watts : {error->mae, error->rmse}) {
      out << (std::isnan(watts) ? fmt::format("{:>11}", "-") : fmt::format("{:>11.3f}", watts));
    }
  }
  out << "\n";
}

void write_table(const std::vector<forecast::BacktestRow>& rows, const RowCounts& counts, std::ostream& out) {
  out << fmt::format("{:<22}{:^22}{:^22}{:^22}\n", "", "formula", "persistence", "day median");
  out << fmt::format("{:<6}{:<6}{:>10}", "step", "of", "n");
  for (int i = 0; i < 3; ++i) out << fmt::format("{:>11}{:>11}", "MAE W", "RMSE W");
  out << "\n";
  for (const forecast::BacktestRow& row : rows) {
    write_table_row(name_of(row.step), "plug", row.plug, out);
    write_table_row(name_of(row.step), "house", row.house, out);
  }
  out << fmt::format("{} loads read, {} rows rejected\n", counts.loads, counts.rejected);
}

}  // namespace

absl::Status run_backtest(const BacktestRequest& request, std::ostream& out, std::ostream& notes) {
  forecast::BacktestOptions options;
  options.zone = request.zone;
  absl::StatusOr<forecast::Backtest> backtest = forecast::Backtest::create(std::move(options));
  if (!backtest.ok()) return backtest.status();
  const absl::StatusOr<RowCounts> counts = feed(request.file, *backtest, notes);
  if (!counts.ok()) return counts.status();
  if (counts->rejected > 0) notes << fmt::format("{}: {} rows rejected\n", request.file, counts->rejected);
  if (counts->loads == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: found no load; expected rows id,timestamp,value,property,plug_id,household_id,house_id with "
                    "property 1",
                    request.file));
  }
  const absl::StatusOr<std::vector<forecast::BacktestRow>> rows = backtest->finish();
  if (!rows.ok()) return rows.status();
  if (request.format == BacktestRequest::Format::kJson) {
    write_json(*rows, out);
  } else {
    write_table(*rows, *counts, out);
  }
  return absl::OkStatus();
}

}  // namespace orla::node
