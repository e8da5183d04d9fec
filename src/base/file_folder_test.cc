#include "base/file_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace orla::base {
namespace {

using ::testing::ElementsAre;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 07777 : 0;
}

class FileFolderTest : public ::testing::Test {
 protected:
  const TemporaryDirectory place_ = *TemporaryDirectory::create("orla-file-folder");
};

TEST_F(FileFolderTest, ReplacesAsAWholeWithTheModeThatWasAskedFor) {
  const auto folder = FileFolder::open(place_.path() / "a" / "b");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(mode_of(folder->path()), 0700u);
  ASSERT_TRUE(folder->write("x", "one", FileMode::kOwner).ok());
  EXPECT_EQ(mode_of(folder->path() / "x"), 0600u);
  ASSERT_TRUE(folder->write("x", "two", FileMode::kOwnerReads).ok());
  ASSERT_TRUE(folder->write("x", "three", FileMode::kOwnerReads).ok());
  EXPECT_EQ(mode_of(folder->path() / "x"), 0400u);
  ASSERT_TRUE(folder->write("a.b", "", FileMode::kOwner).ok());
  EXPECT_THAT(*folder->list(), ElementsAre("a.b", "x"));
  EXPECT_EQ(*folder->read("x", 100), "three");
  EXPECT_EQ(folder->read("x", 4).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(folder->remove("x").ok());
  EXPECT_TRUE(folder->remove("x").ok());
  EXPECT_EQ(folder->read("x", 100).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FileFolderTest, RemovesWhatWasLeftHalfWrittenAndHidesWhatWasSetAside) {
  auto folder = FileFolder::open(place_.path());
  ASSERT_TRUE(folder->write("x", "1", FileMode::kOwner).ok());
  ASSERT_TRUE(write_file_atomically(place_.path() / ".new-y", "half").ok());
  ASSERT_TRUE(folder->set_aside("x").ok());
  folder = FileFolder::open(place_.path());
  EXPECT_THAT(*folder->list(), ElementsAre());
  EXPECT_FALSE(base::exists(place_.path() / ".new-y"));
  EXPECT_EQ(*read_file(place_.path() / ".damaged-x", 10), "1");
}

TEST_F(FileFolderTest, RefusesNamesThatLeaveIt) {
  const auto folder = FileFolder::open(place_.path());
  for (const std::string& name :
       {std::string(), std::string(".."), std::string(".x"), std::string("a/b"), std::string("a\0b", 3)}) {
    EXPECT_EQ(folder->write(name, "", FileMode::kOwner).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(folder->read(name, 1).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(folder->remove(name).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(folder->set_aside(name).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace orla::base
