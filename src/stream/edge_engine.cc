// Samples in: definition of series, acceptance, folding. Publication and sealing are in edge_engine_seal.cc, what is
// kept and restored in edge_engine_state.cc.
#include "stream/edge_engine.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/hash.h"
#include "fmt/format.h"
#include "stream/edge_engine_columns.h"

namespace orla::stream {

using model::Batch;
using model::GroupDef;
using model::HeldSample;
using model::InputBatch;
using model::Label;
using model::Time;

namespace {

const char* reason(Verdict verdict) {
  switch (verdict) {
    case Verdict::kJump:
      return "max_jump";
    case Verdict::kFuture:
      return "future";
    case Verdict::kNotFinite:
      return "not_finite";
    case Verdict::kBadTime:
      return "bad_time";
    case Verdict::kAccepted:
    case Verdict::kLate:
    case Verdict::kHeld:
      break;
  }
  return "";
}

// Of the labels' values; of no two combinations the hashed bytes are the same.
std::uint64_t distinct_hash(const model::Series& series, const std::vector<std::string>& labels) {
  std::string bytes;
  base::ByteWriter to(bytes);
  for (const std::string& name : labels) {
    const auto found = std::find_if(series.labels.begin(), series.labels.end(),
                                    [&](const Label& label) { return label.first == name; });
    to.text(found == series.labels.end() ? "" : found->second);
  }
  return base::hash64(bytes);
}

}  // namespace

EdgeEngine::EdgeEngine(const model::Plan& plan, const std::vector<std::string>& input_keys, EngineLimits limits)
    : plan_(plan), input_keys_(input_keys), limits_(limits) {
  clear();
}

std::vector<Label> EdgeEngine::group_labels(const model::Series& series, const model::StreamDef& stream) {
  if (stream.whole_series) return series.labels;
  std::vector<Label> labels;
  for (const std::string& name : stream.by) {
    const auto found = std::find_if(series.labels.begin(), series.labels.end(),
                                    [&](const Label& label) { return label.first == name; });
    labels.emplace_back(name, found == series.labels.end() ? "" : found->second);
  }
  return labels;
}

GroupDef EdgeEngine::group(model::GroupId id) const {
  const Stream& stream = streams_[groups_.kind(index(id))];
  return {stream.name, stream.definition, stream.slice.count(), stream.decimals, groups_.labels(index(id))};
}

model::Series EdgeEngine::definition(std::uint32_t series) const {
  return {std::string(texts_[definitions_.kind(series)]), definitions_.labels(series)};
}

const std::string& EdgeEngine::identity_of(std::uint32_t series) {
  if (identified_ != series) identity_ = model::identity(definition(series));
  identified_ = series;
  return identity_;
}

std::uint32_t EdgeEngine::find_metric(std::string_view name) const {
  const auto found =
      std::lower_bound(metrics_by_name_.begin(), metrics_by_name_.end(), name,
                       [&](std::size_t i, std::string_view n) { return plan_.fleet.metrics[i].name < n; });
  if (found == metrics_by_name_.end() || plan_.fleet.metrics[*found].name != name || metrics_[*found].streams.empty())
    return kNoMetric;
  return static_cast<std::uint32_t>(*found);
}

// The series' slots, one per stream of the metric, and its raw group; nothing when a group it needs is beyond the
// limit.
std::optional<EdgeEngine::Placed> EdgeEngine::place(const model::Series& series, std::size_t metric) {
  const std::vector<std::size_t>& streams = metrics_[metric].streams;
  // By stream, and at the end, if there is one, of the raw stream.
  std::vector<std::pair<std::uint32_t, std::vector<Label>>> needed;
  for (const std::size_t stream : streams)
    needed.emplace_back(static_cast<std::uint32_t>(stream), group_labels(series, plan_.streams[stream]));
  if (metrics_[metric].raw != kNone) needed.emplace_back(metrics_[metric].raw, series.labels);
  std::vector<std::uint32_t> known;
  std::size_t missing = 0;
  for (const auto& [stream, labels] : needed) {
    known.push_back(groups_.find(stream, labels).value_or(kNone));
    if (known.back() == kNone) ++missing;
  }
  if (missing > 0 && groups_.size() + missing > limits_.groups) return std::nullopt;
  Placed placed;
  placed.slots = static_cast<std::uint32_t>(slots_.size());
  for (std::size_t k = 0; k < needed.size(); ++k) {
    std::uint32_t group = known[k];
    if (group == kNone) group = groups_.add(needed[k].first, needed[k].second);
    if (k >= streams.size()) {
      placed.raw = group;
      break;
    }
    slots_.push_back(Slot{needed[k].first, model::GroupId{group}, nullptr});
    if (hashes_wanted_) slot_hashes_.push_back(distinct_hash(series, plan_.streams[streams[k]].distinct));
  }
  return placed;
}

std::uint32_t EdgeEngine::add_series(const model::Series& series, std::uint32_t metric) {
  const auto number = static_cast<std::uint32_t>(series_.size());
  definitions_.add(texts_.add(series.metric), series.labels);
  series_.emplace_back().metric = metric;
  tallies_.emplace_back();
  if (metric != kNoMetric) metrics_[metric].fed = true;
  return number;
}

std::optional<std::uint32_t> EdgeEngine::find_series(const model::Series& series) const {
  const std::optional<std::uint32_t> metric = texts_.find(series.metric);
  return metric ? definitions_.find(*metric, series.labels) : std::nullopt;
}

std::uint32_t EdgeEngine::define(const Input& input, const model::Series& series) {
  const std::uint32_t metric = find_metric(series.metric);
  if (metric == kNoMetric) return kUnmatched;
  // Senders write what they like; what their input is not declared to bring is as if no rollup wanted it.
  if (input.spec != nullptr && model::is_live(input.spec->kind) &&
      std::find(input.spec->metrics.begin(), input.spec->metrics.end(), series.metric) == input.spec->metrics.end())
    return kUnmatched;
  if (const std::optional<std::uint32_t> known = find_series(series)) {
    Series& s = series_[*known];
    if (s.slots == kNone) {
      const std::optional<Placed> placed = place(series, metric);
      if (!placed) return kGroupLimit;
      s.slots = placed->slots;
      s.raw = placed->raw;
    }
    return *known;
  }
  if (series_.size() >= limits_.series) return kSeriesLimit;
  const std::optional<Placed> placed = place(series, metric);
  if (!placed) return kGroupLimit;
  const std::uint32_t number = add_series(series, metric);
  series_[number].slots = placed->slots;
  series_[number].raw = placed->raw;
  return number;
}

absl::Status EdgeEngine::check(const Input& input, const InputBatch& batch) const {
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        fmt::format("input {}, batch up to row {}: {}", input.state.key, batch.position.row, what));
  };
  if (input.state.ended) return wrong("it comes after the end of the input");
  const Batch& samples = batch.samples;
  const std::size_t size = samples.size();
  if (!samples.values.empty() && !samples.scaled.empty()) return wrong("its values have two forms");
  if (samples.decimals < 0 || samples.decimals > model::kMaxScaledDecimals)
    return wrong("its decimals are no decimals");
  if (samples.paces.empty() ? samples.times.size() != size
                            : samples.paces.size() != samples.runs.size() || !samples.times.empty())
    return wrong("it has not a time for each value");
  const std::size_t known = input.series.size() + batch.new_series.size();
  std::uint32_t end = 0;
  std::uint32_t out_of_place = 0;
  std::uint32_t largest = 0;
  for (const Batch::Run& run : samples.runs) {
    out_of_place |= (run.begin ^ end) | static_cast<std::uint32_t>(run.end < run.begin);
    largest = std::max(largest, index(run.series));
    end = run.end;
  }
  if (out_of_place != 0) return wrong("its runs do not follow each other");
  if (largest >= known && !samples.runs.empty()) return wrong(fmt::format("series {} was never defined", largest));
  if (end != size) return wrong("its runs do not cover its samples");
  for (std::size_t r = 0; r < samples.paces.size(); ++r) {
    const std::int64_t steps = static_cast<std::int64_t>(samples.runs[r].end) - samples.runs[r].begin - 1;
    const Batch::Pace& pace = samples.paces[r];
    std::int64_t last = 0;
    if (pace.step < model::Duration::zero() ||
        (steps > 0 && (__builtin_mul_overflow(pace.step.count(), steps, &last) ||
                       __builtin_add_overflow(model::to_ns(pace.start), last, &last))))
      return wrong("the times of a run leave the range of times, or go back");
  }
  if (batch.producer.empty() != (batch.producer_sequence == 0))
    return wrong("it has a producer without a sequence number from 1, or a number without a producer");
  return check_producer(input, batch);
}

