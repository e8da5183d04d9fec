#include "stream/small_row.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "model/power_of_ten.h"

namespace orla::stream {

using model::Duration;
using model::Time;

DecimalSummary DecimalSummary::of(Duration at, std::int32_t value) {
  const std::int64_t wide = value;
  return {wide, static_cast<std::uint64_t>(wide * wide), 1, value, value, value, value, at, at};
}

bool DecimalSummary::merge(const DecimalSummary& other) {
  if (other.count == 0) return true;
  if (count == 0) {
    *this = other;
    return true;
  }
  std::int64_t new_sum = 0;
  if (__builtin_add_overflow(sum, other.sum, &new_sum) || other.squares > UINT64_MAX - squares ||
      other.count > UINT32_MAX - count)
    return false;
  sum = new_sum;
  squares += other.squares;
  count += other.count;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  if (other.first_at != first_at ? other.first_at < first_at : other.first < first) {
    first_at = other.first_at;
    first = other.first;
  }
  if (other.last_at != last_at ? other.last_at > last_at : other.last > last) {
    last_at = other.last_at;
    last = other.last;
  }
  return true;
}

bool SmallRow::set(const DecimalSummary& s) {
  const auto first = static_cast<std::uint64_t>(s.first_at.count());
  const auto last = static_cast<std::uint64_t>(s.last_at.count());
  if (((first | last) >> 48) != 0) return false;
  sum_ = std::bit_cast<std::array<std::uint32_t, 2>>(s.sum);
  squares_ = std::bit_cast<std::array<std::uint32_t, 2>>(s.squares);
  count_ = s.count;
  min_ = s.min;
  max_ = s.max;
  first_ = s.first;
  last_ = s.last;
  first_at_ = static_cast<std::uint32_t>(first);
  first_at_high_ = static_cast<std::uint16_t>(first >> 32);
  last_at_ = static_cast<std::uint32_t>(last);
  last_at_high_ = static_cast<std::uint16_t>(last >> 32);
  return true;
}

DecimalSummary SmallRow::get() const {
  const auto at = [](std::uint32_t low, std::uint16_t high) {
    return Duration(static_cast<std::int64_t>(std::uint64_t{high} << 32 | low));
  };
  return {std::bit_cast<std::int64_t>(sum_),
          std::bit_cast<std::uint64_t>(squares_),
          count_,
          min_,
          max_,
          first_,
          last_,
          at(first_at_, first_at_high_),
          at(last_at_, last_at_high_)};
}

void to_partial(const DecimalSummary& s, Time slice, int decimals, model::Partial& out) {
  const double unit = model::power_of_ten(decimals);
  out.count = s.count;
  out.sums = model::ExactSum::from_decimals(s.sum, static_cast<__int128>(s.squares));
  out.min = s.min / unit;
  out.max = s.max / unit;
  out.first_time = slice + s.first_at;
  out.first = s.first / unit;
  out.last_time = slice + s.last_at;
  out.last = s.last / unit;
}

bool to_summary(const model::Partial& partial, Time slice, int decimals, DecimalSummary& out) {
  if (partial.count == 0) {
    out = DecimalSummary();
    return true;
  }
  const __int128 sum = partial.sums.decimal_sum();
  const __int128 squares = partial.sums.decimal_squares();
  if (partial.count > UINT32_MAX || partial.sums.has_wide() || sum != static_cast<std::int64_t>(sum) ||
      squares != static_cast<std::uint64_t>(squares))
    return false;
  std::int64_t first_at = 0;
  std::int64_t last_at = 0;
  if (__builtin_sub_overflow(model::to_ns(partial.first_time), model::to_ns(slice), &first_at) ||
      __builtin_sub_overflow(model::to_ns(partial.last_time), model::to_ns(slice), &last_at))
    return false;
  bool fits = true;
  const auto decimal = [&](double value) {
    const std::optional<std::int64_t> scaled = model::as_decimal(value, decimals);
    fits = fits && scaled && *scaled == static_cast<std::int32_t>(*scaled);
    return fits ? static_cast<std::int32_t>(*scaled) : 0;
  };
  const DecimalSummary summary{static_cast<std::int64_t>(sum),
                               static_cast<std::uint64_t>(squares),
                               static_cast<std::uint32_t>(partial.count),
                               decimal(partial.min),
                               decimal(partial.max),
                               decimal(partial.first),
                               decimal(partial.last),
                               Duration(first_at),
                               Duration(last_at)};
  if (fits) out = summary;
  return fits;
}

}  // namespace orla::stream
