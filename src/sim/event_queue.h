// Simulated time: what happens next, in order, in one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/clock.h"

namespace orla::sim {

// Not thread-safe. Events at the same instant run in the order they were added.
class EventQueue {
 public:
  base::SteadyTime now() const { return now_; }
  void at(base::SteadyTime when, std::function<void()> run);
  void after(std::chrono::nanoseconds delay, std::function<void()> run) { at(now_ + delay, std::move(run)); }
  // Runs the next event; false when there is none.
  bool step();

 private:
  struct Event {
    base::SteadyTime at;
    std::uint64_t order = 0;
    std::function<void()> run;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  base::SteadyTime now_{std::chrono::seconds(1)};
  std::uint64_t order_ = 0;
  std::priority_queue<Event> events_;
};

}  // namespace orla::sim
