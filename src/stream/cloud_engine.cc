#include "stream/cloud_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace orla::stream {
namespace {

// Slices outside cannot come from a sound edge; arithmetic on windows stays far from the ends of Time.
constexpr model::Time kLeastSlice = model::kMinTime + std::chrono::hours(24 * 800);
constexpr model::Time kLastSlice = model::kMaxTime - std::chrono::hours(24 * 800);
// Steps of a gap in the data up to this long are predicted; a longer one is passed over.
constexpr model::Duration kLongestGap = std::chrono::hours(24 * 7);
// Days that predictions look back at most.
constexpr int kHistoryDays = 3660;
constexpr model::Duration kDay = std::chrono::hours(24);

bool by_start(const WindowInstance* a, const WindowInstance* b) { return a->span.start < b->span.start; }

std::vector<WindowInstance*> sorted(std::vector<WindowInstance*> instances) {
  std::sort(instances.begin(), instances.end(), by_start);
  return instances;
}

}  // namespace

CloudEngine::CloudEngine(const model::Plan& plan, WindowLoader& loader, CloudLimits limits, Calendar calendar,
                         base::SteadyTime now)
    : plan_(plan),
      limits_(limits),
      calendar_(std::move(calendar)),
      publication_(plan, now),
      cache_(plan, loader, limits.cached_window_rows),
      tables_of_stream_(plan.streams.size()),
      anchors_(plan.fleet.metrics.size(), model::kMinTime),
      kept_anchors_(plan.tables.size(), model::kMinTime),
      kept_publications_(plan.tables.size(), model::kMinTime) {
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    if (plan.tables[t].stream) tables_of_stream_[*plan.tables[t].stream].push_back(t);
  }
  for (std::size_t f = 0; f < plan.forecasts.size(); ++f) {
    const model::ForecastDef& forecast = plan.forecasts[f];
    for (std::size_t s = 0; s < forecast.steps.size(); ++s) {
      StepProgress& progress = progress_.emplace_back();
      progress.forecast = f;
      progress.step = s;
      progress.table = forecast.table;
      progress.window = forecast.steps[s].window;
    }
  }
}

absl::StatusOr<std::unique_ptr<CloudEngine>> CloudEngine::create(const model::Plan& plan, WindowLoader& loader,
                                                                 CloudLimits limits, CloudPast past,
                                                                 base::SteadyTime now) {
  absl::StatusOr<Calendar> calendar = Calendar::load(plan.fleet.zone);
  if (!calendar.ok()) return calendar.status();
  std::unique_ptr<CloudEngine> engine(new CloudEngine(plan, loader, limits, *std::move(calendar), now));
  const absl::Status status = engine->restore(std::move(past));
  if (!status.ok()) return status;
  return engine;
}

absl::Status CloudEngine::restore(CloudPast past) {
  const auto table_named = [&](const std::string& name) -> std::optional<std::size_t> {
    const model::TableDef* def = plan_.table(name);
    if (def == nullptr) return std::nullopt;
    return static_cast<std::size_t>(def - plan_.tables.data());
  };
  for (const auto& [edge, publications] : past.edges) publication_.restore(edge, publications);
  for (const auto& [name, time] : past.publication) {
    const auto table = table_named(name);
    if (!table) continue;
    publication_.restore(plan_.tables[*table].metric, time);
    kept_publications_[*table] = time;
  }
  for (const auto& [name, time] : past.anchors) {
    const auto table = table_named(name);
    if (!table) continue;
    anchors_[plan_.tables[*table].metric] = time;
    kept_anchors_[*table] = time;
  }
  for (const auto& [name, labels] : past.groups) {
    if (const auto table = table_named(name)) cache_.group(*table, labels);
  }
  for (const StepState& state : past.steps) {
    for (StepProgress& progress : progress_) {
      if (plan_.tables[progress.table].name != state.table || length_of(progress).count() != state.step_ns) continue;
      progress.next = state.next;
      progress.last = state.last;
    }
  }

  // What was parked and is known now is folded; the rest goes on waiting in the store.
  model::PartialRows known;
  std::map<std::pair<std::string, std::uint64_t>, bool> definitions;
  for (ParkedPartial& parked : past.parked) {
    absl::StatusOr<std::optional<std::size_t>> stream = stream_of(parked.group);
    if (!stream.ok() || !stream->has_value()) {
      ++parked_count_;
      continue;
    }
    absl::StatusOr<model::GroupId> id = intern(parked.group);
    if (!id.ok()) return id.status();
    definitions[{parked.group.stream, parked.group.definition}] = true;
    known.push_back({*id, parked.slice, std::move(parked.partial)});
  }
  const absl::Status status = fold(known);
  if (!status.ok()) return status;
  for (auto& [definition, ignored] : definitions) unparked_.push_back(definition);
  return absl::OkStatus();
}

