#include "stream/hopping.h"

#include <algorithm>

namespace orla::stream {

using model::add_clamped;
using model::Time;

HoppingWindows::HoppingWindows(const model::Plan& plan, WindowCache& cache, Calendar& calendar, HoppingLimits limits)
    : plan_(plan), cache_(cache), calendar_(calendar), limits_(limits), kinds_of_table_(plan.tables.size()) {
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    const std::vector<model::TableWindow>& windows = plan.tables[t].windows;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      if (!windows[w].pane) continue;
      const model::WindowSpec& pane = windows[*windows[w].pane].spec;
      const model::Duration length = pane.kind == model::WindowSpec::Kind::kDay ? std::chrono::hours(24) : pane.size;
      kinds_of_table_[t].push_back(kinds_.size());
      kinds_.push_back({t, w, *windows[w].pane, windows[w].spec, HopSweep(length, windows[w].spec.size), std::nullopt,
                        model::kMinTime});
    }
  }
}

// A row that is there says that every window up to it was computed, whoever did it: a cloud that folds into all windows
// a row lies in leaves the same rows.
absl::Status HoppingWindows::begin(Kind& kind, Time published) {
  if (kind.computed_to) return absl::OkStatus();
  absl::StatusOr<std::optional<Time>> last = cache_.last_start(kind.table, kind.window);
  if (!last.ok()) return last.status();
  kind.computed_to = published;
  if (*last) kind.computed_to = std::max(published, add_clamped(**last, kind.spec.size));
  return absl::OkStatus();
}

absl::Status HoppingWindows::computed(std::size_t table, std::size_t window, Time slice, Time published,
                                      std::vector<Window>& out) {
  out.clear();
  for (const std::size_t k : kinds_of_table_[table]) {
    Kind& kind = kinds_[k];
    if (kind.window != window) continue;
    if (absl::Status status = begin(kind, published); !status.ok()) return status;
    calendar_.hops_of(kind.spec, slice, *kind.computed_to, out);
  }
  return absl::OkStatus();
}

void HoppingWindows::holding(std::size_t table, Time slice, std::vector<std::size_t>& out) const {
  out.clear();
  for (const std::size_t k : kinds_of_table_[table]) {
    if (kinds_[k].sweep.holds(slice)) out.push_back(k);
  }
}

void HoppingWindows::saw(std::size_t table, Time slice) {
  for (const std::size_t k : kinds_of_table_[table]) kinds_[k].newest = std::max(kinds_[k].newest, slice);
}

// The first window that is not computed and holds data; nothing when there is none, or none that ends by `by`.
absl::StatusOr<std::optional<Window>> HoppingWindows::next(const Kind& kind, Time by) {
  const Time to = *kind.computed_to;
  if (to == model::kMaxTime) return std::nullopt;
  Window first{model::kMinTime, model::kMinTime};
  if (to != model::kMinTime) {
    first = calendar_.next_hop(kind.spec, add_clamped(to, -kind.spec.size));
    if (first.end > by) return std::nullopt;
  }
  absl::StatusOr<std::optional<Time>> data = cache_.next_start(kind.table, kind.pane, first.start);
  if (!data.ok()) return data.status();
  if (!*data) return std::nullopt;
  if (first.end <= **data) first = calendar_.next_hop(kind.spec, add_clamped(**data, -kind.spec.size));
  if (first.end > by) return std::nullopt;
  return first;
}

// Returns how many rows that are.
absl::StatusOr<std::size_t> HoppingWindows::compute(Kind& kind, const Window& window) {
  const model::WindowSpec& pane_spec = plan_.tables[kind.table].windows[kind.pane].spec;
  const absl::Status moved = kind.sweep.move(window, [&](Time start, HopSweep::Visit visit) -> absl::Status {
    absl::StatusOr<WindowInstance*> pane =
        cache_.get(kind.table, kind.pane, calendar_.window_of(pane_spec, start, model::Time{}));
    if (!pane.ok()) return pane.status();
    for (std::uint32_t group = 0; group < (*pane)->cells.size(); ++group) {
      if (const Cell* cell = (*pane)->find(group)) visit(group, cell->state);
    }
    cache_.shrink();
    return absl::OkStatus();
  });
  if (!moved.ok()) return moved;
  absl::StatusOr<WindowInstance*> instance = cache_.get(kind.table, kind.window, window);
  if (!instance.ok()) return instance.status();
  std::size_t rows = 0;
  kind.sweep.visit([&](std::uint32_t group, const model::Partial& partial) {
    cache_.change(**instance, group).state = partial;
    ++rows;
  });
  kind.computed_to = window.end;
  return rows;
}

// The open window that ends next, if none is shown yet and data lies in its last hop: before that, it would say what
// the one before it says.
absl::Status HoppingWindows::show_open(Kind& kind, Time to) {
  if (kind.newest == model::kMinTime || *kind.computed_to > to || to == model::kMaxTime) return absl::OkStatus();
  const absl::StatusOr<std::optional<Window>> open = next(kind, add_clamped(kind.newest, kind.spec.hop));
  if (!open.ok()) return open.status();
  return *open ? compute(kind, **open).status() : absl::OkStatus();
}

absl::StatusOr<Time> HoppingWindows::advance(std::size_t metric, Time published, Time to) {
  Time reached = to;
  std::size_t rows = 0;
  for (Kind& kind : kinds_) {
    if (plan_.tables[kind.table].metric != metric) continue;
    absl::Status status = begin(kind, published);
    bool limited = false;
    for (bool first = true; status.ok(); first = false) {
      const absl::StatusOr<std::optional<Window>> window = next(kind, to);
      status = window.status();
      if (!status.ok() || !*window) break;
      limited = !first && rows >= limits_.rows_per_advance;
      if (limited) break;
      const absl::StatusOr<std::size_t> more = compute(kind, **window);
      status = more.status();
      if (more.ok()) rows += *more;
    }
    if (!status.ok()) return status;
    if (limited) {
      reached = std::min(reached, *kind.computed_to);
      continue;
    }
    status = show_open(kind, to);
    if (!status.ok()) return status;
    kind.computed_to = std::max(*kind.computed_to, to);
  }
  bound_sums();
  return std::max(reached, published);
}

void HoppingWindows::bound_sums() {
  while (sums() > limits_.sums) {
    std::max_element(kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) {
      return a.sweep.sums() < b.sweep.sums();
    })->sweep.forget();
  }
}

std::size_t HoppingWindows::sums() const {
  std::size_t all = 0;
  for (const Kind& kind : kinds_) all += kind.sweep.sums();
  return all;
}

std::uint64_t HoppingWindows::merges() const {
  std::uint64_t all = 0;
  for (const Kind& kind : kinds_) all += kind.sweep.merges();
  return all;
}

}  // namespace orla::stream
