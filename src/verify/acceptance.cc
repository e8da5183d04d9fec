#include "verify/acceptance.h"

namespace orla::verify {
namespace {

// a - b without overflow.
__int128 difference(model::Time a, model::Time b) { return static_cast<__int128>(model::to_ns(a)) - model::to_ns(b); }

}  // namespace

void Acceptance::Decided::clear() {
  accepted.clear();
  late.clear();
  rejected.clear();
}

void Acceptance::add(const TimedValue& sample, model::Duration allowed_lateness, model::Duration max_jump,
                     Decided& decided) {
  if (max_jump > model::Duration::zero() && started_) {
    if (!held_.empty()) {
      const __int128 step = difference(sample.time, held_.back().time);
      if (step <= max_jump.count() && step >= -max_jump.count()) {
        held_.push_back(sample);
        if (held_.size() == 3) {
          watermark_ = held_.front().time;
          for (const TimedValue& held : held_) decide(held, allowed_lateness, decided);
          held_.clear();
        }
        return;
      }
      end_of_input(decided);
    }
    if (difference(sample.time, watermark_) > max_jump.count()) {
      held_.push_back(sample);
      return;
    }
  }
  decide(sample, allowed_lateness, decided);
}

void Acceptance::decide(const TimedValue& sample, model::Duration allowed_lateness, Decided& decided) {
  if (started_ && difference(watermark_, sample.time) > allowed_lateness.count()) {
    decided.late.push_back(sample);
    return;
  }
  if (!started_ || sample.time > watermark_) watermark_ = sample.time;
  started_ = true;
  decided.accepted.push_back(sample);
}

void Acceptance::end_of_input(Decided& decided) {
  decided.rejected.insert(decided.rejected.end(), held_.begin(), held_.end());
  held_.clear();
}

}  // namespace orla::verify
