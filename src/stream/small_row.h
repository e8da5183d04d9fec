// The partial of decimals that came within one slice, in 52 bytes; nearly all rows of an edge are nothing else.
#pragma once

#include <array>
#include <cstdint>

#include "model/partial.h"
#include "model/time.h"

namespace orla::stream {

// What some decimals of a slice come to. Values are times 10^decimals, times are those since the slice's start.
struct DecimalSummary {
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
  std::uint32_t count = 0;  // 0: nothing else is meaningful
  std::int32_t min = 0;
  std::int32_t max = 0;
  std::int32_t first = 0;
  std::int32_t last = 0;
  model::Duration first_at{};
  model::Duration last_at{};

  // Of one sample.
  static DecimalSummary of(model::Duration at, std::int32_t value);
  // The same as model::Partial::merge_sums. False, and nothing is done: the result does not fit.
  bool merge(const DecimalSummary& other);
};

// A summary at rest. Memory of it is plain.
class SmallRow {
 public:
  // Times of up to three days fit: false, and nothing is done.
  bool set(const DecimalSummary& summary);
  DecimalSummary get() const;
  std::uint32_t count() const { return count_; }
  // Room for what its keeper has to remember.
  std::uint32_t note = 0;
  // In the place of a summary: a number.
  void set_number(std::uint32_t number) { count_ = number; }
  std::uint32_t number() const { return count_; }

 private:
  // Words of 4 bytes, so that nothing is lost to alignment.
  std::array<std::uint32_t, 2> sum_{};
  std::array<std::uint32_t, 2> squares_{};
  std::uint32_t count_ = 0;
  std::int32_t min_ = 0;
  std::int32_t max_ = 0;
  std::int32_t first_ = 0;
  std::int32_t last_ = 0;
  std::uint32_t first_at_ = 0;  // the low 32 of 48 bits
  std::uint32_t last_at_ = 0;
  std::uint16_t first_at_high_ = 0;
  std::uint16_t last_at_high_ = 0;
};
static_assert(sizeof(SmallRow) == 52);

// Both exact, and each undoes the other: to_partial() sets all but the sketches. False, and nothing is done: the
// partial is more than decimals of the slice, or does not fit.
void to_partial(const DecimalSummary& summary, model::Time slice, int decimals, model::Partial& out);
bool to_summary(const model::Partial& partial, model::Time slice, int decimals, DecimalSummary& out);

}  // namespace orla::stream
