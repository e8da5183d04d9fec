// What is kept of the engine, and its restoration.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "fmt/format.h"
#include "stream/edge_shard.h"

namespace orla::stream {

using model::EdgeState;
using model::Time;

void EdgeEngine::clear() {
  streams_.clear();
  metrics_.clear();
  metrics_by_name_.clear();
  inputs_.clear();
  listed_inputs_ = 0;
  series_.clear();
  tallies_.clear();
  definitions_.clear();
  slots_.clear();
  raw_groups_.clear();
  owners_.clear();
  slot_hashes_.clear();
  hashes_wanted_ = false;
  groups_.clear();
  texts_.clear();
  homes_.clear();
  shards_.clear();
  for (std::uint32_t shard = 0; shard < workers_.size(); ++shard)
    shards_.push_back(std::make_unique<Shard>(*this, shard));
  keeps_raw_ = !plan_.raw_streams.empty();
  known_series_ = known_groups_ = 0;
  producer_count_ = 0;
  taken_everything_ = false;
  unclaimed_ = false;
  publish_due_ = true;

  for (const model::StreamDef& def : plan_.streams) {
    Stream& stream = streams_.emplace_back();
    stream.name = def.name;
    stream.definition = def.definition;
    stream.metric = def.metric;
    stream.slice = def.slice;
    stream.decimals = def.decimals;
    stream.emit = def.emit;
    for (const auto& shard : shards_) shard->rows().add_stream(def.slice, def.sketches(), def.decimals);
    hashes_wanted_ = hashes_wanted_ || !def.distinct.empty();
  }
  for (std::size_t m = 0; m < plan_.fleet.metrics.size(); ++m) {
    const model::MetricSpec& spec = plan_.fleet.metrics[m];
    Metric& metric = metrics_.emplace_back();
    metric.streams = plan_.streams_of_metric[m];
    metric.disorder = spec.disorder;
    metric.allowed_lateness = spec.allowed_lateness;
    metric.decimals = spec.decimals;
    if (const model::RawStreamDef* raw = plan_.raw_stream(m); raw != nullptr)
      metric.raw = static_cast<std::uint32_t>(stream_of(model::raw_group(*raw, {})));
    for (const std::size_t s : metric.streams) {
      metric.boundary = model::Duration(std::gcd(metric.boundary.count(), plan_.streams[s].slice.count()));
      metric.quantiles = metric.quantiles || plan_.streams[s].quantiles;
      metric.distinct = metric.distinct || !plan_.streams[s].distinct.empty();
    }
    metric.plain = metric.streams.size() == 1 && !metric.quantiles && !metric.distinct;
    metrics_by_name_.push_back(m);
  }
  std::sort(metrics_by_name_.begin(), metrics_by_name_.end(),
            [&](std::size_t a, std::size_t b) { return plan_.fleet.metrics[a].name < plan_.fleet.metrics[b].name; });
  number_inputs();
}

// Gives the inputs of now that no state has listed yet their numbers, after those that were.
void EdgeEngine::number_inputs() {
  numbers_.clear();
  for (Metric& metric : metrics_) metric.feeders.clear();
  for (const std::string& key : input_keys_) {
    auto found =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) { return input.state.key == key; });
    if (found == inputs_.end()) {
      inputs_.emplace_back().state.key = key;
      inputs_.back().changed = true;  // listed at the next commit, whatever happens until then
      found = inputs_.end() - 1;
    }
    const auto number = static_cast<std::uint32_t>(found - inputs_.begin());
    numbers_.push_back(number);
    const auto spec = std::find_if(plan_.fleet.inputs.begin(), plan_.fleet.inputs.end(),
                                   [&](const model::InputSpec& s) { return s.key == key; });
    if (spec == plan_.fleet.inputs.end()) continue;
    found->spec = &*spec;
    for (const std::string& name : model::metrics_of(*spec)) {
      const std::size_t metric = find_metric(name);
      if (metric == kNoMetric) continue;
      metrics_[metric].feeders.push_back(number);
      metrics_[metric].fed = true;
    }
  }
}

std::uint32_t EdgeEngine::listed_input(const std::string& key) {
  const auto found =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) { return input.state.key == key; });
  if (found != inputs_.end()) return static_cast<std::uint32_t>(found - inputs_.begin());
  inputs_.emplace_back().state.key = key;
  return static_cast<std::uint32_t>(inputs_.size() - 1);
}

