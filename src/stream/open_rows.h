// The rows an edge has not sealed yet: partials by (stream, slice, group), in memory that stays where it is and is
// given back with its slice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/partial.h"
#include "stream/slice_rows.h"

namespace orla::stream {

// Not thread-safe. Places are valid until the rows of their slice are closed.
class OpenRows {
 public:
  using Place = SliceRows::Place;
  using Closed = std::vector<std::unique_ptr<SliceRows>>;

  OpenRows() = default;
  OpenRows(const OpenRows&) = delete;
  OpenRows& operator=(const OpenRows&) = delete;

  // Streams are numbered from 0 as they are added.
  void add_stream(model::Duration slice, model::SketchKinds sketches, int decimals);

  // The row, opened empty when there is none, with the stream's sketches.
  Place at(std::size_t stream, model::Time slice, model::GroupId group);
  // The row counts as changed, if there is one.
  void mark_changed(std::size_t stream, model::Time slice, model::GroupId group);
  // So do all open rows of the stream.
  void mark_all_changed(std::size_t stream);

  std::size_t size() const;
  bool empty(std::size_t stream) const { return streams_[stream].slices.empty(); }

  // Closes the rows of slices that end at or before `end` (kMaxTime: all): these are moved to `out`. Returns how many
  // rows.
  std::size_t close(std::size_t stream, model::Time end, Closed& out);

  template <typename Visit>  // visit(slice, group, row) of every open row of the stream
  void each(std::size_t stream, Visit visit) {
    for (auto& [start, rows] : streams_[stream].slices)
      rows->each([&, &slice = *rows](model::GroupId group, SmallRow& row) { visit(slice, group, row); });
  }
  // Appends all open slices.
  void slices(std::vector<SliceRows*>& out) const;

 private:
  struct Stream {
    model::Duration slice;
    model::SketchKinds sketches;
    int decimals = 0;
    std::map<model::Time, std::unique_ptr<SliceRows>> slices;
    SliceRows* last = nullptr;  // that was asked for
  };

  std::vector<Stream> streams_;
};

}  // namespace orla::stream
