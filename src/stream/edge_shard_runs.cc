// The fast path: decimals in order of time are summed as integers, one cache line a series, and reach their rows when
// the series moves on to another slice, or the slice is sealed. What is not so plain goes through accept_run().
//
// A sample takes it when it is later than all before it of its series (so it is not late, and becomes the newest), no
// further ahead than max_jump and `future` allow, in the slices that the series' tally is of, and a decimal of the
// metric's that fits 32 bits. That decides it exactly as Acceptance would.
#include <algorithm>
#include <span>

#include "stream/edge_engine_columns.h"
#include "stream/edge_shard.h"
#include "stream/run_kernels.h"

namespace orla::stream {

using model::Batch;
using model::Duration;
using model::Time;

namespace {
constexpr std::uint32_t kLongRun = 8;  // samples from which a kernel is worth its call
constexpr std::size_t kAhead = 12;     // runs; in random order the next series' tallies are not at hand
}  // namespace

// Opens the series' tally for a sample at `time`. False when acceptance has to decide about it.
bool EdgeEngine::Shard::touch(std::uint32_t number, const Columns& columns, Time time) {
  const Series& s = series_[number];
  Tally& tally = tallies_[number];
  const Metric& metric = engine_.metrics_[s.metric];
  if (s.held != 0 || metric.decimals != columns.decimals() || time > columns.not_after) return false;
  if (tally.watermark == model::kMinTime) {  // the first of its series is accepted wherever it is
    if (time <= kEarliestTime) return false;
  } else if (time <= tally.watermark || time > model::add_clamped(tally.watermark, columns.max_jump)) {
    return false;
  }
  const std::uint32_t source = columns.source | (metric.quantiles ? Tally::kQuantiles : 0);
  // Closed by a commit, it goes on where it was.
  if (tally.holds() && (time >= tally.to || tally.source != (source | Tally::kClosed))) settle_tally(number);
  if (!tally.holds()) {
    Time to = model::kMaxTime;
    for (const std::size_t stream : metric.streams) {
      const Duration length = engine_.streams_[stream].slice;
      to = std::min(to, model::slice_start(time, length) + length);
    }
    tally.to = to;
    next_due_ = std::min(next_due_, to);
    ++held_tallies_;
    if (s.owner != 0)
      ++own_tallies_;
    else
      locate(number, time);  // rows that are open count
  }
  tally.source = source;
  mark_changed(number);
  for (const std::size_t stream : metric.streams) note_emission(stream);
  return true;
}

void EdgeEngine::Shard::settle_tally(std::uint32_t number) {
  Tally& tally = tallies_[number];
  if (!tally.holds()) return;
  if (tally.count > 0) {
    const Series& s = series_[number];
    locate(number, tally.watermark);
    count_open(places_[0], tally.input(), tally.count);
    for (const OpenRows::Place& place : places_) {
      place.slice->add_sums(place, tally.summary(place.slice->start()));
      if (!tally.closed()) place.slice->mark_changed(place);  // else a commit has what it holds
    }
    if (engine_.metrics_[s.metric].distinct) count_series(s);
  }
  tally.clear();
  --held_tallies_;
  if (series_[number].owner != 0) --own_tallies_;
}

void EdgeEngine::Shard::settle_due(const std::vector<Time>& ends) {
  next_due_ = model::kMaxTime;
  for (std::uint32_t number = 0; number < series_.size(); ++number) {
    if (engine_.shard_of(number) != number_) continue;  // another may be at work on it
    const Tally& tally = tallies_[number];
    if (!tally.holds()) continue;
    if (tally.to <= ends[series_[number].metric])
      settle_tally(number);
    else
      next_due_ = std::min(next_due_, tally.to);
  }
}

// Samples [begin, end) have just been tallied. Their quantile sketches take them at once: a tally has no room for them.
void EdgeEngine::Shard::sketch_tallied(std::uint32_t number, const Columns& columns, std::size_t r, std::uint32_t begin,
                                       std::uint32_t end) {
  keys_.resize(std::max<std::size_t>(keys_.size(), end - begin));
  const std::span<std::int32_t> keys = std::span(keys_).first(end - begin);
  quantile_keys({columns.scaled + begin, end - begin}, columns.decimals(), keys);
  const Time time = columns.time(r, begin);
  if (located_ != number || time < located_from_ || time >= located_to_) locate(number, time);
  add_quantiles(keys);
}

void EdgeEngine::Shard::sketch_tallied(std::uint32_t number, Time time, double value) {
  if (located_ != number || time < located_from_ || time >= located_to_) locate(number, time);
  for (const OpenRows::Place& place : places_)
    if (model::Sketches* sketches = place.slice->sketches(place); sketches != nullptr && sketches->quantiles())
      sketches->quantiles()->add(value);
}

void EdgeEngine::Shard::keep_raw(std::uint32_t series, const Batch& batch, std::size_t run, std::uint32_t begin,
                                 std::uint32_t end) {
  const std::uint32_t group = engine_.raw_of(series);
  if (group != kNone) raw_.add(model::GroupId{group}, batch, run, begin, end);
}

// The runs [from, to) whose series are the shard's: into picks_.
std::size_t EdgeEngine::Shard::pick(const Columns& columns, std::size_t from, std::size_t to) {
  const Batch::Run* const runs = columns.batch.runs.data();
  const std::uint32_t* const numbers = columns.numbers;
  const std::size_t shards = engine_.shards_.size();
  const std::uint32_t own = number_;
  Pick* const picks = picks_.data();
  std::size_t picked = 0;
  for (std::size_t r = from; r < to; ++r) {
    const std::uint32_t series = numbers[index(runs[r].series)];
    picks[picked] = {static_cast<std::uint32_t>(r), series};
    picked += static_cast<std::size_t>(shard_of(series, shards) == own);
  }
  return picked;
}

void EdgeEngine::Shard::accept(const Columns& columns) {
  const std::span<const Batch::Run> runs = columns.batch.runs;
  const std::uint32_t* const numbers = columns.numbers;
  model::Blocks<Tally, 1024>& tallies = tallies_;
  const Time* const times = columns.batch.paces.empty() ? columns.batch.times.data() : nullptr;
  const bool singles = times != nullptr && columns.scaled != nullptr;
  std::uint64_t tallied = 0;
  Time newest = model::kMinTime;
  const auto prefetch = [&](std::uint32_t series) {
    if (series < kGroupLimit) __builtin_prefetch(&tallies[series], 1);
  };
  const auto take = [&](std::size_t r, std::uint32_t series) __attribute__((always_inline)) {
    const Batch::Run& run = runs[r];
    if (run.end - run.begin == 1 && singles && series < kGroupLimit) {
      Tally& tally = tallies[series];
      const Time time = times[run.begin];
      if (tally.takes(time, columns) && tally.add(time, columns.scaled[run.begin])) [[likely]] {
        ++tallied;
        newest = std::max(newest, time);
        if (engine_.keeps_raw_) keep_raw(series, columns.batch, r, run.begin, run.end);
        return;
      }
    }
    const std::uint32_t done = take_run(columns, {static_cast<std::uint32_t>(r), series});
    tallied += done;
    if (done > 0) newest = std::max(newest, columns.time(r, run.begin + done - 1));
  };
  if (engine_.shards_.size() == 1) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (r + kAhead < runs.size()) prefetch(numbers[index(runs[r + kAhead].series)]);
      take(r, numbers[index(runs[r].series)]);
    }
  } else {
    for (std::size_t from = 0; from < runs.size(); from += kPicks) {
      const std::size_t picked = pick(columns, from, std::min(runs.size(), from + kPicks));
      for (std::size_t k = 0; k < picked; ++k) {
        if (k + kAhead < picked) prefetch(picks_[k + kAhead].series);
        take(picks_[k].run, picks_[k].series);
      }
    }
  }
  if (tallied == 0) return;
  account(columns.input()).aggregated += tallied;
  account(columns.input()).open += tallied;
  publish_due_ = true;
  accepted(columns.input(), newest);
}

