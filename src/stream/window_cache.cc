#include "stream/window_cache.h"

#include <algorithm>

#include "base/bytes.h"

namespace orla::stream {
namespace {

// What an instance weighs beside its cells, in rows.
constexpr std::size_t kInstanceRows = 2;

std::string bytes_of(const std::vector<model::Label>& labels) {
  std::string out;
  base::ByteWriter to(out);
  for (const model::Label& label : labels) {
    to.text(label.first);
    to.text(label.second);
  }
  return out;
}

// The labels named in `by`; one that is not there has the value "".
std::vector<model::Label> project(const std::vector<model::Label>& labels, const std::vector<std::string>& by) {
  std::vector<model::Label> out;
  for (const std::string& name : by) {
    const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& l) { return l.first == name; });
    out.emplace_back(name, found == labels.end() ? std::string() : found->second);
  }
  return out;
}

}  // namespace

std::vector<WindowInstance*> by_start(std::vector<WindowInstance*> instances) {
  std::sort(instances.begin(), instances.end(),
            [](const WindowInstance* a, const WindowInstance* b) { return a->span.start < b->span.start; });
  return instances;
}

WindowCache::WindowCache(const model::Plan& plan, WindowLoader& loader, std::size_t max_rows)
    : plan_(plan), loader_(loader), max_rows_(max_rows), tables_(plan.tables.size()) {
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    const model::TableDef& def = plan.tables[t];
    for (const model::TableWindow& window : def.windows) {
      WindowKind& kind = tables_[t].windows.emplace_back();
      kind.name = model::to_string(window.spec);
      if (!def.source) continue;
      const std::vector<model::TableWindow>& below = plan.tables[*def.source].windows;
      const auto same = std::find_if(below.begin(), below.end(), [&](const auto& w) { return w.spec == window.spec; });
      kind.in_source = static_cast<std::size_t>(same - below.begin());
    }
    if (def.source) tables_[*def.source].readers.push_back(t);
  }
}

std::uint32_t WindowCache::group(std::size_t table, const std::vector<model::Label>& labels) {
  Table& at = tables_[table];
  const auto [entry, added] = at.number_of.try_emplace(bytes_of(labels), static_cast<std::uint32_t>(at.labels.size()));
  const std::uint32_t number = entry->second;
  if (!added) return number;
  at.labels.push_back(labels);
  at.members.emplace_back();
  for (const std::size_t reader : at.readers) {
    const std::uint32_t target = group(reader, project(labels, plan_.tables[reader].by));
    tables_[reader].target_of.push_back(target);
    tables_[reader].members[target].push_back(number);
  }
  return number;
}

absl::StatusOr<WindowInstance*> WindowCache::get(std::size_t table, std::size_t window, const Window& span) {
  WindowKind& kind = tables_[table].windows[window];
  if (const auto found = kind.instances.find(model::to_ns(span.start)); found != kind.instances.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second->used);
    return found->second.get();
  }
  absl::StatusOr<std::vector<LoadedRow>> rows = loader_.load(plan_.tables[table].name, kind.name, span.start);
  if (!rows.ok()) return rows.status();
  auto instance = std::make_unique<WindowInstance>();
  instance->table = table;
  instance->window = window;
  instance->span = span;
  for (LoadedRow& row : *rows) {
    const std::uint32_t number = group(table, row.labels);
    if (number >= instance->cells.size()) instance->cells.resize(tables_[table].labels.size());
    Cell& cell = instance->cells[number];
    cell.state = std::move(row.state);
    cell.revision = row.revision;
  }
  by_use_.push_front(instance.get());
  instance->used = by_use_.begin();
  count(*instance);
  WindowInstance* out = instance.get();
  kind.instances[model::to_ns(span.start)] = std::move(instance);
  return out;
}

absl::StatusOr<std::optional<model::Time>> WindowCache::next_start(std::size_t table, std::size_t window,
                                                                   model::Time from) {
  const WindowKind& kind = tables_[table].windows[window];
  absl::StatusOr<std::optional<model::Time>> next = loader_.next_start(plan_.tables[table].name, kind.name, from);
  if (!next.ok()) return next;
  for (const WindowInstance* instance : kind.changed) {
    const model::Time start = instance->span.start;
    if (start >= from && (!*next || start < **next)) *next = start;
  }
  return next;
}

absl::StatusOr<std::optional<model::Time>> WindowCache::last_start(std::size_t table, std::size_t window) {
  const std::string& name = plan_.tables[table].name;
  const std::string& kind = tables_[table].windows[window].name;
  absl::StatusOr<std::optional<model::Time>> last = loader_.next_start(name, kind, model::kMinTime);
  if (!last.ok() || !*last) return last;
  // There is one at *last, and none after `end`. Differences are taken as unsigned numbers, which hold them all.
  std::int64_t end = model::to_ns(model::kMaxTime);
  while (model::to_ns(**last) < end) {
    const std::uint64_t begin = static_cast<std::uint64_t>(model::to_ns(**last));
    const std::uint64_t half = (static_cast<std::uint64_t>(end) - begin + 1) / 2;
    const auto middle = static_cast<std::int64_t>(begin + half);
    absl::StatusOr<std::optional<model::Time>> later = loader_.next_start(name, kind, model::from_ns(middle));
    if (!later.ok()) return later;
    if (*later) {
      last = *std::move(later);
    } else {
      end = middle - 1;
    }
  }
  return last;
}

Cell& WindowCache::change(WindowInstance& instance, std::uint32_t group) {
  if (group >= instance.cells.size()) {
    instance.cells.resize(tables_[instance.table].labels.size());
    count(instance);
  }
  Cell& cell = instance.cells[group];
  if (!cell.changed) {
    cell.changed = true;
    if (instance.changed.empty()) tables_[instance.table].windows[instance.window].changed.push_back(&instance);
    instance.changed.push_back(group);
    ++changed_rows_;
  }
  return cell;
}

void WindowCache::settle() {
  for (Table& table : tables_) {
    for (WindowKind& kind : table.windows) {
      for (WindowInstance* instance : kind.changed) {
        for (const std::uint32_t group : instance->changed) instance->cells[group].changed = false;
        instance->changed.clear();
      }
      kind.changed.clear();
    }
  }
  changed_rows_ = 0;
}

void WindowCache::shrink() {
  for (auto at = by_use_.end(); cached_rows_ > max_rows_ && at != by_use_.begin();) {
    --at;
    WindowInstance* instance = *at;
    if (!instance->changed.empty()) continue;
    cached_rows_ -= instance->counted;
    at = by_use_.erase(at);
    tables_[instance->table].windows[instance->window].instances.erase(model::to_ns(instance->span.start));
  }
}

void WindowCache::count(WindowInstance& instance) {
  cached_rows_ -= instance.counted;
  instance.counted = instance.cells.size() + kInstanceRows;
  cached_rows_ += instance.counted;
}

}  // namespace orla::stream
