// Signals of the operating system as tasks on a Loop.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/loop.h"

namespace orla::base {

// Writing to a connection that is gone becomes an error of that write, not the end of the process. Called once, early
// in main.
void ignore_sigpipe();

// While it lives, each arrival of one of `signals` runs `handler(signal)` on the loop instead of what the signal does
// by default. At its end the signals mean again what they meant before. One at a time per process: a second one is an
// error (FailedPrecondition). The loop outlives it.
class SignalWatcher {
 public:
  static absl::StatusOr<std::unique_ptr<SignalWatcher>> create(Loop& loop, std::vector<int> signals,
                                                               std::function<void(int)> handler);
  virtual ~SignalWatcher() = default;
};

// What asks a program to stop.
inline const std::vector<int> kStopSignals = {SIGINT, SIGTERM};

}  // namespace orla::base
