// An EdgeStore that hands everything to another one, for those that look at some of it or change it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "store/edge_store.h"

namespace orla::sim {

class ForwardingEdgeStore : public store::EdgeStore {
 public:
  explicit ForwardingEdgeStore(std::unique_ptr<store::EdgeStore> inner) : inner_(std::move(inner)) {}

  absl::StatusOr<store::EdgeRecovery> recover(const Progress& progress) override { return inner_->recover(progress); }
  absl::Status commit(const store::EdgeCommit& commit) override { return inner_->commit(commit); }
  absl::Status trim(model::Sequence through) override { return inner_->trim(through); }
  absl::Status renumber(const store::EdgeMeta& meta, const std::vector<store::StoredChunk>& outbox) override {
    return inner_->renumber(meta, outbox);
  }
  absl::StatusOr<store::StoredChunk> load(model::Sequence sequence) override { return inner_->load(sequence); }
  std::vector<model::Tombstone> lost() const override { return inner_->lost(); }
  std::uint64_t bytes() const override { return inner_->bytes(); }
  store::JournalBytes journal_bytes() const override { return inner_->journal_bytes(); }
  absl::Status maintain() override { return inner_->maintain(); }
  absl::Status close() override { return inner_->close(); }

 protected:
  store::EdgeStore& inner() const { return *inner_; }

 private:
  const std::unique_ptr<store::EdgeStore> inner_;
};

}  // namespace orla::sim