absl::Status EdgeEngine::check_producer(const Input& input, const InputBatch& batch) const {
  if (batch.producer.empty()) return absl::OkStatus();
  const auto known = input.producers.find(batch.producer);
  if (known == input.producers.end()) {
    if (producer_count_ < limits_.producers) return absl::OkStatus();
    return absl::ResourceExhaustedError(fmt::format(
        "input {}: producer \"{}\" is one more than the {} that are kept here: raise [limits] producers, or send "
        "without a sequence number",
        input.state.key, batch.producer, limits_.producers));
  }
  if (batch.producer_sequence > known->second) return absl::OkStatus();
  return absl::AlreadyExistsError(fmt::format("producer \"{}\" has sent {}; {} counts as sent again", batch.producer,
                                              known->second, batch.producer_sequence));
}

std::uint64_t EdgeEngine::producer_sequence(std::size_t input, std::string_view producer) const {
  const auto& producers = inputs_[numbers_[input]].producers;
  const auto known = producers.find(producer);
  return known == producers.end() ? 0 : known->second;
}

void EdgeEngine::receive(Input& in, const InputBatch& batch) {
  add_names(in, batch);
  in.changed = true;
  in.state.position = batch.position;
  model::Ledger& ledger = in.state.ledger;
  ledger.received += batch.received;
  for (const auto& [why, count] : batch.rejected) ledger.rejected[why] += count;
  ledger.rejected_set.add(batch.rejected_set);
}

