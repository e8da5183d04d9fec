// Which samples of a series count: decided once, in order of arrival, per series.
//
// A series' watermark is its largest accepted time; its first sample is accepted.
// - A sample that is not finite, lies at an end of time, or (live inputs) ahead of the node's clock by more than
//   `future`, is rejected.
// - A sample behind the watermark by more than `allowed_lateness` is late.
// - With max_jump > 0 a sample ahead of the watermark by more than max_jump is held. While samples are held, one whose
//   time differs from the one held last by at most max_jump is held too, and the third makes the jump real: the
//   watermark becomes the time of the first, and all three go through lateness in their order. Any other sample has the
//   held ones rejected and is decided afresh.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/edge_state.h"
#include "model/time.h"

namespace orla::stream {

// Samples outside (kEarliestTime, kLatestTime) are rejected: slices and windows need room around them.
inline constexpr model::Time kEarliestTime = model::kMinTime + std::chrono::hours(24 * 366 * 10);
inline constexpr model::Time kLatestTime = model::kMaxTime - std::chrono::hours(24 * 366 * 10);

struct AcceptanceRules {
  model::Duration allowed_lateness{};
  model::Duration max_jump{};               // 0 = off
  model::Time not_after = model::kMaxTime;  // see future_bound
};

// The latest time that is not `future` for a live input at a clock's time. A clock before `set_after` (when this
// program was built) was never set: nothing is in the future of it.
model::Time future_bound(model::Time clock_now, model::Time set_after, model::Duration future);

enum class Verdict : std::uint8_t { kAccepted, kLate, kHeld, kJump, kFuture, kNotFinite, kBadTime };
inline constexpr std::size_t kVerdicts = 7;

struct Decision {
  model::HeldSample sample;
  Verdict verdict;
};

// The acceptance state of one series.
class Acceptance {
 public:
  Acceptance() = default;
  // As saved.
  Acceptance(model::Time watermark, std::vector<model::HeldSample> held)
      : watermark_(watermark),
        held_(held.empty() ? nullptr : std::make_unique<std::vector<model::HeldSample>>(std::move(held))) {}

  model::Time watermark() const { return watermark_; }  // kMinTime: none yet
  const std::vector<model::HeldSample>& held() const { return held_ ? *held_ : kNothingHeld; }

  // Samples with times in [from, to] (and finite) are accepted as they come, as long as the watermark stays: advance()
  // is all that has to be done for them. Empty (from > to) when every sample needs decide().
  struct Plain {
    model::Time from = model::kMaxTime;
    model::Time to = model::kMinTime;
  };
  Plain plain(const AcceptanceRules& rules) const;
  // An accepted time that is ahead of the watermark.
  void advance(model::Time time) { watermark_ = time; }

  // Appends what the sample decides, in order: itself, and held ones. A held one is not appended again by a later call
  // until it is decided; kHeld says that this one waits.
  void decide(const model::HeldSample& sample, const AcceptanceRules& rules, std::vector<Decision>& out);
  // End of input: what is held is rejected (kJump).
  void reject_held(std::vector<Decision>& out);

 private:
  void hold(const model::HeldSample& sample);
  void decide_lateness(const model::HeldSample& sample, const AcceptanceRules& rules, std::vector<Decision>& out);

  static const std::vector<model::HeldSample> kNothingHeld;
  model::Time watermark_ = model::kMinTime;
  std::unique_ptr<std::vector<model::HeldSample>> held_;  // null or not empty; hardly any series holds something
};

}  // namespace orla::stream
