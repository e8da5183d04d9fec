// The cloud's knowledge of its origins, read from the file: for the store and for readers.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "store/cloud_store.h"
#include "store/sqlite.h"

namespace orla::store {

// By node name. Ledgers by input, publications by metric.
absl::StatusOr<std::vector<OriginRow>> read_origins(Database& database);

// Numbers of an epoch that were folded in as tombstones.
absl::StatusOr<std::vector<model::SequenceRange>> read_tombstones(Database& database, const model::NodeName& node,
                                                                  model::Epoch epoch);

}  // namespace orla::store