absl::Status EdgeEngine::apply(std::size_t input, const InputBatch& batch, Time clock_now) {
  const std::uint32_t number = numbers_[input];
  if (const absl::Status status = check(inputs_[number], batch); !status.ok()) return status;
  clock_ = clock_now;
  Input& in = inputs_[number];
  receive(in, batch);
  accept(in, columns_of(number, batch.samples));
  if (batch.end_of_input) end_input(input);
  return absl::OkStatus();
}

AcceptanceRules EdgeEngine::rules_for(const Input& input, const Metric& metric) const {
  AcceptanceRules rules;
  rules.allowed_lateness = metric.allowed_lateness;
  if (input.spec == nullptr) return rules;
  if (!model::is_live(input.spec->kind))
    rules.max_jump = input.spec->max_jump;
  else if (input.spec->future > model::Duration::zero())
    rules.not_after = future_bound(clock_, limits_.clock_set_after, input.spec->future);
  return rules;
}

// Samples of the run from `begin` on, with all that can happen to them.
void EdgeEngine::accept_run(std::uint32_t series, const Columns& columns, std::size_t r, std::uint32_t begin) {
  settle_tally(series);
  Series& s = series_[series];
  const std::uint32_t input = columns.input();
  Input& in = inputs_[input];
  if (s.input != input) {
    s.input = input;
    mark_changed(series);
    publish_due_ = true;
  }
  if (s.generation != generation_) s.to = model::kMinTime;  // its rows may be gone
  const AcceptanceRules rules = rules_for(in, metrics_[s.metric]);
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
    in.state.ledger.aggregated += end - from;
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
  if (newest != model::kMinTime) accepted(in, newest);
  if (s.acceptance.watermark() != watermark_before) {
    mark_changed(series);
    publish_due_ = true;
  }
}

void EdgeEngine::accepted(Input& input, Time newest) {
  if (newest <= input.state.newest) return;
  input.state.newest = newest;
  input.changed = true;
  publish_due_ = true;
}

// Everything but the plain case.
void EdgeEngine::decide_one(std::uint32_t series, const HeldSample& sample, const AcceptanceRules& rules) {
  Acceptance& acceptance = series_[series].acceptance;
  const bool held_before = !acceptance.held().empty();
  for (const HeldSample& h : acceptance.held()) --inputs_[h.input].state.ledger.held;
  acceptance.decide(sample, rules, decisions_);
  for (const HeldSample& h : acceptance.held()) ++inputs_[h.input].state.ledger.held;
  if (held_before || !acceptance.held().empty()) mark_changed(series);
  settle(series);
}

void EdgeEngine::reject_held(std::uint32_t series) {
  Acceptance& acceptance = series_[series].acceptance;
  for (const HeldSample& h : acceptance.held()) --inputs_[h.input].state.ledger.held;
  acceptance.reject_held(decisions_);
  mark_changed(series);
  settle(series);
}

