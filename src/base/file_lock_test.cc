#include "base/file_lock.h"

#include <gtest/gtest.h>

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

TEST(FileLock, NamesAFolderThatIsMissing) {
  const TemporaryDirectory directory = TemporaryDirectory::create("file-lock").value();
  const absl::Status status = FileLock::acquire(directory.path() / "nothing/lock").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("nothing/lock"), std::string::npos);
}

}  // namespace
}  // namespace orla::base
