#include "stream/open_rows.h"

#include <utility>

namespace orla::stream {

void OpenRows::add_stream(model::Duration slice, model::SketchKinds sketches, int decimals) {
  Stream& stream = streams_.emplace_back();
  stream.slice = slice;
  stream.sketches = sketches;
  stream.decimals = decimals;
}

OpenRows::Place OpenRows::at(std::size_t stream, model::Time slice, model::GroupId group) {
  Stream& s = streams_[stream];
  if (s.last == nullptr || s.last->start() != slice) {
    std::unique_ptr<SliceRows>& rows = s.slices[slice];
    if (rows == nullptr) rows = std::make_unique<SliceRows>(stream, slice, s.sketches, s.decimals);
    s.last = rows.get();
  }
  return s.last->at(group);
}

void OpenRows::mark_changed(std::size_t stream, model::Time slice, model::GroupId group) {
  Stream& s = streams_[stream];
  if (s.last == nullptr || s.last->start() != slice) {
    const auto found = s.slices.find(slice);
    if (found == s.slices.end()) return;
    s.last = found->second.get();
  }
  s.last->mark_changed(group);
}

void OpenRows::mark_all_changed(std::size_t stream) {
  for (auto& [start, rows] : streams_[stream].slices) rows->mark_all_changed();
}

std::size_t OpenRows::size() const {
  std::size_t rows = 0;
  for (const Stream& stream : streams_)
    for (const auto& [start, slice] : stream.slices) rows += slice->size();
  return rows;
}

std::size_t OpenRows::close(std::size_t stream, model::Time end, Closed& out) {
  Stream& s = streams_[stream];
  std::size_t closed = 0;
  while (!s.slices.empty() && model::add_clamped(s.slices.begin()->first, s.slice) <= end) {
    closed += s.slices.begin()->second->size();
    out.push_back(std::move(s.slices.begin()->second));
    s.slices.erase(s.slices.begin());
    s.last = nullptr;
  }
  return closed;
}

void OpenRows::slices(std::vector<SliceRows*>& out) const {
  for (const Stream& stream : streams_)
    for (const auto& [start, slice] : stream.slices) out.push_back(slice.get());
}

}  // namespace orla::stream
