#include "base/clock.h"

#include <thread>

namespace orla::base {

WallTime SystemClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}

SteadyTime SystemClock::steady_now() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now());
}

void SystemClock::sleep(std::chrono::nanoseconds time) const { std::this_thread::sleep_for(time); }

}  // namespace orla::base
