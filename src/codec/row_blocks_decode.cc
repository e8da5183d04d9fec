// Decoder of the blocks of rows whose format is at the head of row_blocks_encode.cc.
#include <algorithm>
#include <bit>
#include <cmath>

#include "codec/number_block.h"
#include "codec/row_block.h"
#include "codec/row_forms.h"

namespace orla::codec {

using base::ByteReader;
using base::Int128;
using base::UInt128;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

namespace {

class BlockReader {
 public:
  BlockReader(std::string_view bytes, const RowParameters& parameters)
      : bytes_{reinterpret_cast<const std::uint8_t*>(bytes.data()),
               reinterpret_cast<const std::uint8_t*>(bytes.data()) + bytes.size()},
        parameters_(parameters),
        unit_(model::power_of_ten(parameters.decimals)) {}

  std::size_t left() const { return static_cast<std::size_t>(bytes_.end - bytes_.next); }

  // What is wrong, or null.
  const char* read(PartialRow* rows, std::size_t n) {
    rows_ = rows;
    n_ = n;
    if (bytes_.next == bytes_.end) return "a block of rows is missing";
    flags_ = *bytes_.next++;
    if ((flags_ & ~kRowBlockFlags) != 0) return "a block of rows has unknown lists";
    for (RowNumbers& column : columns_)
      if (const char* wrong = read_number_block(bytes_, n_, column.data())) return wrong;
    for (const auto part : {&BlockReader::keys, &BlockReader::values, &BlockReader::sums, &BlockReader::times})
      if (const char* wrong = (this->*part)()) return wrong;
    return nullptr;
  }

 private:
  // item(reader, place) gives whether all is well.
  template <typename F>
  const char* list(std::uint8_t flag, F item) {
    if ((flags_ & flag) == 0) return nullptr;
    ByteReader from(std::string_view(reinterpret_cast<const char*>(bytes_.next), left()));
    const unsigned count = from.u8() + 1U;
    unsigned next = 0;
    for (unsigned k = 0; k < count; ++k) {
      const unsigned place = from.u8();
      if (place < next || place >= n_) return "a list of a block is not in order";
      if (!item(from, place) || from.failed()) return "a list of a block is cut off or holds a bad value";
      next = place + 1;
    }
    bytes_.next = bytes_.end - from.left();
    return nullptr;
  }

  const char* keys() {
    const std::uint64_t room = static_cast<std::uint64_t>(INT64_MAX) - parameters_.least;  // up to the greatest time
    for (std::size_t i = 0; i < n_; ++i) {
      PartialRow& row = rows_[i];
      const std::int64_t step = columns_[kGroupSteps][i];
      if (step < 0 || step > std::int64_t{UINT32_MAX} - group_ || (step == 0 && group_ < 0)) return "bad group id";
      group_ += step;
      row.group = model::GroupId{static_cast<std::uint32_t>(group_)};
      auto steps = static_cast<std::uint64_t>(columns_[kSliceSteps][i]);
      if (step != 0)
        offset_ = 0;
      else if (++steps == 0)
        return "slice out of range";
      std::uint64_t ahead = 0;
      if (__builtin_mul_overflow(steps, parameters_.slice_unit, &ahead) ||
          __builtin_add_overflow(offset_, ahead, &offset_) || offset_ > room)
        return "slice out of range";
      row.slice = time_of(parameters_.least + offset_);
      row.partial.count = static_cast<std::uint64_t>(columns_[kCounts][i]) + 1;
      if (row.partial.count == 0) return "count out of range";
    }
    return nullptr;
  }

  // The double of a decimal; false where it has too many digits.
  bool decimal(std::int64_t scaled, double& v) const {
    v = static_cast<double>(scaled) / unit_;
    return scaled >= -kLargestDecimal && scaled <= kLargestDecimal;
  }

  const char* values() {
    for (std::size_t i = 0; i < n_; ++i) {
      Partial& p = rows_[i].partial;
      const std::int64_t min = columns_[kMin][i];
      const std::int64_t extent = columns_[kMax][i];
      const std::int64_t first = columns_[kFirst][i];
      const std::int64_t last = columns_[kLast][i];
      if (!decimal(min, p.min)) return "bad minimum";
      p.max = p.first = p.last = p.min;
      if (extent == 0 && (first | last) == 0) continue;
      if (extent < 0 || extent > 2 * kLargestDecimal || !decimal(min + extent, p.max)) return "bad maximum";
      if (first < 0 || first > extent || !decimal(min + first, p.first)) return "bad first value";
      if (last < 0 || last > extent || !decimal(min + extent - last, p.last)) return "bad last value";
    }
    return (flags_ & 15) == 0 ? nullptr : odd_values();
  }

