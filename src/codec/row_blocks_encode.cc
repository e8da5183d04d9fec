// Format of version 3 of rows (see rows.cc), behind the parameters: blocks of 256 rows, the last one of what is left.
//
// A block is a byte that says which lists it has, twelve columns of integers, one for each row (number_block.cc), and
// the lists.
//
//   group steps   group - group of the row before; of the first row of all: group + 1
//   slice steps   in slice units: of a group's first row from the least start, of others from the one before, minus 1
//   counts        count - 1
//   places        p: decimals of the sums, 0..15
//   min           as an integer of d places
//   max           max - min of the same kind
//   first         first - min
//   last          max - last
//   sums          sum - count * m, where m is min with p places
//   squares       sum of squares - (2 * m * sum - count * m^2 + (sum - count * m)^2 / count); the quotient is rounded
//                 down, and only there when what is squared is below 2^32
//   first times   first time - slice, in time units
//   last times    last time - first time, in time units
//
// Counts, sums and squares are modulo 2^64, 2^128 and 2^128, differences of times modulo 2^64. Of rows with count 1
// max, first and last are min, and of those with min = max first and last are.
//
//   odd min, max, first, last    bits 0 to 3: the values that are no decimals of d places; and max, first and last
//   where
//                                min or max is none. The column holds 0 (and m is 0 where min is odd)
//   far sums                     bit 4: those whose difference has more than 64 bits
//   wide sums                    bit 5: those that are not two 128-bit integers
//
// A list is its length - 1, a byte; then for each: its place in the block, a byte; and 8 bytes, of an odd value; the
// sum (zigzag) and the sum of squares, varints, of far sums; ExactSum::encode() with its length, of wide ones. The
// integers in the columns of sums and squares are then without meaning.
#include <algorithm>
#include <bit>
#include <vector>

#include "codec/number_block.h"
#include "codec/row_block.h"
#include "codec/row_forms.h"

namespace orla::codec {

using base::ByteWriter;
using base::Int128;
using base::UInt128;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

namespace {

// Beyond these the places of a sum are not guessed: the products below would not fit.
constexpr std::uint64_t kLargestCount = std::uint64_t{1} << 32;
constexpr int kMostPlacesMore = 9;

std::int64_t in_units(std::uint64_t difference, std::uint8_t unit) {
  const auto ns = static_cast<std::int64_t>(difference);
  switch (unit) {  // with a constant the division is a multiplication
    case 0:
      return ns / kRowTimeUnits[0];
    case 1:
      return ns / kRowTimeUnits[1];
    case 2:
      return ns / kRowTimeUnits[2];
    default:
      return ns;
  }
}

class BlockWriter {
 public:
  BlockWriter(std::string& out, const RowParameters& parameters)
      : out_(out), parameters_(parameters), places_(parameters.decimals) {}

  void put(const PartialRow* rows, std::size_t n) {
    rows_ = rows;
    n_ = n;
    flags_ = 0;
    far_.clear();
    wide_.clear();
    keys();
    values();
    sums();
    out_.push_back(static_cast<char>(flags_));
    for (const RowNumbers& column : columns_) {
      std::uint8_t bytes[kNumbersRoom];
      const std::uint8_t* const end = write_number_block(column.data(), n_, bytes);
      out_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
    }
    for (std::size_t k = 0; k < odd_.size(); ++k)
      list(odd_[k], [this, k](ByteWriter& to, const Partial& p) { to.u64(std::bit_cast<std::uint64_t>(value(k, p))); });
    list(far_, [](ByteWriter& to, const Partial& p) {
      to.varint128(base::zigzag128(p.sums.decimal_sum()));
      to.varint128(static_cast<UInt128>(p.sums.decimal_squares()));
    });
    list(wide_, [](ByteWriter& to, const Partial& p) { to.text(p.sums.encode()); });
  }

 private:
  using Places = std::vector<std::uint8_t>;

  static double value(std::size_t k, const Partial& p) {
    switch (k) {
      case 0:
        return p.min;
      case 1:
        return p.max;
      case 2:
        return p.first;
      default:
        return p.last;
    }
  }

  template <typename F>
  void list(const Places& places, F item) {
    if (places.empty()) return;
    ByteWriter to(out_);
    to.u8(static_cast<std::uint8_t>(places.size() - 1));
    for (const std::uint8_t place : places) {
      to.u8(place);
      item(to, rows_[place].partial);
    }
  }

  void keys() {
    for (std::size_t i = 0; i < n_; ++i) {
      const PartialRow& row = rows_[i];
      const Partial& p = row.partial;
      const std::int64_t group = model::index(row.group);
      const std::int64_t step = group - group_;
      group_ = group;
      const std::uint64_t slice = time_bits(row.slice);
      columns_[kGroupSteps][i] = step;
      columns_[kSliceSteps][i] =
          step == 0 ? static_cast<std::int64_t>((slice - slice_) / parameters_.slice_unit - 1)
                    : static_cast<std::int64_t>(
                          slice == parameters_.least ? 0 : (slice - parameters_.least) / parameters_.slice_unit);
      slice_ = slice;
      columns_[kCounts][i] = static_cast<std::int64_t>(p.count - 1);
      columns_[kFirstTimes][i] = in_units(time_bits(p.first_time) - slice, parameters_.time_unit);
      columns_[kLastTimes][i] =
          p.count == 1 ? 0 : in_units(time_bits(p.last_time) - time_bits(p.first_time), parameters_.time_unit);
    }
  }

