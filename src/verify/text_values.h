// Numbers, times and cells from text, after the rules of CSV inputs, by the plainest means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "model/time.h"

namespace orla::verify {

enum class Number : std::uint8_t { kFinite, kNotFinite, kNone };

// [+-] digits [. digits] [e [+-] digits] as a whole, one side of the point may be missing; nan, inf, infinity in any
// case and numbers beyond the doubles are kNotFinite.
Number read_number(std::string_view text, double& value);

// Decimal digits alone, at most `max`.
std::optional<std::uint64_t> read_digits(std::string_view text, std::uint64_t max);

// A time of the years 1900 to 2189. Formats: unix, unix_ms, unix_us, unix_ns ([-]digits[.digits]; digits below a
// nanosecond are dropped), rfc3339 (T, t or a space; the offset may be missing), else as absl::ParseTime. Local times
// are in `zone`; where the clock changes, with the offset before the change.
std::optional<model::Time> read_time(std::string_view text, const std::string& format, const absl::TimeZone& zone);

// The cells of a line; nothing when its quotes are wrong. A cell that begins with a double quote ends at the next
// single one, and "" in it is a quote; around other cells spaces and tabs are dropped.
std::optional<std::vector<std::string>> read_cells(std::string_view line, char delimiter);

}  // namespace orla::verify
