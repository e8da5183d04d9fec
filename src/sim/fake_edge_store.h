// An EdgeStore in memory. What it keeps is in an EdgeDisk, which outlives the store as a disk outlives a process.
#pragma once

#include <map>
#include <vector>

#include "sim/fake_disk.h"
#include "store/edge_store.h"

namespace orla::sim {

struct EdgeDisk {
  store::EdgeMeta meta;
  std::vector<store::JournalEntry> journal;
  std::map<model::Sequence, store::StoredChunk> chunks;
};

class FakeEdgeStore final : public store::EdgeStore {
 public:
  // Both outlive the store.
  FakeEdgeStore(EdgeDisk& kept, FakeDisk& disk) : kept_(kept), cache_(kept), disk_(disk) {}

  absl::StatusOr<store::EdgeRecovery> recover(const Progress& progress) override;
  absl::Status commit(const store::EdgeCommit& commit) override;
  absl::Status trim(model::Sequence through) override;
  absl::Status renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) override;
  absl::StatusOr<store::StoredChunk> load(model::Sequence sequence) override;
  std::vector<model::Tombstone> lost() const override { return {}; }
  std::uint64_t bytes() const override { return 0; }
  store::JournalBytes journal_bytes() const override;

 private:
  void make_durable();

  EdgeDisk& kept_;
  EdgeDisk cache_;  // as the process sees it: the same, unless a bug is planted
  FakeDisk& disk_;
  std::uint64_t commits_ = 0;
};

}  // namespace orla::sim
