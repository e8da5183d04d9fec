// The schema of the DEBS 2014 Grand Challenge: id,timestamp,value,property,plug_id,household_id,house_id, no header.
//
// - All but `value` are integers of decimal digits alone. `id` fits 64 bits and is not used. `timestamp` is Unix
//   seconds. property 0 is the metric `work` (kWh, cumulative), 1 is `load` (W). The three ids fit 32 bits and become
//   the labels plug, household and house, as decimal numbers without leading zeros.
// - `value` is a number as number.h reads it.
// - Exactly seven columns, no quotes, no spaces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "ingest/csv_input.h"
#include "ingest/selection.h"

namespace orla::ingest {

// The fast path reads rows of the common forms in one pass and leaves every other to read_debs_row(); kCareful sends
// all rows there, and must give the same (tests and the fuzzer compare).
enum class DebsPath : std::uint8_t { kFast, kCareful };
std::unique_ptr<RowParser> make_debs_parser(Selection selection, DebsPath path);

struct DebsRow {
  std::uint64_t time_s = 0;
  double value = 0;
  std::uint32_t property = 0;
  std::uint32_t plug = 0;
  std::uint32_t household = 0;
  std::uint32_t house = 0;
  bool labelled = false;  // the last four could be read
};
// The row's first fault, or none. `line` is without its end.
std::optional<Fault> read_debs_row(std::string_view line, DebsRow& row);

// The series of a row.
model::Series debs_series(std::uint32_t property, std::uint32_t plug, std::uint32_t household, std::uint32_t house);

}  // namespace orla::ingest
