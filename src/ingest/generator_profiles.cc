#include "ingest/generator_profiles.h"

namespace orla::ingest {

namespace {
constexpr int at(int hour, int minute = 0) { return hour * 60 + minute; }
constexpr std::int64_t watts(double w) { return static_cast<std::int64_t>(w * 1000); }

std::vector<Profile> make_profiles() {
  return {
      // Router and the like: always on.
      {.initial_work_wh = 68451,
       .late_permille = 150,
       .twice_permille = 60,
       .steady_mw = watts(18.2),
       .noise_permille = 90,
       .day = {{at(17), at(23, 10), watts(7.5), 100, 25}}},
      // Standby of a stereo.
      {.initial_work_wh = 11721,
       .late_permille = 150,
       .steady_mw = watts(13.4),
       .noise_permille = 60,
       .day = {{at(19), at(22), watts(24), 70, 40}}},
      // Refrigerator.
      {.initial_work_wh = 35086,
       .late_permille = 140,
       .steady_mw = watts(4.1),
       .cycle_minutes = 46,
       .cycle_on_minutes = 15,
       .cycle_mw = watts(82),
       .noise_permille = 110,
       .day = {{at(11, 30), at(20), watts(9), 100, 30}}},
      // Computer that runs all day.
      {.initial_work_wh = 173860,
       .late_permille = 150,
       .twice_permille = 110,
       .steady_mw = watts(168),
       .noise_permille = 80,
       .day = {{at(8), at(12, 30), watts(70), 80, 30}, {at(16), at(23, 30), watts(95), 90, 45}}},
      // Kettle.
      {.initial_work_wh = 161,
       .late_permille = 150,
       .noise_permille = 15,
       .day = {{at(6, 50), at(6, 54), watts(1950), 85, 20},
               {at(15, 30), at(15, 34), watts(1950), 60, 45},
               {at(20, 15), at(20, 18), watts(1950), 40, 60}}},
      // Television.
      {.initial_work_wh = 355,
       .period_s = 5,
       .late_permille = 500,
       .noise_permille = 70,
       .day = {{at(18, 30), at(22, 45), watts(96), 85, 35}, {at(12), at(13, 30), watts(96), 25, 40}}},
      // Washing machine.
      {.initial_work_wh = 788,
       .late_permille = 160,
       .twice_permille = 90,
       .noise_permille = 120,
       .day = {{at(9, 30), at(9, 52), watts(2050), 35, 90}, {at(9, 53), at(10, 55), watts(185), 35, 90}}},
      // Lamp.
      {.initial_work_wh = 962,
       .period_s = 5,
       .late_permille = 450,
       .noise_permille = 12,
       .day = {{at(6, 10), at(7, 35), watts(42), 80, 20}, {at(19, 20), at(23), watts(42), 95, 25}}},
      // Coffee machine.
      {.initial_work_wh = 982,
       .period_s = 5,
       .late_permille = 550,
       .noise_permille = 25,
       .day = {{at(6, 40), at(6, 47), watts(1050), 90, 25},
               {at(6, 47), at(7, 25), watts(62), 90, 25},
               {at(14), at(14, 6), watts(1050), 50, 40}}},
      // Desktop of the evening.
      {.initial_work_wh = 2250,
       .late_permille = 150,
       .noise_permille = 95,
       .day = {{at(17, 15), at(21, 50), watts(128), 75, 50}}},
      // Dishwasher.
      {.initial_work_wh = 3216,
       .late_permille = 140,
       .noise_permille = 30,
       .day = {{at(20, 10), at(20, 32), watts(1880), 55, 50}, {at(21, 5), at(21, 20), watts(1880), 55, 50}}},
      // Microwave oven.
      {.initial_work_wh = 3216,
       .late_permille = 150,
       .noise_permille = 35,
       .day = {{at(12, 5), at(12, 11), watts(1180), 55, 30}, {at(18, 20), at(18, 28), watts(1180), 65, 35}}},
      // Monitor of a home office.
      {.initial_work_wh = 3701,
       .late_permille = 150,
       .noise_permille = 40,
       .day = {{at(8, 45), at(12, 10), watts(31), 70, 20}, {at(13), at(17, 20), watts(31), 70, 25}}},
  };
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> all = make_profiles();
  return all;
}

}  // namespace orla::ingest
