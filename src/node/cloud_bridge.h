// Between the cloud's engine and its store: what the one says in the words of the other.
#pragma once

#include "model/plan.h"
#include "store/cloud_store.h"
#include "stream/cloud_engine.h"

namespace orla::node {

// Windows that left the engine's memory come back from the store. The store outlives it.
class StoredWindows final : public stream::WindowLoader {
 public:
  explicit StoredWindows(store::CloudStore& store) : store_(store) {}
  absl::StatusOr<std::vector<stream::LoadedRow>> load(const std::string& table, const std::string& window,
                                                      model::Time start) override;
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                        model::Time from) override;

 private:
  store::CloudStore& store_;
};

// What the engine needs of what the store recovered.
stream::CloudPast past_of(const store::CloudRecovery& recovery);

// Adds the engine's changes to a commit: windows, publication, anchors, steps, actuals, what was parked and unparked.
// Predictions for `changes.published` are the caller's to add.
void add_changes(const model::Plan& plan, const stream::CloudChanges& changes, store::CloudCommit& commit);

}  // namespace orla::node