  const char* odd_values() {
    for (std::size_t k = 0; k < 4; ++k) {
      const char* const wrong = list(static_cast<std::uint8_t>(kOddMin << k), [&](ByteReader& from, unsigned place) {
        Partial& p = rows_[place].partial;
        const double v = std::bit_cast<double>(from.u64());
        (k == 0 ? p.min : k == 1 ? p.max : k == 2 ? p.first : p.last) = v;
        if (k == 0) {
          p.max = p.first = p.last = v;
          columns_[kMin][place] = 0;
        }
        return std::isfinite(v) && !(v == 0 && std::signbit(v));
      });
      if (wrong != nullptr) return wrong;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const Partial& p = rows_[i].partial;
      if (!(p.min <= p.first && p.first <= p.max && p.min <= p.last && p.last <= p.max))
        return "a value is not between the least and the greatest";
    }
    return nullptr;
  }

  const char* sums() {
    for (std::size_t i = 0; i < n_; ++i) {
      const std::int64_t places = columns_[kPlaces][i];
      if (places < 0 || places > model::kMaxDecimals) return "sums of too many places";
      const Int128 least = with_places(columns_[kMin][i], parameters_.decimals, static_cast<int>(places));
      const SumsAbove known{static_cast<UInt128>(least), rows_[i].partial.count};
      const auto more = static_cast<UInt128>(Int128{columns_[kSums][i]});
      const UInt128 squares = known.squares(more) + static_cast<UInt128>(Int128{columns_[kSquares][i]});
      rows_[i].partial.sums =
          model::ExactSum::from_decimals(static_cast<Int128>(known.sum() + more), static_cast<Int128>(squares));
    }
    const char* wrong = list(kFarSums, [this](ByteReader& from, unsigned place) {
      const Int128 sum = base::unzigzag128(from.varint128());
      const auto squares = static_cast<Int128>(from.varint128());
      rows_[place].partial.sums = model::ExactSum::from_decimals(sum, squares);
      return true;
    });
    if (wrong != nullptr) return wrong;
    for (std::size_t i = 0; i < n_; ++i)
      if (rows_[i].partial.sums.decimal_squares() < 0) return "sum of squares out of range";
    return list(kWideSums, [this](ByteReader& from, unsigned place) {
      absl::StatusOr<model::ExactSum> sum = model::ExactSum::decode(from.text());
      if (!sum.ok() || !sum->has_wide()) return false;
      rows_[place].partial.sums = *std::move(sum);
      return true;
    });
  }

  bool time(model::Time since, std::int64_t units, model::Time& t) const {
    std::int64_t offset = 0;
    if (__builtin_mul_overflow(units, kRowTimeUnits[parameters_.time_unit], &offset)) return false;
    t = time_of(time_bits(since) + static_cast<std::uint64_t>(offset));
    return true;
  }

  const char* times() {
    for (std::size_t i = 0; i < n_; ++i) {
      Partial& p = rows_[i].partial;
      if (!time(rows_[i].slice, columns_[kFirstTimes][i], p.first_time)) return "first time out of range";
      if (!time(p.first_time, columns_[kLastTimes][i], p.last_time)) return "last time out of range";
      const bool ordered = p.last_time > p.first_time || (p.last_time == p.first_time && p.last >= p.first);
      if (!ordered) return "last before first";
      if (p.count == 1 && (p.last_time != p.first_time || p.min != p.max)) return "more than one sample, of one";
    }
    return nullptr;
  }

  BlockBytes bytes_;
  const RowParameters& parameters_;
  const double unit_;
  std::int64_t group_ = -1;   // of the row before
  std::uint64_t offset_ = 0;  // of its slice
  PartialRow* rows_ = nullptr;
  std::size_t n_ = 0;
  std::uint8_t flags_ = 0;
  std::array<RowNumbers, kRowColumns> columns_;
};

}  // namespace

const char* read_row_blocks(ByteReader& from, std::uint64_t count, const RowParameters& parameters, PartialRows& rows) {
  rows.resize(count);
  const std::string_view bytes = from.raw(from.left());
  BlockReader reader(bytes, parameters);
  for (std::size_t i = 0; i < count; i += kBlockValues)
    if (const char* wrong = reader.read(rows.data() + i, std::min<std::size_t>(kBlockValues, count - i))) return wrong;
  from = ByteReader(bytes.substr(bytes.size() - reader.left()));
  return nullptr;
}

}  // namespace orla::codec
