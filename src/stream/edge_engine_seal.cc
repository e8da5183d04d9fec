// Publication, and the rows that leave the engine.
#include <algorithm>
#include <map>

#include "stream/edge_shard.h"

namespace orla::stream {

using model::add_clamped;
using model::Duration;
using model::Time;

namespace {

// Sorts the rows, moving each once, and what is parallel to them; those of one (group, slice) become one, which is the
// first of its inputs'.
void sort_rows(model::PartialRows& rows, std::vector<std::uint32_t>& parallel) {
  struct Keyed {
    model::GroupId group;
    Time slice;
    std::size_t row;
    bool operator<(const Keyed& other) const {
      return group != other.group ? group < other.group : slice < other.slice;
    }
  };
  std::vector<Keyed> order;
  order.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) order.push_back({rows[i].group, rows[i].slice, i});
  const auto not_before = [](const Keyed& a, const Keyed& b) { return !(a < b); };
  if (std::adjacent_find(order.begin(), order.end(), not_before) == order.end()) return;
  std::sort(order.begin(), order.end());
  model::PartialRows sorted;
  std::vector<std::uint32_t> along;
  sorted.reserve(rows.size());
  along.reserve(rows.size());
  for (const Keyed& k : order) {
    if (!sorted.empty() && sorted.back().group == k.group && sorted.back().slice == k.slice) {
      sorted.back().partial.merge(rows[k.row].partial);
      along.back() = std::min(along.back(), parallel[k.row]);
      continue;
    }
    sorted.push_back(std::move(rows[k.row]));
    along.push_back(parallel[k.row]);
  }
  rows = std::move(sorted);
  parallel = std::move(along);
}

}  // namespace

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
  settle_tallies();  // which advances watermarks
  struct Found {
    Time least = model::kMaxTime;  // watermark of the series that hold publication
    Time paced = model::kMaxTime;  // least clock of the inputs whose series are idle
  };
  std::vector<Found> found(metrics_.size());
  for (Input& input : inputs_) input.next_idle = model::kMaxTime;
  for (const Series& s : series_) {
    const Time watermark = s.acceptance.watermark();
    if (s.metric == kNoMetric || watermark == model::kMinTime) continue;
    Input& input = inputs_[s.input];
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
  return std::all_of(shards_.begin(), shards_.end(), [&](const auto& shard) { return shard->rows().empty(stream); });
}

void EdgeEngine::take_rows(std::size_t stream, Time end, Sealed& out) {
  Stream& s = streams_[stream];
  const std::size_t before = out.rows.size();
  const bool counted = counts(stream);
  std::size_t taken = 0;
  for (const auto& shard : shards_)
    taken += shard->rows().take(stream, end, out.rows, counted ? &out.counted : nullptr);
  if (taken > 0) {
    out.counted.resize(out.rows.size(), Sealed::kRepeats);
    for (std::size_t i = before; counted && i < out.rows.size(); ++i) {
      if (out.counted[i] != Sealed::kRepeats) inputs_[out.counted[i]].open -= out.rows[i].partial.count;
    }
    ++generation_;
    s.taken = std::max(s.taken, end);
  }
  if (no_rows(stream)) s.emit_since.reset();
}

std::optional<Sealed> EdgeEngine::seal(SealScope scope, SealWhen when) {
  settle_tallies();
  publish();
  claim_restored();
  const bool everything = scope == SealScope::kEverything || open_rows() > limits_.open_rows;
  const bool emits = emission_due(clock_);
  Sealed sealed;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    const bool due = emits && stream.emit_since && add_clamped(*stream.emit_since, stream.emit) <= clock_;
    if (everything || due || stream.metric == kNoMetric)
      take_rows(i, model::kMaxTime, sealed);
    else
      take_rows(i, metrics_[stream.metric].publication, sealed);
  }
  if (when == SealWhen::kSomethingNew && sealed.rows.empty() && raw_samples() == 0 && !boundary_moved())
    return std::nullopt;
  std::vector<RawSamples*> raw;
  for (const auto& shard : shards_) raw.push_back(&shard->raw());
  sealed.raw = RawSamples::take(raw, kRawBatchSamples);
  if (everything) taken_everything_ = true;
  for (Metric& metric : metrics_) metric.told = boundary(metric);
  sort_rows(sealed.rows, sealed.counted);
  sealed.publications = publications();
  for (const Input& input : inputs_) sealed.ledgers.emplace_back(input.state.key, input.state.ledger);
  sealed.sealed = sealed_samples();
  return sealed;
}

}  // namespace orla::stream
