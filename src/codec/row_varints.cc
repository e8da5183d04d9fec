// Format of versions 1 and 2 of rows (see rows.cc), behind the parameters: columns of varints, one after the other.
// Rows are ordered by (group, slice).
//
//   groups       number of groups; for each: its id (the first) or id - id before - 1, and its number of rows - 1
//   slices       for each row, in slice units: the first of a group from the least start, others from the one before,
//                minus 1
//   counts       count - 1
//   wide         number of rows whose sums are not two 128-bit integers; for each: its index (the first) or index -
//                index before - 1, then ExactSum::encode() with its length
//   sums         of the other rows: sum (zigzag)
//   squares      of the other rows: sum of squares
//   min          of each row, a value
//   max          of rows with count > 1: 1 + (max - min) when both are decimals, else 0 and 8 bytes
//   first, last  of rows with count > 1 and min < max, each: 1 + (it - min) when both are decimals, else 0 and 8 bytes
//   first times  first_time - slice in time units, zigzag
//   last times   of rows with count > 1: last_time - first_time in time units
//   sketches     version 2 only, which is that of rows some of which have sketches; see rows.cc
//
// A value that counts as a decimal of d places (model::as_decimal) is 1 + zigzag of its integer, any other is 0 and its
// 8 bytes; d is the number of places that fits a sample of the rows best. Differences of times are modulo 2^64.
#include <bit>
#include <cmath>
#include <vector>

#include "codec/row_forms.h"

namespace orla::codec {

using base::ByteReader;
using base::ByteWriter;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

namespace {

constexpr std::size_t kLeastRowBytes = 5;  // of a row: slice, count, sum and squares or a wide sum, min, first time

class ValueWriter {
 public:
  ValueWriter(ByteWriter& to, int decimals) : to_(to), decimals_(decimals) {}
  void put(double v) {
    if (const auto scaled = model::as_decimal(v, decimals_))
      to_.varint(1 + base::zigzag(*scaled));
    else
      put_raw(v);
  }
  // v >= least.
  void put_above(double least, double v) {
    const auto a = model::as_decimal(least, decimals_);
    const auto b = model::as_decimal(v, decimals_);
    if (a && b)
      to_.varint(1 + static_cast<std::uint64_t>(*b - *a));
    else
      put_raw(v);
  }

 private:
  void put_raw(double v) {
    to_.varint(0);
    to_.u64(std::bit_cast<std::uint64_t>(v));
  }
  ByteWriter& to_;
  int decimals_;
};

// Every get() returns false for what ValueWriter does not write.
class ValueReader {
 public:
  ValueReader(ByteReader& from, int decimals) : from_(from), decimals_(decimals) {}
  bool get(double& v) {
    const std::uint64_t code = from_.varint();
    if (code == 0) return get_raw(v) && !model::as_decimal(v, decimals_);
    return decimal(base::unzigzag(code - 1), v);
  }
  bool get_above(double least, double& v) {
    const std::uint64_t code = from_.varint();
    const auto a = model::as_decimal(least, decimals_);
    if (code == 0) return get_raw(v) && !(a && model::as_decimal(v, decimals_)) && v >= least;
    if (!a || code - 1 > 2 * static_cast<std::uint64_t>(kLargestDecimal)) return false;
    return decimal(*a + static_cast<std::int64_t>(code - 1), v);
  }

 private:
  bool get_raw(double& v) {
    v = std::bit_cast<double>(from_.u64());
    return !from_.failed() && std::isfinite(v) && !(v == 0 && std::signbit(v));
  }
  bool decimal(std::int64_t scaled, double& v) const {
    v = static_cast<double>(scaled) / model::power_of_ten(decimals_);
    return !from_.failed() && model::as_decimal(v, decimals_) == scaled;
  }
  ByteReader& from_;
  int decimals_;
};

void put_groups(ByteWriter& to, const PartialRows& rows) {
  std::vector<std::pair<std::uint32_t, std::size_t>> groups;  // id, rows
  for (const PartialRow& row : rows) {
    if (groups.empty() || groups.back().first != index(row.group)) groups.emplace_back(index(row.group), 0);
    ++groups.back().second;
  }
  to.varint(groups.size());
  std::uint64_t next = 0;
  for (const auto& [id, count] : groups) {
    to.varint(id - next);
    to.varint(count - 1);
    next = std::uint64_t{id} + 1;
  }
}

void put_slices(ByteWriter& to, const PartialRows& rows, const RowParameters& parameters) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i - 1].group != rows[i].group)
      to.varint((time_bits(rows[i].slice) - parameters.least) / parameters.slice_unit);
    else
      to.varint((time_bits(rows[i].slice) - time_bits(rows[i - 1].slice)) / parameters.slice_unit - 1);
  }
}

