// When a batch of a replay is due.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "model/batch.h"
#include "model/time.h"

namespace orla::ingest {

// Arithmetic alone: the time is an argument. Not thread-safe.
//
// The first batch is due at once and anchors the input's clock, which from then on runs `speed` times as fast as real
// time. A batch is due when that clock has come to its newest sample; one that is older is due at once, so a replay
// that was held up catches up. With max_jump > 0, a batch whose newest sample is further than that from the newest one
// before it (a wrong clock, a gap, a step back) is due at once and anchors the clock anew; with max_jump = 0 a gap of
// the data is a gap of the replay.
class Pacer {
 public:
  Pacer(double speed, model::Duration max_jump) : speed_(speed), max_jump_(max_jump) {}

  // How long from `now` on to hold the batch back; 0 at speed 0, and for a batch without samples. Called once per
  // batch, in order.
  std::chrono::nanoseconds wait(const model::Batch& batch, base::SteadyTime now);
  // The input's clock; kMinTime at speed 0, and before the first sample.
  model::Time event_now(base::SteadyTime now) const;

 private:
  struct Anchor {
    model::Time event;
    base::SteadyTime steady;
  };
  double speed_;
  model::Duration max_jump_;
  std::optional<Anchor> anchor_;
  model::Time newest_{};  // since the anchor
};

}  // namespace orla::ingest
