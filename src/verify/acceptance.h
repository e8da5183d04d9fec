// Which samples of a series count, decided in order of arrival.
#pragma once

#include <vector>

#include "model/time.h"

namespace orla::verify {

struct TimedValue {
  model::Time time{};
  double value = 0;
  friend bool operator==(const TimedValue&, const TimedValue&) = default;
};

// One series. Its watermark is its largest accepted time, the first sample is always accepted.
//
// - A sample behind the watermark by more than `allowed_lateness` is late.
// - With max_jump > 0, a sample ahead of the watermark by more than max_jump is held. While samples are held, a sample
//   whose time differs from the one held last by at most max_jump is held too; the third one makes the jump real: the
//   watermark becomes the time of the first held one, and the other two are decided in their order, as any sample. Any
//   other sample has the held ones rejected and is decided afresh.
// - At the end of input the held ones are rejected.
class Acceptance {
 public:
  struct Decided {
    std::vector<TimedValue> accepted;
    std::vector<TimedValue> late;
    std::vector<TimedValue> rejected;  // jumps that were none
    void clear();
  };

  // Appends what this sample decides, itself or held ones.
  void add(const TimedValue& sample, model::Duration allowed_lateness, model::Duration max_jump, Decided& decided);
  void end_of_input(Decided& decided);
  std::size_t held() const { return held_.size(); }

 private:
  void decide(const TimedValue& sample, model::Duration allowed_lateness, Decided& decided);

  bool started_ = false;
  model::Time watermark_{};
  std::vector<TimedValue> held_;
};

}  // namespace orla::verify
