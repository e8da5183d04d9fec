#include "verify/calendar.h"

#include <algorithm>

namespace orla::verify {
namespace {

using Kind = model::WindowSpec::Kind;

std::int64_t midnight(absl::CivilDay day, const absl::TimeZone& zone) {
  return absl::ToUnixNanos(absl::FromCivil(absl::CivilSecond(day), zone));
}

// The day whose midnight is the last one not after t. (A clock set back across midnight shows the old day again; those
// instants belong to the day that has begun.)
absl::CivilDay day_of(std::int64_t t, const absl::TimeZone& zone) {
  absl::CivilDay day(zone.At(absl::FromUnixNanos(t)).cs);
  while (midnight(day, zone) > t) --day;
  while (midnight(day + 1, zone) <= t) ++day;
  return day;
}

Interval between(absl::CivilDay first, absl::CivilDay after, const absl::TimeZone& zone) {
  return {model::from_ns(midnight(first, zone)), model::from_ns(midnight(after, zone))};
}

}  // namespace

std::vector<Interval> windows_at(const model::WindowSpec& spec, model::Time time, const absl::TimeZone& zone) {
  const std::int64_t t = model::to_ns(time);
  const absl::CivilDay day = day_of(t, zone);
  switch (spec.kind) {
    case Kind::kElapsed: {
      const std::int64_t begin = midnight(day, zone);
      const std::int64_t next_day = midnight(day + 1, zone);
      const std::int64_t size = spec.size.count();
      const std::int64_t start = begin + (t - begin) / size * size;
      return {{model::from_ns(start), model::from_ns(std::min(start + size, next_day))}};
    }
    case Kind::kDay:
      return {between(day, day + 1, zone)};
    case Kind::kWeek: {
      const absl::CivilDay monday = absl::PrevWeekday(day + 1, absl::Weekday::monday);
      return {between(monday, monday + 7, zone)};
    }
    case Kind::kMonth: {
      const absl::CivilMonth month(day);
      return {between(absl::CivilDay(month), absl::CivilDay(month + 1), zone)};
    }
    case Kind::kHopping: {
      const std::int64_t size = spec.size.count();
      std::vector<Interval> windows;
      for (absl::CivilDay from = day_of(t - size, zone); from <= day; ++from) {
        const std::int64_t begin = midnight(from, zone);
        const std::int64_t next_day = midnight(from + 1, zone);
        for (std::int64_t start = begin; start < next_day && start <= t; start += spec.hop.count()) {
          if (start + size > t) windows.push_back({model::from_ns(start), model::from_ns(start + size)});
        }
      }
      return windows;
    }
    case Kind::kSteps:
      break;
  }
  return {};
}

}  // namespace orla::verify
