// The seam to time. Every part that needs the time of day or a stopwatch gets a Clock through its constructor.
#pragma once

#include <chrono>

namespace orla::base {

// Time of day, UTC, nanoseconds since 1970-01-01 (the epoch of std::chrono::system_clock).
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// A stopwatch reading: never goes back, unrelated to the time of day.
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Thread-safe. Outlives every part it is given to.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall_now() const = 0;
  virtual SteadyTime steady_now() const = 0;
};

// The machine's own clock.
class SystemClock final : public Clock {
 public:
  WallTime wall_now() const override;
  SteadyTime steady_now() const override;
  // Blocks this thread. For command lines only: nodes wait on their Loop.
  void sleep(std::chrono::nanoseconds time) const;
};

}  // namespace orla::base
