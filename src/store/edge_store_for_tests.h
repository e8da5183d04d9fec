// A store on a disk in memory, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/faulty_disk.h"
#include "store/edge_for_tests.h"
#include "store/segment_edge_store.h"

namespace orla::store {

class SegmentEdgeStoreTest : public testing::Test {
 protected:
  // The process that used the store before is dead.
  EdgeRecovery restart(EdgeStoreOptions options = {}) {
    store_.reset();
    disk_.crash();
    return start(options);
  }
  EdgeRecovery start(EdgeStoreOptions options = {}) {
    store_ = std::make_unique<SegmentEdgeStore>(disk_, clock_, format_for_tests(), options);
    absl::StatusOr<EdgeRecovery> recovery = store_->recover({});
    EXPECT_TRUE(recovery.ok()) << recovery.status();
    return recovery.ok() ? *std::move(recovery) : EdgeRecovery{};
  }
  absl::Status commit(std::string state, std::vector<StoredChunk> chunks = {}, bool snapshot = false,
                      const std::vector<std::string>& groups = {}) {
    EdgeCommit out;
    model::EdgeState defined;
    for (const std::string& group : groups) defined.new_groups.emplace_back().stream = group;
    if (!groups.empty()) out.groups = format_for_tests().encode_state(defined);
    next_ += chunks.size();
    out.meta = meta_for_tests(next_);
    out.entry = {snapshot, std::move(state)};
    out.chunks = std::move(chunks);
    const absl::Status status = store_->commit(out);
    if (!status.ok()) next_ -= out.chunks.size();
    return status;
  }
  // Chunks 1..n of `bytes` each, every one in a commit of its own, after a snapshot "S".
  void fill(model::Sequence n, std::size_t bytes) {
    start({.segment_bytes = 1000});
    ASSERT_TRUE(commit("S", {}, true).ok());
    for (model::Sequence s = 1; s <= n; ++s) {
      ASSERT_TRUE(commit("c" + std::to_string(s), {chunk_for_tests(s, bytes)}).ok());
    }
  }
  std::string only(const std::string& end) const {
    std::string out;
    for (const auto& [name, bytes] : disk_.contents()) {
      if (name.ends_with(end)) out = name;
    }
    return out;
  }

  base::SeededRandom random_{1};
  base::FaultyDisk disk_{random_};
  ClockForTests clock_;
  std::unique_ptr<SegmentEdgeStore> store_;
  model::Sequence next_ = 1;
};

}  // namespace orla::store
