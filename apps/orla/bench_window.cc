// orla bench window: the cloud's engine alone, on slices of many groups, with windows that overlap once, 60 and 1,440
// times.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "bench.h"
#include "model/plan.h"
#include "stream/cloud_engine.h"

namespace orla::apps {

namespace {

constexpr int kMinutes = 2 * 1440;  // of a run; the second day is measured
constexpr int kFirstMeasured = 1440;
constexpr const char* kWindows[] = {"1m", "1h/1m", "24h/1m"};
constexpr char kCounted[] =
    "rows: a partial of one group and minute, folded by the cloud's engine into its windows, each minute published and "
    "its changes taken; one thread, every window in memory, no disk and no network";

model::Time minute(int number) {
  return model::Time(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) + std::chrono::minutes(number);
}

// Thousandths.
std::int64_t value_of(std::uint64_t seed, int minute, std::uint32_t group) {
  return static_cast<std::int64_t>(base::hash64(fmt::format("{}/{}/{}", seed, minute, group)) % 1'000'000);
}

model::Plan plan_of(const char* window) {
  model::Fleet fleet;
  fleet.name = "bench";
  fleet.zone = "Europe/Berlin";
  fleet.metrics.push_back({"load", "W", 3, std::chrono::seconds(0), std::chrono::hours(1)});
  fleet.nodes.emplace_back().name = "edge";
  model::InputSpec& input = fleet.inputs.emplace_back();
  input.key = "edge/0";
  input.node = "edge";
  model::RollupSpec& rollup = fleet.rollups.emplace_back();
  rollup.name = "plug_load";
  rollup.metric = "load";
  rollup.by = {"plug"};
  rollup.slice = std::chrono::minutes(1);
  rollup.windows = {model::parse_window(window).value()};
  return model::make_plan(std::move(fleet));
}

// The engine never asks again for what it was told to keep in memory.
class Nothing final : public stream::WindowLoader {
 public:
  absl::StatusOr<std::vector<stream::LoadedRow>> load(const std::string&, const std::string&, model::Time) override {
    return std::vector<stream::LoadedRow>();
  }
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string&, const std::string&, model::Time) override {
    return std::nullopt;
  }
};

// A row of a declared window as it was written; of one window the last one stands.
struct Written {
  model::Time start{};
  model::Time end{};
  const std::vector<model::Label>* labels = nullptr;
  std::uint64_t count = 0;
  std::int64_t sum = 0;
  double min = 0;
  double max = 0;
};

class Run {
 public:
  Run(const model::Plan& plan, std::uint32_t groups, const std::vector<std::vector<std::int64_t>>& values)
      : values_(values) {
    stream::CloudLimits limits;
    limits.cached_window_rows = SIZE_MAX;
    limits.hopping_sums = SIZE_MAX;
    engine_ = stream::CloudEngine::create(plan, nothing_, limits, {}, {}).value();
    const model::StreamDef& stream = plan.streams[0];
    for (std::uint32_t group = 0; group < groups; ++group) {
      ids_.push_back(engine_
                         ->intern({stream.name,
                                   stream.definition,
                                   stream.slice.count(),
                                   stream.decimals,
                                   {{"plug", fmt::format("{}", group)}}})
                         .value());
    }
  }

  absl::Status to(int end) {
    for (; next_ < end; ++next_) {
      rows_.clear();
      for (std::uint32_t group = 0; group < ids_.size(); ++group) {
        model::PartialRow& row = rows_.emplace_back(model::PartialRow{ids_[group], minute(next_), {}});
        row.partial.add(minute(next_), static_cast<double>(values_[group][static_cast<std::size_t>(next_)]) / 1000, 3);
      }
      if (absl::Status status = engine_->fold(rows_); !status.ok()) return status;
      engine_->heard("edge", {{"load", minute(next_ + 1)}}, {});
      bool more = true;
      while (more) {
        const absl::StatusOr<stream::CloudChanges> changes = engine_->take_changes({});
        if (!changes.ok()) return changes.status();
        for (const stream::WindowChange& change : changes->windows) {
          ++changed_;
          if (change.window != 0) continue;
          written_.push_back({change.start, change.end, change.labels, change.state->count,
                              static_cast<std::int64_t>(change.state->sums.decimal_sum()), change.state->min,
                              change.state->max});
        }
        more = changes->more;
        engine_->committed();
      }
    }
    return absl::OkStatus();
  }

  void start_counting() {
    written_.clear();
    changed_ = 0;
    merges_ = engine_->hopping().merges();
  }
  std::uint64_t changed() const { return changed_; }
  std::uint64_t merges() const { return engine_->hopping().merges() - merges_; }