void put_sums(ByteWriter& to, const PartialRows& rows) {
  std::vector<std::size_t> wide;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].partial.sums.has_wide()) wide.push_back(i);
  to.varint(wide.size());
  std::size_t next = 0;
  for (const std::size_t i : wide) {
    to.varint(i - next);
    to.text(rows[i].partial.sums.encode());
    next = i + 1;
  }
  for (const PartialRow& row : rows)
    if (!row.partial.sums.has_wide()) to.varint128(base::zigzag128(row.partial.sums.decimal_sum()));
  for (const PartialRow& row : rows)
    if (!row.partial.sums.has_wide()) to.varint128(static_cast<base::UInt128>(row.partial.sums.decimal_squares()));
}

void put_values(ByteWriter& to, const PartialRows& rows, int decimals) {
  ValueWriter values(to, decimals);
  for (const PartialRow& row : rows) values.put(row.partial.min);
  for (const PartialRow& row : rows)
    if (row.partial.count > 1) values.put_above(row.partial.min, row.partial.max);
  for (const PartialRow& row : rows) {
    const Partial& p = row.partial;
    if (p.count > 1 && p.min < p.max) {
      values.put_above(p.min, p.first);
      values.put_above(p.min, p.last);
    }
  }
}

void put_times(ByteWriter& to, const PartialRows& rows, std::uint8_t unit) {
  const std::int64_t ns = kRowTimeUnits[unit];
  for (const PartialRow& row : rows)
    to.varint(base::zigzag(static_cast<std::int64_t>(time_bits(row.partial.first_time) - time_bits(row.slice)) / ns));
  for (const PartialRow& row : rows)
    if (row.partial.count > 1)
      to.varint(base::zigzag(
          static_cast<std::int64_t>(time_bits(row.partial.last_time) - time_bits(row.partial.first_time)) / ns));
}

// Reads the columns in order; each method is one, returns what is wrong with it, or nothing.
class RowsReader {
 public:
  RowsReader(ByteReader& from, const RowParameters& parameters, PartialRows& rows)
      : from_(from), parameters_(parameters), rows_(rows) {}

  const char* read() {
    for (const auto column : {&RowsReader::groups, &RowsReader::slices, &RowsReader::counts, &RowsReader::sums,
                              &RowsReader::values, &RowsReader::times})
      if (const char* wrong = (this->*column)()) return wrong;
    return nullptr;
  }

 private:
  const char* groups() {
    const std::uint64_t groups = from_.varint();
    if (groups == 0 || groups > rows_.size()) return "bad number of groups";
    std::size_t row = 0;
    std::uint64_t next = 0;
    for (std::uint64_t g = 0; g < groups; ++g) {
      const std::uint64_t gap = from_.varint();
      const std::uint64_t more = from_.varint();
      if (from_.failed() || gap > UINT32_MAX || next + gap > UINT32_MAX) return "bad group id";
      if (more >= rows_.size() - row) return "groups have more rows than there are";
      const auto id = static_cast<std::uint32_t>(next + gap);
      for (std::uint64_t i = 0; i <= more; ++i) rows_[row++].group = model::GroupId{id};
      next = std::uint64_t{id} + 1;
      if (row == rows_.size() && g + 1 < groups) return "groups without rows";
    }
    return row == rows_.size() ? nullptr : "groups have fewer rows than there are";
  }

