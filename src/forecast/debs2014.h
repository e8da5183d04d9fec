// The load forecast of the ACM DEBS 2014 Grand Challenge (Jerzak, Ziekow: The DEBS 2014 Grand Challenge, query 1):
//
//   L(s_{i+2}) = ( avgL(s_i) + median{ avgL(s_j) } ) / 2,   s_j = s_{i+2-n*k},   n = 1 .. floor((i+2)/k)
//
// with k slices in 24 h. Where slice i or every s_j is missing, the other alone is the forecast; where both are, there
// is none.
#pragma once

#include "forecast/model.h"

namespace orla::forecast {

class Debs2014 final : public LoadModel {
 public:
  Prediction predict(std::optional<double> current, std::span<const double> history) const override;
};

}  // namespace orla::forecast