// The plan's stream, or one for rows that another plan has left: those are sealed at the next seal.
std::size_t EdgeEngine::stream_of(const model::GroupDef& group) {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].name == group.stream && streams_[i].definition == group.definition &&
        streams_[i].slice.count() == group.slice_ns && streams_[i].decimals == group.decimals)
      return i;
  Stream& stream = streams_.emplace_back();
  stream.name = group.stream;
  stream.definition = group.definition;
  stream.metric = kNoMetric;
  stream.slice = model::Duration(group.slice_ns);
  stream.decimals = group.decimals;
  for (const auto& shard : shards_) shard->rows().add_stream(stream.slice, {}, stream.decimals);
  return streams_.size() - 1;
}

absl::Status EdgeEngine::restore(const EdgeState& state) {
  if (state.snapshot) clear();
  inputs_.resize(listed_inputs_);  // those of now come again below, after the listed ones
  for (const model::InputState& input : state.inputs) inputs_[listed_input(input.key)].state = input;
  listed_inputs_ = inputs_.size();
  for (const auto restore_part : {&EdgeEngine::restore_names, &EdgeEngine::restore_rows, &EdgeEngine::restore_series,
                                  &EdgeEngine::restore_producers})
    if (absl::Status status = (this->*restore_part)(state); !status.ok()) return status;
  number_inputs();
  for (const model::Publication& p : state.publications) {
    const std::size_t m = find_metric(p.metric);
    if (m == kNoMetric) continue;
    metrics_[m].publication = p.time;
    metrics_[m].told = boundary(metrics_[m]);
  }
  publish_due_ = true;
  return absl::OkStatus();
}

absl::Status EdgeEngine::restore_names(const EdgeState& state) {
  for (const model::Series& series : state.new_series) {
    if (find_series(series))
      return absl::InvalidArgumentError(
          fmt::format("edge state: series {} is defined twice", model::to_string(series)));
    add_series(series, find_metric(series.metric));
  }
  for (const model::GroupDef& group : state.new_groups) {
    if (group.slice_ns <= 0)
      return absl::InvalidArgumentError(fmt::format("edge state: a slice of {} has no length", group.stream));
    const auto stream = static_cast<std::uint32_t>(stream_of(group));
    if (groups_.find(stream, group.labels))
      return absl::InvalidArgumentError(fmt::format("edge state: a group of {} is defined twice", group.stream));
    groups_.add(stream, group.labels);
  }
  known_series_ = definitions_.size();
  known_groups_ = groups_.size();
  return absl::OkStatus();
}

absl::Status EdgeEngine::restore_rows(const EdgeState& state) {
  OpenRows::Closed gone;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    for (const auto& shard : shards_) {
      if (state.sealed_everything) shard->close_rows(i, model::kMaxTime, gone);
      for (const model::SealedStream& sealed : state.sealed)
        if (sealed.stream == streams_[i].name) shard->close_rows(i, sealed.time, gone);
    }
  }
  unclaimed_ = unclaimed_ || !state.open.empty();
  for (const model::PartialRow& row : state.open) {
    if (index(row.group) >= groups_.size())
      return absl::InvalidArgumentError(
          fmt::format("edge state: open row of group {}, of which there are {}", index(row.group), groups_.size()));
    const std::uint32_t shard = shard_of(index(row.group));
    settle_in(index(row.group), shard);
    const OpenRows::Place place = shards_[shard]->rows().at(groups_.kind(index(row.group)), row.slice, row.group);
    place.slice->replace(place, row.partial);
  }
  // When they came in is not known: what `emit` sends is due.
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    streams_[i].emit_since.reset();
    if (streams_[i].emit > model::Duration::zero() && !no_rows(i)) streams_[i].emit_since = model::kMinTime;
  }
  return absl::OkStatus();
}

absl::Status EdgeEngine::restore_series(const EdgeState& state) {
  for (const model::SeriesState& saved : state.series) {
    if (index(saved.series) >= series_.size())
      return absl::InvalidArgumentError(
          fmt::format("edge state: state of series {}, of which there are {}", index(saved.series), series_.size()));
    const auto unknown = [&](std::uint32_t input) { return input >= inputs_.size(); };
    if (saved.held.size() > 2 || unknown(saved.input) ||
        std::any_of(saved.held.begin(), saved.held.end(), [&](const model::HeldSample& h) { return unknown(h.input); }))
      return absl::InvalidArgumentError(
          fmt::format("edge state: series {} names an input that is not listed", index(saved.series)));
    const std::uint32_t series = index(saved.series);
    tallies_[series].watermark = saved.watermark;
    tallies_[series].set_input(saved.input);
    shards_[shard_of(series)]->set_held(series, saved.held);
  }
  return absl::OkStatus();
}

absl::Status EdgeEngine::restore_producers(const EdgeState& state) {
  for (const model::ProducerState& saved : state.producers) {
    if (saved.input >= inputs_.size())
      return absl::InvalidArgumentError(
          fmt::format("edge state: producer \"{}\" belongs to an input that is not listed", saved.producer));
    if (inputs_[saved.input].producers.insert_or_assign(saved.producer, saved.sequence).second) ++producer_count_;
  }
  return absl::OkStatus();
}

