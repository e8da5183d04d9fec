// Reads an input to its end, for tests and fuzzers, and checks on the way what every batch promises.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ingest/input.h"

namespace orla::ingest {

// What an input gave, however it was cut into batches.
struct Everything {
  std::map<std::string, std::vector<std::pair<model::Time, double>>> samples;  // by series as text, in order of arrival
  std::uint64_t received = 0;
  std::uint64_t sample_count = 0;
  model::ReasonCounts rejected;
  model::SetDigest rejected_set;
  std::vector<model::Rejection> rejections;
  model::Position position;
  absl::Status status;
  std::string broken;  // a promise of batches that was not kept
};

inline bool same_but_status(const Everything& a, const Everything& b) {
  return a.samples == b.samples && a.received == b.received && a.rejected == b.rejected &&
         a.rejected_set == b.rejected_set && a.position == b.position;
}

// Adds what `batch` holds. `series` are those of the batches before.
inline void add_batch(Everything& to, std::vector<std::string>& series, const model::InputBatch& batch) {
  for (const model::Series& s : batch.new_series) series.push_back(model::to_string(s));
  model::Batch samples = batch.samples;
  samples.make_plain();
  std::uint32_t at = 0;
  for (const model::Batch::Run& run : samples.runs) {
    if (run.begin != at || run.end <= run.begin) to.broken = "runs leave gaps or overlap";
    if (model::index(run.series) >= series.size()) {
      to.broken = "a series is used before it is defined";
      return;
    }
    auto& list = to.samples[series[model::index(run.series)]];
    for (std::uint32_t i = run.begin; i < run.end; ++i) list.emplace_back(samples.times[i], samples.values[i]);
    at = run.end;
  }
  if (at != samples.times.size() || at != samples.values.size()) to.broken = "runs do not cover the samples";
  std::uint64_t rejected = 0;
  for (const auto& [reason, count] : batch.rejected) {
    to.rejected[reason] += count;
    rejected += count;
  }
  if (batch.received != at + rejected) to.broken = "received is not samples plus rejected";
  if (batch.rejected_set.count != rejected) to.broken = "the set of rejected rows has another size";
  if (batch.rejections.size() != std::min<std::uint64_t>(rejected, model::kMaxShownRejections)) {
    to.broken = "not the number of rejections that is shown";
  }
  if (batch.position.offset < to.position.offset || batch.position.row < to.position.row) {
    to.broken = "the position went back";
  }
  to.received += batch.received;
  to.sample_count += at;
  to.rejected_set.add(batch.rejected_set);
  to.rejections.insert(to.rejections.end(), batch.rejections.begin(), batch.rejections.end());
  to.position = batch.position;
}

// `positions`, when given, gets the position after every batch.
inline Everything read_all(Input& input, std::vector<model::Position>* positions = nullptr) {
  Everything all;
  std::vector<std::string> series;
  model::InputBatch batch;
  bool ended = false;
  for (;;) {
    const absl::StatusOr<bool> more = input.next(batch);
    if (!more.ok()) {
      all.status = more.status();
      if (input.next(batch).status() != all.status) all.broken = "an error was followed by something else";
      return all;
    }
    if (!*more) break;
    if (ended) all.broken = "a batch came after the end";
    ended = batch.end_of_input;
    add_batch(all, series, batch);
    if (positions != nullptr) positions->push_back(batch.position);
  }
  if (!ended) all.broken = "the last batch does not say that it is the last";
  return all;
}

}  // namespace orla::ingest
