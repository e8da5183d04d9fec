// Event time: int64 nanoseconds UTC since 1970-01-01.
#pragma once

#include <chrono>
#include <cstdint>

namespace orla::model {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

inline constexpr Time kMinTime = Time(Duration(INT64_MIN));  // before everything: "no publication yet"
inline constexpr Time kMaxTime = Time(Duration(INT64_MAX));  // after everything: "the input has ended"

constexpr Time from_ns(std::int64_t ns) { return Time(Duration(ns)); }
constexpr std::int64_t to_ns(Time t) { return t.time_since_epoch().count(); }

// start of the slice [start, start+slice) that holds t; slices are aligned in UTC. slice > 0.
constexpr Time slice_start(Time t, Duration slice) {
  const std::int64_t ns = to_ns(t);
  const std::int64_t s = slice.count();
  std::int64_t r = ns % s;
  if (r < 0) r += s;
  return from_ns(ns - r);
}

// t + d and t - d that stop at kMinTime / kMaxTime instead of overflowing; kMinTime and kMaxTime stay what they are.
constexpr Time add_clamped(Time t, Duration d) {
  if (t == kMinTime || t == kMaxTime) return t;
  std::int64_t r = 0;
  if (__builtin_add_overflow(to_ns(t), d.count(), &r)) return d.count() > 0 ? kMaxTime : kMinTime;
  return from_ns(r);
}

}  // namespace orla::model