model::SeriesState EdgeEngine::state_of(std::uint32_t series) const {
  const Tally& tally = tallies_[series];
  model::SeriesState state{model::SeriesId{series}, tally.watermark, tally.input(), {}};
  if (series_[series].held != 0) state.held = shards_[shard_of(series)]->held().at(series);
  return state;
}

// What was taken, by stream name. Streams of one name (two definitions) count as one: what is still open of the one
// that was taken less far is listed anew.
std::vector<model::SealedStream> EdgeEngine::sealed_streams() {
  std::map<std::string, Time> taken;
  for (const Stream& stream : streams_) {
    if (stream.taken == model::kMinTime) continue;
    Time& time = taken.try_emplace(stream.name, model::kMinTime).first->second;
    time = std::max(time, stream.taken);
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const auto found = taken.find(streams_[i].name);
    if (found != taken.end() && streams_[i].taken < found->second) {
      for (const auto& shard : shards_) shard->rows().mark_all_changed(i);
      for (std::uint32_t series = 0; series < series_.size(); ++series)
        if (series_[series].metric == streams_[i].metric && tallies_[series].count > 0)
          shards_[shard_of(series)]->mark_changed(series);
    }
    streams_[i].taken = model::kMinTime;
  }
  std::vector<model::SealedStream> sealed;
  for (const auto& [stream, time] : taken) sealed.push_back({stream, time});
  return sealed;
}

void EdgeEngine::list_names(EdgeState& state, std::size_t from_series, std::size_t from_group) const {
  for (std::size_t i = from_series; i < series_.size(); ++i)
    state.new_series.push_back(definition(static_cast<std::uint32_t>(i)));
  for (std::size_t i = from_group; i < groups_.size(); ++i)
    state.new_groups.push_back(group(static_cast<model::GroupId>(i)));
}

// A series' own row, as far as its tally holds it.
struct EdgeEngine::OwnRow {
  model::GroupId group{};
  std::uint32_t series = 0;
  Time slice{};
};

// Copies rows that the shards keep, and own ones, whose order becomes that of their groups; canonical.
void EdgeEngine::copy_rows(std::vector<OwnRow>& own, RowOrder::Which which, StateSink& sink) const {
  const auto before = [](const OwnRow& a, const OwnRow& b) { return a.group < b.group; };
  if (!std::is_sorted(own.begin(), own.end(), before)) std::sort(own.begin(), own.end(), before);
  std::vector<SliceRows*> slices;
  for (const auto& shard : shards_) shard->rows().slices(slices);
  const RowOrder order(slices, which);
  model::PartialRows rows;
  rows.reserve(std::min(order.rows() + own.size(), model::kPiece));
  // Fills the row, or a part that is then merged into it.
  const auto put = [&](model::GroupId group, Time slice, auto fill) {
    if (rows.empty() || rows.back().group != group || rows.back().slice != slice) {
      if (rows.size() == model::kPiece) {
        sink.open(rows);
        rows.clear();
      }
      return fill(rows.emplace_back());
    }
    model::PartialRow part;
    fill(part);
    rows.back().partial.merge(part.partial);
  };
  std::size_t next = 0;
  const auto put_own = [&](const OwnRow& o) {
    put(o.group, o.slice, [&](model::PartialRow& row) {
      row.group = o.group;
      row.slice = o.slice;
      to_partial(tallies_[o.series].summary(o.slice), o.slice, metrics_[series_[o.series].metric].decimals,
                 row.partial);
    });
  };
  order.visit([&](const SliceRows& slice, model::GroupId group, const SmallRow& row) {
    for (; next < own.size() && std::pair(own[next].group, own[next].slice) <= std::pair(group, slice.start()); ++next)
      put_own(own[next]);
    put(group, slice.start(), [&](model::PartialRow& out) { slice.copy_out(group, row, out); });
  });
  for (; next < own.size(); ++next) put_own(own[next]);
  if (!rows.empty()) sink.open(rows);
}

// Those with a part that has changed somewhere, whole.
void EdgeEngine::take_changed_rows(std::vector<OwnRow>& own, StateSink& sink) {
  copy_rows(own, shards_.size() > 1 ? RowOrder::Which::kPartsOfChanged : RowOrder::Which::kChanged, sink);
  std::vector<SliceRows*> slices;
  for (const auto& shard : shards_) shard->rows().slices(slices);
  for (SliceRows* slice : slices)
    if (slice->changed()) slice->forget_changes();
}