model::Duration CloudEngine::length_of(const StepProgress& progress) const {
  return plan_.forecasts[progress.forecast].steps[progress.step].length;
}

absl::StatusOr<std::optional<std::size_t>> CloudEngine::stream_of(const model::GroupDef& group) const {
  for (std::size_t s = 0; s < plan_.streams.size(); ++s) {
    const model::StreamDef& stream = plan_.streams[s];
    if (stream.name != group.stream || stream.definition != group.definition) continue;
    bool agrees = group.slice_ns == stream.slice.count() && group.decimals == stream.decimals;
    if (!stream.whole_series) {
      agrees = agrees && std::equal(group.labels.begin(), group.labels.end(), stream.by.begin(), stream.by.end(),
                                    [](const model::Label& l, const std::string& name) { return l.first == name; });
    }
    if (agrees) return s;
    return absl::InvalidArgumentError(fmt::format(
        "a group of stream \"{}\" has its definition {:016x} but other labels, slice or decimals; its sender is "
        "damaged or of another version",
        group.stream, group.definition));
  }
  return std::nullopt;
}

absl::StatusOr<model::GroupId> CloudEngine::intern(const model::GroupDef& group) {
  const auto [entry, added] =
      group_ids_.try_emplace(model::identity(group), static_cast<model::GroupId>(groups_.size()));
  if (!added) return entry->second;
  const auto refuse = [&](absl::Status status) {
    group_ids_.erase(entry);
    return status;
  };
  if (groups_.size() >= limits_.groups) {
    return refuse(absl::ResourceExhaustedError(fmt::format(
        "the cloud knows {} groups already, its limit; raise it, or use fewer labels in `by`", groups_.size())));
  }
  absl::StatusOr<std::optional<std::size_t>> stream = stream_of(group);
  if (!stream.ok()) return refuse(stream.status());
  Group known;
  known.stream = *stream;
  if (known.stream) {
    for (const std::size_t table : tables_of_stream_[*known.stream]) {
      known.in_table.push_back(cache_.group(table, group.labels));
    }
  } else {
    known.definition = group;
  }
  groups_.push_back(std::move(known));
  return entry->second;
}

absl::Status CloudEngine::check(const model::PartialRow& row) const {
  if (model::index(row.group) >= groups_.size()) {
    return absl::InvalidArgumentError(
        fmt::format("a partial of group number {}, which was never defined", model::index(row.group)));
  }
  const Group& group = groups_[model::index(row.group)];
  const model::Duration slice =
      group.stream ? plan_.streams[*group.stream].slice : model::Duration(group.definition.slice_ns);
  if (slice <= model::Duration::zero() || row.slice < kLeastSlice || row.slice > kLastSlice ||
      model::slice_start(row.slice, slice) != row.slice) {
    return absl::InvalidArgumentError(fmt::format("a partial from {} ns, where no slice of {} begins",
                                                  model::to_ns(row.slice), model::to_string(slice)));
  }
  return absl::OkStatus();
}

