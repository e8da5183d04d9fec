// The load of one function over the last kStableWindow, for scale_policy.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "function/scale_policy.h"

namespace orla::function {

// Time is an argument and does not go back. Not thread-safe. Holds memory only while there was load within the window.
class LoadWindow {
 public:
  static constexpr std::chrono::milliseconds kStep{250};  // marks are at least that far apart

  // So many calls are in progress or held from now on; `begun` of them are new.
  void change(base::SteadyTime now, std::uint32_t calls, std::uint32_t begun);
  // Remembers the state at `now`, for means(). To be called about every half second while there is load.
  void mark(base::SteadyTime now);
  // Over the last `window`; before the first call the load was none.
  LoadMeans means(base::SteadyTime now, std::chrono::nanoseconds window) const;
  // There was no load within the window.
  bool empty() const { return marks_.empty() && calls_ == 0; }

 private:
  struct Mark {
    base::SteadyTime time{};
    double area = 0;          // call-seconds up to then, from the time when there was no load
    std::uint64_t begun = 0;  // calls up to then
  };
  double area_at(base::SteadyTime now) const;

  std::uint32_t calls_ = 0;
  std::uint64_t begun_ = 0;
  double area_ = 0;
  base::SteadyTime since_{};
  std::vector<Mark> marks_;
};

}  // namespace orla::function
