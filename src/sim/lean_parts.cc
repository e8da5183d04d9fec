#include "sim/lean_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace orla::sim {

absl::StatusOr<store::EdgeRecovery> LeanEdgeStore::recover(const Progress& /*progress*/) {
  return store::EdgeRecovery{};
}

absl::Status LeanEdgeStore::commit(const store::EdgeCommit& commit) {
  for (const store::StoredChunk& chunk : commit.chunks) chunks_[chunk.range.first] = chunk;
  if (commit.entry.snapshot) {
    journal_ = {commit.entry.state.size(), 0};
  } else {
    journal_.since += commit.entry.state.size();
  }
  return absl::OkStatus();
}

absl::Status LeanEdgeStore::trim(model::Sequence through) {
  chunks_.erase(chunks_.begin(), chunks_.upper_bound(through));
  return absl::OkStatus();
}

absl::Status LeanEdgeStore::renumber(const store::EdgeMeta& /*meta*/, const std::vector<store::StoredChunk>& outbox) {
  chunks_.clear();
  for (const store::StoredChunk& chunk : outbox) chunks_[chunk.range.first] = chunk;
  return absl::OkStatus();
}

absl::StatusOr<store::StoredChunk> LeanEdgeStore::load(model::Sequence sequence) {
  const auto found = chunks_.find(sequence);
  if (found == chunks_.end()) return absl::NotFoundError(fmt::format("chunk {} is not in the outbox", sequence));
  return found->second;
}

absl::Status CostlyCloudStore::commit(const store::CloudCommit& commit) {
  if (absl::Status status = inner_.commit(commit); !status.ok()) return status;
  loop_.spend(
      std::chrono::nanoseconds(static_cast<std::int64_t>(window_ns_ * static_cast<double>(commit.windows.size()))));
  committed_(commit);
  return absl::OkStatus();
}

void SteadyPump::start(std::size_t input, const model::InputSpec& /*spec*/, model::Position from) {
  input_ = input;
  next_ = static_cast<std::int64_t>(from.offset);
  schedule();
}

void SteadyPump::consumed(std::size_t /*input*/) {
  --outstanding_;
  schedule();
}

void SteadyPump::schedule() {
  if (stopped_ || scheduled_ || next_ >= load_.seconds || outstanding_ >= kMaxOutstanding) return;
  scheduled_ = true;
  const base::SteadyTime due = load_.begin + std::chrono::seconds(next_ + 1) + load_.phase;
  loop_.post_after(std::max(std::chrono::nanoseconds(0), due - queue_.now()), [this] { deliver(); });
}

void SteadyPump::deliver() {
  scheduled_ = false;
  if (stopped_) return;
  model::InputBatch batch;
  const model::Time second = load_.origin + std::chrono::seconds(next_);
  for (std::int64_t series = 0; series < load_.series; ++series) {
    if (next_ == 0) {
      batch.new_series.push_back(
          {"load", {{"house", std::to_string(load_.house)}, {"household", "0"}, {"plug", std::to_string(series)}}});
    }
    const auto at = static_cast<std::uint32_t>(series);
    const double value = static_cast<double>((load_.house * 31 + series * 17 + next_ * 7) % 4000);
    batch.samples.runs.push_back({model::SeriesId{at}, at, at + 1});
    batch.samples.times.push_back(second);
    batch.samples.values.push_back(value);
    made_.value_sum += value;
  }
  batch.received = batch.samples.times.size();
  made_.samples += batch.received;
  made_.charged += static_cast<std::uint64_t>(load_.charged_per_s);
  ++next_;
  batch.position = {static_cast<std::uint64_t>(next_), static_cast<std::uint64_t>(next_ * load_.series)};
  batch.end_of_input = next_ == load_.seconds;
  ++outstanding_;
  loop_.spend(
      std::chrono::nanoseconds(static_cast<std::int64_t>(load_.sample_ns * static_cast<double>(load_.charged_per_s))));
  events_.batch(input_, batch, model::kMinTime);
  schedule();
}

}  // namespace orla::sim
