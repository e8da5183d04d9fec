#include "forecast/backtest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "forecast/model.h"

namespace orla::forecast {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

bool present(double mean) { return !std::isnan(mean); }

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Sums of doubles with their rounding errors carried along (Neumaier 1974): the error of each is far below one unit in
// the last place of the result.
struct CarefulSum {
  double sum = 0;
  double lost = 0;
  void add(double v) {
    const double next = sum + v;
    lost += std::abs(sum) >= std::abs(v) ? (sum - next) + v : (v - next) + sum;
    sum = next;
  }
  double value() const { return sum + lost; }
};

struct ErrorSum {
  CarefulSum absolute;
  CarefulSum squared;
  void add(double error) {
    absolute.add(std::abs(error));
    squared.add(error * error);
  }
  ForecastError over(std::uint64_t n) const {
    if (n == 0) return {kAbsent, kAbsent};
    const double count = static_cast<double>(n);
    return {absolute.value() / count, std::sqrt(squared.value() / count)};
  }
};

absl::StatusOr<std::int64_t> midnight_minute(std::int64_t minute, const std::string& zone_name) {
  absl::TimeZone zone;
  if (!absl::LoadTimeZone(zone_name, &zone)) {
    return absl::InvalidArgumentError(fmt::format("zone: \"{}\" is not a known time zone", zone_name));
  }
  const absl::CivilDay day(zone.At(absl::FromUnixSeconds(minute * 60)).cs);
  const std::int64_t seconds = absl::ToUnixSeconds(absl::FromCivil(absl::CivilSecond(day), zone));
  if (seconds % 60 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("zone: in \"{}\" the first day does not start at a whole UTC minute", zone_name));
  }
  return seconds / 60;
}

}  // namespace

struct Backtest::Tally {
  std::uint64_t n = 0;
  ErrorSum formula, persistence, day_median;

  // means: per step, NaN where absent. Walks each time of day through the days, so the history is at hand.
  void judge(const std::vector<double>& means, std::size_t steps_per_day) {
    const LoadModel& model = *find_model("debs2014");
    std::vector<double> history;
    for (std::size_t slot = 0; slot < std::min(steps_per_day, means.size()); ++slot) {
      history.clear();
      for (std::size_t target = slot; target < means.size(); target += steps_per_day) {
        const double actual = means[target];
        if (!present(actual)) continue;
        if (!history.empty() && present(means[target - kStepsAhead])) {
          const double current = means[target - kStepsAhead];
          ++n;
          formula.add(*model.predict(current, history).value - actual);
          persistence.add(*forecast::persistence(current) - actual);
          day_median.add(*forecast::day_median(history) - actual);
        }
        history.push_back(actual);
      }
    }
  }
  BacktestScore score() const { return {n, formula.over(n), persistence.over(n), day_median.over(n)}; }
};

absl::StatusOr<Backtest> Backtest::create(BacktestOptions options) {
  for (const model::Duration step : options.steps) {
    if (step < std::chrono::minutes(1) || step % std::chrono::minutes(1) != model::Duration::zero() ||
        std::chrono::hours(24) % step != model::Duration::zero()) {
      return absl::InvalidArgumentError(
          fmt::format("step: expected whole minutes that divide 24 h, found {} ns", step.count()));
    }
    // The history of step t is at t-k, and step t-2 must not come before it.
    if (std::chrono::hours(24) / step < kStepsAhead) {
      return absl::InvalidArgumentError("step: expected at most 12 h");
    }
  }
  if (options.decimals < 0 || options.decimals > model::kMaxDecimals) {
    return absl::InvalidArgumentError(
        fmt::format("decimals: expected 0 to {}, found {}", model::kMaxDecimals, options.decimals));
  }
  absl::TimeZone zone;
  if (!absl::LoadTimeZone(options.zone, &zone)) {
    return absl::InvalidArgumentError(fmt::format("zone: \"{}\" is not a known time zone", options.zone));
  }
  return Backtest(std::move(options));
}

std::uint32_t Backtest::plug(std::string_view house, std::string_view household, std::string_view plug) {
  const std::string name = fmt::format("{}:{}/{}:{}/{}", house.size(), house, household.size(), household, plug);
  const auto known = plug_numbers_.find(name);
  if (known != plug_numbers_.end()) return known->second;
  const auto house_number =
      house_numbers_.try_emplace(std::string(house), static_cast<std::uint32_t>(house_numbers_.size())).first->second;
  const auto number = static_cast<std::uint32_t>(plugs_.size());
  plugs_.emplace_back().house = house_number;
  plug_numbers_.emplace(name, number);
  return number;
}