// How many samples of the run, from its start, the fast path has taken; the others have taken the other one.
std::uint32_t EdgeEngine::Shard::take_run(const Columns& columns, Pick pick) {
  const Batch::Run& run = columns.batch.runs[pick.run];
  const std::uint32_t count = run.end - run.begin;
  if (count == 0) return 0;
  if (pick.series >= kGroupLimit) {
    Account& a = account(columns.input());
    (pick.series == kUnmatched ? a.unmatched : pick.series == kSeriesLimit ? a.series_limit : a.group_limit) += count;
    a.changed = true;
    return 0;
  }
  std::uint32_t done = 0;
  if (columns.scaled != nullptr)
    done = count < kLongRun ? tally_short_run(pick.series, columns, pick.run)
                            : tally_long_run(pick.series, columns, pick.run);
  if (engine_.keeps_raw_ && done > 0) keep_raw(pick.series, columns.batch, pick.run, run.begin, run.begin + done);
  if (done < count) accept_run(pick.series, columns, pick.run, run.begin + done);
  return done;
}

// These two say how many samples of the run, from its start, were taken.
std::uint32_t EdgeEngine::Shard::tally_short_run(std::uint32_t number, const Columns& columns, std::size_t r) {
  const Batch::Run& run = columns.batch.runs[r];
  Tally& tally = tallies_[number];
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    const Time time = columns.time(r, i);
    const std::int32_t v = columns.scaled[i];
    if (v == kNoDecimal) return i - run.begin;
    if (!tally.takes_sketched(time, columns) && !touch(number, columns, time)) return i - run.begin;
    if (!tally.add(time, v) && (!touch(number, columns, time) || !tally.add(time, v))) return i - run.begin;
    if (tally.has_quantiles()) sketch_tallied(number, time, v / model::power_of_ten(columns.decimals()));
  }
  return run.end - run.begin;
}

std::uint32_t EdgeEngine::Shard::tally_long_run(std::uint32_t number, const Columns& columns, std::size_t r) {
  const Batch::Run& run = columns.batch.runs[r];
  if (!columns.rises(r)) return 0;
  if (columns.time(r, run.end - 1) > columns.not_after) return 0;
  Tally& tally = tallies_[number];
  for (std::uint32_t i = run.begin; i < run.end;) {
    // Else a row might be opened for samples none of which is accepted.
    if (columns.scaled[i] == kNoDecimal) return i - run.begin;
    const Time time = columns.time(r, i);
    if (!tally.takes_sketched(time, columns) && !touch(number, columns, time)) return i - run.begin;
    const std::uint32_t end =
        columns.first_at_or_after(r, i, std::min<std::uint32_t>(run.end, i + kMaxSummable), tally.to);
    const RunSummary some = summarize({columns.scaled + i, end - i});
    if (some.min <= -kSummableMagnitude || some.max >= kSummableMagnitude) return i - run.begin;
    if (!tally.add(time, columns.scaled[i], some, columns.time(r, end - 1), columns.scaled[end - 1], end - i)) {
      if (!touch(number, columns, time)) return i - run.begin;
      continue;
    }
    if (tally.has_quantiles()) sketch_tallied(number, columns, r, i, end);
    i = end;
  }
  return run.end - run.begin;
}

}  // namespace orla::stream
