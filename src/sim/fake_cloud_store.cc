#include "sim/fake_cloud_store.h"

#include <fmt/format.h>

#include <utility>

namespace orla::sim {

absl::StatusOr<store::CloudRecovery> FakeCloudStore::recover() {
  store::CloudRecovery out;
  for (const auto& [node, origin] : kept_.origins) out.origins.push_back(origin);
  out.closed = kept_.closed;
  out.publication.assign(kept_.publication.begin(), kept_.publication.end());
  out.anchors.assign(kept_.anchors.begin(), kept_.anchors.end());
  for (const auto& [key, step] : kept_.steps) out.steps.push_back(step);
  for (const auto& [table, groups] : kept_.groups) {
    for (const std::vector<model::Label>& group : groups) out.groups.emplace_back(table, group);
  }
  for (const auto& [key, row] : kept_.parked) out.parked.push_back(row);
  return out;
}

void FakeCloudStore::apply(const store::CloudCommit& commit) {
  for (const store::OriginRow& origin : commit.origins) cache_.origins[origin.cursor.node] = origin;
  cache_.closed.insert(cache_.closed.end(), commit.closed.begin(), commit.closed.end());
  for (const auto& [node, entry] : commit.states) {
    std::vector<model::StateEntry>& states = cache_.states[node];
    if (entry.snapshot) states.clear();
    states.push_back(entry);
  }
  for (const store::WindowRow& row : commit.windows) {
    cache_.windows[{row.table, row.window, row.start, row.labels}] = row;
    cache_.groups[row.table].insert(row.labels);
  }
  for (const auto& [stream, definition] : commit.unparked) {
    std::erase_if(cache_.parked, [&](const auto& item) {
      return item.second.group.stream == stream && item.second.group.definition == definition;
    });
  }
  for (const store::ParkedRow& row : commit.parked) {
    const auto [it, added] = cache_.parked.try_emplace({model::identity(row.group), row.slice}, row);
    if (!added) it->second.partial.merge(row.partial);
  }
  for (const auto& [table, time] : commit.publication) cache_.publication[table] = time;
  for (const auto& [table, time] : commit.anchors) cache_.anchors[table] = time;
  for (const store::StepProgress& step : commit.steps) cache_.steps[{step.table, step.step_ns}] = step;
  cache_.forecasts += commit.forecasts.size();
  keep_samples(commit, cache_);
}

void FakeCloudStore::keep_samples(const store::CloudCommit& commit, CloudDisk& in) {
  for (model::Batch batch : commit.samples) {
    batch.make_plain();
    for (const model::Batch::Run& run : batch.runs) {
      const model::Series& series = commit.sample_series[model::index(run.series)];
      const std::string identity = model::identity(series);
      model::SetDigest& samples =
          in.samples.try_emplace(identity, verify::Oracle::RawSeries{series, {}}).first->second.samples;
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        samples.add(verify::Oracle::raw_hash(identity, batch.times[i], batch.values[i]));
      }
    }
  }
}

std::string FakeCloudStore::look(const store::CloudCommit& commit) const {
  for (const store::OriginRow& origin : commit.origins) {
    const auto before = cache_.origins.find(origin.cursor.node);
    if (before == cache_.origins.end()) continue;
    const model::Cursor& old = before->second.cursor;
    if (old.epoch == origin.cursor.epoch && origin.cursor.last < old.last) {
      return fmt::format("the cursor of {} goes back from {} to {}", old.node, old.last, origin.cursor.last);
    }
    if (old.epoch == origin.cursor.epoch && origin.cursor.last == old.last && !(origin.cursor.chain == old.chain)) {
      return fmt::format("the chain of {} changes at chunk {}", old.node, old.last);
    }
    for (const store::ClosedEpoch& closed : cache_.closed) {
      if (closed.node == old.node && closed.epoch == origin.cursor.epoch) {
        return fmt::format("a closed epoch of {} is the current one again", old.node);
      }
    }
  }
  for (const auto& [table, time] : commit.publication) {
    const auto before = cache_.publication.find(table);
    if (before != cache_.publication.end() && time < before->second) {
      return fmt::format("the publication time of {} goes back", table);
    }
  }
  for (const store::WindowRow& row : commit.windows) {
    const auto before = cache_.windows.find({row.table, row.window, row.start, row.labels});
    const std::uint64_t old = before == cache_.windows.end() ? 0 : before->second.revision;
    const auto publication = cache_.publication.find(row.table);
    const bool published = publication != cache_.publication.end() && publication->second >= row.end;
    if (row.revision != old + (published ? 1 : 0)) {
      return fmt::format("a window of {} {} has revision {} after {}; it was {}published", row.table, row.window,
                         row.revision, old, published ? "" : "not ");
    }
  }
  return "";
}

absl::Status FakeCloudStore::commit(const store::CloudCommit& commit) {
  if (absl::Status status = disk_.before_write("a commit"); !status.ok()) {
    if (disk_.bug == Bug::kKeepFailedSamples) {
      // The planted bug: samples first, in a transaction of their own.
      keep_samples(commit, cache_);
      keep_samples(commit, kept_);
    }
    return status;
  }
  ++commits_;
  if (disk_.bug == Bug::kCursorsApart) {
    // The planted bug: cursors first, in a transaction of their own.
    for (const store::OriginRow& origin : commit.origins) kept_.origins[origin.cursor.node] = origin;
    disk_.after_write();
  }
  if (kept_.problem.empty()) cache_.problem = kept_.problem = look(commit);
  apply(commit);
  if (disk_.bug != Bug::kLostWrite || commits_ % 2 == 1) kept_ = cache_;
  disk_.after_write();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<store::WindowRow>> FakeCloudStore::load_windows(const std::string& table,
                                                                           const std::string& window,
                                                                           model::Time start) {
  if (absl::Status status = disk_.before_read("a window"); !status.ok()) return status;
  std::vector<store::WindowRow> rows;
  for (auto it = cache_.windows.lower_bound({table, window, start, {}}); it != cache_.windows.end(); ++it) {
    const auto& [t, w, s, labels] = it->first;
    if (t != table || w != window || s != start) break;
    rows.push_back(it->second);
  }
  return rows;
}

absl::StatusOr<std::optional<model::Time>> FakeCloudStore::next_start(const std::string& table,
                                                                      const std::string& window, model::Time from) {
  if (absl::Status status = disk_.before_read("a window"); !status.ok()) return status;
  const auto it = cache_.windows.lower_bound({table, window, from, {}});
  if (it == cache_.windows.end() || std::get<0>(it->first) != table || std::get<1>(it->first) != window) {
    return std::nullopt;
  }
  return std::get<2>(it->first);
}

absl::StatusOr<std::vector<model::StateEntry>> FakeCloudStore::load_states(const model::NodeName& node) {
  if (absl::Status status = disk_.before_read("a node's state"); !status.ok()) return status;
  const auto found = cache_.states.find(node);
  return found == cache_.states.end() ? std::vector<model::StateEntry>{} : found->second;
}

}  // namespace orla::sim