void EdgeEngine::all_rows(StateSink& sink) {
  std::vector<OwnRow> own;
  for (std::uint32_t series = 0; series < series_.size(); ++series) {
    const Series& s = series_[series];
    if (tallies_[series].count == 0) continue;
    if (s.owner == 0)
      shards_[shard_of(series)]->settle_tally(series);
    else
      own.push_back(
          {model::GroupId{s.slots}, series, tallies_[series].to - streams_[metrics_[s.metric].streams.front()].slice});
  }
  collect();
  copy_rows(own, RowOrder::Which::kAll, sink);
}

namespace {

// Puts the pieces together.
struct Whole : StateSink {
  template <typename Element>
  static void append(std::vector<Element>& all, std::vector<Element>& piece) {
    all.insert(all.end(), std::make_move_iterator(piece.begin()), std::make_move_iterator(piece.end()));
  }
  void series(std::vector<model::SeriesState>& piece) override { append(states, piece); }
  void open(model::PartialRows& piece) override { append(rows, piece); }
  EdgeState with(EdgeState state) {
    state.series = std::move(states);
    state.open = std::move(rows);
    return state;
  }
  std::vector<model::SeriesState> states;
  model::PartialRows rows;
};

}  // namespace

EdgeState EdgeEngine::take_changes() {
  Whole whole;
  EdgeState state = take_changes(whole);
  return whole.with(std::move(state));
}

EdgeState EdgeEngine::snapshot() {
  Whole whole;
  EdgeState state = snapshot(whole);
  return whole.with(std::move(state));
}

EdgeState EdgeEngine::take_changes(StateSink& sink) {
  publish();
  EdgeState state;
  list_names(state, known_series_, known_groups_);
  known_series_ = series_.size();
  known_groups_ = groups_.size();
  state.sealed = sealed_streams();
  state.sealed_everything = std::exchange(taken_everything_, false);
  if (state.sealed_everything) state.sealed.clear();
  std::vector<std::uint32_t> changed;
  for (const auto& shard : shards_) shard->take_changed_series(changed);
  if (!std::is_sorted(changed.begin(), changed.end())) std::sort(changed.begin(), changed.end());
  std::vector<OwnRow> own;
  std::vector<model::SeriesState> states;
  // As many at a time as stay in the processor's cache from one step to the next.
  for (std::size_t begin = 0; begin < changed.size(); begin += model::kPiece) {
    const std::span piece = std::span(changed).subspan(begin, std::min(model::kPiece, changed.size() - begin));
    states.clear();
    for (const std::uint32_t series : piece) {
      shards_[shard_of(series)]->close_changed(series);
      states.push_back(state_of(series));
      const Series& s = series_[series];
      if (s.owner == 0 || tallies_[series].count == 0) continue;
      const std::size_t stream = metrics_[s.metric].streams.front();
      own.push_back({model::GroupId{s.slots}, series, tallies_[series].to - streams_[stream].slice});
      for (const auto& shard : shards_) shard->rows().mark_changed(stream, own.back().slice, own.back().group);
    }
    sink.series(states);
  }
  collect();
  take_changed_rows(own, sink);
  for (Input& input : inputs_)
    if (std::exchange(input.changed, false)) state.inputs.push_back(input.state);
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    for (const std::string& producer : inputs_[i].changed_producers)
      state.producers.push_back({producer, i, inputs_[i].producers.at(producer)});
    inputs_[i].changed_producers.clear();
  }
  for (const std::size_t m : metrics_by_name_)
    if (std::exchange(metrics_[m].publication_changed, false))
      state.publications.push_back({plan_.fleet.metrics[m].name, metrics_[m].publication});
  return state;
}

EdgeState EdgeEngine::snapshot(StateSink& sink) {
  EdgeState state;
  state.snapshot = true;
  list_names(state, 0, 0);
  all_rows(sink);
  std::vector<model::SeriesState> states;
  for (std::uint32_t series = 0; series < series_.size(); ++series) {
    if (tallies_[series].watermark == model::kMinTime && series_[series].held == 0) continue;
    if (states.size() == model::kPiece) {
      sink.series(states);
      states.clear();
    }
    states.push_back(state_of(series));
  }
  if (!states.empty()) sink.series(states);
  for (const Input& input : inputs_) state.inputs.push_back(input.state);
  for (std::uint32_t i = 0; i < inputs_.size(); ++i)
    for (const auto& [producer, sequence] : inputs_[i].producers) state.producers.push_back({producer, i, sequence});
  for (const std::size_t m : metrics_by_name_)
    if (metrics_[m].publication != model::kMinTime)
      state.publications.push_back({plan_.fleet.metrics[m].name, metrics_[m].publication});
  return state;
}

}  // namespace orla::stream
