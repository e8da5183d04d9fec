#include "sim/fake_disk.h"

#include <fmt/format.h>

namespace orla::sim {

void FakeDisk::doom(std::uint64_t writes, Moment moment, std::chrono::milliseconds down) {
  // A planted bug of two half commits shows only when the process dies between them.
  moment_ = bug == Bug::kCursorsApart ? Moment::kAfter : moment;
  doomed_ = writes;
  down_ = down;
}

void FakeDisk::heal() {
  full = false;
  fails_one_in = 0;
  slow = {};
  doomed_ = 0;
  now_ = false;
}

void FakeDisk::die() {
  ++counters.crashes;
  now_ = false;
  throw Crash{};  // tidy: allow exception: it stands for SIGKILL, which no code can handle
}

absl::Status FakeDisk::before_write(const char* what) {
  ++counters.writes;
  if (loop != nullptr && slow.count() > 0) loop->spend(slow);
  if (doomed_ > 0 && --doomed_ == 0) now_ = true;
  if (now_ && moment_ == Moment::kBefore) die();
  if (full || (fails_one_in > 0 && random_.below(fails_one_in) == 0)) {
    ++counters.failures;
    return absl::ResourceExhaustedError(fmt::format("simulated: no space for {}", what));
  }
  return absl::OkStatus();
}

absl::Status FakeDisk::at(const base::FaultyDisk::Step& step) {
  using Step = base::FaultyDisk::Step;
  if (step.kind == Step::Kind::kRead) return absl::OkStatus();
  switch (step.moment) {
    case Step::Moment::kBefore:
      ++counters.writes;
      if (loop != nullptr && step.kind == Step::Kind::kSync && slow.count() > 0) loop->spend(slow);
      if (doomed_ > 0 && --doomed_ == 0) now_ = true;
      if (now_ && moment_ == Moment::kBefore) die();
      break;
    case Step::Moment::kWithin:
      if (now_ && moment_ == Moment::kWithin) die();
      break;
    case Step::Moment::kAfter:
      after_write();
      break;
  }
  return absl::OkStatus();
}

void FakeDisk::after_write() {
  if (now_) die();
}

absl::Status FakeDisk::before_read(const char* what) {
  if (fails_one_in == 0 || random_.below(fails_one_in) != 0) return absl::OkStatus();
  ++counters.failures;
  return absl::UnavailableError(fmt::format("simulated: {} cannot be read", what));
}

}  // namespace orla::sim
