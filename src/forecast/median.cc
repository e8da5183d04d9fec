#include "forecast/median.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace orla::forecast {

std::optional<double> median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  const double below = *std::max_element(sorted.begin(), middle);
  return std::midpoint(below, *middle);
}

}  // namespace orla::forecast
