#include "stream/open_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace orla::stream {

namespace {

using model::PartialRow;
using model::PartialRows;

PartialRows copy_sorted(const std::vector<const PartialRow*>& rows) {
  // By keys that lie together: of very many rows each look costs a cache line.
  struct Keyed {
    model::GroupId group;
    model::Time slice;
    const PartialRow* row;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(rows.size());
  for (const PartialRow* row : rows) keyed.push_back({row->group, row->slice, row});
  std::sort(keyed.begin(), keyed.end(),
            [](const Keyed& a, const Keyed& b) { return a.group != b.group ? a.group < b.group : a.slice < b.slice; });
  PartialRows out;
  out.reserve(rows.size());
  for (const Keyed& k : keyed) out.push_back(*k.row);
  return out;
}

}  // namespace

void OpenRows::clear() {
  streams_.clear();
  pool_.clear();
  free_.clear();
  changed_.clear();
  size_ = 0;
}

void OpenRows::add_stream(model::Duration slice, model::SketchKinds sketches) {
  streams_.push_back(Stream{slice, sketches, {}});
}

OpenRows::Row& OpenRows::at(std::size_t stream, model::Time slice, model::GroupId group) {
  auto& slices = streams_[stream].slices;
  const auto [place, is_new] = slices.try_emplace(slice, 0, Hash{&pool_}, Equal{&pool_});
  RowsOfSlice& rows = place->second;
  if (is_new && place != slices.begin()) rows.reserve(std::prev(place)->second.size());  // as many as before, likely
  const auto found = rows.lazy_emplace(group, [&](const auto& insert) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(pool_.size()));
      pool_.emplace_back();
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    Row& row = pool_[number];
    row.content.group = group;
    row.content.slice = slice;
    row.content.partial = model::Partial();
    row.content.partial.sketches = model::Sketches(streams_[stream].sketches);
    row.open = true;
    row.input = kNoInput;
    ++size_;
    insert(number);
  });
  return pool_[*found];
}

OpenRows::Row* OpenRows::find(std::size_t stream, model::Time slice, model::GroupId group) {
  auto& slices = streams_[stream].slices;
  const auto place = slices.find(slice);
  if (place == slices.end()) return nullptr;
  const auto found = place->second.find(group);
  return found == place->second.end() ? nullptr : &pool_[*found];
}

void OpenRows::mark_all_changed(std::size_t stream) {
  for (auto& [slice, rows] : streams_[stream].slices)
    for (const std::uint32_t row : rows) mark_changed(pool_[row]);
}

std::size_t OpenRows::take(std::size_t stream, model::Time end, PartialRows& out, std::vector<std::uint32_t>* inputs) {
  Stream& s = streams_[stream];
  std::size_t taken = 0;
  while (!s.slices.empty() && model::add_clamped(s.slices.begin()->first, s.slice) <= end) {
    // In the order of groups, which is how they are wanted and, mostly, how they lie.
    order_.clear();
    for (const std::uint32_t number : s.slices.begin()->second)
      order_.emplace_back(index(pool_[number].content.group), number);
    std::sort(order_.begin(), order_.end());
    for (const auto& [group, number] : order_) {
      Row& row = pool_[number];
      out.push_back(std::move(row.content));
      if (inputs != nullptr) inputs->push_back(row.input);
      row.changed = row.open = false;
      free_.push_back(number);
      ++taken;
    }
    s.slices.erase(s.slices.begin());
  }
  size_ -= taken;
  return taken;
}

PartialRows OpenRows::take_changed() {
  std::vector<const PartialRow*> rows;
  rows.reserve(changed_.size());
  for (Row* row : changed_) {
    if (row->open && row->changed) rows.push_back(&row->content);
    row->changed = false;
  }
  changed_.clear();
  return copy_sorted(rows);
}

PartialRows OpenRows::all() const {
  std::vector<const PartialRow*> rows;
  rows.reserve(size_);
  for (const Stream& stream : streams_)
    for (const auto& [slice, groups] : stream.slices)
      for (const std::uint32_t row : groups) rows.push_back(&pool_[row].content);
  return copy_sorted(rows);
}

}  // namespace orla::stream
