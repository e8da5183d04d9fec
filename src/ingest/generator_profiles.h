// The tables behind the generator: sizes of houses, and what the 13 kinds of plugs do.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace orla::ingest {

// A stretch of the day in which a plug draws more. Minutes count from local midnight.
struct DayPart {
  int from_minute = 0;
  int to_minute = 0;
  std::int64_t power_mw = 0;
  int chance_percent = 100;  // of happening on a day
  int shift_minutes = 0;     // it begins up to so much earlier or later
};

struct Profile {
  std::int64_t initial_work_wh = 0;
  int period_s = 2;            // between two reports
  int late_permille = 0;       // chance that a report comes one second late
  int twice_permille = 0;      // chance that a report comes twice
  std::int64_t steady_mw = 0;  // always
  int cycle_minutes = 0;       // 0 = none; else, in each so many minutes ...
  int cycle_on_minutes = 0;    // ... so many draw ...
  std::int64_t cycle_mw = 0;   // ... this more
  int noise_permille = 0;      // of the momentary power
  std::vector<DayPart> day;
};

// 13 of them.
const std::vector<Profile>& profiles();

// How many plugs the first 40 houses have.
inline constexpr std::array<int, 40> kPlugsOfHouse = {107, 10,  47, 35, 102, 11, 26, 71,  26, 35,  //
                                                      53,  118, 12, 64, 31,  95, 44, 17,  88, 29,  //
                                                      103, 36,  72, 58, 21,  14, 76, 110, 40, 67,  //
                                                      9,   85,  33, 49, 98,  26, 61, 15,  54, 77};

}  // namespace orla::ingest