  // Every row written while it counted, against the sum over its minutes; and that none is missing.
  std::string difference() const {
    std::uint64_t published = 0;
    for (const Written& row : written_) {
      const std::vector<std::int64_t>& values = values_[std::stoul(row.labels->at(0).second)];
      const auto first = std::max<std::int64_t>(0, (row.start - minute(0)) / std::chrono::minutes(1));
      const auto end = std::min<std::int64_t>(next_, (row.end - minute(0)) / std::chrono::minutes(1));
      std::int64_t sum = 0;
      std::int64_t least = INT64_MAX;
      std::int64_t most = 0;
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t value = values[static_cast<std::size_t>(i)];
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
      }
      const double unit = 1000;
      if (row.count != static_cast<std::uint64_t>(end - first) || row.sum != sum ||
          row.min != static_cast<double>(least) / unit || row.max != static_cast<double>(most) / unit) {
        return fmt::format("plug {}: count {}, sum {}; expected {}, {}", row.labels->at(0).second, row.count, row.sum,
                           end - first, sum);
      }
      ++published;
    }
    const std::uint64_t expected = ids_.size() * (kMinutes - kFirstMeasured);
    return published == expected ? "" : fmt::format("{} windows; expected {}", published, expected);
  }

 private:
  const std::vector<std::vector<std::int64_t>>& values_;  // by group, by minute
  Nothing nothing_;
  std::unique_ptr<stream::CloudEngine> engine_;
  std::vector<model::GroupId> ids_;
  model::PartialRows rows_;
  std::vector<Written> written_;
  int next_ = 0;
  std::uint64_t changed_ = 0;
  std::uint64_t merges_ = 0;
};

struct WindowLoad {
  std::uint32_t groups = 200;
  std::uint64_t seed = 1;
};

absl::StatusOr<BenchReport> run(const WindowLoad& load, const BenchOptions& options) {
  std::vector<std::vector<std::int64_t>> values(load.groups);
  for (std::uint32_t group = 0; group < load.groups; ++group) {
    for (int i = 0; i < kMinutes; ++i) values[group].push_back(value_of(load.seed, i, group));
  }
  const double rows = static_cast<double>(load.groups) * (kMinutes - kFirstMeasured);
  BenchOptions each = options;
  each.seconds = options.seconds / static_cast<double>(std::size(kWindows));
  BenchReport report;
  BenchReport windows = BenchReport::array();
  std::string problem;
  double seconds = 0;
  double hopping_costs[std::size(kWindows)] = {};
  std::size_t runs = SIZE_MAX;
  for (std::size_t w = 0; w < std::size(kWindows); ++w) {
    const model::Plan plan = plan_of(kWindows[w]);
    const model::WindowSpec& spec = plan.tables[0].windows[0].spec;
    std::uint64_t changed = 0;
    std::uint64_t merges = 0;
    const absl::StatusOr<std::vector<BenchRun>> found = measure(each, [&](const Timed& timed) {
      Run one(plan, load.groups, values);
      absl::Status status = one.to(kFirstMeasured);
      if (!status.ok()) return status;
      one.start_counting();
      status = timed([&] { return one.to(kMinutes); });
      if (!status.ok()) return status;
      changed = one.changed();
      merges = one.merges();
      const std::string difference = one.difference();
      if (problem.empty() && !difference.empty()) problem = fmt::format("window {}: {}", kWindows[w], difference);
      return absl::OkStatus();
    });
    if (!found.ok()) return found.status();
    const BenchRun middle = median_run(*found);
    seconds += middle.seconds;
    runs = std::min(runs, found->size());
    hopping_costs[w] = middle.cpu_seconds;
    BenchReport& row = windows.emplace_back();
    row["window"] = kWindows[w];
    row["ratio"] = spec.hop.count() > 0 ? spec.size / spec.hop : 1;
    row["cpu_seconds"] = middle.cpu_seconds;
    row["rows_per_s"] = rows / middle.seconds;
    row["ns_per_hop"] = middle.cpu_seconds * 1e9 / rows;  // of one group
    row["merges_per_hop"] = static_cast<double>(merges) / rows;
    row["written_per_hop"] = static_cast<double>(changed) / rows;
  }
  report["groups"] = load.groups;
  report["hops"] = kMinutes - kFirstMeasured;
  report["runs"] = runs;
  report["seconds"] = seconds;
  report["rate_per_s"] = rows * static_cast<double>(std::size(kWindows)) / seconds;
  report["windows"] = std::move(windows);
  report["cost_1440_to_60"] = hopping_costs[2] / hopping_costs[1];
  report["seed"] = load.seed;
  conclude(report, problem, kCounted);
  return report;
}

}  // namespace

RunBench add_window_bench(CLI::App& command) {
  auto load = std::make_shared<WindowLoad>();  // with the runner
  command.add_option("--groups", load->groups, "Groups with a row in every minute")
      ->check(CLI::Range(1U, 100'000U))
      ->capture_default_str();
  command.add_option("--seed", load->seed, "Of the values")->capture_default_str();
  return [load](const BenchOptions& options) { return run(*load, options); };
}

}  // namespace orla::apps
