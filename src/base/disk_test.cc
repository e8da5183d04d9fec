// Both disks keep what Disk promises; the faulty one fails as it says.
#include "base/disk.h"

#include <gtest/gtest.h>

#include "base/faulty_disk.h"
#include "base/files.h"
#include "base/folder_disk.h"

namespace orla::base {
namespace {

using Step = FaultyDisk::Step;

void keeps_its_promises(Disk& disk) {
  EXPECT_TRUE(disk.list()->empty());
  EXPECT_EQ(disk.read("a", 0, 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(disk.append("a", 1).ok());  // there is nothing to keep
  auto file = disk.append("a", 0).value();
  ASSERT_TRUE(file->append("0123456789").ok());
  ASSERT_TRUE(file->append("abc").ok());
  ASSERT_TRUE(file->sync().ok());
  ASSERT_TRUE(disk.sync_names().ok());
  EXPECT_EQ(file->size(), 13U);
  EXPECT_EQ(disk.read("a", 8, 3).value(), "89a");
  EXPECT_EQ(disk.read("a", 11, 100).value(), "bc");
  EXPECT_EQ(disk.read("a", 13, 1).value(), "");
  EXPECT_EQ(disk.read("a", 1000, 1).value(), "");
  file = disk.append("a", 4).value();
  EXPECT_EQ(file->size(), 4U);
  ASSERT_TRUE(file->append("X").ok());
  EXPECT_EQ(disk.read("a", 0, 100).value(), "0123X");
  auto other = disk.append("0", 0).value();
  const auto entries = disk.list().value();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "0");
  EXPECT_EQ(entries[1].name, "a");
  EXPECT_EQ(entries[1].bytes, 5U);
  EXPECT_TRUE(disk.remove("0").ok());
  EXPECT_TRUE(disk.remove("0").ok());
  EXPECT_EQ(disk.list()->size(), 1U);
  EXPECT_FALSE(disk.boot().empty());
}

TEST(FolderDisk, KeepsItsPromises) {
  const TemporaryDirectory directory = TemporaryDirectory::create("disk").value();
  FolderDisk disk(directory.path());
  ASSERT_TRUE(make_directories(directory.path() / "folder").ok());
  keeps_its_promises(disk);
  EXPECT_EQ(disk.boot(), FolderDisk(directory.path()).boot());
  EXPECT_EQ(disk.where(), directory.path().native());
}

TEST(FolderDisk, NamesWhatIsMissing) {
  const TemporaryDirectory directory = TemporaryDirectory::create("disk").value();
  FolderDisk disk(directory.path() / "gone");
  EXPECT_EQ(disk.list().status().code(), absl::StatusCode::kNotFound);
  const absl::Status status = disk.append("a", 0).status();
  EXPECT_NE(std::string(status.message()).find("gone/a"), std::string::npos) << status;
}

TEST(FaultyDisk, KeepsItsPromises) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  keeps_its_promises(disk);
}

TEST(FaultyDisk, AProcessThatDiesLosesNothingThatItWrote) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  auto file = disk.append("a", 0).value();
  ASSERT_TRUE(file->append("abc").ok());
  disk.crash();
  EXPECT_FALSE(file->append("d").ok());  // the dead write nothing
  EXPECT_FALSE(file->sync().ok());
  EXPECT_EQ(disk.read("a", 0, 10).value(), "abc");
}

TEST(FaultyDisk, PowerLossKeepsWhatWasSynced) {
  bool vanished = false;
  bool kept = false;
  bool shorter = false;
  bool garbage = false;
  bool undone = false;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    FaultyDisk disk(random);
    auto file = disk.append("a", 0).value();
    ASSERT_TRUE(file->append("safe").ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(disk.sync_names().ok());
    ASSERT_TRUE(file->append("0123456789").ok());
    auto fresh = disk.append("new", 0).value();
    auto cut = disk.append("cut", 0).value();
    ASSERT_TRUE(cut->append("xyz").ok());
    ASSERT_TRUE(cut->sync().ok());
    cut = disk.append("cut", 1).value();
    const std::string boot = disk.boot();
    disk.power_loss();
    EXPECT_NE(disk.boot(), boot);
    const auto after = disk.contents();
    const std::string& a = after.at("a");
    ASSERT_EQ(a.substr(0, 4), "safe");
    ASSERT_LE(a.size(), 14U);
    vanished = vanished || after.count("new") == 0;
    kept = kept || after.count("new") == 1;
    shorter = shorter || a.size() < 14;
    garbage = garbage || a != std::string("safe0123456789").substr(0, a.size());
    if (after.count("cut") == 1) {
      EXPECT_TRUE(after.at("cut") == "x" || after.at("cut") == "xyz") << after.at("cut");
      undone = undone || after.at("cut") == "xyz";
    }
  }
  EXPECT_TRUE(vanished && kept && shorter && garbage && undone);
}

TEST(FaultyDisk, WhatAFailedSyncGaveUpIsNotSavedByTheNext) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  auto file = disk.append("a", 0).value();
  ASSERT_TRUE(disk.sync_names().ok());
  ASSERT_TRUE(file->append("abc").ok());
  disk.odds.sync = 1;
  EXPECT_FALSE(file->sync().ok());
  disk.odds.sync = 0;
  EXPECT_TRUE(file->sync().ok());
  disk.crash();
  EXPECT_TRUE(disk.append("a", 3).value()->sync().ok());  // another process knows even less
  EXPECT_EQ(disk.read("a", 0, 3).value(), "abc");
  disk.power_loss();
  EXPECT_EQ(disk.contents().at("a"), std::string(3, '\0'));
}