// Carries out decisions_ and empties it.
void EdgeEngine::settle(std::uint32_t series) {
  const auto hash = [&](const HeldSample& sample) {  // -0.0 counts as 0.0
    return model::sample_hash(identity_of(series), sample.time, sample.value + 0.0);
  };
  for (const Decision& decision : decisions_) {
    const HeldSample& sample = decision.sample;
    Input& from = inputs_[sample.input];
    from.changed = true;
    model::Ledger& ledger = from.state.ledger;
    switch (decision.verdict) {
      case Verdict::kHeld:
        break;  // in ledger.held
      case Verdict::kAccepted: {
        Series& s = series_[series];
        if (sample.time < s.from || sample.time >= s.to) locate(s, sample.time);
        fold(s, sample.input, &sample.time, &sample.value, 1);
        if (s.raw != kNone) raw_.add(model::GroupId{s.raw}, sample.time, sample.value, metrics_[s.metric].decimals);
        ++ledger.aggregated;
        accepted(from, sample.time);
        break;
      }
      case Verdict::kLate:
        ledger.late.add(hash(sample));
        break;
      case Verdict::kJump:
      case Verdict::kFuture:
      case Verdict::kNotFinite:
      case Verdict::kBadTime:
        ++ledger.rejected[reason(decision.verdict)];
        ledger.rejected_set.add(hash(sample));
        break;
    }
  }
  decisions_.clear();
}

// Finds or opens the rows of the slices that hold `time`.
void EdgeEngine::locate(Series& series, Time time) {
  series.from = model::kMinTime;
  series.to = model::kMaxTime;
  series.generation = generation_;
  const std::size_t count = metrics_[series.metric].streams.size();
  for (std::size_t k = 0; k < count; ++k) {
    Slot& slot = slots_[series.slots + k];
    const model::Duration length = streams_[slot.stream].slice;
    const Time slice = model::slice_start(time, length);
    slot.row = &rows_.at(slot.stream, slice, slot.group);
    series.from = std::max(series.from, slice);
    series.to = std::min(series.to, slice + length);
  }
}

// Adds accepted samples to the series' located rows.
void EdgeEngine::fold(Series& series, std::uint32_t input, const Time* times, const double* values, std::size_t count) {
  const Metric& metric = metrics_[series.metric];
  const std::size_t slots = metric.streams.size();
  Slot* const slot = slots_.data() + series.slots;
  if (slot[0].row->input != input) claim(*slot[0].row, input);
  inputs_[input].open += count;
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

// The keys of samples that the series' located rows have in their sums.
void EdgeEngine::add_quantiles(const Series& series, std::span<const std::int32_t> keys) {
  const std::size_t slots = metrics_[series.metric].streams.size();
  for (std::size_t k = 0; k < slots; ++k)
    if (model::QuantileSketch* quantiles = slots_[series.slots + k].row->content.partial.sketches.quantiles())
      quantiles->add_keys(keys);
}

// The located rows have samples of the series.
void EdgeEngine::count_series(const Series& series) {
  const std::size_t slots = metrics_[series.metric].streams.size();
  for (std::size_t k = 0; k < slots; ++k)
    if (model::DistinctSketch* distinct = slots_[series.slots + k].row->content.partial.sketches.distinct())
      distinct->add(slot_hashes_[series.slots + k]);
}

// The slot's row has samples that were not there.
void EdgeEngine::note_change(const Slot& slot) {
  rows_.mark_changed(*slot.row);
  Stream& stream = streams_[slot.stream];
  if (stream.emit > model::Duration::zero() && !stream.emit_since) stream.emit_since = clock_;
}

void EdgeEngine::mark_changed(std::uint32_t series) {
  if (series_[series].changed) return;
  series_[series].changed = true;
  changed_series_.push_back(series);
}

void EdgeEngine::end_input(std::size_t input) {
  const std::uint32_t number = numbers_[input];
  if (inputs_[number].state.ended) return;
  inputs_[number].state.ended = true;
  inputs_[number].changed = true;
  publish_due_ = true;
  for (std::uint32_t series = 0; series < series_.size(); ++series) {
    const std::vector<HeldSample>& held = series_[series].acceptance.held();
    if (std::any_of(held.begin(), held.end(), [&](const HeldSample& h) { return h.input == number; }))
      reject_held(series);
  }
}

std::vector<std::pair<std::string, model::InputState>> EdgeEngine::inputs() const {
  std::vector<std::pair<std::string, model::InputState>> all;
  for (const Input& input : inputs_) all.emplace_back(input.state.key, input.state);
  return all;
}

}  // namespace orla::stream
