// The fast path: decimals in order of time are summed as integers, one cache line a series, and reach their rows when
// the series moves on to another slice or somebody looks. What is not so plain goes through accept_run().
//
// A sample takes it when it is later than all before it of its series (so it is not late, and becomes the newest), no
// further ahead than max_jump and `future` allow, in the slices of the series' located rows, and a decimal of the
// metric's that fits 32 bits. That decides it exactly as Acceptance would.
#include <algorithm>
#include <span>

#include "stream/edge_engine.h"
#include "stream/edge_engine_columns.h"
#include "stream/run_kernels.h"

namespace orla::stream {

using model::Batch;
using model::Duration;
using model::Time;

namespace {
constexpr std::uint32_t kLongRun = 8;  // samples from which a kernel is worth its call
constexpr std::size_t kAhead = 12;     // runs; in random order the next series' tallies are not at hand
}  // namespace

EdgeEngine::Columns EdgeEngine::columns_of(std::uint32_t input, const Batch& batch) {
  Columns columns{{Tally::source_of(input, batch.decimals), {}, Duration::max()}, batch, nullptr};
  if (!batch.scaled.empty()) {
    columns.scaled = batch.scaled.data();
  } else {
    // One number of decimals for the whole batch: that of the first of its series, as nearly always all have.
    for (const Batch::Run& run : batch.runs) {
      const std::uint32_t series = inputs_[input].series[index(run.series)];
      if (series >= kGroupLimit) continue;
      const int decimals = metrics_[series_[series].metric].decimals;
      columns.source = Tally::source_of(input, decimals);
      scaled_.resize(batch.values.size());
      to_decimals(batch.values, decimals, scaled_);
      columns.scaled = scaled_.data();
      break;
    }
  }
  const AcceptanceRules rules = rules_for(inputs_[input], Metric{});
  columns.not_after = std::min(kLatestTime - Duration(1), rules.not_after);
  if (rules.max_jump > Duration::zero()) columns.max_jump = rules.max_jump;
  return columns;
}

// Opens the series' tally for a sample at `time`. False when acceptance has to decide about it.
bool EdgeEngine::touch(std::uint32_t number, const Columns& columns, Time time) {
  Series& s = series_[number];
  settle_tally(number);
  if (metrics_[s.metric].decimals != columns.decimals()) return false;
  if (time <= s.acceptance.watermark() || time > columns.not_after) return false;
  const Acceptance::Plain plain = s.acceptance.plain(rules_for(inputs_[columns.input()], metrics_[s.metric]));
  if (time < plain.from || time > plain.to) return false;
  if (s.generation != generation_ || time < s.from || time >= s.to) locate(s, time);
  s.input = columns.input();
  mark_changed(number);
  const std::size_t count = metrics_[s.metric].streams.size();
  for (std::size_t k = 0; k < count; ++k) note_change(slots_[s.slots + k]);
  Tally& tally = tallies_[number];
  tally.watermark = s.acceptance.watermark();
  tally.to = s.to;
  tally.source = columns.source | (metrics_[s.metric].quantiles ? Tally::kQuantiles : 0);
  touched_.push_back(number);
  return true;
}

// Adds what the tally holds to the rows, and closes it.
void EdgeEngine::settle_tally(std::uint32_t number) {
  Tally& tally = tallies_[number];
  if (tally.to == model::kMinTime) return;
  tally.to = model::kMinTime;
  if (tally.count == 0) return;
  Series& s = series_[number];
  s.acceptance.advance(tally.watermark);
  tally.take(scratch_);
  Slot* const slot = slots_.data() + s.slots;
  if (slot[0].row->input != tally.input()) claim(*slot[0].row, tally.input());
  inputs_[tally.input()].open += scratch_.count;
  const std::size_t count = metrics_[s.metric].streams.size();
  for (std::size_t k = 0; k < count; ++k) slot[k].row->content.partial.merge_sums(scratch_);
  if (metrics_[s.metric].distinct) count_series(s);
}

// Samples [begin, end) have just been tallied. Their quantile sketches take them at once: a tally has no room for them.
void EdgeEngine::sketch_tallied(std::uint32_t number, const Columns& columns, std::uint32_t begin, std::uint32_t end) {
  keys_.resize(std::max<std::size_t>(keys_.size(), end - begin));
  const std::span<std::int32_t> keys = std::span(keys_).first(end - begin);
  quantile_keys({columns.scaled + begin, end - begin}, columns.decimals(), keys);
  add_quantiles(series_[number], keys);
}

void EdgeEngine::sketch_tallied(std::uint32_t number, double value) {
  const Series& s = series_[number];
  const std::size_t slots = metrics_[s.metric].streams.size();
  for (std::size_t k = 0; k < slots; ++k)
    if (model::QuantileSketch* quantiles = slots_[s.slots + k].row->content.partial.sketches.quantiles())
      quantiles->add(value);
}

void EdgeEngine::settle_tallies() {
  for (const std::uint32_t series : touched_) settle_tally(series);
  touched_.clear();
}

void EdgeEngine::keep_raw(std::uint32_t series, const Batch& batch, std::size_t run, std::uint32_t begin,
                          std::uint32_t end) {
  const std::uint32_t group = series_[series].raw;
  if (group != kNone) raw_.add(model::GroupId{group}, batch, run, begin, end);
}

// Decides and folds all samples of a batch.
void EdgeEngine::accept(Input& input, const Columns& columns) {
  const Batch& batch = columns.batch;
  model::Ledger& ledger = input.state.ledger;
  // None of these moves while a batch is taken: its series are known.
  const std::span<const Batch::Run> runs = batch.runs;
  const std::uint32_t* const numbers = input.series.data();
  Tally* const tallies = tallies_.data();
  const Time* const times = batch.paces.empty() ? batch.times.data() : nullptr;
  std::uint64_t tallied = 0;
  Time newest = model::kMinTime;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const Batch::Run& run = runs[r];
    const std::uint32_t series = numbers[index(run.series)];
    const std::uint32_t count = run.end - run.begin;
    if (r + kAhead < runs.size()) {
      const std::uint32_t next = numbers[index(runs[r + kAhead].series)];
      if (next < kGroupLimit) __builtin_prefetch(tallies + next, 1);
    }
    if (count == 1 && times != nullptr && series < kGroupLimit && columns.scaled != nullptr) {
      Tally& tally = tallies[series];
      const Time time = times[run.begin];
      const std::int32_t v = columns.scaled[run.begin];
      if (tally.takes(time, columns) && tally.add(time, v)) [[likely]] {
        ++tallied;
        newest = std::max(newest, time);
        if (keeps_raw_) keep_raw(series, batch, r, run.begin, run.end);
        continue;
      }
    }
    if (count == 0) continue;
    switch (series) {
      case kUnmatched:
        ledger.unmatched += count;
        break;
      case kSeriesLimit:
        ledger.dropped["series_limit"] += count;
        break;
      case kGroupLimit:
        ledger.dropped["group_limit"] += count;
        break;
      default:
        std::uint32_t done = 0;
        if (columns.scaled != nullptr)
          done = count < kLongRun ? tally_short_run(series, columns, r) : tally_long_run(series, columns, r);
        if (done > 0) newest = std::max(newest, columns.time(r, run.begin + done - 1));
        tallied += done;
        if (keeps_raw_ && done > 0) keep_raw(series, batch, r, run.begin, run.begin + done);
        if (done < count) accept_run(series, columns, r, run.begin + done);
    }
  }
  if (tallied == 0) return;
  ledger.aggregated += tallied;
  publish_due_ = true;
  accepted(input, newest);
}

// These two say how many samples of the run, from its start, were taken.
std::uint32_t EdgeEngine::tally_short_run(std::uint32_t number, const Columns& columns, std::size_t r) {
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

std::uint32_t EdgeEngine::tally_long_run(std::uint32_t number, const Columns& columns, std::size_t r) {
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
