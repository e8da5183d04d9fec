// The seam to "later, on the one thread that owns this state". A node's roles run on one Loop; carriers, input threads
// and the HTTP server hand their events over with post().
#pragma once

#include <chrono>
#include <functional>

#include "base/clock.h"

namespace orla::base {

class Loop {
 public:
  virtual ~Loop() = default;
  // Runs `task` on the loop's thread, after the tasks posted before it. Thread-safe.
  virtual void post(std::function<void()> task) = 0;
  // Runs `task` on the loop's thread once `delay` has passed (not before). Thread-safe.
  virtual void post_after(std::chrono::nanoseconds delay, std::function<void()> task) = 0;
};

}  // namespace orla::base
