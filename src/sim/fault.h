// What goes wrong in a simulated run: an explicit list, drawn up front from the seed, so that a failing run can be told
// by its faults, and shrunk by leaving some out.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "model/plan.h"

namespace orla::sim {

enum class FaultKind : std::uint8_t {
  kCrash,       // the process is killed, and starts again `lasts` later
  kDieInWrite,  // it dies in the `amount`-th write from now on: before, within or after it, by turns
  kPowerLoss,   // killed, and what was not synced may be gone
  kStop,        // SIGTERM; starts again `lasts` later
  kFreeze,      // SIGSTOP for `lasts`
  kDiskFull,    // every write fails for `lasts`
  kDiskErrors,  // every `amount`-th write or read fails, at random, for `lasts`
  kDiskSlow,    // every write takes `amount` ms, for `lasts`
  kBitFlip,     // `amount` bits of kept chunks turn over
  kCutTail,     // the newest file of kept chunks loses its last `amount` bytes while the node is down
  kClock,       // the clock jumps by `amount` seconds
  kTakeOver,    // an OpenEpoch of an earlier start arrives late, and closes the edge's epoch
  kCut,         // connections upwards are cut; each side hears of it, or not
  kHalfOpen,    // cut, and nobody hears of it
  kFlap,        // cut every `amount` ms, for `lasts`
  kSlowLink,    // the way up carries `amount` bytes/s in each direction, for `lasts`
  kDelay,       // messages take up to `amount` ms longer, for `lasts`
  kRefuse,      // connecting fails, for `lasts`
  kDouble,      // every `amount`-th frame arrives twice, at random, for `lasts`
  kUpgrade,     // the cloud runs an older fleet file until now
};
inline constexpr std::size_t kFaultKinds = 20;

struct Fault {
  FaultKind kind{};
  std::chrono::milliseconds at{};  // after the start of the run
  std::string node;
  std::chrono::milliseconds lasts{};
  std::int64_t amount = 0;
};

std::string_view to_string(FaultKind kind);
// "slow-link low-1 at 1.234 s for 800 ms: 2000"
std::string to_string(const Fault& fault);

// How faults are chosen. kAll: every kind, as often in every run. kSwarm: of every run some kinds only, each more or
// less often and severe, so that rare combinations come up.
enum class Mix : std::uint8_t { kAll, kSwarm };

// Sorted by time, within `span`.
std::vector<Fault> draw_faults(base::Random& random, const model::Plan& plan, Mix mix, std::chrono::milliseconds span);

}  // namespace orla::sim
