// Copying parts of batches into others, in whichever of the two forms their times and values have.
#pragma once

#include <cstdint>

#include "model/batch.h"

namespace orla::model {

struct BatchForm {
  enum class Times : std::uint8_t { kEach, kPaces } times = Times::kPaces;
  enum class Values : std::uint8_t { kDoubles, kScaled } values = Values::kScaled;
  int decimals = 0;  // of kScaled
  friend bool operator==(const BatchForm&, const BatchForm&) = default;
};
// Of a batch with samples.
BatchForm form_of(const Batch& batch);
// One that samples of both can be copied into.
BatchForm common(const BatchForm& a, const BatchForm& b);

// Appends samples [begin, end) of the run, begin < end, to `to`, which is empty or has the form: common with that of
// `from`. They become part of its last run when that is of the same series and, with paces, they go on evenly.
void append(Batch& to, const BatchForm& form, SeriesId series, const Batch& from, std::size_t run, std::uint32_t begin,
            std::uint32_t end);

}  // namespace orla::model
