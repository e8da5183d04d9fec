// Times of a CSV column.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/time.h"

namespace orla::ingest {

// Formats:
//   unix, unix_ms, unix_us, unix_ns   [-]digits[.digits], exact to the nanosecond; further digits are dropped
//   rfc3339                           2013-09-01T00:00:00.5+02:00, Z, `t`, `z` or a space for the T; further digits
//                                     than nanoseconds are dropped; without an offset it is local in the zone
//   anything with a %                 as absl::ParseTime reads it: %Y %m %d %H %M %S, %E*S (fraction), %z %Ez (offset),
//                                     %b %p %I %y ...; without an offset it is local in the zone
// Local times that occur twice mean the first time, those that a clock change leaves out are read with the offset
// before the change (02:30 in Berlin's spring night is 03:30 summer time). A leap second is the first second of the
// next minute.
//
// Not thread-safe (it remembers the last text, and the hour of civil times).
class TimeReader {
 public:
  // `zone` is an IANA name; empty is UTC.
  static absl::StatusOr<TimeReader> make(std::string format, const std::string& zone);
  // All of `text`, and within [kEarliestTime, kLatestTime) of input.h; else nothing.
  std::optional<model::Time> read(std::string_view text);
  // For messages: "a time as %Y-%m-%d".
  std::string expected() const;

 private:
  enum class Kind { kUnix, kIso, kStrptime };
  TimeReader(Kind kind, std::string format, absl::TimeZone zone)
      : kind_(kind), format_(std::move(format)), zone_(zone) {}
  std::optional<model::Time> read_anew(std::string_view text) const;
  // Civil times of the hour that is remembered.
  std::optional<model::Time> read_in_hour(std::string_view text) const;
  void remember_hour(std::string_view text);
  std::optional<model::Time> read_unix(std::string_view text) const;
  std::optional<model::Time> read_iso(std::string_view text) const;
  std::optional<model::Time> read_strptime(std::string_view text) const;

  Kind kind_;
  std::string format_;
  absl::TimeZone zone_;
  int unix_decimals_ = 0;  // kUnix: of its unit in nanoseconds
  char iso_separator_ =
      '\0';  // kIso: the only one between date and time, with neither fraction nor offset; 0 = RFC 3339
  std::string last_text_;
  std::optional<model::Time> last_;
  // "2013-09-01 00:" and what follows "00:00" in a text (an offset): times that differ from it in minute and second
  // alone lie as far from hour_ as these say. Empty: none.
  std::string hour_text_;
  std::string hour_end_;
  model::Time hour_{};
};

}  // namespace orla::ingest