  const char* slices() {
    const std::uint64_t room = static_cast<std::uint64_t>(INT64_MAX) - parameters_.least;  // up to the greatest time
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const bool first = i == 0 || rows_[i - 1].group != rows_[i].group;
      std::uint64_t steps = from_.varint();
      if (first)
        offset = 0;
      else if (++steps == 0)
        return "slice out of range";
      std::uint64_t step = 0;
      if (__builtin_mul_overflow(steps, parameters_.slice_unit, &step) ||
          __builtin_add_overflow(offset, step, &offset) || offset > room)
        return "slice out of range";
      rows_[i].slice = time_of(parameters_.least + offset);
    }
    return nullptr;
  }

  const char* counts() {
    for (PartialRow& row : rows_)
      if (__builtin_add_overflow(from_.varint(), std::uint64_t{1}, &row.partial.count)) return "count out of range";
    return nullptr;
  }

  const char* sums() {
    const std::uint64_t wide = from_.varint();
    if (wide > rows_.size()) return "more wide sums than rows";
    std::uint64_t next = 0;
    for (std::uint64_t k = 0; k < wide; ++k) {
      const std::uint64_t gap = from_.varint();
      if (gap >= rows_.size() - next) return "wide sum of no row";
      absl::StatusOr<model::ExactSum> sum = model::ExactSum::decode(from_.text());
      if (from_.failed() || !sum.ok() || !sum->has_wide()) return "bad wide sum";
      rows_[next + gap].partial.sums = *std::move(sum);
      next += gap + 1;
      if (next == rows_.size() && k + 1 < wide) return "wide sum of no row";
    }
    std::vector<base::Int128> totals;
    totals.reserve(rows_.size() - wide);
    for (const PartialRow& row : rows_)
      if (!row.partial.sums.has_wide()) totals.push_back(base::unzigzag128(from_.varint128()));
    std::size_t at = 0;
    for (PartialRow& row : rows_) {
      if (row.partial.sums.has_wide()) continue;
      const base::UInt128 squares = from_.varint128();
      if ((squares >> 127) != 0) return "sum of squares out of range";
      row.partial.sums = model::ExactSum::from_decimals(totals[at++], static_cast<base::Int128>(squares));
    }
    return nullptr;
  }

  const char* values() {
    ValueReader values(from_, parameters_.decimals);
    for (PartialRow& row : rows_)
      if (!values.get(row.partial.min)) return "bad minimum";
    for (PartialRow& row : rows_) {
      Partial& p = row.partial;
      p.max = p.min;
      if (p.count > 1 && !values.get_above(p.min, p.max)) return "bad maximum";
    }
    for (PartialRow& row : rows_) {
      Partial& p = row.partial;
      p.first = p.last = p.min;
      if (p.count == 1 || p.min == p.max) continue;
      if (!values.get_above(p.min, p.first) || p.first > p.max) return "bad first value";
      if (!values.get_above(p.min, p.last) || p.last > p.max) return "bad last value";
    }
    return nullptr;
  }

  const char* times() {
    const std::int64_t ns = kRowTimeUnits[parameters_.time_unit];
    const auto read = [&](model::Time since, model::Time& t) {
      std::int64_t offset = 0;
      if (__builtin_mul_overflow(base::unzigzag(from_.varint()), ns, &offset)) return false;
      t = time_of(time_bits(since) + static_cast<std::uint64_t>(offset));
      return true;
    };
    for (PartialRow& row : rows_) {
      if (!read(row.slice, row.partial.first_time)) return "first time out of range";
      row.partial.last_time = row.partial.first_time;
    }
    for (PartialRow& row : rows_) {
      Partial& p = row.partial;
      if (p.count > 1 && !read(p.first_time, p.last_time)) return "last time out of range";
      if (p.last_time < p.first_time || (p.last_time == p.first_time && p.last < p.first)) return "last before first";
    }
    return nullptr;
  }

  ByteReader& from_;
  const RowParameters& parameters_;
  PartialRows& rows_;
};

}  // namespace

void put_row_varints(ByteWriter& to, const PartialRows& rows, const RowParameters& parameters) {
  put_groups(to, rows);
  put_slices(to, rows, parameters);
  for (const PartialRow& row : rows) to.varint(row.partial.count - 1);
  put_sums(to, rows);
  put_values(to, rows, parameters.decimals);
  put_times(to, rows, parameters.time_unit);
}

const char* read_row_varints(ByteReader& from, std::uint64_t count, const RowParameters& parameters,
                             PartialRows& rows) {
  if (count > from.left() / kLeastRowBytes) return "more rows than its bytes can hold";
  rows.resize(count);
  return RowsReader(from, parameters, rows).read();
}

}  // namespace orla::codec