void CloudEngine::move_anchor(std::size_t metric, model::Time slice) {
  const model::Time day = calendar_.day(slice).start;
  model::Time& anchor = anchors_[metric];
  if (anchor != model::kMinTime) {
    if (day >= anchor) return;
    // An earlier first day only renumbers the steps if all of them keep their boundaries; else they stay.
    for (const model::TableDef& table : plan_.tables) {
      if (table.metric != metric) continue;
      for (const model::TableWindow& window : table.windows) {
        if (window.spec.kind != model::WindowSpec::Kind::kSteps) continue;
        if ((anchor - day) % window.spec.size != model::Duration::zero()) return;
      }
    }
  }
  anchor = day;
}

absl::Status CloudEngine::fold(const model::PartialRows& rows) {
  if (taken_) return absl::FailedPreconditionError("changes were taken and not committed yet; fold after committed()");
  std::size_t unknown = 0;
  std::vector<model::Time> earliest(anchors_.size(), model::kMaxTime);
  for (const model::PartialRow& row : rows) {
    const absl::Status status = check(row);
    if (!status.ok()) return status;
    const Group& group = groups_[model::index(row.group)];
    if (!group.stream) {
      ++unknown;
      continue;
    }
    model::Time& first = earliest[plan_.streams[*group.stream].metric];
    first = std::min(first, row.slice);
  }
  if (unknown > 0 && parked_count_ + unknown > limits_.parked_rows) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} partials of definitions this cloud does not know, {} wait already, its limit is {}; give the cloud the "
        "fleet file of its edges",
        unknown, parked_count_, limits_.parked_rows));
  }
  for (std::size_t m = 0; m < earliest.size(); ++m) {
    if (earliest[m] != model::kMaxTime) move_anchor(m, earliest[m]);
  }

  // First every window that is touched, which may fail, then the sums, which cannot.
  struct Target {
    WindowInstance* instance;
    std::size_t place;  // in Group::in_table
  };
  std::map<std::pair<std::size_t, model::Time>, std::vector<Target>> targets;  // by stream and slice
  std::vector<const std::vector<Target>*> of_row(rows.size(), nullptr);
  std::vector<Window> spans;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Group& group = groups_[model::index(rows[i].group)];
    if (!group.stream) continue;
    const auto [entry, added] = targets.try_emplace({*group.stream, rows[i].slice});
    of_row[i] = &entry->second;
    if (!added) continue;
    const std::vector<std::size_t>& tables = tables_of_stream_[*group.stream];
    for (std::size_t place = 0; place < tables.size(); ++place) {
      const model::TableDef& table = plan_.tables[tables[place]];
      for (std::size_t w = 0; w < table.windows.size(); ++w) {
        calendar_.windows_of(table.windows[w].spec, rows[i].slice, anchors_[table.metric], spans);
        for (const Window& span : spans) {
          absl::StatusOr<WindowInstance*> instance = cache_.get(tables[place], w, span);
          if (!instance.ok()) return instance.status();
          entry->second.push_back({*instance, place});
        }
      }
    }
  }

  for (std::size_t i = 0; i < rows.size(); ++i) {
    const model::PartialRow& row = rows[i];
    if (row.partial.count == 0) continue;
    const Group& group = groups_[model::index(row.group)];
    if (of_row[i] == nullptr) {
      parked_.push_back({group.definition, row.slice, row.partial});
      ++parked_count_;
      continue;
    }
    for (const Target& target : *of_row[i]) {
      cache_.change(*target.instance, group.in_table[target.place]).state.merge(row.partial);
    }
  }
  return absl::OkStatus();
}

void CloudEngine::heard(const model::NodeName& edge, const std::vector<model::Publication>& publications,
                        base::SteadyTime now) {
  publication_.heard(edge, publications, now);
}

double CloudEngine::value(std::size_t table, const model::Partial& partial) const {
  const model::TableDef& def = plan_.tables[table];
  const int decimals = plan_.fleet.metrics[def.metric].decimals;
  return model::pick(partial, decimals, def.across.value_or(model::Statistic::kMean));
}

