// Publication, and the rows that leave the engine.
#include <algorithm>
#include <iterator>
#include <map>

#include "stream/edge_shard.h"

namespace orla::stream {

using model::add_clamped;
using model::Duration;
using model::Time;

void EdgeEngine::raise(Metric& metric, Time time) {
  if (time < kEarliestTime || time <= metric.publication) return;
  metric.publication = time;
  metric.publication_changed = true;
}

// A metric that no input is declared to produce, and one did: any may.
bool EdgeEngine::feeds(std::size_t input, const Metric& metric) const {
  return metric.feeders.empty() ||
         std::find(metric.feeders.begin(), metric.feeders.end(), input) != metric.feeders.end();
}

bool EdgeEngine::all_ended(const Metric& metric) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (feeds(i, metric) && inputs_[i].spec != nullptr && !inputs_[i].state.ended) return false;
  return true;
}

// Raises every metric's publication to the least watermark of the series that hold it, minus disorder. O(series).
void EdgeEngine::publish() {
  if (!publish_due_) return;
  publish_due_ = false;
  struct Found {
    Time least = model::kMaxTime;  // watermark of the series that hold publication
    Time paced = model::kMaxTime;  // least clock of the inputs whose series are idle
  };
  std::vector<Found> found(metrics_.size());
  for (Input& input : inputs_) input.next_idle = model::kMaxTime;
  for (std::uint32_t number = 0; number < series_.size(); ++number) {
    const Series& s = series_[number];
    const Time watermark = tallies_[number].watermark;
    if (s.metric == kNoMetric || watermark == model::kMinTime) continue;
    Input& input = inputs_[tallies_[number].input()];
    if (input.spec == nullptr || input.state.ended) continue;
    if (watermark < add_clamped(input.state.newest, -metrics_[s.metric].allowed_lateness)) continue;
    if (input.spec->idle_after > Duration::zero()) {
      const Time idle_from = add_clamped(watermark, input.spec->idle_after);
      if (input.paced != model::kMinTime && input.paced >= idle_from) {
        found[s.metric].paced = std::min(found[s.metric].paced, input.paced);
        continue;
      }
      input.next_idle = std::min(input.next_idle, idle_from);
    }
    found[s.metric].least = std::min(found[s.metric].least, watermark);
  }
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    Metric& metric = metrics_[m];
    if (!metric.fed) continue;
    if (all_ended(metric)) {
      raise(metric, model::kMaxTime);
    } else if (found[m].least != model::kMaxTime) {
      raise(metric, add_clamped(found[m].least, -metric.disorder));
    } else if (found[m].paced != model::kMaxTime) {
      // All are idle: the clock itself says how far nothing came.
      raise(metric, add_clamped(found[m].paced, -metric.disorder));
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (feeds(i, metric)) inputs_[i].next_idle = model::kMinTime;
    }
  }
}

Time EdgeEngine::boundary(const Metric& metric) const {
  if (metric.publication == model::kMinTime || metric.publication == model::kMaxTime) return metric.publication;
  return model::slice_start(metric.publication, metric.boundary);
}

// Whether a slice's end was published since the last seal.
bool EdgeEngine::boundary_moved() const {
  return std::any_of(metrics_.begin(), metrics_.end(), [&](const Metric& m) { return m.fed && boundary(m) != m.told; });
}

bool EdgeEngine::tick(std::size_t input, Time paced_now) {
  Input& in = inputs_[numbers_[input]];
  in.paced = paced_now;
  if (paced_now < in.next_idle) return false;
  publish_due_ = true;
  publish();
  return boundary_moved();
}

void EdgeEngine::publish_open() {
  publish_due_ = true;
  publish();
  for (Metric& metric : metrics_) {
    if (!metric.fed) continue;
    Time newest = model::kMinTime;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (feeds(i, metric)) newest = std::max(newest, inputs_[i].state.newest);
    if (newest == model::kMinTime) continue;
    for (const std::size_t stream : metric.streams) {
      const Duration slice = streams_[stream].slice;
      raise(metric, model::slice_start(newest, slice) + slice);
    }
  }
}

bool EdgeEngine::emission_due(Time clock_now) {
  clock_ = clock_now;
  bool due = false;
  for (Stream& stream : streams_) {
    if (!stream.emit_since) continue;
    if (clock_now < *stream.emit_since) stream.emit_since = clock_now;  // the clock was set back
    due = due || add_clamped(*stream.emit_since, stream.emit) <= clock_now;
  }
  return due;
}

std::vector<model::Publication> EdgeEngine::publications() {
  publish();
  std::vector<model::Publication> all;
  for (const std::size_t m : metrics_by_name_)
    if (metrics_[m].fed) all.push_back({plan_.fleet.metrics[m].name, metrics_[m].publication});
  return all;
}

