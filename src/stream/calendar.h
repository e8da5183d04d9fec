// Which windows a slice belongs to: days, weeks and months of a zone, and the windows that step through its days.
//
// A day begins at the first instant of its date: at midnight, or after it where the clock skips midnight. It ends where
// the next one begins, so every instant belongs to exactly one day even where the clock is set back across midnight. A
// date that a zone leaves out altogether has no instants.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/time.h"
#include "model/window.h"

namespace orla::stream {

// [start, end)
struct Window {
  model::Time start{};
  model::Time end{};
  friend auto operator<=>(const Window&, const Window&) = default;
};

// A value with a cache inside: not thread-safe, copies are independent. Instants within a year of kMinTime and kMaxTime
// may get windows cut there.
class Calendar {
 public:
  // zone: an IANA name.
  static absl::StatusOr<Calendar> load(const std::string& zone);
  explicit Calendar(absl::TimeZone zone);

  Window day(model::Time t);
  Window week(model::Time t);  // from Monday
  Window month(model::Time t);

  // The windows of `spec` that hold t (the start of a slice, which lies in a window as a whole), ascending; `out` is
  // replaced. One, or for hopping windows some (none where hop > size leaves a gap). Only kSteps read `anchor`, the
  // start of step 0: the local midnight of the stream's first day. Steps before it are numbered below 0.
  void windows_of(const model::WindowSpec& spec, model::Time t, model::Time anchor, std::vector<Window>& out);
  // Of kHopping: those of them that end by `limit`; their number is what it costs.
  void hops_of(const model::WindowSpec& spec, model::Time t, model::Time limit, std::vector<Window>& out);
  // Of kHopping: the first window that starts after t.
  Window next_hop(const model::WindowSpec& spec, model::Time t);
  // As windows_of, for a kind that has exactly one: any but kHopping.
  Window window_of(const model::WindowSpec& spec, model::Time t, model::Time anchor);
  // The window of `spec` that starts at `start`, which must be the start of one.
  Window window_at(const model::WindowSpec& spec, model::Time start, model::Time anchor);

 private:
  struct Day {
    Window span;
    absl::CivilDay date;
  };
  // The days met last in one UTC day.
  struct Slot {
    std::int64_t utc_day = INT64_MIN;
    std::array<Day, 2> days;
  };

  const Day& find(model::Time t);
  Day compute(model::Time t) const;
  model::Time first_instant(absl::CivilDay date) const;

  absl::TimeZone zone_;
  std::vector<Slot> slots_;
};

// Steps of length `size` from `anchor`: the number of the one that holds t, and the one with a number.
std::int64_t step_number(model::Time t, model::Duration size, model::Time anchor);
Window step(std::int64_t number, model::Duration size, model::Time anchor);

}  // namespace orla::stream
