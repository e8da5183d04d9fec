// How many replicas a function is to have: a snapshot in, a number out. The rules and their names are those of the
// OpenFaaS autoscaler (docs/functions.md, "Scaling"), with Knative's two windows for load.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "function/options.h"

namespace orla::function {

inline constexpr std::chrono::seconds kStableWindow{30};  // loads are averaged over it
inline constexpr std::chrono::seconds kPanicWindow{3};    // and over it, to see a burst
inline constexpr double kPanicFactor = 2;                 // a burst: it asks for that many times what is ready

struct LoadMeans {
  double calls = 0;       // in progress and held, all replicas together
  double per_second = 0;  // calls begun
};

struct ScaleSnapshot {
  base::SteadyTime now{};
  std::uint32_t wanted = 0;
  std::uint32_t ready = 0;
  std::uint32_t concurrency = 0;     // of one replica; 0: not known
  LoadMeans stable;                  // over kStableWindow
  LoadMeans panic;                   // over kPanicWindow
  std::uint64_t queue = 0;           // calls that wait elsewhere
  std::uint32_t calls = 0;           // in progress and held now
  std::chrono::nanoseconds idle{0};  // since the last call ended, or since people changed something
};

// What is remembered of a function between two decisions.
struct ScaleMemory {
  // What was recommended within the down window, and when; a later one is smaller than those before it.
  std::deque<std::pair<base::SteadyTime, std::uint32_t>> recommended;
  std::optional<base::SteadyTime> panic_until;

  // People, or an alert, have set it to that: it holds for the down window.
  void set_by_hand(base::SteadyTime now, std::uint32_t replicas);
  void recommend(base::SteadyTime now, std::uint32_t replicas);
};

// From 0 it stays 0 (a call wakes a function, nothing else). Otherwise within the options' bounds, or 0 when `zero`
// says so and there was no call for zero_duration.
std::uint32_t decide_replicas(const ScaleSnapshot& snapshot, const ScaleOptions& options, ScaleMemory& memory);

// A step up of /system/alert: factor percent of the maximum, rounded up.
std::uint32_t step_up(std::uint32_t wanted, const ScaleOptions& options);

}  // namespace orla::function
