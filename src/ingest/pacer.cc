#include "ingest/pacer.h"

#include <algorithm>
#include <cmath>

namespace orla::ingest {

namespace {

// Nearest duration, held within +-2^62 ns (146 years), so that sums with clock readings do not overflow.
std::chrono::nanoseconds to_duration(double ns) {
  constexpr double kBound = 0x1p62;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(std::round(ns), -kBound, kBound)));
}

}  // namespace

std::chrono::nanoseconds Pacer::wait(const model::Batch& batch, base::SteadyTime now) {
  if (!(speed_ > 0) || batch.size() == 0) return std::chrono::nanoseconds(0);
  const model::Time newest = batch.newest();
  const bool jumped =
      anchor_ && max_jump_.count() > 0 &&
      (newest > model::add_clamped(newest_, max_jump_) || newest_ > model::add_clamped(newest, max_jump_));
  if (!anchor_ || jumped) {
    anchor_ = Anchor{newest, now};
    newest_ = newest;
    return std::chrono::nanoseconds(0);
  }
  newest_ = std::max(newest_, newest);
  const double event_ns = static_cast<double>((newest - anchor_->event).count());
  const auto since_anchor = to_duration(event_ns / speed_);
  return std::max(std::chrono::nanoseconds(0), since_anchor - (now - anchor_->steady));
}

model::Time Pacer::event_now(base::SteadyTime now) const {
  if (!anchor_ || !(speed_ > 0)) return model::kMinTime;
  const double ns = static_cast<double>((now - anchor_->steady).count()) * speed_;
  return model::add_clamped(anchor_->event, to_duration(ns));
}

}  // namespace orla::ingest
