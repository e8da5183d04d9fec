#include "stream/calendar.h"

#include <algorithm>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace orla::stream {

using model::add_clamped;
using model::Duration;
using model::Time;
using model::WindowSpec;

namespace {

constexpr std::size_t kSlots = 512;  // UTC days remembered
constexpr Duration kUtcDay = std::chrono::hours(24);

// Rounded down; b > 0.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

// b - a, at most the largest Duration. a <= b.
Duration distance(Time a, Time b) {
  std::int64_t d = 0;
  if (__builtin_sub_overflow(model::to_ns(b), model::to_ns(a), &d)) return Duration::max();
  return Duration(d);
}

}  // namespace

absl::StatusOr<Calendar> Calendar::load(const std::string& zone) {
  absl::TimeZone found;
  if (!absl::LoadTimeZone(zone, &found))
    return absl::NotFoundError(fmt::format(
        "zone \"{}\" is not known on this machine; expected an IANA name such as \"Europe/Berlin\" or \"UTC\" (the "
        "package tzdata has them)",
        zone));
  return Calendar(found);
}

Calendar::Calendar(absl::TimeZone zone) : zone_(zone), slots_(kSlots) {}

Time Calendar::first_instant(absl::CivilDay date) const {
  const absl::TimeZone::TimeInfo info = zone_.At(absl::CivilSecond(date));
  // Where midnight is skipped, the instant the clock jumped at; where it comes twice, the earlier one (the only one
  // otherwise, too).
  const absl::Time t = info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
  return model::from_ns(absl::ToUnixNanos(t));
}

Calendar::Day Calendar::compute(Time t) const {
  absl::CivilDay date(absl::ToCivilDay(absl::FromUnixNanos(model::to_ns(t)), zone_));
  Time start = first_instant(date);
  Time end = first_instant(date + 1);
  // The clock may show a date before or after the day the instant belongs to, where it is set back across midnight.
  while (t >= end && end != model::kMaxTime) {
    ++date;
    start = end;
    end = first_instant(date + 1);
  }
  while (t < start) {
    --date;
    end = start;
    start = first_instant(date);
  }
  return Day{Window{start, end}, date};
}

const Calendar::Day& Calendar::find(Time t) {
  const std::int64_t utc_day = floor_div(model::to_ns(t), kUtcDay.count());
  Slot& slot = slots_[static_cast<std::uint64_t>(utc_day) % kSlots];
  if (slot.utc_day == utc_day) {
    for (const Day& day : slot.days)
      if (day.span.start <= t && t < day.span.end) return day;
    std::swap(slot.days[0], slot.days[1]);
  } else {
    slot = Slot{};
    slot.utc_day = utc_day;
  }
  slot.days[0] = compute(t);
  return slot.days[0];
}

Window Calendar::day(Time t) { return find(t).span; }

Window Calendar::week(Time t) {
  const absl::CivilDay monday = absl::PrevWeekday(find(t).date + 1, absl::Weekday::monday);
  return Window{first_instant(monday), first_instant(monday + 7)};
}

Window Calendar::month(Time t) {
  const absl::CivilMonth month(find(t).date);
  return Window{first_instant(absl::CivilDay(month)), first_instant(absl::CivilDay(month + 1))};
}

Window Calendar::window_of(const WindowSpec& spec, Time t, Time anchor) {
  switch (spec.kind) {
    case WindowSpec::Kind::kElapsed: {
      const Window day = find(t).span;
      const Duration into = distance(day.start, t);
      const Time start = day.start + (into - into % spec.size);
      return Window{start, std::min(add_clamped(start, spec.size), day.end)};
    }
    case WindowSpec::Kind::kDay:
      return day(t);
    case WindowSpec::Kind::kWeek:
      return week(t);
    case WindowSpec::Kind::kMonth:
      return month(t);
    case WindowSpec::Kind::kSteps:
      return step(step_number(t, spec.size, anchor), spec.size, anchor);
    case WindowSpec::Kind::kHopping:
      break;
  }
  std::vector<Window> some;
  windows_of(spec, t, anchor, some);
  return some.empty() ? Window{t, t} : some.back();
}

void Calendar::windows_of(const WindowSpec& spec, Time t, Time anchor, std::vector<Window>& out) {
  out.clear();
  if (spec.kind != WindowSpec::Kind::kHopping) {
    out.push_back(window_of(spec, t, anchor));
    return;
  }
  hops_of(spec, t, model::kMaxTime, out);
}

void Calendar::hops_of(const WindowSpec& spec, Time t, Time limit, std::vector<Window>& out) {
  out.clear();
  // Windows that hold t start in (t - size, t]. Their days may be earlier ones.
  const Time after = add_clamped(t, -spec.size);
  const Time latest = limit == model::kMaxTime ? t : std::min(t, add_clamped(limit, -spec.size));
  if (latest <= after) return;
  Window day = find(after).span;
  while (day.start <= latest) {
    const Duration skip = after < day.start ? Duration(0) : distance(day.start, after) + Duration(1);
    const std::int64_t first = skip / spec.hop + (skip % spec.hop == Duration(0) ? 0 : 1);
    const Time last = std::min(latest, day.end - Duration(1));
    const Time begin = add_clamped(day.start, first * spec.hop);
    const std::int64_t more = begin <= last ? distance(begin, last) / spec.hop : -1;
    for (std::int64_t k = 0; k <= more; ++k) {
      const Time start = begin + k * spec.hop;
      out.push_back(Window{start, add_clamped(start, spec.size)});
    }
    if (day.end > latest || day.end == model::kMaxTime) break;
    day = find(day.end).span;
  }
}

Window Calendar::next_hop(const WindowSpec& spec, Time t) {
  const Window day = find(t).span;
  const Time start = std::min(add_clamped(day.start, (distance(day.start, t) / spec.hop + 1) * spec.hop), day.end);
  return Window{start, add_clamped(start, spec.size)};
}

Window Calendar::window_at(const WindowSpec& spec, Time start, Time anchor) {
  if (spec.kind == WindowSpec::Kind::kHopping) return Window{start, add_clamped(start, spec.size)};
  return window_of(spec, start, anchor);
}

std::int64_t step_number(Time t, Duration size, Time anchor) {
  std::int64_t into = 0;
  if (__builtin_sub_overflow(model::to_ns(t), model::to_ns(anchor), &into))
    into = t < anchor ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  return floor_div(into, size.count());
}

Window step(std::int64_t number, Duration size, Time anchor) {
  std::int64_t into = 0;
  if (__builtin_mul_overflow(number, size.count(), &into))
    into = number < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  const Time start = add_clamped(anchor, Duration(into));
  return Window{start, add_clamped(start, size)};
}

}  // namespace orla::stream
