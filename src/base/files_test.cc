#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace orla::base {
namespace {

using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<TemporaryDirectory> made = TemporaryDirectory::create("orla-files-test");
    ASSERT_TRUE(made.ok()) << made.status();
    folder_.emplace(*std::move(made));
  }
  std::filesystem::path path(const char* name) const { return folder_->path() / name; }
  std::optional<TemporaryDirectory> folder_;
};

TEST_F(FilesTest, ReadsBackWhatWasWrittenAndLeavesNothingElse) {
  const std::string bytes("a\0\n\xff", 4);
  ASSERT_TRUE(write_file_atomically(path("f"), "before").ok());
  ASSERT_TRUE(write_file_atomically(path("f"), bytes).ok());
  const absl::StatusOr<std::string> got = read_file(path("f"), 4);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, bytes);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_->path()), {}), 1);
}

TEST_F(FilesTest, ReadsUpToItsBoundOnly) {
  ASSERT_TRUE(write_file_atomically(path("f"), "12345").ok());
  const absl::StatusOr<std::string> got = read_file(path("f"), 4);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("4 bytes"));
}

TEST_F(FilesTest, ErrorsNameThePathAndTheReason) {
  const absl::StatusOr<std::string> got = read_file(path("missing"), 10);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(got.status().message()), HasSubstr(path("missing").native()));
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("No such file"));
  EXPECT_EQ(write_file_atomically(path("no/such/f"), "x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read_file(folder_->path(), 10).status().code(), absl::StatusCode::kFailedPrecondition);  // a folder
}

TEST_F(FilesTest, AFailedWriteKeepsTheFileThatWasThere) {
  ASSERT_TRUE(make_directories(path("taken/inside")).ok());
  EXPECT_FALSE(write_file_atomically(path("taken"), "x").ok());
  EXPECT_TRUE(std::filesystem::is_directory(path("taken/inside")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_->path()), {}), 1);
}

TEST_F(FilesTest, MakesAndRemovesTrees) {
  EXPECT_TRUE(make_directories(path("a/b/c")).ok());
  EXPECT_TRUE(make_directories(path("a/b/c")).ok());
  EXPECT_TRUE(write_file_atomically(path("a/b/f"), "x").ok());
  EXPECT_FALSE(make_directories(path("a/b/f/d")).ok());
  EXPECT_TRUE(remove_tree(path("a")).ok());
  EXPECT_TRUE(remove_tree(path("a")).ok());
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(FilesTest, TemporaryDirectoriesGoWithTheirOwner) {
  std::filesystem::path where;
  {
    absl::StatusOr<TemporaryDirectory> made = TemporaryDirectory::create("orla-files-test");
    ASSERT_TRUE(made.ok());
    const TemporaryDirectory moved = *std::move(made);
    where = moved.path();
    EXPECT_TRUE(std::filesystem::is_directory(where));
    EXPECT_TRUE(write_file_atomically(where / "f", "x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(where));
}

}  // namespace
}  // namespace orla::base
