#include "ingest/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ingest/generator_profiles.h"
#include "ingest/input.h"

namespace orla::ingest {

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kMinutesPerDay = 24 * 60;
constexpr std::int64_t kMwsPerWh = 3'600'000;
// The days of the load shapes begin at midnight of Central European Summer Time, as the challenge's September does.
constexpr std::int64_t kLocalOffsetSeconds = 2 * 3600;
constexpr int kMaxHouseholdPlugs = 14;
// Shapes of houses and households are the same for every seed.
constexpr std::uint64_t kPlaceSeed = 2014;

std::uint64_t mix(std::uint64_t z) {  // the finaliser of splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// One independent stream of numbers per use.
enum class Use : std::uint64_t {
  kHousehold = 1,
  kPlugId,
  kProfile,
  kScale,
  kLate,
  kTwice,
  kNoise,
  kSwap,
  kDrift,
  kDay,
  kOrder,
  kPhase
};

std::uint64_t hash(std::uint64_t seed, Use use, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t first = mix(seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(use));
  return mix(mix(first + a * 0xd1342543de82ef95ULL) + b * 0x9e3779b97f4a7c15ULL);
}

std::int64_t below(std::uint64_t random, std::int64_t bound) {
  return static_cast<std::int64_t>(random % static_cast<std::uint64_t>(bound));
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::uint64_t place_of(std::uint32_t house, std::uint32_t household, std::uint32_t plug) {
  return std::uint64_t{house} << 32 | std::uint64_t{household} << 16 | plug;
}
std::uint64_t place_of(const GeneratedPlug& plug) { return place_of(plug.house, plug.household, plug.plug); }

// Power of the plug in a minute, before noise.
std::int64_t base_mw(std::uint64_t seed, const GeneratedPlug& plug, std::int64_t minute) {
  const Profile& profile = profiles()[plug.profile];
  const std::int64_t day = floor_div(minute, kMinutesPerDay);
  const std::int64_t minute_of_day = minute - day * kMinutesPerDay;
  std::int64_t mw = profile.steady_mw;
  if (profile.cycle_minutes > 0) {
    const std::int64_t phase = below(hash(seed, Use::kPhase, place_of(plug), 0), profile.cycle_minutes);
    const std::int64_t in_cycle =
        minute + phase - floor_div(minute + phase, profile.cycle_minutes) * profile.cycle_minutes;
    if (in_cycle < profile.cycle_on_minutes) mw += profile.cycle_mw;
  }
  for (std::size_t part = 0; part < profile.day.size(); ++part) {
    const DayPart& p = profile.day[part];
    const std::uint64_t random = hash(seed, Use::kDay, place_of(plug), static_cast<std::uint64_t>(day) * 16 + part);
    if (below(random >> 32, 100) >= p.chance_percent) continue;
    const std::int64_t shift = below(random & 0xffffffff, 2 * p.shift_minutes + 1) - p.shift_minutes;
    if (minute_of_day >= p.from_minute + shift && minute_of_day < p.to_minute + shift) mw += p.power_mw;
  }
  return mw * plug.scale_permille / 1000;
}

// What the profile's own meter saw on a day, minute by minute: the day parts at their average.
std::vector<std::int64_t> reference_day(const Profile& profile) {
  std::vector<std::int64_t> mw(kMinutesPerDay, profile.steady_mw);
  for (std::size_t minute = 0; minute < mw.size(); ++minute) {
    if (profile.cycle_minutes > 0) mw[minute] += profile.cycle_mw * profile.cycle_on_minutes / profile.cycle_minutes;
    for (const DayPart& part : profile.day) {
      const auto m = static_cast<int>(minute);
      if (m >= part.from_minute && m < part.to_minute) mw[minute] += part.power_mw * part.chance_percent / 100;
    }
  }
  return mw;
}

}  // namespace

Generator::Generator(std::uint64_t seed, std::int64_t first_second, std::int64_t end_second)
    : seed_(seed), first_second_(first_second), end_second_(end_second) {
  for (const Profile& profile : profiles()) {
    reference_mw_.push_back(reference_day(profile));
    std::vector<std::int64_t> before = {0};
    for (const std::int64_t mw : reference_mw_.back()) before.push_back(before.back() + 60 * mw);
    energy_before_mws_.push_back(std::move(before));
  }
}

absl::StatusOr<Generator> Generator::make(const model::GeneratorSpec& spec, const Selection& selection) {
  if (spec.houses < 1 || spec.houses > kMaxHouses) {
    return absl::InvalidArgumentError(fmt::format("found {} houses, expected 1 to {}", spec.houses, kMaxHouses));
  }
  if (spec.length.count() <= 0) {
    return absl::InvalidArgumentError("found a length of nothing, expected more than 0 s to generate");
  }
  const model::Time end = model::add_clamped(spec.start, spec.length);
  if (spec.start < kEarliestTime || end > kLatestTime) {
    return absl::InvalidArgumentError("found a start or an end outside the years 1900 to 2189, expected both within");
  }
  const auto ceil_second = [](model::Time t) { return -floor_div(-model::to_ns(t), kNsPerSecond); };
  Generator generator(spec.seed, ceil_second(spec.start), ceil_second(end));
  for (int house = 0; house < spec.houses; ++house) generator.add_house(static_cast<std::uint32_t>(house), selection);
  generator.base_mw_.resize(generator.plugs_.size());
  return generator;
}

void Generator::add_house(std::uint32_t house, const Selection& selection) {
  int left = kPlugsOfHouse[house % kPlugsOfHouse.size()];
  for (std::uint32_t household = 0; left > 0; ++household) {
    const std::int64_t wanted = 1 + below(hash(kPlaceSeed, Use::kHousehold, house, household), kMaxHouseholdPlugs);
    const int size = std::min(left, static_cast<int>(wanted));
    left -= size;
    std::uint32_t id = 0;
    for (int i = 0; i < size; ++i, ++id) {
      // Some ids are not in use.
      const std::uint64_t place = place_of(house, household, id);
      if (hash(kPlaceSeed, Use::kPlugId, place, 0) % 8 == 0) ++id;
      GeneratedPlug plug{house, household, id, 0, 0};
      plug.profile = static_cast<std::uint32_t>(below(hash(kPlaceSeed, Use::kProfile, place_of(plug), 0), kProfiles));
      // Skewed: most between 0.5 and 1.2, some up to 2.5.
      const std::uint64_t random = hash(seed_, Use::kScale, place_of(plug), 0);
      const std::int64_t narrow = below(random & 0xffffffff, 700);
      const std::int64_t wide = below(random >> 32, 100) < 15 ? 1300 : 0;
      plug.scale_permille = static_cast<std::int32_t>(500 + narrow + wide);
      if (selection.wants({{"house", std::to_string(house)},
                           {"household", std::to_string(household)},
                           {"plug", std::to_string(id)}})) {
        plugs_.push_back(plug);
      }
    }
  }
}

void Generator::go_to(std::int64_t second) {
  if (second == second_) return;
  second_ = second;
  const std::int64_t minute = floor_div(second + kLocalOffsetSeconds, 60);
  if (minute != minute_) begin_minute(minute);
  for (std::size_t profile = 0; profile < kProfiles; ++profile) reports_[profile] = report(profile, second);
}

void Generator::begin_minute(std::int64_t minute) {
  minute_ = minute;
  for (std::size_t i = 0; i < plugs_.size(); ++i) base_mw_[i] = base_mw(seed_, plugs_[i], minute);
}

Generator::Report Generator::report(std::size_t number, std::int64_t second) const {
  const Profile& profile = profiles()[number];
  // The time is divided into slots of one period; a report comes at a slot's start or one second later.
  const std::int64_t shifted = second + static_cast<std::int64_t>(number);
  const std::int64_t slot = floor_div(shifted, profile.period_s);
  const auto chance = [&](Use use) { return below(hash(seed_, use, number, static_cast<std::uint64_t>(slot)), 1000); };
  const std::int64_t late = chance(Use::kLate) < profile.late_permille ? 1 : 0;
  Report report;
  if (shifted != slot * profile.period_s + late) return report;
  report.count = chance(Use::kTwice) < profile.twice_permille ? 2 : 1;

  const std::int64_t before = energy_mws(number, first_second_);
  for (unsigned k = 0; k < report.count; ++k) {
    // The second of two reports is what the meter shows when the second ends.
    const std::int64_t now = energy_mws(number, second + k);
    report.work_wh[k] = profile.initial_work_wh + (now - before) / kMwsPerWh;
    // A slow drift over minutes, and noise of the second.
    const std::uint64_t minute = static_cast<std::uint64_t>(floor_div(second, 60));
    const std::int64_t drift = below(hash(seed_, Use::kDrift, number, minute), 2 * profile.noise_permille + 1);
    const std::uint64_t random = hash(seed_, Use::kNoise, number, static_cast<std::uint64_t>(second) * 2 + k);
    const std::int64_t noise = below(random, profile.noise_permille + 1);
    report.noise_permille[k] = static_cast<std::int32_t>(drift - profile.noise_permille + noise);
  }
  if (report.count == 2) {
    const std::uint64_t random = hash(seed_, Use::kSwap, number, static_cast<std::uint64_t>(second));
    if ((random & 1) != 0) std::swap(report.work_wh[0], report.work_wh[1]);
    if ((random & 2) != 0) report.noise_permille[1] = report.noise_permille[0];
  }
  return report;
}

std::int64_t Generator::energy_mws(std::size_t profile, std::int64_t second) const {
  const std::int64_t local = second + kLocalOffsetSeconds;
  const std::int64_t minute = floor_div(local, 60);
  const std::int64_t day = floor_div(minute, kMinutesPerDay);
  const auto minute_of_day = static_cast<std::size_t>(minute - day * kMinutesPerDay);
  return day * energy_before_mws_[profile][kMinutesPerDay] + energy_before_mws_[profile][minute_of_day] +
         (local - minute * 60) * reference_mw_[profile][minute_of_day];
}

std::uint64_t Generator::order_bits(const GeneratedPlug& plug) const {
  // Cheap: it is needed for every report.
  const std::uint64_t x =
      place_of(plug) * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(second_) * 0xd1342543de82ef95ULL + seed_;
  return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL >> 40;
}

}  // namespace orla::ingest
