// Times as text, for people and for the API.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/time.h"

namespace orla::node {

// RFC 3339 in UTC with as many fractional digits as needed: "2013-09-01T00:00:00Z", "...:00.25Z". kMinTime and kMaxTime
// are "-inf" and "+inf".
std::string rfc3339(model::Time time);

// RFC 3339 with any offset, a date ("2013-09-01", midnight UTC), or an integer of nanoseconds since 1970.
absl::StatusOr<model::Time> parse_time(std::string_view text);

}  // namespace orla::node
