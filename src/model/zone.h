// What checks and the plan need to know of a time zone: its offsets from UTC.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/time.h"

namespace orla::model {

// Every offset from UTC that the IANA zone uses from 1970 to 2100, sorted, each once. NotFound for an unknown zone.
absl::StatusOr<std::vector<Duration>> utc_offsets(const std::string& zone);

// Local midnights of the zone are boundaries of UTC-aligned pieces of `length`: it divides 24 h and every offset.
bool divides_days(Duration length, const std::vector<Duration>& offsets);

// Pieces of `length` counted from any local midnight meet every other local midnight: `length` divides 24 h and every
// difference of two offsets. Then no window of that length is ever cut at midnight.
bool tiles_days(Duration length, const std::vector<Duration>& offsets);

}  // namespace orla::model
