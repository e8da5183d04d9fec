#include "sim/fake_disk.h"

#include <fmt/format.h>

namespace orla::sim {

namespace {
constexpr std::uint64_t kFailsOneIn = 25;      // writes
constexpr std::uint64_t kUnreadableOneIn = 8;  // reads
constexpr std::uint64_t kDiesOneIn = 150;
}  // namespace

absl::Status FakeDisk::before_write(const char* what) {
  ++counters.writes;
  if (healed) return absl::OkStatus();
  if (full || random_.below(kFailsOneIn) == 0) {
    ++counters.failures;
    return absl::ResourceExhaustedError(fmt::format("simulated: no space for {}", what));
  }
  if (random_.below(kDiesOneIn) == 0) {
    ++counters.crashes;
    throw Crash{};  // tidy: allow exception: it stands for SIGKILL, which no code can handle
  }
  return absl::OkStatus();
}

void FakeDisk::after_write() {
  // A planted bug of two half commits shows only when the process dies between them.
  if (healed || random_.below(bug == Bug::kCursorsApart ? kDiesOneIn / 5 : kDiesOneIn) != 0) return;
  ++counters.crashes;
  throw Crash{};  // tidy: allow exception: it stands for SIGKILL, which no code can handle
}

absl::Status FakeDisk::before_read(const char* what) {
  if (healed || random_.below(kUnreadableOneIn) != 0) return absl::OkStatus();
  ++counters.failures;
  return absl::UnavailableError(fmt::format("simulated: {} cannot be read", what));
}

}  // namespace orla::sim
