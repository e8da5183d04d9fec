// The rows an edge has not sealed yet: partials by (stream, slice, group), in memory that stays where it is.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "model/partial.h"

namespace orla::stream {

// Not thread-safe. Row pointers are valid until their row is taken or dropped.
class OpenRows {
 public:
  struct Row {
    model::PartialRow content;
    bool changed = false;  // since take_changed()
    bool open = false;
    std::uint32_t input = kNoInput;  // the input that contributed last; kNoInput: not known (restored)
  };
  static constexpr std::uint32_t kNoInput = UINT32_MAX;

  OpenRows() = default;
  OpenRows(const OpenRows&) = delete;
  OpenRows& operator=(const OpenRows&) = delete;

  // Neither rows nor streams are left.
  void clear();
  // Streams are numbered from 0 as they are added.
  void add_stream(model::Duration slice, model::SketchKinds sketches);

  // The row, opened empty when there is none, with the stream's sketches.
  Row& at(std::size_t stream, model::Time slice, model::GroupId group);
  void mark_changed(Row& row) {
    if (row.changed) return;
    row.changed = true;
    changed_.push_back(&row);
  }
  // null: there is none.
  Row* find(std::size_t stream, model::Time slice, model::GroupId group);
  // All open rows of the stream count as changed.
  void mark_all_changed(std::size_t stream);

  std::size_t size() const { return size_; }
  bool empty(std::size_t stream) const { return streams_[stream].slices.empty(); }

  // Closes the rows of slices that end at or before `end` (kMaxTime: all) and moves them to `out`, by slice and group,
  // with their inputs to `inputs` when it is not null. Returns how many. O(rows taken).
  std::size_t take(std::size_t stream, model::Time end, model::PartialRows& out, std::vector<std::uint32_t>* inputs);

  template <typename Visit>  // of every open row of the stream
  void each(std::size_t stream, Visit visit) {
    for (auto& [slice, rows] : streams_[stream].slices)
      for (const std::uint32_t row : rows) visit(pool_[row]);
  }

  template <typename Visit>  // of the content of the rows changed since take_changed()
  void each_changed(Visit visit) {
    for (std::size_t i = 0; i < changed_.size(); ++i)
      if (changed_[i]->open && changed_[i]->changed) visit(changed_[i]->content);
  }

  // Copies the rows changed since the last call, canonical. O(rows changed).
  model::PartialRows take_changed();
  // Copies all rows, canonical.
  model::PartialRows all() const;

 private:
  using Pool = std::deque<Row>;
  // Numbers of rows in the pool, found by their group.
  struct Hash {
    using is_transparent = void;
    const Pool* pool;
    std::size_t operator()(model::GroupId group) const { return absl::HashOf(index(group)); }
    std::size_t operator()(std::uint32_t row) const { return (*this)((*pool)[row].content.group); }
  };
  struct Equal {
    using is_transparent = void;
    const Pool* pool;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(std::uint32_t a, model::GroupId b) const { return (*pool)[a].content.group == b; }
    bool operator()(model::GroupId a, std::uint32_t b) const { return (*this)(b, a); }
  };
  using RowsOfSlice = absl::flat_hash_set<std::uint32_t, Hash, Equal>;

  struct Stream {
    model::Duration slice;
    model::SketchKinds sketches;
    std::map<model::Time, RowsOfSlice> slices;
  };

  std::vector<Stream> streams_;
  Pool pool_;
  std::vector<std::uint32_t> free_;
  std::vector<Row*> changed_;  // may hold rows that were closed since, and rows twice
  std::size_t size_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order_;  // scratch: group, number of row
};

}  // namespace orla::stream
