// Acceptance and folding of what is not so plain. The fast path is in edge_shard_runs.cc.
#include "stream/edge_shard.h"

#include <algorithm>
#include <cmath>

#include "stream/edge_engine_columns.h"

namespace orla::stream {

using model::HeldSample;
using model::Time;

EdgeEngine::Shard::Account& EdgeEngine::Shard::account(std::uint32_t input) {
  if (input >= accounts_.size()) accounts_.resize(engine_.inputs_.size());
  Account& account = accounts_[input];
  if (!account.noted) {
    account.noted = true;
    noted_.push_back(input);
  }
  return account;
}

void EdgeEngine::Shard::take_changed_series(std::vector<std::uint32_t>& out) {
  for (const std::uint32_t series : changed_series_) series_[series].changed = false;
  out.insert(out.end(), changed_series_.begin(), changed_series_.end());
  changed_series_.clear();
}

const std::string& EdgeEngine::Shard::identity_of(std::uint32_t series) {
  if (identified_ != series) identity_ = model::identity(engine_.definition(series));
  identified_ = series;
  return identity_;
}

// Samples of the run from `begin` on, with all that can happen to them.
void EdgeEngine::Shard::accept_run(std::uint32_t series, const Columns& columns, std::size_t r, std::uint32_t begin) {
  settle_tally(series);
  Series& s = series_[series];
  const std::uint32_t input = columns.input();
  if (s.input != input) {
    s.input = input;
    mark_changed(series);
    publish_due_ = true;
  }
  if (s.generation != engine_.generation_) s.to = model::kMinTime;  // its rows may be gone
  const AcceptanceRules rules = engine_.rules_for(engine_.inputs_[input], engine_.metrics_[s.metric]);
  const auto [times, values] = columns.plain(r, begin, plain_);
  const Time watermark_before = s.acceptance.watermark();
  Acceptance::Plain plain = s.acceptance.plain(rules);
  Time newest = model::kMinTime;
  std::size_t from = 0;  // accepted and not yet folded, all for the same rows: [from, i)
  const auto fold_until = [&, times = times, values = values](std::size_t end) {
    if (from == end) return;
    fold(s, input, times.data() + from, values.data() + from, end - from);
    if (s.raw != kNone)
      raw_.add(model::GroupId{s.raw}, columns.batch, r, begin + static_cast<std::uint32_t>(from),
               begin + static_cast<std::uint32_t>(end));
    account(input).aggregated += end - from;
    from = end;
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Time time = times[i];
    if (time < plain.from || time > plain.to || !std::isfinite(values[i])) [[unlikely]] {
      fold_until(i);
      from = i + 1;
      decide_one(series, HeldSample{time, values[i], input}, rules);
      plain = s.acceptance.plain(rules);
      continue;
    }
    newest = std::max(newest, time);
    if (time > s.acceptance.watermark()) {
      s.acceptance.advance(time);
      plain = s.acceptance.plain(rules);
    }
    if (time < s.from || time >= s.to) {
      fold_until(i);
      locate(s, time);
    }
  }
  fold_until(times.size());
  if (newest != model::kMinTime) accepted(input, newest);
  if (s.acceptance.watermark() != watermark_before) {
    mark_changed(series);
    publish_due_ = true;
  }
}

void EdgeEngine::Shard::accepted(std::uint32_t input, Time newest) {
  Account& a = account(input);
  a.newest = std::max(a.newest, newest);
}

// Everything but the plain case.
void EdgeEngine::Shard::decide_one(std::uint32_t series, const HeldSample& sample, const AcceptanceRules& rules) {
  Acceptance& acceptance = series_[series].acceptance;
  const bool held_before = !acceptance.held().empty();
  for (const HeldSample& h : acceptance.held()) --account(h.input).held;
  acceptance.decide(sample, rules, decisions_);
  for (const HeldSample& h : acceptance.held()) ++account(h.input).held;
  if (held_before || !acceptance.held().empty()) mark_changed(series);
  settle(series);
}

void EdgeEngine::Shard::reject_held(std::uint32_t series) {
  Acceptance& acceptance = series_[series].acceptance;
  for (const HeldSample& h : acceptance.held()) --account(h.input).held;
  acceptance.reject_held(decisions_);
  mark_changed(series);
  settle(series);
}

// Carries out decisions_ and empties it.
void EdgeEngine::Shard::settle(std::uint32_t series) {
  const auto hash = [&](const HeldSample& sample) {  // -0.0 counts as 0.0
    return model::sample_hash(identity_of(series), sample.time, sample.value + 0.0);
  };
  for (const Decision& decision : decisions_) {
    const HeldSample& sample = decision.sample;
    Account& from = account(sample.input);
    from.changed = true;
    switch (decision.verdict) {
      case Verdict::kHeld:
        break;  // in `held`
      case Verdict::kAccepted: {
        Series& s = series_[series];
        if (sample.time < s.from || sample.time >= s.to) locate(s, sample.time);
        fold(s, sample.input, &sample.time, &sample.value, 1);
        if (s.raw != kNone)
          raw_.add(model::GroupId{s.raw}, sample.time, sample.value, engine_.metrics_[s.metric].decimals);
        ++account(sample.input).aggregated;
        accepted(sample.input, sample.time);
        break;
      }
      case Verdict::kLate:
        from.late.add(hash(sample));
        break;
      case Verdict::kJump:
      case Verdict::kFuture:
      case Verdict::kNotFinite:
      case Verdict::kBadTime:
        ++from.rejected[static_cast<std::size_t>(decision.verdict)];
        from.rejected_set.add(hash(sample));
        break;
    }
  }
  decisions_.clear();
}

// Finds or opens the rows of the slices that hold `time`.
void EdgeEngine::Shard::locate(Series& series, Time time) {
  series.from = model::kMinTime;
  series.to = model::kMaxTime;
  series.generation = engine_.generation_;
  const std::size_t count = engine_.metrics_[series.metric].streams.size();
  for (std::size_t k = 0; k < count; ++k) {
    Slot& slot = slots_[series.slots + k];
    const model::Duration length = engine_.streams_[slot.stream].slice;
    const Time slice = model::slice_start(time, length);
    slot.row = &rows_.at(slot.stream, slice, slot.group);
    series.from = std::max(series.from, slice);
    series.to = std::min(series.to, slice + length);
  }
}

// Adds accepted samples to the series' located rows.
void EdgeEngine::Shard::fold(Series& series, std::uint32_t input, const Time* times, const double* values,
                             std::size_t count) {
  const Metric& metric = engine_.metrics_[series.metric];
  const std::size_t slots = metric.streams.size();
  Slot* const slot = slots_.data() + series.slots;
  count_open(*slot[0].row, input, count);
  if (count > 1 && slots > 1) {
    // Summed up once, then merged into each stream's row.
    scratch_.count = 0;
    scratch_.sums = model::ExactSum();
    for (std::size_t i = 0; i < count; ++i) scratch_.add(times[i], values[i], metric.decimals);
    for (std::size_t k = 0; k < slots; ++k) slot[k].row->content.partial.merge_sums(scratch_);
    if (metric.quantiles) {
      keys_.resize(std::max(keys_.size(), count));
      std::transform(values, values + count, keys_.begin(), model::quantile_key);
      add_quantiles(series, std::span(keys_).first(count));
    }
  } else {
    for (std::size_t k = 0; k < slots; ++k)
      for (std::size_t i = 0; i < count; ++i) slot[k].row->content.partial.add(times[i], values[i], metric.decimals);
  }
  if (metric.distinct) count_series(series);
  for (std::size_t k = 0; k < slots; ++k) note_change(slot[k]);
}

// Samples of the input are about to be added to the row, which counts as that of the first of its inputs: so whatever
// the order they come in, and whatever the shards.
void EdgeEngine::Shard::count_open(OpenRows::Row& row, std::uint32_t input, std::uint64_t samples) {
  if (row.input > input) claim(row, input);
  account(row.input).open += samples;
}

void EdgeEngine::Shard::claim(OpenRows::Row& row, std::uint32_t input) {
  const std::uint64_t count = row.content.partial.count;
  if (row.input != OpenRows::kNoInput) account(row.input).open -= count;
  row.input = input;
  account(input).open += count;
}

// The keys of samples that the series' located rows have in their sums.
void EdgeEngine::Shard::add_quantiles(const Series& series, std::span<const std::int32_t> keys) {
  const std::size_t slots = engine_.metrics_[series.metric].streams.size();
  for (std::size_t k = 0; k < slots; ++k)
    if (model::QuantileSketch* quantiles = slots_[series.slots + k].row->content.partial.sketches.quantiles())
      quantiles->add_keys(keys);
}

// The located rows have samples of the series.
void EdgeEngine::Shard::count_series(const Series& series) {
  const std::size_t slots = engine_.metrics_[series.metric].streams.size();
  for (std::size_t k = 0; k < slots; ++k)
    if (model::DistinctSketch* distinct = slots_[series.slots + k].row->content.partial.sketches.distinct())
      distinct->add(engine_.slot_hashes_[series.slots + k]);
}

// The slot's row has samples that were not there.
void EdgeEngine::Shard::note_change(const Slot& slot) {
  rows_.mark_changed(*slot.row);
  const Stream& stream = engine_.streams_[slot.stream];
  if (stream.emit <= model::Duration::zero() || stream.emit_since) return;
  emits_.resize(engine_.streams_.size());
  if (std::exchange(emits_[slot.stream], 1) == 0) to_emit_.push_back(slot.stream);
}

void EdgeEngine::Shard::mark_changed(std::uint32_t series) {
  if (series_[series].changed) return;
  series_[series].changed = true;
  changed_series_.push_back(series);
}

}  // namespace orla::stream
