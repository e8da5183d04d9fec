// The cloud's windows in memory: per table the groups it knows, per window instance a dense row of cells, loaded on
// demand and forgotten when unchanged and not used for long.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan.h"
#include "stream/calendar.h"

namespace orla::stream {

struct LoadedRow {
  std::vector<model::Label> labels;  // in the order of the table's `by`
  std::uint64_t revision = 0;
  model::Partial state;
};

// Where committed windows come back from. Called on the engine's thread.
class WindowLoader {
 public:
  virtual ~WindowLoader() = default;
  // The committed rows of one window instance, in any order; none when there is no such window.
  virtual absl::StatusOr<std::vector<LoadedRow>> load(const std::string& table, const std::string& window,
                                                      model::Time start) = 0;
  // The least start >= from of a committed window that has rows.
  virtual absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                                model::Time from) = 0;
};

struct Cell {
  model::Partial state;
  std::uint64_t revision = 0;
  bool changed = false;  // since the last committed change
};

// All groups of one table in one window.
struct WindowInstance {
  std::size_t table = 0;
  std::size_t window = 0;
  Window span;
  std::vector<Cell> cells;             // by group number; those beyond the end are empty
  std::vector<std::uint32_t> changed;  // group numbers, each once
  std::list<WindowInstance*>::iterator used;
  std::size_t counted = 0;  // what it adds to cached_rows()

  // Null for a group without samples here.
  const Cell* find(std::uint32_t group) const {
    return group < cells.size() && cells[group].state.count > 0 ? &cells[group] : nullptr;
  }
};

// In ascending order of start.
std::vector<WindowInstance*> by_start(std::vector<WindowInstance*> instances);

class WindowCache {
 public:
  // Both outlive it.
  WindowCache(const model::Plan& plan, WindowLoader& loader, std::size_t max_rows);

  // Number of the group of a table, given out when it is new; then the tables that read this one get theirs, too.
  std::uint32_t group(std::size_t table, const std::vector<model::Label>& labels);
  // Addresses of entries are stable.
  const std::deque<std::vector<model::Label>>& groups(std::size_t table) const { return tables_[table].labels; }
  // Of an across table: its group that a group of its source contributes to, and the reverse.
  std::uint32_t target_of(std::size_t table, std::uint32_t source_group) const {
    return tables_[table].target_of[source_group];
  }
  const std::vector<std::uint32_t>& members(std::size_t table, std::uint32_t group) const {
    return tables_[table].members[group];
  }
  // Of an across table: the number of the same window in its source.
  std::size_t source_window(std::size_t table, std::size_t window) const {
    return tables_[table].windows[window].in_source;
  }
  const std::string& window_name(std::size_t table, std::size_t window) const {
    return tables_[table].windows[window].name;
  }

  // Never null; good until shrink(). Loads it when it is not there.
  absl::StatusOr<WindowInstance*> get(std::size_t table, std::size_t window, const Window& span);
  // The least start >= from of a window that has rows, committed or not.
  absl::StatusOr<std::optional<model::Time>> next_start(std::size_t table, std::size_t window, model::Time from);

  // The greatest start of a committed window that has rows. Asks the loader some sixty times.
  absl::StatusOr<std::optional<model::Time>> last_start(std::size_t table, std::size_t window);

  // The cell, marked as changed: its state is about to be.
  Cell& change(WindowInstance& instance, std::uint32_t group);
  // Changed instances, in no order.
  const std::vector<WindowInstance*>& changed(std::size_t table, std::size_t window) const {
    return tables_[table].windows[window].changed;
  }
  std::size_t changed_rows() const { return changed_rows_; }
  std::size_t cached_rows() const { return cached_rows_; }
  // Everything changed has been committed.
  void settle();
  // Forgets unchanged instances, least recently used first, until the limit holds. Pointers to them end.
  void shrink();

 private:
  struct WindowKind {
    std::string name;
    std::size_t in_source = 0;
    absl::flat_hash_map<std::int64_t, std::unique_ptr<WindowInstance>> instances;  // by start
    std::vector<WindowInstance*> changed;
  };
  struct Table {
    std::vector<std::size_t> readers;
    absl::flat_hash_map<std::string, std::uint32_t> number_of;  // by the labels' bytes
    std::deque<std::vector<model::Label>> labels;
    std::vector<std::uint32_t> target_of;
    std::vector<std::vector<std::uint32_t>> members;
    std::vector<WindowKind> windows;
  };

  void count(WindowInstance& instance);

  const model::Plan& plan_;
  WindowLoader& loader_;
  const std::size_t max_rows_;
  std::vector<Table> tables_;
  std::list<WindowInstance*> by_use_;  // most recent first
  std::size_t cached_rows_ = 0;
  std::size_t changed_rows_ = 0;
};

}  // namespace orla::stream
