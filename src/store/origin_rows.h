// The cloud's knowledge of its origins, read from the file: for the store and for readers.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "store/cloud_store.h"
#include "store/sqlite.h"

namespace orla::store {

// By node name. Ledgers by input, publications by metric.
absl::StatusOr<std::vector<OriginRow>> read_origins(Database& database);

}  // namespace orla::store
