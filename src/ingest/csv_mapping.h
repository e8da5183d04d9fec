// CSV files of any form, read after a model::CsvMapping.
//
// - With a header, every row has as many columns as the header; without one, at least as many as the mapping names.
// - One sample per value column, in the mapping's order; a cell that is one of `missing` gives none. One that is a
// number
//   stands for that number, however it is written (-200 and -200.0). A row whose values are all missing is counted
//   nowhere.
// - A row is whole or rejected: its first fault, from left to right of the mapping (labels, time, values), is reported.
// - Values are numbers as number.h reads them, with the mapping's decimal mark and no other. A label is UTF-8 of at
// most
//   kMaxLabelBytes. A NUL byte anywhere makes a row malformed.
// - Columns without rows, even without a header, are an input that has ended.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "ingest/csv_input.h"
#include "ingest/selection.h"
#include "model/fleet.h"

namespace orla::ingest {

absl::StatusOr<std::unique_ptr<RowParser>> make_mapping_parser(const model::CsvMapping& mapping, Selection selection);

}  // namespace orla::ingest
