#include "base/folder_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace orla::base {
namespace {

TEST(FolderEntries, AreSortedPaths) {
  const auto place = TemporaryDirectory::create("orla-entries");
  ASSERT_TRUE(place.ok()) << place.status();
  ASSERT_TRUE(write_file_atomically(place->path() / "b", "").ok());
  ASSERT_TRUE(make_directories(place->path() / "a" / "below").ok());
  const auto entries = folder_entries(place->path());
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_THAT(*entries, ::testing::ElementsAre(place->path() / "a", place->path() / "b"));
}

TEST(FolderEntries, OfNoFolderIsAnErrorWithItsName) {
  const auto entries = folder_entries("tests/no-such-folder");
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(entries.status().message()), ::testing::HasSubstr("tests/no-such-folder"));
}

}  // namespace
}  // namespace orla::base
