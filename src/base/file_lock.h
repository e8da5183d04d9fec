// One process at a time on one directory.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace orla::base {

// Holds an exclusive lock on a file until it is destroyed or the process ends, however it ends. The file stays; it is
// empty. A second holder is refused, also within the same process. Movable; not thread-safe.
class FileLock {
 public:
  // Creates `path` when it is missing; its folder exists. FailedPrecondition when another holds the lock.
  static absl::StatusOr<FileLock> acquire(const std::string& path);
  // The same, but for another holder that lets go within `patience`, as a killed process does once the kernel has ended
  // all its threads. Blocks this thread; `waits` is called once, before.
  static absl::StatusOr<FileLock> acquire_within(const std::string& path, std::chrono::nanoseconds patience,
                                                 const SystemClock& clock, const std::function<void()>& waits);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace orla::base
