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

}  // namespace

CloudEngine::CloudEngine(const model::Plan& plan, WindowLoader& loader, CloudLimits limits, Calendar calendar,
                         base::SteadyTime now)
    : plan_(plan),
      limits_(limits),
      calendar_(std::move(calendar)),
      publication_(plan, now),
      cache_(plan, loader, limits.cached_window_rows),
      hopping_(plan, cache_, calendar_, {limits.hopping_rows_per_change, limits.hopping_sums}),
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
  const auto refuse = [this, known = entry](absl::Status status) {
    group_ids_.erase(known);
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
  struct Targets {
    std::vector<Target> windows;
    std::vector<std::pair<std::size_t, std::size_t>> sweeps;  // of hopping_, and places
  };
  std::map<std::pair<std::size_t, model::Time>, Targets> targets;  // by stream and slice
  std::vector<const Targets*> of_row(rows.size(), nullptr);
  std::vector<Window> spans;
  std::vector<std::size_t> sweeps;
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
        if (table.windows[w].pane) {
          const model::Time published = publication_.of(table.metric);
          const absl::Status status = hopping_.computed(tables[place], w, rows[i].slice, published, spans);
          if (!status.ok()) return status;
        } else {
          calendar_.windows_of(table.windows[w].spec, rows[i].slice, anchors_[table.metric], spans);
        }
        for (const Window& span : spans) {
          absl::StatusOr<WindowInstance*> instance = cache_.get(tables[place], w, span);
          if (!instance.ok()) return instance.status();
          entry->second.windows.push_back({*instance, place});
        }
      }
      hopping_.holding(tables[place], rows[i].slice, sweeps);
      for (const std::size_t sweep : sweeps) entry->second.sweeps.emplace_back(sweep, place);
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
    for (const Target& target : of_row[i]->windows) {
      cache_.change(*target.instance, group.in_table[target.place]).state.merge(row.partial);
    }
    for (const auto& [sweep, place] : of_row[i]->sweeps) {
      hopping_.add(sweep, row.slice, group.in_table[place], row.partial);
    }
  }
  for (const auto& [key, ignored] : targets) {
    for (const std::size_t table : tables_of_stream_[key.first]) hopping_.saw(table, key.second);
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
      sum.sketches = model::Sketches(def.sketches);
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
  std::vector<model::Time> published = publication_.at(now);
  absl::Status status = advance_hopping(published, changes);
  if (status.ok()) status = evaluate_across();
  if (!status.ok()) return status;
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

// A metric is published as far as its hopping windows are there.
absl::Status CloudEngine::advance_hopping(std::vector<model::Time>& published, CloudChanges& changes) {
  for (std::size_t m = 0; m < published.size(); ++m) {
    const absl::StatusOr<model::Time> reached = hopping_.advance(m, publication_.of(m), published[m]);
    if (!reached.ok()) return reached.status();
    if (*reached < std::exchange(published[m], *reached)) changes.more = true;
  }
  return absl::OkStatus();
}

void CloudEngine::collect_windows(CloudChanges& changes) {
  changes.windows.reserve(cache_.changed_rows());
  for (std::size_t t = 0; t < plan_.tables.size(); ++t) {
    const model::Time published = publication_.of(plan_.tables[t].metric);
    for (std::size_t w = 0; w < plan_.tables[t].windows.size(); ++w) {
      for (WindowInstance* instance : by_start(cache_.changed(t, w))) {
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

void CloudEngine::committed() {
  taken_ = false;
  unparked_.clear();
  cache_.settle();
  cache_.shrink();
}

}  // namespace orla::stream
