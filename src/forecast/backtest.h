// How well the published forecast (debs2014.h) would have done on recorded loads, next to persistence and the day
// median, per step length, pooled over plugs and over houses.
//
// Samples are summed into cells of one minute per plug, so memory grows with plugs and days, not with samples: 16 bytes
// a cell, 23 kB per plug and day.
//
// Definitions. Steps of each length are numbered 0, 1, 2, ... from local midnight (in `zone`) of the day of the
// earliest sample and step elapsed time, so a day is always 24 h. The value of a step is, for a plug, the exact mean of
// its samples in the step, rounded once; for a house the sum of those of its plugs that have samples in the step. A
// target is a step t = i+2 which itself has samples (there must be something to compare with), whose step i has
// samples, and for which at least one step t-n*k (k steps in 24 h, n >= 1) has samples. All three forecasts are judged
// over exactly these targets. A step is taken as it is at the end, late samples included.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/exact_sum.h"
#include "model/time.h"

namespace orla::forecast {

struct BacktestOptions {
  std::vector<model::Duration> steps = {std::chrono::minutes(1), std::chrono::minutes(5), std::chrono::minutes(15),
                                        std::chrono::minutes(60), std::chrono::minutes(120)};
  std::string zone = "UTC";  // IANA name
  int decimals = 3;          // of the loads' exact sums, see model/exact_sum.h
  // Bounds; beyond one the backtest ends with RESOURCE_EXHAUSTED.
  std::uint64_t max_plug_days = 200'000;  // 24 h of one plug; 23 kB each
  std::uint64_t max_days = 3'700;         // from the first to the last sample
};

// In the unit of the loads (watts). Of no targets: NaN.
struct ForecastError {
  double mae = 0;
  double rmse = 0;
};

struct BacktestScore {
  std::uint64_t n = 0;  // targets
  ForecastError formula;
  ForecastError persistence;
  ForecastError day_median;
};

struct BacktestRow {
  model::Duration step{};
  BacktestScore plug;
  BacktestScore house;
};

// Not thread-safe: one owner. Samples may come in any order.
class Backtest {
 public:
  // Every step is a whole number of minutes that divides 24 h; the zone is known; decimals in 0..model::kMaxDecimals.
  static absl::StatusOr<Backtest> create(BacktestOptions options);

  // The number of a plug for add(); the same for the same names.
  std::uint32_t plug(std::string_view house, std::string_view household, std::string_view plug);
  // One sample of the load of a plug named before; value finite.
  absl::Status add(std::uint32_t plug, model::Time time, double value);

  // One row per step length, in the order of the options.
  absl::StatusOr<std::vector<BacktestRow>> finish() const;

 private:
  struct Cell {
    std::int64_t sum = 0;  // of values that count as decimals, scaled; `wide` takes over where it would overflow
    std::uint32_t count = 0;
    std::uint32_t wide = 0;  // 1 + index into wide_ of the other values' sum; 0 = none
  };
  static constexpr std::int64_t kCellsPerDay = 24 * 60;
  struct Plug {
    std::uint32_t house = 0;
    std::map<std::int64_t, std::unique_ptr<Cell[]>> days;  // by UTC day since 1970
    std::int64_t last_day = 0;
    Cell* last_cells = nullptr;  // of last_day
  };
  struct Tally;  // sums of errors

  explicit Backtest(BacktestOptions options) : options_(std::move(options)) {}
  std::vector<double> step_means(const Plug& plug, std::int64_t anchor_minute, std::int64_t minutes_per_step,
                                 std::size_t steps) const;

  BacktestOptions options_;
  std::map<std::string, std::uint32_t, std::less<>> house_numbers_;
  std::map<std::string, std::uint32_t, std::less<>> plug_numbers_;
  std::vector<Plug> plugs_;
  std::vector<model::ExactSum> wide_;
  std::uint64_t plug_days_ = 0;
  std::int64_t first_minute_ = INT64_MAX;
  std::int64_t last_minute_ = INT64_MIN;
};

}  // namespace orla::forecast
