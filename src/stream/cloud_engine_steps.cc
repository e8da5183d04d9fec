// CloudEngine: forecast steps, one after the other, and what their predictions are made from.
#include <algorithm>

#include "stream/cloud_engine.h"

namespace orla::stream {
namespace {

// Steps of a gap in the data up to this long are predicted; a longer one is passed over.
constexpr model::Duration kLongestGap = std::chrono::hours(24 * 7);
// Days that predictions look back at most.
constexpr int kHistoryDays = 3660;
constexpr model::Duration kDay = std::chrono::hours(24);

}  // namespace

absl::Status CloudEngine::collect_steps(const std::vector<model::Time>& published, std::vector<StepProgress>& progress,
                                        CloudChanges& changes) {
  for (StepProgress& at : progress) {
    const StepProgress before = at;
    const std::size_t metric = plan_.tables[at.table].metric;
    const std::vector<WindowInstance*> changed = by_start(cache_.changed(at.table, at.window));
    for (const WindowInstance* instance : changed) {
      at.saw(instance->span.start, instance->span.end, publication_.of(metric));
    }
    if (!at.next) continue;
    const model::Time first = *at.next;
    const absl::Status status = publish_steps(published[metric], at, changes);
    if (!status.ok()) return status;
    // Corrections of steps published earlier.
    for (const WindowInstance* instance : changed) {
      if (instance->span.start < first) put_actuals(at, *instance, instance->changed, changes);
    }
    if (at.next != before.next || at.last != before.last) {
      changes.steps.push_back({plan_.tables[at.table].name, length_of(at).count(), *at.next, at.last});
    }
  }
  return absl::OkStatus();
}

absl::Status CloudEngine::publish_steps(model::Time published, StepProgress& at, CloudChanges& changes) {
  const model::WindowSpec& spec = plan_.tables[at.table].windows[at.window].spec;
  const model::Time anchor = anchors_[plan_.tables[at.table].metric];
  const std::size_t groups = std::max<std::size_t>(1, cache_.groups(at.table).size());
  const std::size_t most =
      std::max<std::size_t>(1, std::min(limits_.steps_per_change, limits_.step_rows_per_change / groups));
  std::vector<std::uint32_t> all;
  for (std::size_t n = 0; *at.next <= at.last;) {
    const Window step = calendar_.window_at(spec, *at.next, anchor);
    if (step.end > published) break;
    absl::StatusOr<WindowInstance*> instance = cache_.get(at.table, at.window, step);
    if (!instance.ok()) return instance.status();
    all.clear();
    for (std::uint32_t group = 0; group < (*instance)->cells.size(); ++group) {
      if ((*instance)->find(group) != nullptr) all.push_back(group);
    }
    if (all.empty()) {
      if (!at.gap_end || *at.gap_end <= *at.next) {
        absl::StatusOr<std::optional<model::Time>> end = cache_.next_start(at.table, at.window, step.end);
        if (!end.ok()) return end.status();
        at.gap_end = end->value_or(at.last);
      }
      if (*at.gap_end - *at.next > kLongestGap) {
        at.next = *at.gap_end;
        continue;
      }
    }
    if (n++ == most) {
      changes.more = true;
      break;
    }
    changes.published.push_back({at.forecast, at.step, step.start, calendar_.window_at(spec, step.end, anchor).end});
    put_actuals(at, **instance, all, changes);
    at.next = step.end;
  }
  return absl::OkStatus();
}

void CloudEngine::put_actuals(const StepProgress& at, const WindowInstance& instance,
                              const std::vector<std::uint32_t>& groups, CloudChanges& changes) const {
  for (const std::uint32_t group : groups) {
    const Cell* cell = instance.find(group);
    if (cell == nullptr) continue;
    changes.actuals.push_back(
        {at.forecast, at.step, instance.span.start, &cache_.groups(at.table)[group], value(at.table, cell->state)});
  }
}

absl::StatusOr<std::vector<StepInput>> CloudEngine::step_inputs(const PublishedStep& step) {
  const model::ForecastDef& forecast = plan_.forecasts[step.forecast];
  const std::size_t table = forecast.table;
  const std::size_t window = forecast.steps[step.step].window;
  const model::WindowSpec& spec = plan_.tables[table].windows[window].spec;
  const model::Time anchor = anchors_[plan_.tables[table].metric];
  std::vector<StepInput> out;
  for (const std::vector<model::Label>& labels : cache_.groups(table)) out.push_back({&labels, std::nullopt, {}});

  const auto read = [&](model::Time start, const auto& put) -> absl::Status {
    absl::StatusOr<WindowInstance*> instance = cache_.get(table, window, calendar_.window_at(spec, start, anchor));
    if (!instance.ok()) return instance.status();
    for (std::uint32_t group = 0; group < (*instance)->cells.size(); ++group) {
      const Cell* cell = (*instance)->find(group);
      if (cell != nullptr) put(out[group], value(table, cell->state));
    }
    cache_.shrink();
    return absl::OkStatus();
  };
  absl::Status status = read(step.start, [](StepInput& input, double v) { input.current = v; });
  // Only lengths that divide a day have steps at the same time of day.
  const bool daily = kDay % forecast.steps[step.step].length == model::Duration::zero();
  for (int n = 1; status.ok() && daily && n <= kHistoryDays; ++n) {
    const model::Time earlier = step.target - n * kDay;
    if (earlier < anchor) break;
    if (earlier > step.start) continue;  // not published yet
    status = read(earlier, [](StepInput& input, double v) { input.history.push_back(v); });
  }
  if (!status.ok()) return status;
  return out;
}

}  // namespace orla::stream
