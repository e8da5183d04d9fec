// Samples in: definition of series, acceptance, folding. Publication and sealing are in edge_engine_seal.cc, what is
// kept and restored in edge_engine_state.cc.
#include "stream/edge_engine.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "fmt/format.h"
#include "stream/edge_engine_columns.h"
#include "stream/edge_shard.h"

namespace orla::stream {

using model::Batch;
using model::GroupDef;
using model::HeldSample;
using model::InputBatch;
using model::Label;
using model::Time;

namespace {

// What taking samples and runs of them costs, in nanoseconds or so, and how much has to be done together before it is
// worth waking the other shards' threads.
constexpr std::size_t kSampleEffort = 1;
constexpr std::size_t kRunEffort = 5;
constexpr std::size_t kSettleEffort = 10;  // of a series
constexpr std::size_t kForkEffort = 4'000;

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

EdgeEngine::EdgeEngine(const model::Plan& plan, const std::vector<std::string>& input_keys, EngineLimits limits,
                       ShardWorkers* workers)
    : plan_(plan), input_keys_(input_keys), limits_(limits), workers_(workers != nullptr ? *workers : alone_) {
  clear();
}

EdgeEngine::~EdgeEngine() = default;

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
std::optional<EdgeEngine::Placed> EdgeEngine::place(std::uint32_t number, const model::Series& series,
                                                    std::size_t metric) {
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
  const bool plain = metrics_[metric].plain;
  Placed placed;
  placed.slots = static_cast<std::uint32_t>(slots_.size());
  for (std::size_t k = 0; k < needed.size(); ++k) {
    std::uint32_t group = known[k];
    if (group == kNone) group = groups_.add(needed[k].first, needed[k].second);
    if (k >= streams.size()) {
      placed.raw = group;
      break;
    }
    settle_in(group, shard_of(number));
    if (plain) {
      join(group, number);
      placed.slots = group;
      continue;
    }
    slots_.push_back(model::GroupId{group});
    if (hashes_wanted_) slot_hashes_.push_back(distinct_hash(series, plan_.streams[streams[k]].distinct));
  }
  return placed;
}

// There may be rows of the group in the shard.
void EdgeEngine::settle_in(std::uint32_t group, std::uint32_t shard) {
  if (shards_.size() == 1) return;
  homes_.resize(groups_.size(), kNoShard);
  std::uint8_t& home = homes_[group];
  home = home == kNoShard || home == shard ? static_cast<std::uint8_t>(shard) : kManyShards;
}

// The group is that of a plain metric's series. Once there are two, their tallies share a row.
void EdgeEngine::join(std::uint32_t group, std::uint32_t series) {
  while (owners_.size() <= group) owners_.push_back(kNobody);
  std::uint32_t& owner = owners_[group];
  if (owner < kShared && owner != series) {
    shards_[shard_of(owner)]->settle_tally(owner);
    series_[owner].owner = 0;
  }
  owner = owner == kNobody || owner == series ? series : kShared;
}

void EdgeEngine::set_place(std::uint32_t series, const Placed& placed) {
  Series& s = series_[series];
  s.slots = placed.slots;
  s.owner = metrics_[s.metric].plain && owners_[placed.slots] == series ? 1 : 0;
  if (placed.raw == kNone) return;
  if (raw_groups_.size() <= series) raw_groups_.resize(series + 1, kNone);
  raw_groups_[series] = placed.raw;
}

std::uint32_t EdgeEngine::add_series(const model::Series& series, std::uint32_t metric) {
  const auto number = static_cast<std::uint32_t>(series_.size());
  definitions_.add(texts_.add(series.metric), series.labels);
  series_.push_back({}).metric = metric & kNoMetric;
  tallies_.push_back({});
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
    if (series_[*known].slots == kNone) {
      const std::optional<Placed> placed = place(*known, series, metric);
      if (!placed) return kGroupLimit;
      set_place(*known, *placed);
    }
    return *known;
  }
  if (series_.size() >= limits_.series) return kSeriesLimit;
  const auto next = static_cast<std::uint32_t>(series_.size());
  const std::optional<Placed> placed = place(next, series, metric);
  if (!placed) return kGroupLimit;
  const std::uint32_t number = add_series(series, metric);
  set_place(number, *placed);
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
  const auto [in_place, largest] = look_over(samples.runs);
  const std::size_t end = samples.runs.empty() ? 0 : samples.runs.back().end;
  if (!in_place) return wrong("its runs do not follow each other");
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

// Nothing of it moves while the batch is taken: its series are known.
EdgeEngine::Columns EdgeEngine::columns_of(std::uint32_t input, const Batch& batch) {
  Columns columns{{Tally::source_of(input, batch.decimals), {}, model::Duration::max()},
                  batch,
                  inputs_[input].series.data(),
                  nullptr};
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
  columns.not_after = std::min(kLatestTime - model::Duration(1), rules.not_after);
  if (rules.max_jump > model::Duration::zero()) columns.max_jump = rules.max_jump;
  return columns;
}

// Has every shard do its part, `effort` nanoseconds or so altogether, and takes what they have to say.
void EdgeEngine::on_shards(std::size_t effort, absl::FunctionRef<void(Shard&)> work) {
  if (shards_.size() > 1 && effort >= kForkEffort)
    workers_.run([&](std::size_t shard) { work(*shards_[shard]); });
  else
    for (const auto& shard : shards_) work(*shard);
  collect();
}

void EdgeEngine::collect() {
  const auto add = [&](std::uint32_t number, const Shard::Account& account) {
    Input& input = inputs_[number];
    model::Ledger& ledger = input.state.ledger;
    ledger.aggregated += account.aggregated;
    input.open += account.open;
    if (account.changed) {
      input.changed = true;
      ledger.unmatched += account.unmatched;
      if (account.series_limit > 0) ledger.dropped["series_limit"] += account.series_limit;
      if (account.group_limit > 0) ledger.dropped["group_limit"] += account.group_limit;
      ledger.late.add(account.late);
      ledger.held += account.held;
      for (std::size_t v = 0; v < kVerdicts; ++v)
        if (account.rejected[v] > 0) ledger.rejected[reason(static_cast<Verdict>(v))] += account.rejected[v];
      ledger.rejected_set.add(account.rejected_set);
    }
    if (account.newest <= input.state.newest) return;
    input.state.newest = account.newest;
    input.changed = true;
    publish_due_ = true;
  };
  for (const auto& shard : shards_)
    if (shard->collect(add, [&](std::uint32_t stream) { streams_[stream].emit_since = clock_; })) publish_due_ = true;
}

// What tallies hold of slices that end by then, by metric, reaches the rows. O(series), but when a slice ends.
void EdgeEngine::settle_due(const std::vector<Time>& ends) {
  const Time last = ends.empty() ? model::kMinTime : *std::max_element(ends.begin(), ends.end());
  Time next = model::kMaxTime;
  for (const auto& shard : shards_) next = std::min(next, shard->next_due());
  if (next <= last && open_tallies() > 0)
    on_shards(series_.size() * kSettleEffort, [&](Shard& shard) { shard.settle_due(ends); });
}

std::size_t EdgeEngine::open_tallies() const {
  std::size_t open = 0;
  for (const auto& shard : shards_) open += shard->tallies();
  return open;
}

absl::Status EdgeEngine::apply(std::size_t input, const InputBatch& batch, Time clock_now) {
  const std::uint32_t number = numbers_[input];
  if (const absl::Status status = check(inputs_[number], batch); !status.ok()) return status;
  clock_ = clock_now;
  Input& in = inputs_[number];
  receive(in, batch);
  claim_restored();
  const Columns columns = columns_of(number, batch.samples);
  on_shards(batch.samples.size() * kSampleEffort + batch.samples.runs.size() * kRunEffort,
            [&](Shard& shard) { shard.accept(columns); });
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

void EdgeEngine::end_input(std::size_t input) {
  const std::uint32_t number = numbers_[input];
  if (inputs_[number].state.ended) return;
  inputs_[number].state.ended = true;
  inputs_[number].changed = true;
  publish_due_ = true;
  for (const auto& shard : shards_) {
    std::vector<std::uint32_t> rejected;
    for (const auto& [series, held] : shard->held())
      if (std::any_of(held.begin(), held.end(), [&](const HeldSample& h) { return h.input == number; }))
        rejected.push_back(series);
    std::sort(rejected.begin(), rejected.end());
    for (const std::uint32_t series : rejected) shard->reject_held(series);
  }
  collect();
}

std::size_t EdgeEngine::open_rows() const {
  std::size_t rows = 0;
  for (const auto& shard : shards_) rows += shard->open_rows();
  return rows;
}

std::size_t EdgeEngine::raw_samples() const {
  std::size_t samples = 0;
  for (const auto& shard : shards_) samples += shard->raw().size();
  return samples;
}

std::vector<std::pair<std::string, model::InputState>> EdgeEngine::inputs() const {
  std::vector<std::pair<std::string, model::InputState>> all;
  for (const Input& input : inputs_) all.emplace_back(input.state.key, input.state);
  return all;
}

}  // namespace orla::stream
