// Format (in an envelope, kind "R"): columns of varints, one after the other. Rows are ordered by (group, slice).
//
//   number of rows; when it is 0, nothing follows
//   parameters   decimals d of the values, 1 byte, 0..15; time unit, 1 byte: 0 = s, 1 = ms, 2 = us, 3 = ns;
//                least slice start, 8 bytes; slice unit in ns, > 0
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
//   sketches     version 2 only, which is that of rows some of which have sketches: number of rows that do; for each:
//                its index (the first) or index - index before - 1, then Sketches::encode() with its length
//
// A value that counts as a decimal of d places (model::as_decimal) is 1 + zigzag of its integer, any other is 0 and its
// 8 bytes; d is the number of places that fits a sample of the rows best. Differences of times are modulo 2^64.
#include "codec/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "codec/envelope.h"
#include "fmt/format.h"
#include "model/power_of_ten.h"

namespace orla::codec {

using base::ByteReader;
using base::ByteWriter;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

namespace {

constexpr Format kFormat = {'R', 1, "rows"};
constexpr Format kWithSketches = {'R', 2, "rows"};
constexpr std::array<std::int64_t, 4> kTimeUnits = {1'000'000'000, 1'000'000, 1'000, 1};
constexpr std::size_t kLeastRowBytes = 5;  // of a row: slice, count, sum and squares or a wide sum, min, first time
constexpr std::int64_t kLargestDecimal = std::int64_t{1} << 53;

std::uint64_t bits(model::Time t) { return static_cast<std::uint64_t>(model::to_ns(t)); }
model::Time time_of(std::uint64_t ns) { return model::from_ns(static_cast<std::int64_t>(ns)); }

double from_decimal(std::int64_t scaled, int decimals) {
  return static_cast<double>(scaled) / model::power_of_ten(decimals);
}

// The places that most of a sample of the rows' values have; fewer rather than more.
int choose_decimals(const PartialRows& rows) {
  constexpr std::size_t sampled = 64;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / sampled);
  int best = 0;
  std::size_t best_hits = 0;
  for (int decimals = 0; decimals <= 6; ++decimals) {
    std::size_t hits = 0;
    for (std::size_t i = 0; i < rows.size(); i += stride)
      hits += model::as_decimal(rows[i].partial.min, decimals).has_value() +
              model::as_decimal(rows[i].partial.max, decimals).has_value();
    if (hits > best_hits) {
      best = decimals;
      best_hits = hits;
    }
  }
  return best;
}

std::uint8_t choose_time_unit(const PartialRows& rows) {
  std::uint8_t unit = 0;
  const auto fits = [&](std::uint64_t difference) {
    return static_cast<std::int64_t>(difference) % kTimeUnits[unit] == 0;
  };
  for (const PartialRow& row : rows)
    while (!fits(bits(row.partial.first_time) - bits(row.slice)) ||
           !fits(bits(row.partial.last_time) - bits(row.partial.first_time)))
      ++unit;
  return unit;
}

struct Slices {
  model::Time least;
  std::uint64_t unit = 1;  // divides every start - least
};
Slices choose_slices(const PartialRows& rows) {
  Slices s{rows.front().slice, 0};
  for (const PartialRow& row : rows) s.least = std::min(s.least, row.slice);
  for (const PartialRow& row : rows) {
    const std::uint64_t offset = bits(row.slice) - bits(s.least);
    if (s.unit == 0 || offset % s.unit != 0) s.unit = std::gcd(s.unit, offset);
  }
  if (s.unit == 0) s.unit = 1;
  return s;
}

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
    v = from_decimal(scaled, decimals_);
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

void put_slices(ByteWriter& to, const PartialRows& rows, const Slices& slices) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i - 1].group != rows[i].group)
      to.varint((bits(rows[i].slice) - bits(slices.least)) / slices.unit);
    else
      to.varint((bits(rows[i].slice) - bits(rows[i - 1].slice)) / slices.unit - 1);
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
  const std::int64_t ns = kTimeUnits[unit];
  for (const PartialRow& row : rows)
    to.varint(base::zigzag(static_cast<std::int64_t>(bits(row.partial.first_time) - bits(row.slice)) / ns));
  for (const PartialRow& row : rows)
    if (row.partial.count > 1)
      to.varint(
          base::zigzag(static_cast<std::int64_t>(bits(row.partial.last_time) - bits(row.partial.first_time)) / ns));
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

// Reads the columns in order; each method is one, returns what is wrong with it, or nothing.
class RowsReader {
 public:
  RowsReader(std::string_view body, std::uint8_t version) : from_(body), version_(version) {}