bool EdgeEngine::no_rows(std::size_t stream) const {
  if (!std::all_of(shards_.begin(), shards_.end(), [&](const auto& shard) { return shard->rows().empty(stream); }))
    return false;
  if (open_tallies() == 0) return true;
  for (std::uint32_t number = 0; number < series_.size(); ++number)
    if (series_[number].metric == streams_[stream].metric && tallies_[number].holds()) return false;
  return true;
}

// Moves the rows of the slices, which are closed, to where they leave. Parts of one row become one, which is the first
// of its inputs'.
void EdgeEngine::put_rows(std::span<SliceRows* const> slices, TakeSealed take) {
  const RowOrder order(slices, RowOrder::Which::kAll);
  SealedRows out;
  out.rows.reserve(std::min(order.rows(), model::kPiece));
  out.counted.reserve(std::min(order.rows(), model::kPiece));
  std::vector<std::uint8_t> counted;
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) counted.push_back(counts(stream) ? 1 : 0);
  order.visit([&](SliceRows& slice, model::GroupId group, SmallRow& row) {
    std::uint32_t input = SealedRows::kRepeats;
    if (counted[slice.stream()] != 0 && SliceRows::input(row) != SliceRows::kNoInput) {
      input = SliceRows::input(row);
      inputs_[input].open -= slice.count(row);
    }
    if (!out.rows.empty() && out.rows.back().group == group && out.rows.back().slice == slice.start()) {
      model::PartialRow part;
      slice.move_out(group, row, part);
      out.rows.back().partial.merge(part.partial);
      out.counted.back() = std::min(out.counted.back(), input);
      return;
    }
    if (out.rows.size() == model::kPiece) {
      take(out);
      out.rows.clear();
      out.counted.clear();
    }
    slice.move_out(group, row, out.rows.emplace_back());
    out.counted.push_back(input);
  });
  if (!out.rows.empty()) take(out);
}

std::optional<Sealed> EdgeEngine::seal(SealScope scope, SealWhen when) {
  SealedRows rows;
  std::optional<Sealed> sealed = seal(scope, when, [&](SealedRows& piece) {
    rows.rows.insert(rows.rows.end(), std::make_move_iterator(piece.rows.begin()),
                     std::make_move_iterator(piece.rows.end()));
    rows.counted.insert(rows.counted.end(), piece.counted.begin(), piece.counted.end());
  });
  if (sealed) static_cast<SealedRows&>(*sealed) = std::move(rows);
  return sealed;
}

std::optional<Sealed> EdgeEngine::seal(SealScope scope, SealWhen when, TakeSealed take) {
  publish();
  claim_restored();
  const bool everything = scope == SealScope::kEverything || open_rows() > limits_.open_rows;
  const bool emits = emission_due(clock_);
  std::vector<Time> ends;                                         // by stream
  std::vector<Time> last_ends(metrics_.size(), model::kMinTime);  // by metric, of its streams
  for (const Stream& stream : streams_) {
    const bool due = emits && stream.emit_since && add_clamped(*stream.emit_since, stream.emit) <= clock_;
    const bool all = everything || due || stream.metric == kNoMetric;
    ends.push_back(all ? model::kMaxTime : metrics_[stream.metric].publication);
    if (stream.metric != kNoMetric) last_ends[stream.metric] = std::max(last_ends[stream.metric], ends.back());
  }
  settle_due(last_ends);
  OpenRows::Closed closed;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    std::size_t rows = 0;
    for (const auto& shard : shards_) rows += shard->close_rows(i, ends[i], closed);
    if (rows > 0) stream.taken = std::max(stream.taken, ends[i]);
    if (stream.emit_since && no_rows(i)) stream.emit_since.reset();
  }
  if (when == SealWhen::kSomethingNew && closed.empty() && raw_samples() == 0 && !boundary_moved()) return std::nullopt;
  Sealed sealed;
  std::vector<SliceRows*> slices;
  for (const std::unique_ptr<SliceRows>& slice : closed) slices.push_back(slice.get());
  put_rows(slices, take);
  std::vector<RawSamples*> raw;
  for (const auto& shard : shards_) raw.push_back(&shard->raw());
  sealed.raw = RawSamples::take(raw, kRawBatchSamples);
  if (everything) taken_everything_ = true;
  for (Metric& metric : metrics_) metric.told = boundary(metric);
  sealed.publications = publications();
  for (const Input& input : inputs_) sealed.ledgers.emplace_back(input.state.key, input.state.ledger);
  sealed.sealed = sealed_samples();
  return sealed;
}

}  // namespace orla::stream
