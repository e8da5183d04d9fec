#include "stream/tally.h"

#include "model/power_of_ten.h"

namespace orla::stream {

void Tally::take(model::Partial& out) {
  const double unit = model::power_of_ten(decimals());
  out.count = count;
  out.sums = model::ExactSum::from_decimals(sum, static_cast<__int128>(squares));
  out.min = min / unit;
  out.max = max / unit;
  out.first_time = first_time;
  out.first = first / unit;
  out.last_time = watermark;
  out.last = last / unit;
  count = 0;
  sum = 0;
  squares = 0;
  min = INT32_MAX;
  max = INT32_MIN;
}

}  // namespace orla::stream