TEST(FaultyDisk, AFullDiskTakesAPart) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  auto file = disk.append("a", 0).value();
  disk.capacity = 5;
  EXPECT_EQ(file->append("0123456").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(disk.used(), 5U);
  disk.capacity = FaultyDisk::kNoLimit;
  file = disk.append("a", 2).value();
  EXPECT_TRUE(file->append("xyz").ok());
  EXPECT_EQ(disk.contents().at("a"), "01xyz");
}

TEST(FaultyDisk, TheHookSeesEveryMoment) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  std::vector<Step> seen;
  disk.hook = [&](const Step& step) {
    seen.push_back(step);
    return absl::OkStatus();
  };
  auto file = disk.append("a", 0).value();
  ASSERT_TRUE(file->append("abc").ok());
  ASSERT_TRUE(file->sync().ok());
  ASSERT_EQ(seen.size(), 7U);
  EXPECT_EQ(seen[2].kind, Step::Kind::kAppend);
  EXPECT_EQ(seen[2].moment, Step::Moment::kBefore);
  EXPECT_EQ(seen[2].bytes, 3U);
  EXPECT_EQ(seen[3].moment, Step::Moment::kWithin);
  EXPECT_EQ(seen[4].moment, Step::Moment::kAfter);
  // An error before: nothing happened. Within: a part. After: all of it.
  for (const auto& [moment, least, most] :
       {std::tuple(Step::Moment::kBefore, 3U, 3U), {Step::Moment::kWithin, 3U, 5U}, {Step::Moment::kAfter, 6U, 6U}}) {
    disk.hook = [moment = moment](const Step& step) {
      return step.moment == moment ? absl::UnavailableError("planted") : absl::OkStatus();
    };
    EXPECT_EQ(std::string(file->append("def").message()), "planted");
    EXPECT_GE(file->size(), least);
    EXPECT_LE(file->size(), most);
    disk.hook = nullptr;
    file = disk.append("a", 3).value();
  }
}

TEST(FaultyDisk, DamageIsDurable) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  disk.put("a", "abc");
  disk.put("b", "abcdef");
  disk.put("c", "");
  disk.flip_bit("a", 8);  // 'b' ^ 1
  disk.cut("b", 2);
  disk.erase("c");
  disk.power_loss();
  EXPECT_EQ(disk.contents(), (std::map<std::string, std::string>{{"a", "acc"}, {"b", "ab"}}));
}

TEST(FaultyDisk, OddsFailEverything) {
  SeededRandom random(1);
  FaultyDisk disk(random);
  disk.put("a", "abc");
  auto file = disk.append("a", 3).value();
  disk.odds = {.append = 1, .sync = 1, .open = 1, .remove = 1, .sync_names = 1, .read = 1};
  EXPECT_FALSE(file->append("d").ok());
  EXPECT_FALSE(file->sync().ok());
  EXPECT_FALSE(disk.append("a", 0).ok());
  EXPECT_FALSE(disk.remove("a").ok());
  EXPECT_FALSE(disk.sync_names().ok());
  EXPECT_FALSE(disk.read("a", 0, 1).ok());
  EXPECT_EQ(disk.counters().failures, 6U);
  disk.odds = {};
  EXPECT_EQ(disk.read("a", 0, 3).value(), "abc");
}

}  // namespace
}  // namespace orla::base
