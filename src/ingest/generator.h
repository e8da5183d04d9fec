// Rows that imitate the month of the DEBS 2014 Grand Challenge: what is in it, not what it measured.
//
// - Houses 0..n-1; the first 40 have 2,125 plugs in all, of very different number (the first ten as in the challenge's
//   data), further ones repeat these sizes. Households hold 1 to 14 plugs.
// - Every plug is a scaled copy of one of 13 profiles, which set when it reports, its initial work, its work afterwards
//   (not scaled) and the shape of its load over the day. Eight of twelve kinds draw nothing most of the time.
// - Work and load come as a pair, in either order; every 2 s mostly, some every 5 s, with gaps of 0 to 6 s. Some plugs
//   report twice within a second, and then now and then deliver the two work values swapped (a step of -0.001 kWh).
// - Rows are ordered by second, then house, household, plug.
//
// Everything follows from the seed and the row's own place by integer arithmetic: any second of any plug is the same on
// every machine, whatever was generated before and whichever other houses are wanted. Plugs and their ids do not depend
// on the seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ingest/selection.h"
#include "model/fleet.h"

namespace orla::ingest {

inline constexpr int kMaxHouses = 10'000;
inline constexpr std::size_t kProfiles = 13;

struct GeneratedPlug {
  std::uint32_t house = 0;
  std::uint32_t household = 0;
  std::uint32_t plug = 0;
  std::uint32_t profile = 0;
  std::int32_t scale_permille = 0;
};

// Walks over the rows of one second after another. Not thread-safe.
class Generator {
 public:
  // Of the houses 0..spec.houses-1, the plugs that the selection wants.
  static absl::StatusOr<Generator> make(const model::GeneratorSpec& spec, const Selection& selection);

  const std::vector<GeneratedPlug>& plugs() const { return plugs_; }
  // The rows are those of the seconds [first_second, end_second), Unix time.
  std::int64_t first_second() const { return first_second_; }
  std::int64_t end_second() const { return end_second_; }

  // From now on rows() gives this second.
  void go_to(std::int64_t second);
  // Calls visit(property, thousandths) for each row of plugs()[plug] in the present second, in order: property 0 is
  // work in Wh, 1 is load in mW. At most kMaxRowsPerPlug of them.
  static constexpr std::size_t kMaxRowsPerPlug = 4;
  template <typename Visit>
  void rows(std::size_t plug, Visit&& visit) const {
    const GeneratedPlug& p = plugs_[plug];
    const Report& report = reports_[p.profile];
    if (report.count == 0) return;
    const std::int64_t base_mw = base_mw_[plug];
    const std::uint64_t order = order_bits(p);
    for (unsigned k = 0; k < report.count; ++k) {
      const std::int64_t load_mw = base_mw + base_mw * report.noise_permille[k] / 1000;
      if ((order >> k & 1) == 0) {
        visit(0U, report.work_wh[k]);
        visit(1U, load_mw);
      } else {
        visit(1U, load_mw);
        visit(0U, report.work_wh[k]);
      }
    }
  }

 private:
  // What the plugs of a profile report in a second.
  struct Report {
    unsigned count = 0;
    std::array<std::int64_t, 2> work_wh{};
    std::array<std::int32_t, 2> noise_permille{};
  };

  Generator(std::uint64_t seed, std::int64_t first_second, std::int64_t end_second);
  void add_house(std::uint32_t house, const Selection& selection);
  void begin_minute(std::int64_t minute);
  Report report(std::size_t profile, std::int64_t second) const;
  // Energy of the profile's work counter since the local midnight of 1970-01-01, in mWs.
  std::int64_t energy_mws(std::size_t profile, std::int64_t second) const;
  std::uint64_t order_bits(const GeneratedPlug& plug) const;

  std::uint64_t seed_;
  std::int64_t first_second_;
  std::int64_t end_second_;
  std::vector<GeneratedPlug> plugs_;
  // By profile: the reference power of each minute of the day, and its sum over the seconds before that minute.
  std::vector<std::vector<std::int64_t>> reference_mw_;
  std::vector<std::vector<std::int64_t>> energy_before_mws_;
  // Of the present minute and second.
  std::int64_t second_ = INT64_MIN;
  std::int64_t minute_ = INT64_MIN;
  std::vector<std::int64_t> base_mw_;  // by plug, without noise
  std::array<Report, kProfiles> reports_{};
};

}  // namespace orla::ingest
