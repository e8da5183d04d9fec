#include "stream/hop_sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orla::stream {

HopSweep::HopSweep(model::Duration pane, model::Duration size)
    : pane_(pane),
      stretch_(std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(size.count() / pane.count()))))) {}

std::int64_t HopSweep::number(model::Time t) const {
  return model::to_ns(model::slice_start(t, pane_)) / pane_.count();
}

void HopSweep::merge(Sums& into, std::uint32_t group, const model::Partial& more) {
  if (more.count == 0) return;
  if (group >= into.size()) into.resize(group + 1);
  into[group].merge(more);
  ++merges_;
}

void HopSweep::merge(Sums& into, const Sums& more) {
  for (std::uint32_t group = 0; group < more.size(); ++group) merge(into, group, more[group]);
}

absl::Status HopSweep::read(std::int64_t pane, Sums& into, ReadPane read_pane) {
  return read_pane(model::from_ns(pane * pane_.count()),
                   [&](std::uint32_t group, const model::Partial& partial) { merge(into, group, partial); });
}

void HopSweep::forget() {
  first_ = middle_ = end_ = within_end_ = 0;
  back_ = {};
  from_ = {};
  within_ = {};
}

// The window's panes [first, end_) become the front.
absl::Status HopSweep::flip(std::int64_t first, ReadPane read_pane) {
  back_ = {};
  from_ = {};
  within_ = {};
  first_ = first;
  middle_ = within_end_ = end_;
  Sums sum;
  for (std::int64_t begin = middle_ - stretch_; begin >= first_; begin -= stretch_) {
    for (std::int64_t pane = begin + stretch_; pane-- > begin;) {
      if (absl::Status status = read(pane, sum, read_pane); !status.ok()) return status;
    }
    from_.push_back(sum);
  }
  return absl::OkStatus();
}

// Sums within the stretch of the front that first_ lies in.
absl::Status HopSweep::open_stretch(ReadPane read_pane) {
  const std::int64_t whole = (middle_ - first_) / stretch_;
  const std::int64_t end = middle_ - whole * stretch_;
  from_.resize(static_cast<std::size_t>(whole));
  if (first_ == end || (end == within_end_ && !within_.empty())) return absl::OkStatus();
  within_ = {};
  within_end_ = end;
  for (std::int64_t pane = end; pane-- > first_;) {
    Sums sum = within_.empty() ? Sums() : within_.front();
    if (absl::Status status = read(pane, sum, read_pane); !status.ok()) return status;
    within_.push_front(std::move(sum));
  }
  return absl::OkStatus();
}

absl::Status HopSweep::move(const Window& window, ReadPane read_pane) {
  const std::int64_t first = number(window.start);
  const std::int64_t end = number(window.end);
  if (first < first_ || end < end_ || first >= end_) {
    forget();
    first_ = middle_ = within_end_ = end_ = first;
  }
  absl::Status status;
  for (; status.ok() && end_ < end; ++end_) status = read(end_, back_, read_pane);
  if (status.ok() && first > middle_) {
    status = flip(first, read_pane);
  } else {
    const std::int64_t passed = std::min<std::int64_t>(first - first_, static_cast<std::int64_t>(within_.size()));
    within_.erase(within_.begin(), within_.begin() + passed);
    first_ = first;
  }
  if (status.ok()) status = open_stretch(read_pane);
  if (!status.ok()) forget();
  return status;
}

void HopSweep::visit(Visit visit) {
  const Sums none;
  const Sums& stretch = within_.empty() ? none : within_.front();
  const Sums& front = from_.empty() ? none : from_.back();
  const std::size_t groups = std::max({stretch.size(), front.size(), back_.size()});
  Sums sum(1);
  for (std::uint32_t group = 0; group < groups; ++group) {
    sum[0] = group < stretch.size() ? stretch[group] : model::Partial();
    if (group < front.size()) merge(sum, 0, front[group]);
    if (group < back_.size()) merge(sum, 0, back_[group]);
    if (sum[0].count > 0) visit(group, sum[0]);
  }
}

void HopSweep::add(model::Time slice, std::uint32_t group, const model::Partial& more) {
  const std::int64_t pane = number(slice);
  if (pane < first_ || pane >= end_) return;
  if (pane >= middle_) {
    merge(back_, group, more);
    return;
  }
  for (std::size_t k = 0; k < from_.size(); ++k) {
    if (middle_ - static_cast<std::int64_t>(k + 1) * stretch_ <= pane) merge(from_[k], group, more);
  }
  if (pane >= within_end_) return;
  for (std::int64_t i = 0; i <= pane - first_ && i < static_cast<std::int64_t>(within_.size()); ++i) {
    merge(within_[static_cast<std::size_t>(i)], group, more);
  }
}

std::size_t HopSweep::sums() const {
  std::size_t all = back_.size();
  for (const Sums& sums : from_) all += sums.size();
  for (const Sums& sums : within_) all += sums.size();
  return all;
}

}  // namespace orla::stream
