// Format (in an envelope, kind "R"). Rows are ordered by (group, slice).
//
//   number of rows; when it is 0 (version 1 only), nothing follows
//   parameters   decimals d of the values, 1 byte, 0..15; time unit, 1 byte: 0 = s, 1 = ms, 2 = us, 3 = ns;
//                least slice start, 8 bytes; slice unit in ns, > 0
//   columns      versions 1 and 2: varints (row_varints.cc); version 3: blocks of 256 rows
//                (row_blocks_encode.cc)
//   sketches     of rows that have some, which version 1 has not: number of such rows (version 2: > 0); for each: its
//                index (the first) or index - index before - 1, then Sketches::encode() with its length
//   filling      version 3 only: zeros, up to as many bytes of columns, sketches and filling as there are rows. So the
//                memory that decoding takes is in proportion to the bytes
//
// Numbers are varints. Of few rows versions 1 (2 with sketches) and 3 are both tried, and the smaller one is written;
// every version is read.
#include "codec/rows.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "codec/row_forms.h"

namespace orla::codec {

using base::ByteReader;
using base::ByteWriter;
using model::PartialRow;
using model::PartialRows;

namespace {

// Of fewer rows, varints may take fewer bytes.
constexpr std::size_t kFewRows = 8;

// The places that most of a sample of the rows' values have; fewer rather than more. The sampled rows are at no regular
// distance: what they are of may repeat.
int choose_decimals(const PartialRows& rows) {
  constexpr std::uint64_t kSampled = 64;
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b9;  // of 2^32: its multiples spread evenly
  const bool few = rows.size() <= kSampled;
  const std::size_t sampled = few ? rows.size() : kSampled;
  int best = 0;
  std::size_t best_hits = 0;
  for (int decimals = 0; decimals <= 6 && best_hits < 2 * sampled; ++decimals) {
    std::size_t hits = 0;
    for (std::uint64_t k = 0; k < sampled; ++k) {
      const model::Partial& p = rows[few ? k : (k * kGoldenRatio & UINT32_MAX) * rows.size() >> 32].partial;
      hits += model::as_decimal(p.min, decimals).has_value() + model::as_decimal(p.max, decimals).has_value();
    }
    if (hits > best_hits) {
      best = decimals;
      best_hits = hits;
    }
  }
  return best;
}

// Whether a unit divides it; with a constant the division is a multiplication.
bool divides(std::uint8_t unit, std::int64_t difference) {
  switch (unit) {
    case 0:
      return difference % kRowTimeUnits[0] == 0;
    case 1:
      return difference % kRowTimeUnits[1] == 0;
    case 2:
      return difference % kRowTimeUnits[2] == 0;
    default:
      return true;
  }
}

std::uint8_t choose_time_unit(const PartialRows& rows) {
  std::uint8_t unit = 0;
  for (const PartialRow& row : rows) {
    const model::Partial& p = row.partial;
    while (!divides(unit, static_cast<std::int64_t>(time_bits(p.first_time) - time_bits(row.slice))) ||
           !divides(unit, static_cast<std::int64_t>(time_bits(p.last_time) - time_bits(p.first_time))))
      ++unit;
  }
  return unit;
}

RowParameters choose_parameters(const PartialRows& rows) {
  RowParameters parameters;
  parameters.decimals = choose_decimals(rows);
  parameters.time_unit = choose_time_unit(rows);
  model::Time least = rows.front().slice;
  for (const PartialRow& row : rows) least = std::min(least, row.slice);
  parameters.least = time_bits(least);
  std::uint64_t unit = 0;
  std::uint64_t before = 0;
  for (const PartialRow& row : rows) {
    const std::uint64_t offset = time_bits(row.slice) - parameters.least;
    if (offset == before || offset == 0) continue;
    before = offset;
    if (unit == 0 || offset % unit != 0) unit = std::gcd(unit, offset);
  }
  parameters.slice_unit = unit == 0 ? 1 : unit;
  return parameters;
}

bool has_sketches(const PartialRow& row) { return !row.partial.sketches.none(); }

void put_sketches(ByteWriter& to, const PartialRows& rows) {
  to.varint(static_cast<std::uint64_t>(std::count_if(rows.begin(), rows.end(), has_sketches)));
  std::size_t next = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_sketches(rows[i])) continue;
    to.varint(i - next);
    to.text(rows[i].partial.sketches.encode());
    next = i + 1;
  }
}

