// The columns of rows in their two forms; rows.cc chooses, and writes what stands around them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "codec/envelope.h"
#include "model/partial.h"
#include "model/power_of_ten.h"

namespace orla::codec {

// Versions of the format.
inline constexpr std::uint8_t kRowVarints = 1;
inline constexpr std::uint8_t kRowVarintsAndSketches = 2;
inline constexpr std::uint8_t kRowBlocks = 3;
inline constexpr Format rows_format(std::uint8_t version) { return {'R', version, "rows"}; }

inline constexpr std::array<std::int64_t, 4> kRowTimeUnits = {1'000'000'000, 1'000'000, 1'000, 1};
inline constexpr std::int64_t kLargestDecimal = std::int64_t{1} << 53;

struct RowParameters {
  int decimals = 0;              // of the values, 0..15
  std::uint8_t time_unit = 0;    // into kRowTimeUnits; divides first time - slice and last time - first time
  std::uint64_t least = 0;       // the first slice's start
  std::uint64_t slice_unit = 1;  // divides every start - least
};

// Of rows as encode_rows() takes them, not empty. Reading gives what is wrong, or null, and takes memory in proportion
// to the bytes or to `count`.
void put_row_varints(base::ByteWriter& to, const model::PartialRows& rows, const RowParameters& parameters);
const char* read_row_varints(base::ByteReader& from, std::uint64_t count, const RowParameters& parameters,
                             model::PartialRows& rows);
void put_row_blocks(std::string& out, const model::PartialRows& rows, const RowParameters& parameters);
const char* read_row_blocks(base::ByteReader& from, std::uint64_t count, const RowParameters& parameters,
                            model::PartialRows& rows);

inline std::uint64_t time_bits(model::Time t) { return static_cast<std::uint64_t>(model::to_ns(t)); }
inline model::Time time_of(std::uint64_t ns) { return model::from_ns(static_cast<std::int64_t>(ns)); }

}  // namespace orla::codec
