#include "stream/raw_samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "model/batch_append.h"
#include "model/exact_sum.h"

namespace orla::stream {

using model::Batch;
using model::GroupId;
using model::Time;

namespace {

Batch::Run run_of(GroupId group, std::size_t begin, std::size_t end) {
  return {model::SeriesId{model::index(group)}, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

// The least and the greatest time of samples of one run.
std::pair<Time, Time> times_of(const Batch& batch, std::size_t run, std::uint32_t begin, std::uint32_t end) {
  if (batch.paces.empty()) {
    const auto [least, greatest] = std::minmax_element(batch.times.begin() + begin, batch.times.begin() + end);
    return {*least, *greatest};
  }
  const Batch::Pace& pace = batch.paces[run];
  const std::int64_t first = begin - batch.runs[run].begin;
  return {pace.start + pace.step * first, pace.start + pace.step * (first + std::int64_t{end - begin} - 1)};
}

}  // namespace

Batch& RawSamples::part(bool paced, bool scaled, int decimals) {
  if (used_ > 0) {
    Batch& last = parts_[used_ - 1];
    if (paced == !last.paces.empty() && scaled == !last.scaled.empty() && (!scaled || last.decimals == decimals))
      return last;
  }
  if (used_ == parts_.size()) parts_.emplace_back();
  Batch& fresh = parts_[used_++];
  fresh.clear();
  fresh.decimals = decimals;
  return fresh;
}

void RawSamples::add(GroupId group, const Batch& batch, std::size_t run, std::uint32_t begin, std::uint32_t end) {
  if (begin == end) return;
  const bool paced = !batch.paces.empty();
  const bool scaled = !batch.scaled.empty();
  Batch& to = part(paced, scaled, scaled ? batch.decimals : 0);
  const std::size_t at = to.size();
  to.runs.push_back(run_of(group, at, at + (end - begin)));
  if (paced) {
    const Batch::Pace& pace = batch.paces[run];
    to.paces.push_back({pace.start + pace.step * std::int64_t{begin - batch.runs[run].begin}, pace.step});
  } else {
    to.times.insert(to.times.end(), batch.times.begin() + begin, batch.times.begin() + end);
  }
  if (scaled)
    to.scaled.insert(to.scaled.end(), batch.scaled.begin() + begin, batch.scaled.begin() + end);
  else
    to.values.insert(to.values.end(), batch.values.begin() + begin, batch.values.begin() + end);
  size_ += end - begin;
}

void RawSamples::add(GroupId group, Time time, double value, int decimals) {
  // In the form of what came before, so that the first sample of a series does not begin a part of its own.
  const bool paced = used_ == 0 || !parts_[used_ - 1].paces.empty();
  const bool integers = used_ == 0 || !parts_[used_ - 1].scaled.empty();
  const int places = used_ > 0 && integers ? parts_[used_ - 1].decimals : decimals;
  const std::optional<std::int64_t> integer =
      integers && places <= model::kMaxScaledDecimals ? model::as_decimal(value, places) : std::nullopt;
  const bool scaled =
      integer && *integer >= INT32_MIN && *integer <= INT32_MAX && !(*integer == 0 && std::signbit(value));
  Batch& to = part(paced, scaled, scaled ? places : 0);
  const std::size_t at = to.size();
  to.runs.push_back(run_of(group, at, at + 1));
  if (paced)
    to.paces.push_back({time, {}});
  else
    to.times.push_back(time);
  if (scaled)
    to.scaled.push_back(static_cast<std::int32_t>(*integer));
  else
    to.values.push_back(value);
  ++size_;
}

void RawSamples::clear() {
  used_ = 0;
  size_ = 0;
}

// Stable: by counting when there are many.
RawSamples::Ordered RawSamples::ordered(const Batch& part) {
  const std::size_t n = part.runs.size();
  order_.resize(n);
  std::uint32_t most = 0;
  bool sorted = true;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t group = model::index(part.runs[i].series);
    sorted = sorted && group >= most;
    most = std::max(most, group);
  }
  std::iota(order_.begin(), order_.end(), 0U);
  if (sorted) return {&part, order_};
  if (most / 4 > n) {
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return model::index(part.runs[a].series) < model::index(part.runs[b].series);
    });
    return {&part, order_};
  }
  counts_.assign(std::size_t{most} + 2, 0);
  for (const Batch::Run& run : part.runs) ++counts_[model::index(run.series) + 1];
  std::partial_sum(counts_.begin(), counts_.end(), counts_.begin());
  for (std::size_t i = 0; i < n; ++i)
    order_[counts_[model::index(part.runs[i].series)]++] = static_cast<std::uint32_t>(i);
  return {&part, order_};
}

// Of parts of one form, runs in the order of groups.
void RawSamples::take_parts(std::vector<Ordered>& parts, std::size_t most, std::vector<RawBatch>& out) {
  const model::BatchForm form = model::form_of(*parts.front().part);
  RawBatch* to = nullptr;
  std::size_t left = 0;
  for (const Ordered& ordered : parts) left += ordered.part->size();
  while (left > 0) {
    Ordered* from = nullptr;  // with the least group
    for (Ordered& next : parts)
      if (!next.runs.empty() &&
          (from == nullptr || next.part->runs[next.runs.front()].series < from->part->runs[from->runs.front()].series))
        from = &next;
    const Batch& part = *from->part;
    const std::uint32_t r = from->runs.front();
    from->runs = from->runs.subspan(1);
    const Batch::Run& run = part.runs[r];
    const GroupId group{model::index(run.series)};
    for (std::uint32_t i = run.begin; i < run.end;) {
      if (to == nullptr || to->samples.size() == most) {
        to = &out.emplace_back();
        const std::size_t room = std::min(most, left);
        part.scaled.empty() ? to->samples.values.reserve(room) : to->samples.scaled.reserve(room);
        if (part.paces.empty()) to->samples.times.reserve(room);
      }
      const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(run.end - i, most - to->samples.size()));
      const std::size_t runs = to->samples.runs.size();
      model::append(to->samples, form, run.series, part, r, i, i + count);
      if (to->samples.runs.size() > runs) to->groups.push_back(group);
      const auto [least, greatest] = times_of(part, r, i, i + count);
      to->from = std::min(to->from, least);
      to->last = std::max(to->last, greatest);
      i += count;
      left -= count;
    }
  }
}

std::vector<RawBatch> RawSamples::take(std::size_t most) {
  RawSamples* const self = this;
  return take({&self, 1}, most);
}

std::vector<RawBatch> RawSamples::take(std::span<RawSamples* const> all, std::size_t most) {
  std::vector<RawBatch> out;
  std::vector<std::size_t> done(all.size());  // parts
  std::vector<Ordered> together;
  const auto next = [&](std::size_t i) { return done[i] < all[i]->used_ ? &all[i]->parts_[done[i]] : nullptr; };
  for (;;) {
    together.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Batch* const part = next(i);
      if (part == nullptr) continue;
      if (!together.empty() && model::form_of(*part) != model::form_of(*together.front().part)) continue;
      together.push_back(all[i]->ordered(*part));
      ++done[i];
    }
    if (together.empty()) break;
    take_parts(together, most, out);
  }
  for (RawSamples* samples : all) samples->clear();
  for (RawBatch& batch : out) {
    for (std::size_t i = 0; i < batch.samples.runs.size(); ++i) {
      batch.samples.runs[i].series = model::SeriesId{static_cast<std::uint32_t>(i)};
    }
  }
  return out;
}

}  // namespace orla::stream
