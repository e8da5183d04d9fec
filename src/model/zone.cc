#include "model/zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace orla::model {

absl::StatusOr<std::vector<Duration>> utc_offsets(const std::string& zone) {
  absl::TimeZone tz;
  if (zone.empty() || !absl::LoadTimeZone(zone, &tz)) {
    return absl::NotFoundError(fmt::format("unknown time zone \"{}\"", zone));
  }
  const absl::Time begin = absl::FromCivil(absl::CivilYear(1970), absl::UTCTimeZone());
  const absl::Time end = absl::FromCivil(absl::CivilYear(2100), absl::UTCTimeZone());
  std::set<int> seconds = {tz.At(begin).offset};
  // A transition only tells civil times; the instant after it is found by its civil time in the zone.
  absl::TimeZone::CivilTransition transition;
  absl::Time at = begin;
  while (tz.NextTransition(at, &transition)) {
    at = tz.At(transition.to).trans;
    if (at >= end) break;
    seconds.insert(tz.At(at).offset);
  }
  std::vector<Duration> offsets;
  for (const int s : seconds) offsets.emplace_back(std::chrono::seconds(s));
  return offsets;
}

bool divides_days(Duration length, const std::vector<Duration>& offsets) {
  if (length.count() <= 0 || Duration(std::chrono::hours(24)) % length != Duration::zero()) return false;
  return std::all_of(offsets.begin(), offsets.end(),
                     [&](Duration offset) { return offset % length == Duration::zero(); });
}

bool tiles_days(Duration length, const std::vector<Duration>& offsets) {
  if (length.count() <= 0 || Duration(std::chrono::hours(24)) % length != Duration::zero()) return false;
  return std::all_of(offsets.begin(), offsets.end(),
                     [&](Duration offset) { return (offset - offsets.front()) % length == Duration::zero(); });
}

}  // namespace orla::model
