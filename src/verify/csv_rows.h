// CSV inputs as the oracle reads them: the same rules as ingest/, which describes them for people, on code of their
// own. (Of the bounds of ingest/, that on the number of series is not imitated: beyond it the accounts differ, and say
// so.)
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/byte_source.h"
#include "model/fleet.h"
#include "verify/rows.h"

namespace orla::verify {

// spec.kind is kCsv; reads the file at spec.path.
absl::StatusOr<std::unique_ptr<RowSource>> open_csv_rows(const model::InputSpec& spec);
// The same over bytes from elsewhere.
absl::StatusOr<std::unique_ptr<RowSource>> read_csv_rows(const model::InputSpec& spec,
                                                         std::unique_ptr<base::ByteSource> bytes);

}  // namespace orla::verify
