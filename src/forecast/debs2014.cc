#include "forecast/debs2014.h"

#include <numeric>

#include "forecast/median.h"

namespace orla::forecast {

Prediction Debs2014::predict(std::optional<double> current, std::span<const double> history) const {
  const std::optional<double> usual = median(history);
  // midpoint: (a + b) / 2, without the overflow of a + b.
  if (current && usual) return {std::midpoint(*current, *usual), ""};
  if (current) return {current, ""};
  if (usual) return {usual, ""};
  return {std::nullopt, "no samples in the current slice and on no earlier day at that time"};
}

}  // namespace orla::forecast
