// Exact arithmetic of the oracle: whole numbers of any size and one rounding at the end. It shares nothing with
// model/exact_sum.h on purpose: the two check each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace orla::verify {

// The integer r = round(v*10^decimals) (halves away from zero) if v == r/10^decimals and |r| <= 2^53.
std::optional<std::int64_t> decimal_of(double v, int decimals);

// The sum and the sum of squares of some numbers. Each number is either a decimal (an integer over 10^decimals, the
// same decimals for all of them) or a double as it stands. Not thread-safe.
class Total {
 public:
  Total();
  Total(Total&&) noexcept;
  Total& operator=(Total&&) noexcept;
  ~Total();

  void add_decimal(std::int64_t scaled);
  void add_double(double v);  // finite

  // Rounded once, to the nearest double, ties to even; too large gives an infinity. n > 0 is how many were added.
  double sum(int decimals) const;
  double mean(int decimals, std::uint64_t n) const;
  // The root of the population variance, which is itself rounded once.
  double stddev(int decimals, std::uint64_t n) const;

 private:
  struct Large;  // what does not fit the 128-bit integers
  Large& large();

  __int128 sum_ = 0;      // of decimals, scaled
  __int128 squares_ = 0;  // of their squares
  std::unique_ptr<Large> large_;
};

}  // namespace orla::verify