  // Integers of the values of one kind into its column; the places of those that are no decimals.
  void decimals(std::size_t k, const double* values, Places& odd) {
    odd.clear();
    std::int64_t* const to = columns_[kMin + k].data();
    std::int32_t scaled[kBlockValues + kValueSlack];
    if (int_converter().decimals(values, n_, model::power_of_ten(parameters_.decimals), scaled)) {
      std::copy(scaled, scaled + n_, to);
      return;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const std::optional<std::int64_t> decimal = model::as_decimal(values[i], parameters_.decimals);
      to[i] = decimal.value_or(0);
      if (!decimal) odd.push_back(static_cast<std::uint8_t>(i));
    }
  }

  void values() {
    double values[4][kBlockValues + kValueSlack];
    for (std::size_t i = 0; i < n_; ++i) {
      const Partial& p = rows_[i].partial;
      values[0][i] = p.min;
      values[1][i] = p.count == 1 ? p.min : p.max;
      const bool same = values[0][i] == values[1][i];
      values[2][i] = same ? p.min : p.first;
      values[3][i] = same ? p.min : p.last;
    }
    for (std::size_t k = 0; k < 4; ++k) decimals(k, values[k], odd_[k]);
    RowNumbers& min = columns_[kMin];
    RowNumbers& max = columns_[kMax];
    for (std::size_t i = 0; i < n_; ++i) {
      columns_[kFirst][i] -= min[i];
      columns_[kLast][i] = max[i] - columns_[kLast][i];
      max[i] -= min[i];
    }
    if (!odd_[0].empty() || !odd_[1].empty() || !odd_[2].empty() || !odd_[3].empty()) mend_odd(values[0], values[1]);
  }

  // With an odd min or max all are odd, but where they are min in any case.
  void mend_odd(const double* min, const double* max) {
    std::array<std::uint8_t, kBlockValues> odd = {};  // bits: kinds
    for (std::size_t k = 0; k < 4; ++k)
      for (const std::uint8_t place : odd_[k]) odd[place] = static_cast<std::uint8_t>(odd[place] | (kOddMin << k));
    for (Places& places : odd_) places.clear();
    for (std::size_t i = 0; i < n_; ++i) {
      unsigned kinds = odd[i];
      if (kinds == 0) continue;
      if ((kinds & 3) != 0) kinds |= 2 | 4 | 8;
      if (min[i] == max[i]) kinds &= 1;
      for (std::size_t k = 0; k < 4; ++k) {
        if ((kinds >> k & 1) == 0) continue;
        odd_[k].push_back(static_cast<std::uint8_t>(i));
        columns_[kMin + k][i] = 0;
      }
      if (min[i] == max[i]) columns_[kMax][i] = columns_[kFirst][i] = columns_[kLast][i] = 0;
      flags_ = static_cast<std::uint8_t>(flags_ | kinds);
    }
  }

  // Whether a sum of `count` values from min to max can be this one, at `places`.
  bool can_be(Int128 sum, std::size_t i, int places) const {
    const std::uint64_t count = rows_[i].partial.count;
    if (count > kLargestCount || places > parameters_.decimals + kMostPlacesMore) return false;
    const std::int64_t min = columns_[kMin][i];
    const auto n = static_cast<Int128>(count);
    return n * with_places(min, parameters_.decimals, places) <= sum &&
           sum <= n * with_places(min + columns_[kMax][i], parameters_.decimals, places);
  }

  // The places of the row before where they do, else the first that do.
  int places_of(Int128 sum, std::size_t i) const {
    if (can_be(sum, i, places_)) return places_;
    for (int places = 0; places <= model::kMaxDecimals; ++places)
      if (can_be(sum, i, places)) return places;
    return places_;
  }

  void sums() {
    std::size_t next_odd = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const Partial& p = rows_[i].partial;
      const bool odd = next_odd < odd_[0].size() && odd_[0][next_odd] == i;
      next_odd += odd ? 1 : 0;
      std::int64_t above = 0;
      std::int64_t squares = 0;
      if (p.sums.has_wide()) {
        wide_.push_back(static_cast<std::uint8_t>(i));
      } else {
        const Int128 sum = p.sums.decimal_sum();
        if (!odd) places_ = places_of(sum, i);
        const Int128 least = odd ? 0 : with_places(columns_[kMin][i], parameters_.decimals, places_);
        const SumsAbove known{static_cast<UInt128>(least), p.count};
        const UInt128 more = static_cast<UInt128>(sum) - known.sum();
        const UInt128 rest = static_cast<UInt128>(p.sums.decimal_squares()) - known.squares(more);
        above = static_cast<std::int64_t>(more);
        squares = static_cast<std::int64_t>(rest);
        if (static_cast<Int128>(more) != above || static_cast<Int128>(rest) != squares) {
          far_.push_back(static_cast<std::uint8_t>(i));
          above = squares = 0;
        }
      }
      columns_[kPlaces][i] = places_;
      columns_[kSums][i] = above;
      columns_[kSquares][i] = squares;
    }
    if (!far_.empty()) flags_ |= kFarSums;
    if (!wide_.empty()) flags_ |= kWideSums;
  }

  std::string& out_;
  const RowParameters& parameters_;
  int places_;  // of the row before
  std::int64_t group_ = -1;
  std::uint64_t slice_ = 0;
  const PartialRow* rows_ = nullptr;
  std::size_t n_ = 0;
  std::uint8_t flags_ = 0;
  std::array<RowNumbers, kRowColumns> columns_;
  std::array<Places, 4> odd_;
  Places far_;
  Places wide_;
};

}  // namespace

void put_row_blocks(std::string& out, const PartialRows& rows, const RowParameters& parameters) {
  BlockWriter writer(out, parameters);
  for (std::size_t i = 0; i < rows.size(); i += kBlockValues)
    writer.put(rows.data() + i, std::min(kBlockValues, rows.size() - i));
}

}  // namespace orla::codec
