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
  out.insert(out.end(), changed_series_.begin(), changed_series_.end());
  changed_series_.clear();
}

void EdgeEngine::Shard::close_changed(std::uint32_t series) {
  Series& s = series_[series];
  Tally& tally = tallies_[series];
  if (tally.holds() && s.owner == 0) settle_tally(series);
  tally.close();
  s.changed = 0;
}

void EdgeEngine::Shard::set_held(std::uint32_t series, const std::vector<HeldSample>& samples) {
  if (samples.empty() && series_[series].held == 0) return;
  series_[series].held = samples.empty() ? 0 : 1;
  if (samples.empty())
    held_.erase(series);
  else
    held_[series] = samples;
}

Acceptance EdgeEngine::Shard::take_acceptance(std::uint32_t series) {
  return {tallies_[series].watermark, series_[series].held != 0 ? held_.at(series) : std::vector<HeldSample>()};
}

void EdgeEngine::Shard::put_acceptance(std::uint32_t series, const Acceptance& acceptance) {
  tallies_[series].watermark = acceptance.watermark();
  set_held(series, acceptance.held());
}

const std::string& EdgeEngine::Shard::identity_of(std::uint32_t series) {
  if (identified_ != series) identity_ = model::identity(engine_.definition(series));
  identified_ = series;
  return identity_;
}

// Samples of the run from `begin` on, with all that can happen to them.
void EdgeEngine::Shard::accept_run(std::uint32_t series, const Columns& columns, std::size_t r, std::uint32_t begin) {
  settle_tally(series);
  const Series& s = series_[series];
  const std::uint32_t input = columns.input();
  if (tallies_[series].input() != input) {
    tallies_[series].set_input(input);
    mark_changed(series);
    publish_due_ = true;
  }
  const std::uint32_t raw = engine_.raw_of(series);
  const AcceptanceRules rules = engine_.rules_for(engine_.inputs_[input], engine_.metrics_[s.metric]);
  const auto [times, values] = columns.plain(r, begin, plain_);
  Acceptance acceptance = take_acceptance(series);
  const Time watermark_before = acceptance.watermark();
  Acceptance::Plain plain = acceptance.plain(rules);
  Time newest = model::kMinTime;
  std::size_t from = 0;  // accepted and not yet folded, all for the same rows: [from, i)
  const auto fold_until = [&, times = times, values = values](std::size_t end) {
    if (from == end) return;
    fold(s, input, times.data() + from, values.data() + from, end - from);
    if (raw != kNone)
      raw_.add(model::GroupId{raw}, columns.batch, r, begin + static_cast<std::uint32_t>(from),
               begin + static_cast<std::uint32_t>(end));
    account(input).aggregated += end - from;
    from = end;
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Time time = times[i];
    if (time < plain.from || time > plain.to || !std::isfinite(values[i])) [[unlikely]] {
      fold_until(i);
      from = i + 1;
      decide_one(series, acceptance, HeldSample{time, values[i], input}, rules);
      plain = acceptance.plain(rules);
      continue;
    }
    newest = std::max(newest, time);
    if (time > acceptance.watermark()) {
      acceptance.advance(time);
      plain = acceptance.plain(rules);
    }
    if (located_ != series || time < located_from_ || time >= located_to_) {
      fold_until(i);
      locate(series, time);
    }
  }
  fold_until(times.size());
  put_acceptance(series, acceptance);
  if (newest != model::kMinTime) accepted(input, newest);
  if (acceptance.watermark() != watermark_before) {
    mark_changed(series);
    publish_due_ = true;
  }
}

void EdgeEngine::Shard::accepted(std::uint32_t input, Time newest) {
  Account& a = account(input);
  a.newest = std::max(a.newest, newest);
}

void EdgeEngine::Shard::count_held(std::uint32_t input, std::int64_t samples) {
  Account& a = account(input);
  a.held += static_cast<std::uint64_t>(samples);
  a.changed = true;
}

// Everything but the plain case.
void EdgeEngine::Shard::decide_one(std::uint32_t series, Acceptance& acceptance, const HeldSample& sample,
                                   const AcceptanceRules& rules) {
  const bool held_before = !acceptance.held().empty();
  for (const HeldSample& h : acceptance.held()) count_held(h.input, -1);
  acceptance.decide(sample, rules, decisions_);
  for (const HeldSample& h : acceptance.held()) count_held(h.input, 1);
  if (held_before || !acceptance.held().empty()) mark_changed(series);
  settle(series);
}