absl::Status CloudEngine::evaluate_across() {
  // Sources come before their readers, so one pass carries a change through a whole chain.
  for (std::size_t t = 0; t < plan_.tables.size(); ++t) {
    if (!plan_.tables[t].source) continue;
    for (std::size_t w = 0; w < plan_.tables[t].windows.size(); ++w) {
      const absl::Status status = evaluate_across(t, w);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CloudEngine::evaluate_across(std::size_t table, std::size_t window) {
  const model::TableDef& def = plan_.tables[table];
  const std::size_t source = *def.source;
  // A source that is itself across contributes the statistic it stands for.
  const model::Statistic of = plan_.tables[source].across.value_or(def.of);
  const int decimals = plan_.fleet.metrics[def.metric].decimals;
  std::vector<std::uint32_t> affected;
  std::vector<bool> seen(cache_.groups(table).size(), false);
  // Loading may add to the lists of changes, never to the source's.
  for (const WindowInstance* from : cache_.changed(source, cache_.source_window(table, window))) {
    absl::StatusOr<WindowInstance*> into = cache_.get(table, window, from->span);
    if (!into.ok()) return into.status();
    affected.clear();
    for (const std::uint32_t changed : from->changed) {
      const std::uint32_t target = cache_.target_of(table, changed);
      if (seen[target]) continue;
      seen[target] = true;
      affected.push_back(target);
    }
    for (const std::uint32_t target : affected) {
      seen[target] = false;
      model::Partial sum;
      for (const std::uint32_t member : cache_.members(table, target)) {
        const Cell* cell = from->find(member);
        if (cell != nullptr) sum.add_contribution(model::pick(cell->state, decimals, of));
      }
      const Cell* before = (*into)->find(target);
      if (before != nullptr && before->state == sum) continue;
      cache_.change(**into, target).state = std::move(sum);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CloudChanges> CloudEngine::take_changes(base::SteadyTime now) {
  if (taken_) return absl::FailedPreconditionError("the changes taken before are not committed yet");
  CloudChanges changes;
  absl::Status status = evaluate_across();
  if (!status.ok()) return status;
  const std::vector<model::Time> published = publication_.at(now);
  std::vector<StepProgress> progress = progress_;
  status = collect_steps(published, progress, changes);
  if (!status.ok()) return status;

  // From here on nothing fails.
  collect_windows(changes);
  progress_ = std::move(progress);
  for (std::size_t t = 0; t < plan_.tables.size(); ++t) {
    const std::size_t metric = plan_.tables[t].metric;
    if (published[metric] != std::exchange(kept_publications_[t], published[metric])) {
      changes.publication.emplace_back(t, published[metric]);
    }
    if (anchors_[metric] != std::exchange(kept_anchors_[t], anchors_[metric])) {
      changes.anchors.emplace_back(t, anchors_[metric]);
    }
  }
  publication_.publish(published);
  changes.parked = std::exchange(parked_, {});
  changes.unparked = unparked_;
  taken_ = true;
  return changes;
}

void CloudEngine::collect_windows(CloudChanges& changes) {
  changes.windows.reserve(cache_.changed_rows());
  for (std::size_t t = 0; t < plan_.tables.size(); ++t) {
    const model::Time published = publication_.of(plan_.tables[t].metric);
    for (std::size_t w = 0; w < plan_.tables[t].windows.size(); ++w) {
      for (WindowInstance* instance : sorted(cache_.changed(t, w))) {
        std::sort(instance->changed.begin(), instance->changed.end());
        const std::uint64_t revised = published >= instance->span.end ? 1 : 0;
        for (const std::uint32_t group : instance->changed) {
          Cell& cell = instance->cells[group];
          cell.revision += revised;
          changes.windows.push_back(
              {t, w, instance->span.start, instance->span.end, &cache_.groups(t)[group], &cell.state, cell.revision});
        }
      }
    }
  }
}

absl::Status CloudEngine::collect_steps(const std::vector<model::Time>& published, std::vector<StepProgress>& progress,
                                        CloudChanges& changes) {
  for (StepProgress& at : progress) {
    const StepProgress before = at;
    const std::size_t metric = plan_.tables[at.table].metric;
    const std::vector<WindowInstance*> changed = sorted(cache_.changed(at.table, at.window));
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

void CloudEngine::committed() {
  taken_ = false;
  unparked_.clear();
  cache_.settle();
  cache_.shrink();
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
