#include "stream/slice_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace orla::stream {

using model::Partial;

std::uint32_t SliceRows::block_of(std::uint32_t key) {
  if (!blocks_.empty() && blocks_[last_].key == key) return last_;
  const auto [known, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(blocks_.size()));
  if (is_new) blocks_.push_back(Block{key});
  last_ = known->second;
  return last_;
}

SliceRows::Place SliceRows::at(model::GroupId group) {
  Place place{this, block_of(index(group) / kGroups), index(group) % kGroups, nullptr};
  Block& block = blocks_[place.block];
  const auto mask = static_cast<std::uint16_t>(1U << place.bit);
  if ((block.present & mask) != 0) {
    place.row = &rows_[block.rows[place.bit]];
    return place;
  }
  block.present |= mask;
  block.rows[place.bit] = static_cast<std::uint32_t>(size_++);
  place.row = &rows_.push_back(SmallRow());
  place.row->note = kNoInput;
  if (sketches_.any()) expand(*place.row).sketches = model::Sketches(sketches_);
  return place;
}

void SliceRows::mark_changed(model::GroupId group) {
  const auto known = numbers_.find(index(group) / kGroups);
  if (known == numbers_.end()) return;
  Block& block = blocks_[known->second];
  const auto mask = static_cast<std::uint16_t>(1U << index(group) % kGroups);
  if ((block.present & mask) == 0) return;
  block.changed |= mask;
  changed_ = true;
}

void SliceRows::mark_all_changed() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) blocks_[b].changed = blocks_[b].present;
  changed_ = size_ > 0;
}

void SliceRows::forget_changes() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) blocks_[b].changed = 0;
  changed_ = false;
}

Partial& SliceRows::expand(SmallRow& row) {
  auto partial = std::make_unique<Partial>();
  if (row.count() > 0) to_partial(row.get(), start_, decimals_, *partial);
  row.set_number(static_cast<std::uint32_t>(full_.size()));
  row.note |= kFull;
  full_.push_back(std::move(partial));
  return *full_.back();
}

void SliceRows::add(const Place& place, model::Time time, double value) {
  SmallRow& row = *place.row;
  if (!is_full(row)) {
    const std::optional<std::int64_t> scaled = model::as_decimal(value, decimals_);
    if (scaled && *scaled == static_cast<std::int32_t>(*scaled)) {
      DecimalSummary both = row.get();
      if (both.merge(DecimalSummary::of(time - start_, static_cast<std::int32_t>(*scaled))) && row.set(both)) return;
    }
    expand(row);
  }
  full_[row.number()]->add(time, value, decimals_);
}

void SliceRows::add_sums(const Place& place, const DecimalSummary& summary) {
  SmallRow& row = *place.row;
  if (!is_full(row)) {
    DecimalSummary both = row.get();
    if (both.merge(summary) && row.set(both)) return;
    expand(row);
  }
  Partial partial;
  to_partial(summary, start_, decimals_, partial);
  full_[row.number()]->merge_sums(partial);
}

void SliceRows::add_sums(const Place& place, const Partial& partial) {
  SmallRow& row = *place.row;
  DecimalSummary summary;
  if (!is_full(row) && to_summary(partial, start_, decimals_, summary)) return add_sums(place, summary);
  if (!is_full(row)) expand(row);
  full_[row.number()]->merge_sums(partial);
}

void SliceRows::replace(const Place& place, const Partial& partial) {
  SmallRow& row = *place.row;
  DecimalSummary summary;
  if (!is_full(row) && partial.sketches.none() && to_summary(partial, start_, decimals_, summary) && row.set(summary))
    return;
  if (!is_full(row)) expand(row);
  *full_[row.number()] = partial;
}

void SliceRows::move_out(model::GroupId group, SmallRow& row, model::PartialRow& out) {
  out.group = group;
  out.slice = start_;
  if (is_full(row))
    out.partial = std::move(*full_[row.number()]);
  else if (row.count() > 0)
    to_partial(row.get(), start_, decimals_, out.partial);
}

void SliceRows::copy_out(model::GroupId group, const SmallRow& row, model::PartialRow& out) const {
  out.group = group;
  out.slice = start_;
  if (is_full(row))
    out.partial = *full_[row.number()];
  else if (row.count() > 0)
    to_partial(row.get(), start_, decimals_, out.partial);
}

RowOrder::RowOrder(std::span<SliceRows* const> slices, Which which) : slices_(slices.begin(), slices.end()) {
  std::stable_sort(slices_.begin(), slices_.end(), [](SliceRows* a, SliceRows* b) { return a->start() < b->start(); });
  for (std::uint32_t s = 0; s < slices_.size(); ++s) {
    for (std::uint32_t b = 0; b < slices_[s]->blocks_.size(); ++b) {
      const SliceRows::Block& block = slices_[s]->blocks_[b];
      const std::uint32_t mask = which == Which::kAll ? block.present : block.changed;
      if (mask != 0 || which == Which::kPartsOfChanged) parts_.push_back({block.key, s, b, mask});
    }
  }
  if (!std::is_sorted(parts_.begin(), parts_.end())) std::sort(parts_.begin(), parts_.end());
  const auto one_row = [&](const Part& a, const Part& b) {
    return a.key == b.key && slices_[a.slice]->start() == slices_[b.slice]->start();
  };
  for (std::size_t begin = 0; which == Which::kPartsOfChanged && begin < parts_.size();) {
    std::size_t end = begin;
    std::uint32_t changed = 0;
    for (; end < parts_.size() && one_row(parts_[begin], parts_[end]); ++end) changed |= parts_[end].mask;
    for (; begin < end; ++begin)
      parts_[begin].mask = changed & slices_[parts_[begin].slice]->blocks_[parts_[begin].block].present;
  }
  for (const Part& part : parts_) rows_ += static_cast<std::size_t>(std::popcount(part.mask));
}

}  // namespace orla::stream
