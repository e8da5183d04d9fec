// The fast path: decimals in order of time are summed as integers, one cache line a series, and reach their rows when
// the series moves on to another slice or somebody looks. What is not so plain goes through accept_run().
//
// A sample takes it when it is later than all before it of its series (so it is not late, and becomes the newest), no
// further ahead than max_jump and `future` allow, in the slices of the series' located rows, and a decimal of the
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
  Series& s = series_[number];
  settle_tally(number);
  if (engine_.metrics_[s.metric].decimals != columns.decimals()) return false;
  if (time <= s.acceptance.watermark() || time > columns.not_after) return false;
  const Acceptance::Plain plain =
      s.acceptance.plain(engine_.rules_for(engine_.inputs_[columns.input()], engine_.metrics_[s.metric]));
  if (time < plain.from || time > plain.to) return false;
  if (s.generation != engine_.generation_ || time < s.from || time >= s.to) locate(s, time);
  s.input = columns.input();
  mark_changed(number);
  const std::size_t count = engine_.metrics_[s.metric].streams.size();
  for (std::size_t k = 0; k < count; ++k) note_change(slots_[s.slots + k]);
  Tally& tally = tallies_[number];
  tally.watermark = s.acceptance.watermark();
  tally.to = s.to;
  tally.source = columns.source | (engine_.metrics_[s.metric].quantiles ? Tally::kQuantiles : 0);
  touched_.push_back(number);
  return true;
}

// Adds what the tally holds to the rows, and closes it.
void EdgeEngine::Shard::settle_tally(std::uint32_t number) {
  Tally& tally = tallies_[number];
  if (tally.to == model::kMinTime) return;
  tally.to = model::kMinTime;
  if (tally.count == 0) return;
  Series& s = series_[number];
  s.acceptance.advance(tally.watermark);
  tally.take(scratch_);
  Slot* const slot = slots_.data() + s.slots;
  count_open(*slot[0].row, tally.input(), scratch_.count);
  const std::size_t count = engine_.metrics_[s.metric].streams.size();
  for (std::size_t k = 0; k < count; ++k) slot[k].row->content.partial.merge_sums(scratch_);
  if (engine_.metrics_[s.metric].distinct) count_series(s);
}

// Samples [begin, end) have just been tallied. Their quantile sketches take them at once: a tally has no room for them.
void EdgeEngine::Shard::sketch_tallied(std::uint32_t number, const Columns& columns, std::uint32_t begin,
                                       std::uint32_t end) {
  keys_.resize(std::max<std::size_t>(keys_.size(), end - begin));
  const std::span<std::int32_t> keys = std::span(keys_).first(end - begin);
  quantile_keys({columns.scaled + begin, end - begin}, columns.decimals(), keys);
  add_quantiles(series_[number], keys);
}

void EdgeEngine::Shard::sketch_tallied(std::uint32_t number, double value) {
  const Series& s = series_[number];
  const std::size_t slots = engine_.metrics_[s.metric].streams.size();
  for (std::size_t k = 0; k < slots; ++k)
    if (model::QuantileSketch* quantiles = slots_[s.slots + k].row->content.partial.sketches.quantiles())
      quantiles->add(value);
}

void EdgeEngine::Shard::settle_tallies() {
  for (const std::uint32_t series : touched_) settle_tally(series);
  touched_.clear();
}

void EdgeEngine::Shard::keep_raw(std::uint32_t series, const Batch& batch, std::size_t run, std::uint32_t begin,
                                 std::uint32_t end) {
  const std::uint32_t group = series_[series].raw;
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
  Tally* const tallies = tallies_.data();
  const Time* const times = columns.batch.paces.empty() ? columns.batch.times.data() : nullptr;
  const bool singles = times != nullptr && columns.scaled != nullptr;
  std::uint64_t tallied = 0;
  Time newest = model::kMinTime;
  const auto prefetch = [&](std::uint32_t series) {
    if (series < kGroupLimit) __builtin_prefetch(tallies + series, 1);
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
  publish_due_ = true;
  accepted(columns.input(), newest);
}

// How many samples of the run, from its start, the fast path has taken; the others have taken the other one.
std::uint32_t EdgeEngine::Shard::take_run(const Columns& columns, Pick pick) {
  const Batch::Run& run = columns.batch.runs[pick.run];
  const std::uint32_t count = run.end - run.begin;
  if (count == 0) return 0;
  switch (pick.series) {
    case kUnmatched:
      account(columns.input()).unmatched += count;
      return 0;
    case kSeriesLimit:
      account(columns.input()).series_limit += count;
      return 0;
    case kGroupLimit:
      account(columns.input()).group_limit += count;
      return 0;
    default:
      break;
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
    if (tally.has_quantiles()) sketch_tallied(number, v / model::power_of_ten(columns.decimals()));
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
    if (tally.has_quantiles()) sketch_tallied(number, columns, i, end);
    i = end;
  }
  return run.end - run.begin;
}

}  // namespace orla::stream
