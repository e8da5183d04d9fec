// Which windows a rollup has. The arithmetic (zones, days) is in stream/; this is the declaration.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "model/time.h"

namespace orla::model {

struct WindowSpec {
  enum class Kind : std::uint8_t {
    kElapsed,  // `size` < 24 h, stepping elapsed time from local midnight; the last one of a day is cut at midnight
    kDay,      // calendar day in the fleet's zone (23, 24 or 25 h)
    kWeek,     // calendar week, from Monday
    kMonth,    // calendar month
    kHopping,  // full `size`, a new one every `hop` from local midnight
    kSteps,    // forecasts: `size`, numbered from the local midnight of the stream's first day, stepping elapsed time
  };
  Kind kind = Kind::kElapsed;
  Duration size{};  // kElapsed, kHopping, kSteps
  Duration hop{};   // kHopping
  friend bool operator==(const WindowSpec&, const WindowSpec&) = default;
};

// "1m", "90s", "1d", "1w", "1mo", "1h/5m" (hopping: size/hop), "steps:2h". The name windows carry in files and tables.
std::string to_string(const WindowSpec& spec);
// Inverse of to_string (kSteps included). "24h" and "1d" are the calendar day, "7d" and "1w" the calendar week.
absl::StatusOr<WindowSpec> parse_window(std::string_view text);

// "250ms", "90s", "5m", "1h30m", "2d" <-> nanoseconds. Units ns us ms s m h d (24 h), the larger ones
// first. No sign; "0s" is a duration. to_string writes one unit: the largest that leaves a whole number.
absl::StatusOr<Duration> parse_duration(std::string_view text);
std::string to_string(Duration d);

}  // namespace orla::model
