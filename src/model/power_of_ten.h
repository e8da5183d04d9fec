#pragma once

#include <array>
#include <cstddef>

namespace orla::model {

// Exact as a double. exponent in 0..15.
inline constexpr double power_of_ten(int exponent) {
  constexpr std::array<double, 16> kPowers = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  return kPowers[static_cast<std::size_t>(exponent)];
}

}  // namespace orla::model