  const char* read() {
    const std::uint64_t count = from_.varint();
    if (count > kMaxRows || count > from_.left() / kLeastRowBytes) return "more rows than its bytes can hold";
    rows_.resize(count);
    if (count > 0) {
      for (const auto column : {&RowsReader::parameters, &RowsReader::groups, &RowsReader::slices, &RowsReader::counts,
                                &RowsReader::sums, &RowsReader::values, &RowsReader::times})
        if (const char* wrong = (this->*column)()) return wrong;
      if (version_ == kWithSketches.version)
        if (const char* wrong = sketches()) return wrong;
    } else if (version_ != kFormat.version) {
      return "no rows, and yet sketches of them";
    }
    return from_.finished() ? nullptr : "too short, too long or a number that is not in its shortest form";
  }
  PartialRows take() { return std::move(rows_); }

 private:
  const char* parameters() {
    decimals_ = from_.u8();
    time_unit_ = from_.u8();
    least_ = from_.u64();
    slice_unit_ = from_.varint();
    if (decimals_ > model::kMaxDecimals || time_unit_ >= kTimeUnits.size() || slice_unit_ == 0) return "bad parameters";
    return nullptr;
  }

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
    const std::uint64_t room = static_cast<std::uint64_t>(INT64_MAX) - least_;  // up to the greatest time
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const bool first = i == 0 || rows_[i - 1].group != rows_[i].group;
      std::uint64_t steps = from_.varint();
      if (first)
        offset = 0;
      else if (++steps == 0)
        return "slice out of range";
      std::uint64_t step = 0;
      if (__builtin_mul_overflow(steps, slice_unit_, &step) || __builtin_add_overflow(offset, step, &offset) ||
          offset > room)
        return "slice out of range";
      rows_[i].slice = time_of(least_ + offset);
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
    ValueReader values(from_, decimals_);
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
    const std::int64_t ns = kTimeUnits[time_unit_];
    const auto read = [&](model::Time since, model::Time& t) {
      std::int64_t offset = 0;
      if (__builtin_mul_overflow(base::unzigzag(from_.varint()), ns, &offset)) return false;
      t = time_of(bits(since) + static_cast<std::uint64_t>(offset));
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

  const char* sketches() {
    const std::uint64_t count = from_.varint();
    if (count == 0 || count > rows_.size()) return "bad number of sketches";
    std::uint64_t next = 0;
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::uint64_t gap = from_.varint();
      if (next == rows_.size() || gap >= rows_.size() - next) return "sketches of no row";
      absl::StatusOr<model::Sketches> sketches = model::Sketches::decode(from_.text());
      if (from_.failed() || !sketches.ok()) return "bad sketches";
      Partial& p = rows_[next + gap].partial;
      const model::QuantileSketch* quantiles = sketches->quantiles();
      if (quantiles != nullptr && quantiles->count() != p.count) return "a quantile sketch of more or fewer samples";
      const model::DistinctSketch* distinct = sketches->distinct();
      if (distinct != nullptr && distinct->exact() && distinct->estimate() == 0) return "a distinct sketch of nothing";
      p.sketches = *std::move(sketches);
      next += gap + 1;
    }
    return nullptr;
  }

  ByteReader from_;
  const std::uint8_t version_;
  PartialRows rows_;
  int decimals_ = 0;
  std::uint8_t time_unit_ = 0;
  std::uint64_t least_ = 0;
  std::uint64_t slice_unit_ = 0;
};

}  // namespace

std::string encode_rows(const PartialRows& rows) {
  const bool sketched = std::any_of(rows.begin(), rows.end(), has_sketches);
  std::string out = begin_envelope(sketched ? kWithSketches : kFormat);
  out.reserve(32 + 24 * rows.size());
  ByteWriter to(out);
  to.varint(rows.size());
  if (!rows.empty()) {
    const int decimals = choose_decimals(rows);
    const std::uint8_t time_unit = choose_time_unit(rows);
    const Slices slices = choose_slices(rows);
    to.u8(static_cast<std::uint8_t>(decimals));
    to.u8(time_unit);
    to.u64(bits(slices.least));
    to.varint(slices.unit);
    put_groups(to, rows);
    put_slices(to, rows, slices);
    for (const PartialRow& row : rows) to.varint(row.partial.count - 1);
    put_sums(to, rows);
    put_values(to, rows, decimals);
    put_times(to, rows, time_unit);
    if (sketched) put_sketches(to, rows);
  }
  end_envelope(out);
  return out;
}

absl::StatusOr<PartialRows> decode_rows(std::string_view bytes) {
  const Format format = version_of(bytes) == kFormat.version ? kFormat : kWithSketches;
  const absl::StatusOr<std::string_view> body = open_envelope(format, bytes);
  if (!body.ok()) return body.status();
  RowsReader reader(*body, format.version);
  if (const char* wrong = reader.read()) return malformed(kFormat, wrong);
  return reader.take();
}

}  // namespace orla::codec