void EdgeEngine::Shard::reject_held(std::uint32_t series) {
  settle_tally(series);
  Acceptance acceptance = take_acceptance(series);
  for (const HeldSample& h : acceptance.held()) count_held(h.input, -1);
  acceptance.reject_held(decisions_);
  mark_changed(series);
  settle(series);
  put_acceptance(series, acceptance);
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
        const Series& s = series_[series];
        if (located_ != series || sample.time < located_from_ || sample.time >= located_to_)
          locate(series, sample.time);
        fold(s, sample.input, &sample.time, &sample.value, 1);
        if (const std::uint32_t raw = engine_.raw_of(series); raw != kNone)
          raw_.add(model::GroupId{raw}, sample.time, sample.value, engine_.metrics_[s.metric].decimals);
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
void EdgeEngine::Shard::locate(std::uint32_t number, Time time) {
  const Series& s = series_[number];
  const std::vector<std::size_t>& streams = engine_.metrics_[s.metric].streams;
  located_ = number;
  located_from_ = model::kMinTime;
  located_to_ = model::kMaxTime;
  places_.resize(streams.size());
  for (std::size_t k = 0; k < streams.size(); ++k) {
    const model::Duration length = engine_.streams_[streams[k]].slice;
    const Time slice = model::slice_start(time, length);
    places_[k] = rows_.at(streams[k], slice, engine_.group_of(s, k));
    located_from_ = std::max(located_from_, slice);
    located_to_ = std::min(located_to_, slice + length);
  }
}

// Adds accepted samples to the series' rows, which are located.
void EdgeEngine::Shard::fold(const Series& series, std::uint32_t input, const Time* times, const double* values,
                             std::size_t count) {
  const Metric& metric = engine_.metrics_[series.metric];
  account(input).open += count;
  count_open(places_[0], input, count);
  if (count > 1 && places_.size() > 1) {
    // Summed up once, then merged into each stream's row.
    scratch_.count = 0;
    scratch_.sums = model::ExactSum();
    for (std::size_t i = 0; i < count; ++i) scratch_.add(times[i], values[i], metric.decimals);
    for (const OpenRows::Place& place : places_) place.slice->add_sums(place, scratch_);
    if (metric.quantiles) {
      keys_.resize(std::max(keys_.size(), count));
      std::transform(values, values + count, keys_.begin(), model::quantile_key);
      add_quantiles(std::span(keys_).first(count));
    }
  } else {
    for (const OpenRows::Place& place : places_)
      for (std::size_t i = 0; i < count; ++i) place.slice->add(place, times[i], values[i]);
  }
  if (metric.distinct) count_series(series);
  for (const OpenRows::Place& place : places_) place.slice->mark_changed(place);
  for (const std::size_t stream : metric.streams) note_emission(stream);
}

// Samples of the input, which count as open ones of its, are about to be added to the row. That is counted as the first
// of its inputs': so whatever the order they come in, and whatever the shards.
void EdgeEngine::Shard::count_open(const OpenRows::Place& place, std::uint32_t input, std::uint64_t samples) {
  const std::uint32_t known = SliceRows::input(*place.row);
  if (known > input) return claim(*place.slice, *place.row, input);
  if (known == input) return;
  account(known).open += samples;
  account(input).open -= samples;
}

void EdgeEngine::Shard::claim(const SliceRows& slice, SmallRow& row, std::uint32_t input) {
  const std::uint64_t count = slice.count(row);
  if (SliceRows::input(row) != SliceRows::kNoInput) account(SliceRows::input(row)).open -= count;
  SliceRows::set_input(row, input);
  account(input).open += count;
}

// The keys of samples that the located rows have in their sums.
void EdgeEngine::Shard::add_quantiles(std::span<const std::int32_t> keys) {
  for (const OpenRows::Place& place : places_)
    if (model::Sketches* sketches = place.slice->sketches(place); sketches != nullptr && sketches->quantiles())
      sketches->quantiles()->add_keys(keys);
}

// The located rows have samples of the series.
void EdgeEngine::Shard::count_series(const Series& series) {
  for (std::size_t k = 0; k < places_.size(); ++k)
    if (model::Sketches* sketches = places_[k].slice->sketches(places_[k]); sketches != nullptr && sketches->distinct())
      sketches->distinct()->add(engine_.slot_hashes_[series.slots + k]);
}

// A row of the stream has samples that were not there.
void EdgeEngine::Shard::note_emission(std::size_t number) {
  const Stream& stream = engine_.streams_[number];
  if (stream.emit <= model::Duration::zero() || stream.emit_since) return;
  emits_.resize(engine_.streams_.size());
  if (std::exchange(emits_[number], 1) == 0) to_emit_.push_back(static_cast<std::uint32_t>(number));
}

void EdgeEngine::Shard::mark_changed(std::uint32_t series) {
  if (series_[series].changed != 0) return;
  series_[series].changed = 1;
  changed_series_.push_back(series);
}

}  // namespace orla::stream
