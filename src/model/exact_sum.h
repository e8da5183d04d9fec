// Exact sums of decimals and of any doubles, rounded once, when read.
//
// A value v with v == round(v*10^d)/10^d and |round(v*10^d)| <= 2^53 counts as that decimal: it is added as the integer
// round(v*10^d) to 128-bit integers (sum and sum of squares; an overflow is carried, exactly, into the
// superaccumulator). Every other finite value goes, exactly, into a superaccumulator (a fixed-point number wide enough
// for any double, for its square, and for 2^64 of them; Kulisch 2013), which exists only when it is needed. The
// decision depends on the value alone, so any split and any order of the same values gives the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace orla::model {

inline constexpr int kMaxDecimals = 15;

// round(v*10^decimals) when v counts as that decimal, else nothing. -0.0 counts as 0. decimals in 0..kMaxDecimals.
std::optional<std::int64_t> as_decimal(double v, int decimals);

// Sum and sum of squares of doubles. A value type. Not thread-safe.
class ExactSum {
 public:
  ExactSum();
  ExactSum(const ExactSum&);
  ExactSum(ExactSum&&) noexcept;
  ExactSum& operator=(const ExactSum&);
  ExactSum& operator=(ExactSum&&) noexcept;
  ~ExactSum();

  // v finite.
  void add(double v, int decimals);
  // v exactly as binary64, whatever it looks like (contributions of `across`).
  void add_binary(double v);
  // scaled = v*10^decimals, |scaled| <= 2^53: as add() of that decimal.
  void add_decimal(std::int64_t scaled);
  // Commutative, associative. Both sides were built with the same decimals.
  void merge(const ExactSum& other);

  // Each is the exact value rounded once to the nearest double, ties to even; overflow gives an infinity. n > 0.
  double sum(int decimals) const;
  double sum_of_squares(int decimals) const;
  double mean(int decimals, std::uint64_t n) const;
  // (n*sum(x^2) - sum(x)^2) / n^2, rounded once.
  double variance(int decimals, std::uint64_t n) const;

  // Canonical bytes: equal exact contents give equal bytes. `decode` accepts only what encode() writes.
  std::string encode() const;
  static absl::StatusOr<ExactSum> decode(std::string_view bytes);
  friend bool operator==(const ExactSum& a, const ExactSum& b);

  // Direct access for columnar encodings: valid when !has_wide().
  bool has_wide() const { return wide_ != nullptr; }
  __int128 decimal_sum() const { return sum_; }
  __int128 decimal_squares() const { return squares_; }
  static ExactSum from_decimals(__int128 sum, __int128 squares);

 private:
  struct Wide;  // the superaccumulators
  Wide& wide();
  __int128 sum_ = 0;
  __int128 squares_ = 0;  // >= 0
  std::unique_ptr<Wide> wide_;
};

}  // namespace orla::model