// What is wrong, or null; so do the others.
const char* read_sketches(ByteReader& from, std::uint64_t least, PartialRows& rows) {
  const std::uint64_t count = from.varint();
  if (count < least || count > rows.size()) return "bad number of sketches";
  std::uint64_t next = 0;
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t gap = from.varint();
    if (next == rows.size() || gap >= rows.size() - next) return "sketches of no row";
    absl::StatusOr<model::Sketches> sketches = model::Sketches::decode(from.text());
    if (from.failed() || !sketches.ok()) return "bad sketches";
    model::Partial& p = rows[next + gap].partial;
    const model::QuantileSketch* quantiles = sketches->quantiles();
    if (quantiles != nullptr && quantiles->count() != p.count) return "a quantile sketch of more or fewer samples";
    const model::DistinctSketch* distinct = sketches->distinct();
    if (distinct != nullptr && distinct->exact() && distinct->estimate() == 0) return "a distinct sketch of nothing";
    p.sketches = *std::move(sketches);
    next += gap + 1;
  }
  return nullptr;
}

const char* read_parameters(ByteReader& from, RowParameters& parameters) {
  parameters.decimals = from.u8();
  parameters.time_unit = from.u8();
  parameters.least = from.u64();
  parameters.slice_unit = from.varint();
  const bool bad = parameters.decimals > model::kMaxDecimals || parameters.time_unit >= kRowTimeUnits.size() ||
                   parameters.slice_unit == 0;
  return bad ? "bad parameters" : nullptr;
}

bool only_zeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

const char* read_rows(std::string_view body, std::uint8_t version, PartialRows& rows) {
  ByteReader from(body);
  const std::uint64_t count = from.varint();
  if (count == 0 && version != kRowVarints) return "no rows, in a version of some";
  if (count > 0) {
    RowParameters parameters;
    if (const char* wrong = read_parameters(from, parameters)) return wrong;
    const std::size_t since = from.left();
    if (count > kMaxRows || count > since) return "more rows than its bytes can hold";
    const auto columns = version == kRowBlocks ? read_row_blocks : read_row_varints;
    if (const char* wrong = columns(from, count, parameters, rows)) return wrong;
    if (version != kRowVarints)
      if (const char* wrong = read_sketches(from, version == kRowVarintsAndSketches ? 1 : 0, rows)) return wrong;
    if (version == kRowBlocks && since == count && !only_zeros(from.raw(from.left())))
      return "something follows its last column";
  }
  return from.finished() ? nullptr : "too short, too long or a number that is not in its shortest form";
}

std::string encode_as(std::uint8_t version, const PartialRows& rows, const RowParameters& parameters) {
  std::string out = begin_envelope(rows_format(version));
  out.reserve(64 + (version == kRowBlocks ? 16 : 24) * rows.size());
  ByteWriter to(out);
  to.varint(rows.size());
  if (!rows.empty()) {
    to.u8(static_cast<std::uint8_t>(parameters.decimals));
    to.u8(parameters.time_unit);
    to.u64(parameters.least);
    to.varint(parameters.slice_unit);
    const std::size_t since = out.size();
    if (version == kRowBlocks) {
      put_row_blocks(out, rows, parameters);
    } else {
      put_row_varints(to, rows, parameters);
    }
    if (version != kRowVarints) put_sketches(to, rows);
    if (version == kRowBlocks && out.size() - since < rows.size()) out.resize(since + rows.size());
  }
  end_envelope(out);
  return out;
}

}  // namespace

std::string encode_rows(const PartialRows& rows) {
  if (rows.empty()) return encode_as(kRowVarints, rows, {});
  const RowParameters parameters = choose_parameters(rows);
  std::string blocks = encode_as(kRowBlocks, rows, parameters);
  if (rows.size() > kFewRows) return blocks;
  const bool sketched = std::any_of(rows.begin(), rows.end(), has_sketches);
  std::string varints = encode_as(sketched ? kRowVarintsAndSketches : kRowVarints, rows, parameters);
  return varints.size() <= blocks.size() ? varints : blocks;
}

absl::StatusOr<PartialRows> decode_rows(std::string_view bytes) {
  const std::uint8_t version = std::clamp(version_of(bytes), kRowVarints, kRowBlocks);
  const absl::StatusOr<std::string_view> body = open_envelope(rows_format(version), bytes);
  if (!body.ok()) return body.status();
  PartialRows rows;
  if (const char* wrong = read_rows(*body, version, rows)) return malformed(rows_format(version), wrong);
  return rows;
}

}  // namespace orla::codec
