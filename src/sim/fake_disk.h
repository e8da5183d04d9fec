// How a simulated disk misbehaves: writes that fail, processes that die before or after one is durable.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/random.h"
#include "sim/fake_loop.h"

namespace orla::sim {

// Bugs that can be planted below or beside the real code, to see that the simulator notices.
enum class Bug : std::uint8_t {
  kNone,
  kLostWrite,      // a commit says it is durable and is not, until the next one
  kForgetJournal,  // an edge restores everything but its acceptance state and open slices
  kCursorsApart,   // the cloud's cursors are durable and the windows of the same commit are not
  kTrimOnRead,     // an edge drops a chunk once it was read to be sent
  kSkipRows,       // an input loses a row
};

class FakeDisk {
 public:
  // `random` outlives the disk.
  explicit FakeDisk(base::Random& random) : random_(random) {}

  // Before a write, and after it is durable.
  absl::Status before_write(const char* what);
  void after_write();
  absl::Status before_read(const char* what);

  bool healed = false;  // nothing fails any more
  bool full = false;    // every write fails
  Bug bug = Bug::kNone;

  struct Counters {
    std::uint64_t writes = 0;
    std::uint64_t failures = 0;
    std::uint64_t crashes = 0;
  };
  Counters counters;

 private:
  base::Random& random_;
};

}  // namespace orla::sim
