#include "base/file_lock.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

#include "base/files.h"

namespace orla::base {
namespace {

TEST(FileLock, OneHolderAtATime) {
  const TemporaryDirectory directory = TemporaryDirectory::create("file-lock").value();
  const std::string path = directory.path() / "lock";
  {
    FileLock first = FileLock::acquire(path).value();
    EXPECT_EQ(FileLock::acquire(path).status().code(), absl::StatusCode::kFailedPrecondition);
    const FileLock moved = std::move(first);
    EXPECT_EQ(FileLock::acquire(path).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(FileLock::acquire(path).ok());
}

TEST(FileLock, IsWaitedForWithinBounds) {
  using std::chrono::milliseconds;
  const TemporaryDirectory directory = TemporaryDirectory::create("file-lock").value();
  const std::string path = directory.path() / "lock";
  const SystemClock clock;
  int told = 0;
  const auto tell = [&] { ++told; };
  std::optional<FileLock> holder = FileLock::acquire_within(path, milliseconds(0), clock, tell).value();
  EXPECT_EQ(told, 0);  // nobody was there
  const SteadyTime begin = clock.steady_now();
  EXPECT_EQ(FileLock::acquire_within(path, milliseconds(60), clock, tell).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_GE(clock.steady_now() - begin, milliseconds(60));
  EXPECT_EQ(told, 1);
  std::thread later;
  EXPECT_TRUE(FileLock::acquire_within(path, std::chrono::minutes(1), clock, [&] {
                later = std::thread([&] { holder.reset(); });
              }).ok());
  later.join();
  // What waiting does not help is said at once.
  EXPECT_EQ(
      FileLock::acquire_within(directory.path() / "nothing/lock", std::chrono::minutes(1), clock, tell).status().code(),
      absl::StatusCode::kNotFound);
  EXPECT_EQ(told, 1);
}

TEST(FileLock, NamesAFolderThatIsMissing) {
  const TemporaryDirectory directory = TemporaryDirectory::create("file-lock").value();
  const absl::Status status = FileLock::acquire(directory.path() / "nothing/lock").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("nothing/lock"), std::string::npos);
}

}  // namespace
}  // namespace orla::base