absl::Status Backtest::add(std::uint32_t number, model::Time time, double value) {
  Plug& plug = plugs_[number];
  const std::int64_t minute = floor_div(model::to_ns(time), std::int64_t{60} * 1'000'000'000);
  const std::int64_t day = floor_div(minute, kCellsPerDay);
  if (plug.last_cells == nullptr || plug.last_day != day) {
    auto [place, is_new] = plug.days.try_emplace(day);
    if (is_new) {
      if (++plug_days_ > options_.max_plug_days) {
        return absl::ResourceExhaustedError(
            fmt::format("the data covers more than max_plug_days = {} days of plugs; give a part of the data",
                        options_.max_plug_days));
      }
      place->second = std::make_unique<Cell[]>(kCellsPerDay);
    }
    plug.last_day = day;
    plug.last_cells = place->second.get();
  }
  first_minute_ = std::min(first_minute_, minute);
  last_minute_ = std::max(last_minute_, minute);

  Cell& cell = plug.last_cells[minute - day * kCellsPerDay];
  if (cell.count == UINT32_MAX) {
    return absl::ResourceExhaustedError("more than 4294967295 samples of one plug in one minute");
  }
  ++cell.count;
  const std::optional<std::int64_t> decimal = model::as_decimal(value, options_.decimals);
  std::int64_t sum = 0;
  if (decimal && !__builtin_add_overflow(cell.sum, *decimal, &sum)) {
    cell.sum = sum;
    return absl::OkStatus();
  }
  if (cell.wide == 0) {
    wide_.emplace_back();
    cell.wide = static_cast<std::uint32_t>(wide_.size());
  }
  wide_[cell.wide - 1].add(value, options_.decimals);
  return absl::OkStatus();
}

std::vector<double> Backtest::step_means(const Plug& plug, std::int64_t anchor_minute, std::int64_t minutes_per_step,
                                         std::size_t steps) const {
  std::vector<double> means(steps, kAbsent);
  std::size_t step = 0;
  std::uint64_t count = 0;
  __int128 sum = 0;
  model::ExactSum rest;
  bool has_rest = false;
  double unit = 1;
  for (int i = 0; i < options_.decimals; ++i) unit *= 10;
  const auto close = [&] {
    if (count == 0) return;
    constexpr __int128 kExact = __int128{1} << 53;
    const double divisor = unit * static_cast<double>(count);
    if (!has_rest && sum >= -kExact && sum <= kExact && divisor <= static_cast<double>(kExact)) {
      means[step] = static_cast<double>(sum) / divisor;  // both exact, so rounded once
    } else {
      rest.merge(model::ExactSum::from_decimals(sum, 0));  // the squares are not used
      means[step] = rest.mean(options_.decimals, count);
    }
    count = 0;
    sum = 0;
    rest = model::ExactSum();
    has_rest = false;
  };
  for (const auto& [day, cells] : plug.days) {
    for (std::int64_t i = 0; i < kCellsPerDay; ++i) {
      const Cell& cell = cells[i];
      if (cell.count == 0) continue;
      const auto of = static_cast<std::size_t>((day * kCellsPerDay + i - anchor_minute) / minutes_per_step);
      if (of != step) {
        close();
        step = of;
      }
      count += cell.count;
      sum += cell.sum;
      if (cell.wide != 0) {
        rest.merge(wide_[cell.wide - 1]);
        has_rest = true;
      }
    }
  }
  close();
  return means;
}

absl::StatusOr<std::vector<BacktestRow>> Backtest::finish() const {
  std::vector<BacktestRow> rows;
  std::int64_t anchor = 0;
  std::int64_t minutes = 0;
  if (first_minute_ <= last_minute_) {
    if ((last_minute_ - first_minute_) / kCellsPerDay >= static_cast<std::int64_t>(options_.max_days)) {
      return absl::ResourceExhaustedError(fmt::format("the data spans {} days; at most max_days = {} are possible",
                                                      (last_minute_ - first_minute_) / kCellsPerDay + 1,
                                                      options_.max_days));
    }
    auto midnight = midnight_minute(first_minute_, options_.zone);
    if (!midnight.ok()) return midnight.status();
    anchor = *midnight;
    minutes = last_minute_ - anchor + 1;
  }

  std::vector<std::vector<const Plug*>> houses(house_numbers_.size());
  for (const Plug& plug : plugs_) houses[plug.house].push_back(&plug);

  for (const model::Duration length : options_.steps) {
    const std::int64_t per_step = length / std::chrono::minutes(1);
    const auto steps = static_cast<std::size_t>((minutes + per_step - 1) / per_step);
    const auto per_day = static_cast<std::size_t>(kCellsPerDay / per_step);
    Tally plug_tally, house_tally;
    for (const std::vector<const Plug*>& house : houses) {
      std::vector<CarefulSum> sums(steps);
      std::vector<double> load(steps, kAbsent);
      for (const Plug* plug : house) {
        const std::vector<double> means = step_means(*plug, anchor, per_step, steps);
        plug_tally.judge(means, per_day);
        for (std::size_t i = 0; i < steps; ++i) {
          if (!present(means[i])) continue;
          sums[i].add(means[i]);
          load[i] = sums[i].value();
        }
      }
      house_tally.judge(load, per_day);
    }
    rows.push_back({length, plug_tally.score(), house_tally.score()});
  }
  return rows;
}

}  // namespace orla::forecast
