// The median of a few values.
#pragma once

#include <optional>
#include <span>

namespace orla::forecast {

// The middle value, of an even number the mean of the two middle ones; nothing of no values. The order of the values
// does not matter. Values are finite.
std::optional<double> median(std::span<const double> values);

}  // namespace orla::forecast
