#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace orla::base {

absl::StatusOr<FileLock> FileLock::acquire(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(
        errno, fmt::format("cannot open the lock file {}; its folder must exist and be writable", path));
  }
  FileLock lock(descriptor);
  // flock belongs to the open file, so that it is released by the kernel even after SIGKILL.
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(fmt::format(
          "{} is locked: another process uses this state directory; stop it first, or use another directory", path));
    }
    return absl::ErrnoToStatus(errno, fmt::format("cannot lock {}", path));
  }
  return lock;
}

absl::StatusOr<FileLock> FileLock::acquire_within(const std::string& path, std::chrono::nanoseconds patience,
                                                  const SystemClock& clock, const std::function<void()>& waits) {
  constexpr std::chrono::milliseconds kLook{20};
  const SteadyTime deadline = clock.steady_now() + patience;
  absl::StatusOr<FileLock> lock = acquire(path);
  if (absl::IsFailedPrecondition(lock.status())) waits();
  while (absl::IsFailedPrecondition(lock.status()) && clock.steady_now() < deadline) {
    clock.sleep(kLook);
    lock = acquire(path);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace orla::base
