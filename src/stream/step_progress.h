// Which steps of a forecast have been published: one after the other, each once, from the first that holds data to the
// last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/time.h"

namespace orla::stream {

// As it is kept: (table, step length) -> start of the next step to publish, start of the last one that holds data.
struct StepState {
  std::string table;
  std::int64_t step_ns = 0;
  model::Time next{};
  model::Time last{};
  friend bool operator==(const StepState&, const StepState&) = default;
};

// One step length of one forecast.
struct StepProgress {
  std::size_t forecast = 0;
  std::size_t step = 0;
  std::size_t table = 0;
  std::size_t window = 0;
  std::optional<model::Time> next;  // nothing: no data yet
  model::Time last{};
  std::optional<model::Time> gap_end;  // no step in [next, gap_end) holds data; nothing: not looked up

  // The step [start, end) holds new data; everything before `published` is published. The first time, the least start
  // is to come first.
  void saw(model::Time start, model::Time end, model::Time published) {
    if (!next) {
      next = last = start;
      return;
    }
    // A step that was passed over as empty, or published without this data, is not published again.
    if (start < *next && end > published) next = start;
    if (start > last) last = start;
    if (gap_end && start < *gap_end) gap_end = start;
  }
};

}  // namespace orla::stream
