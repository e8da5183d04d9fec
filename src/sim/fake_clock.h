// The clock of one simulated node: everybody's stopwatch, and a time of day that may be wrong.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "sim/event_queue.h"

namespace orla::sim {

class FakeClock final : public base::Clock {
 public:
  // The queue outlives the clock.
  explicit FakeClock(const EventQueue& queue) : queue_(queue) {}
  base::SteadyTime steady_now() const override { return queue_.now(); }
  // When a simulated world begins: after any program that runs in it was built, and long before the last representable
  // time.
  static constexpr std::chrono::hours kStart{24 * 365 * 100};

  base::WallTime wall_now() const override { return base::WallTime(queue_.now().time_since_epoch()) + kStart + skew; }

  std::chrono::nanoseconds skew{};

 private:
  const EventQueue& queue_;
};

}  // namespace orla::sim
