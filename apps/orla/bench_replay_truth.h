// What `orla bench replay` must find in a file: computed row by row, by plain code that shares nothing with the reader
// and the engine it checks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"

namespace orla::apps {

// Of one plug, metric and minute. Sums are of thousandths.
struct PlugMinute {
  std::uint64_t count = 0;
  std::int64_t sum_thousandths = 0;
  double min = 0;
  double max = 0;
  friend bool operator==(const PlugMinute&, const PlugMinute&) = default;
};

struct ReplayTotals {
  // metric ("work", "load"), house, household, plug
  using Series = std::tuple<std::string, std::string, std::string, std::string>;
  // By series, then by the minute since 1970.
  std::map<Series, std::map<std::int64_t, PlugMinute>> plugs;
  std::uint64_t rows = 0;      // samples
  std::uint64_t rejected = 0;  // lines that are no row
};

// Reads `path` (plain, gzip or zstd; the DEBS 2014 schema). An error for a value that is not a whole number of
// thousandths: the sums here would not be exact.
absl::StatusOr<ReplayTotals> plain_totals(const std::string& path);

// The first difference in words; empty when there is none.
std::string difference(const ReplayTotals& found, const ReplayTotals& expected);

}  // namespace orla::apps
