// Whose samples are in which rows, and what is lost or refused.
#include <algorithm>

#include "stream/edge_shard.h"

namespace orla::stream {

// The rows of a metric's first stream count its samples; those of the others repeat them.
bool EdgeEngine::counts(std::size_t stream) const {
  const std::size_t metric = streams_[stream].metric;
  return metric != kNoMetric && metrics_[metric].streams.front() == stream;
}

// Of restored rows it is not kept whose samples they hold: the input that delivered one of their series last.
void EdgeEngine::claim_restored() {
  if (!unclaimed_) return;
  unclaimed_ = false;
  if (inputs_.empty()) return;
  std::vector<std::uint32_t> of_group;
  if (inputs_.size() > 1) {
    of_group.resize(groups_.size(), 0);
    for (std::size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].metric == kNoMetric) continue;
      const std::size_t first = metrics_[series_[i].metric].streams.front();
      const std::vector<model::Label> labels =
          group_labels(definition(static_cast<std::uint32_t>(i)), plan_.streams[first]);
      if (const auto group = groups_.find(static_cast<std::uint32_t>(first), labels))
        of_group[*group] = tallies_[i].input();
    }
  }
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
    if (!counts(stream)) continue;
    for (const auto& shard : shards_)
      shard->rows().each(stream, [&](const SliceRows& slice, model::GroupId group, SmallRow& row) {
        if (SliceRows::input(row) == SliceRows::kNoInput)
          shard->claim(slice, row, of_group.empty() ? 0 : of_group[index(group)]);
      });
  }
  collect();
}

std::vector<std::uint64_t> EdgeEngine::sealed_samples() const {
  std::vector<std::uint64_t> sealed;
  std::uint64_t owed = 0;  // an input that claimed others' samples may have more open than it ever had
  for (const Input& input : inputs_) {
    const std::uint64_t open = std::min(input.open, input.state.ledger.aggregated);
    owed += input.open - open;
    sealed.push_back(input.state.ledger.aggregated - open);
  }
  for (std::uint64_t& count : sealed) {
    const std::uint64_t part = std::min(owed, count);
    count -= part;
    owed -= part;
  }
  return sealed;
}

void EdgeEngine::add_names(Input& input, const model::InputBatch& batch) {
  for (const model::Series& series : batch.new_series) {
    const std::uint32_t defined = define(input, series);
    input.series.push_back(defined);
  }
  if (batch.producer.empty()) return;
  const auto [producer, is_new] = input.producers.insert_or_assign(batch.producer, batch.producer_sequence);
  if (is_new) ++producer_count_;
  input.changed_producers.insert(producer->first);
}

absl::Status EdgeEngine::refuse(std::size_t input, const model::InputBatch& batch, const std::string& reason) {
  Input& in = inputs_[numbers_[input]];
  if (absl::Status status = check(in, batch); !status.ok()) return status;
  receive(in, batch);
  if (batch.samples.size() > 0) in.state.ledger.dropped[reason] += batch.samples.size();
  if (batch.end_of_input) end_input(input);
  return absl::OkStatus();
}

namespace {

// Moves up to `wanted` and says how much was left.
std::uint64_t drop(model::Ledger& ledger, std::uint64_t wanted, const std::string& reason) {
  const std::uint64_t part = std::min(wanted, ledger.aggregated);
  ledger.aggregated -= part;
  if (part > 0) ledger.dropped[reason] += part;
  return wanted - part;
}

std::uint64_t undrop(model::Ledger& ledger, std::uint64_t wanted, const std::string& reason) {
  const auto found = ledger.dropped.find(reason);
  if (found == ledger.dropped.end()) return wanted;
  const std::uint64_t part = std::min(wanted, found->second);
  ledger.aggregated += part;
  found->second -= part;
  if (found->second == 0) ledger.dropped.erase(found);
  return wanted - part;
}

template <typename Inputs, typename Move>
void move_samples(Inputs& inputs, const std::vector<std::pair<std::string, std::uint64_t>>& samples, Move move) {
  std::uint64_t owed = 0;
  for (const auto& [key, count] : samples) {
    std::uint64_t left = count;
    for (auto& input : inputs) {
      if (input.state.key != key) continue;
      input.changed = true;
      left = move(input.state.ledger, left);
    }
    owed += left;
  }
  for (auto& input : inputs) {
    if (owed == 0) return;
    input.changed = true;
    owed = move(input.state.ledger, owed);
  }
}

}  // namespace

void EdgeEngine::lose(const std::vector<std::pair<std::string, std::uint64_t>>& samples, const std::string& reason) {
  move_samples(inputs_, samples,
               [&](model::Ledger& ledger, std::uint64_t count) { return drop(ledger, count, reason); });
}

void EdgeEngine::regain(const std::vector<std::pair<std::string, std::uint64_t>>& samples, const std::string& reason) {
  move_samples(inputs_, samples,
               [&](model::Ledger& ledger, std::uint64_t count) { return undrop(ledger, count, reason); });
}

}  // namespace orla::stream
