#include "stream/acceptance.h"

#include <algorithm>

namespace orla::stream {

using model::add_clamped;
using model::HeldSample;
using model::Time;

Time future_bound(Time clock_now, Time set_after, model::Duration future) {
  return clock_now < set_after ? model::kMaxTime : add_clamped(clock_now, future);
}

const std::vector<HeldSample> Acceptance::kNothingHeld;

void Acceptance::hold(const HeldSample& sample) {
  if (!held_) held_ = std::make_unique<std::vector<HeldSample>>();
  held_->push_back(sample);
}

Acceptance::Plain Acceptance::plain(const AcceptanceRules& rules) const {
  if (watermark_ == model::kMinTime || held_) return {};
  Plain p;
  p.from = std::max(kEarliestTime + model::Duration(1), add_clamped(watermark_, -rules.allowed_lateness));
  p.to = std::min(kLatestTime - model::Duration(1), rules.not_after);
  if (rules.max_jump > model::Duration::zero()) p.to = std::min(p.to, add_clamped(watermark_, rules.max_jump));
  return p;
}

void Acceptance::decide(const HeldSample& sample, const AcceptanceRules& rules, std::vector<Decision>& out) {
  if (!std::isfinite(sample.value)) return out.push_back({sample, Verdict::kNotFinite});
  if (sample.time <= kEarliestTime || sample.time >= kLatestTime) return out.push_back({sample, Verdict::kBadTime});
  if (sample.time > rules.not_after) return out.push_back({sample, Verdict::kFuture});
  if (rules.max_jump > model::Duration::zero() && watermark_ != model::kMinTime) {
    if (held_) {
      const Time before = held_->back().time;
      if (sample.time >= add_clamped(before, -rules.max_jump) && sample.time <= add_clamped(before, rules.max_jump)) {
        hold(sample);
        if (held_->size() < 3) return out.push_back({sample, Verdict::kHeld});
        const std::unique_ptr<std::vector<HeldSample>> three = std::move(held_);
        watermark_ = three->front().time;
        for (const HeldSample& h : *three) decide_lateness(h, rules, out);
        return;
      }
      reject_held(out);
    }
    if (sample.time > add_clamped(watermark_, rules.max_jump)) {
      hold(sample);
      return out.push_back({sample, Verdict::kHeld});
    }
  }
  decide_lateness(sample, rules, out);
}

void Acceptance::decide_lateness(const HeldSample& sample, const AcceptanceRules& rules, std::vector<Decision>& out) {
  if (sample.time < add_clamped(watermark_, -rules.allowed_lateness)) return out.push_back({sample, Verdict::kLate});
  watermark_ = std::max(watermark_, sample.time);
  out.push_back({sample, Verdict::kAccepted});
}

void Acceptance::reject_held(std::vector<Decision>& out) {
  for (const HeldSample& h : held()) out.push_back({h, Verdict::kJump});
  held_.reset();
}

}  // namespace orla::stream
