// Disk errors at the worst moments: while a generation of the journal begins, and in a sync of which nobody knows any
// more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/edge_files.h"
#include "store/edge_store_for_tests.h"

namespace orla::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Step = base::FaultyDisk::Step;

class SegmentEdgeFaultTest : public SegmentEdgeStoreTest {
 protected:
  // Steps of this kind with files of such a name fail before anything of them happened.
  void refuse(std::vector<std::pair<Step::Kind, std::string>> what) {
    disk_.hook = [what = std::move(what)](const Step& step) {
      for (const auto& [kind, text] : what) {
        if (step.kind == kind && step.moment == Step::Moment::kBefore && step.name.find(text) != std::string::npos) {
          return absl::UnavailableError("simulated: " + step.name);
        }
      }
      return absl::OkStatus();
    };
  }
  void allow() { disk_.hook = nullptr; }
  std::vector<std::string> journals() const {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : disk_.contents()) {
      if (name.starts_with("journal-")) out.push_back(name);
    }
    return out;
  }
  EdgeRecovery after_power_loss(EdgeStoreOptions options = {}) {
    store_.reset();
    disk_.power_loss();
    return start(options);
  }
};

TEST_F(SegmentEdgeFaultTest, AGenerationWithoutItsSecondCopyIsNotInForce) {
  fill(3, 100);
  const std::vector<std::string> before = journals();
  refuse({{Step::Kind::kOpen, ".b"}, {Step::Kind::kRemove, before[0]}, {Step::Kind::kRemove, before[1]}});
  // Were it acknowledged, damage of the only copy would bring back the generation before.
  EXPECT_FALSE(commit("T", {chunk_for_tests(4, 100)}, true).ok());
  ASSERT_TRUE(commit("d", {chunk_for_tests(4, 100)}).ok());  // where it was before
  EXPECT_FALSE(commit("T", {chunk_for_tests(5, 100)}, true).ok());
  allow();
  disk_.crash();
  for (const std::string& name : journals()) {
    if (name > before[1]) disk_.cut(name, 80);
  }
  const EdgeRecovery recovery = restart();
  EXPECT_THAT(recovery.journal, ElementsAre("S", "c1", "c2", "c3", "d"));
  EXPECT_EQ(recovery.meta.next_sequence, 5U);
  EXPECT_THAT(recovery.damage, IsEmpty());
  ASSERT_TRUE(commit("T", {chunk_for_tests(5, 100)}, true).ok());
  EXPECT_THAT(restart().journal, ElementsAre("T"));
}

TEST_F(SegmentEdgeFaultTest, NothingFollowsBeforeTheGenerationBeforeIsGone) {
  fill(3, 100);
  const std::vector<std::string> before = journals();
  for (const std::string& stays : before) {
    if (disk_.contents().count(stays) == 0) continue;
    refuse({{Step::Kind::kRemove, stays}});
    // Twice on disk: it has happened, and stays.
    ASSERT_TRUE(commit("T", {}, true).ok());
    EXPECT_FALSE(commit("d").ok());
    EXPECT_FALSE(store_->trim(1).ok());
    EXPECT_THAT(restart({.segment_bytes = 1000}).journal, ElementsAre("T"));
    EXPECT_FALSE(commit("d").ok());
    // One copy is damaged: the other one counts, not the generation before.
    for (const std::string& name : journals()) {
      if (name > before[1] && name.ends_with(".a")) disk_.cut(name, 80);
    }
    EXPECT_THAT(restart({.segment_bytes = 1000}).journal, ElementsAre("T"));
    allow();
    ASSERT_TRUE(commit("e").ok());
    EXPECT_EQ(journals().size(), 2U);
    EXPECT_GT(journals().front(), before[1]);
    EXPECT_THAT(restart().journal, ElementsAre("T", "e"));
  }
}

TEST_F(SegmentEdgeFaultTest, AnOlderGenerationNeverTakesThePlaceOfALostOne) {
  for (const bool with_chunk : {false, true}) {
    store_.reset();
    for (const auto& [file, bytes] : disk_.contents()) disk_.erase(file);
    next_ = 1;
    fill(3, 100);
    std::map<std::string, std::string> old;
    for (const std::string& name : journals()) old[name] = disk_.contents().at(name);
    ASSERT_TRUE(commit("T", with_chunk ? std::vector{chunk_for_tests(4, 100)} : std::vector<StoredChunk>{}, true).ok());
    disk_.crash();
    for (const std::string& name : journals()) disk_.cut(name, name.ends_with(".a") ? 80 : 0);
    for (const auto& [name, bytes] : old) disk_.put(name, bytes);
    for (int i = 0; i < 2; ++i) {
      const EdgeRecovery recovery = restart();
      ASSERT_TRUE(recovery.without_journal.has_value()) << i;
      EXPECT_TRUE(recovery.reopen);
      EXPECT_EQ(recovery.damage.empty(), i == 1);
      EXPECT_EQ(recovery.meta.next_sequence, with_chunk ? 5U : 4U);
    }
    // Nor later: numbers of changes go on beyond all that were seen.
    ASSERT_TRUE(commit("U", {}, true).ok());
    EXPECT_THAT(restart().journal, ElementsAre("U"));
  }
}

TEST_F(SegmentEdgeFaultTest, WhatWasReadAfterAFailedSyncSurvivesThePower) {
  fill(2, 100);
  disk_.odds.sync = 1;
  EXPECT_FALSE(commit("x").ok());
  disk_.odds = {};
  const EdgeRecovery told = restart();  // it is in the machine's cache
  EXPECT_THAT(told.journal, ElementsAre("S", "c1", "c2", "x"));
  EXPECT_EQ(after_power_loss().journal, told.journal);
}

TEST_F(SegmentEdgeFaultTest, ATrimReadAfterAFailedSyncSurvivesThePower) {
  fill(12, 300);
  disk_.odds.sync = 1;
  EXPECT_FALSE(store_->trim(6).ok());
  disk_.odds = {};
  EXPECT_EQ(restart().meta.acknowledged, 6U);  // and removes segments
  const EdgeRecovery recovery = after_power_loss();
  EXPECT_EQ(recovery.meta.acknowledged, 6U);
  EXPECT_THAT(recovery.damage, IsEmpty());
  for (const OutboxEntry& entry : recovery.outbox) EXPECT_FALSE(entry.lost) << entry.sequence;
}

TEST_F(SegmentEdgeFaultTest, AnEndWhoseSyncFailedIsNoCleanOne) {
  fill(12, 300);
  ASSERT_TRUE(store_->trim(1).ok());  // not synced: no segment is to be removed
  disk_.odds.sync = 1;
  EXPECT_FALSE(store_->close().ok());
  disk_.odds = {};
  EXPECT_EQ(restart().meta.acknowledged, 1U);
  EXPECT_EQ(after_power_loss().meta.acknowledged, 1U);
}

TEST_F(SegmentEdgeFaultTest, RowsReadAfterAFailedSyncSurviveThePower) {
  const EdgeStoreOptions delayed{.fsync = FsyncMode::kDelayed, .fsync_delay = std::chrono::milliseconds(10)};
  start(delayed);
  ASSERT_TRUE(commit("S", {}, true).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 100)}).ok());
  clock_.now += std::chrono::seconds(1);
  disk_.odds.sync = 1;
  EXPECT_FALSE(store_->maintain().ok());
  disk_.odds = {};
  EXPECT_THAT(restart(delayed).journal, ElementsAre("S", "a"));
  const EdgeRecovery recovery = after_power_loss(delayed);
  EXPECT_THAT(recovery.journal, ElementsAre("S", "a"));
  EXPECT_EQ(store_->load(1).value(), chunk_for_tests(1, 100));
}

// A segment of a commit that never was is overwritten: its length says nothing of what is durable there.
TEST_F(SegmentEdgeFaultTest, ASegmentThatCouldNotBeRemovedIsSyncedWhenItBeginsAnew) {
  start({.segment_bytes = 100});
  ASSERT_TRUE(commit("S", {}, true).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 200)}).ok());
  disk_.put(segment_name(2), std::string(5000, 'x'));
  refuse({{Step::Kind::kRemove, segment_name(2)}});
  restart({.segment_bytes = 100});
  allow();
  ASSERT_TRUE(commit("b", {chunk_for_tests(2, 200)}).ok());
  after_power_loss();
  EXPECT_EQ(store_->load(2).value(), chunk_for_tests(2, 200));
}

class SegmentEdgeClosedTest : public SegmentEdgeFaultTest, public testing::WithParamInterface<FsyncMode> {};

// The process dies when the sync of the record that says so failed, before it can take it away again: the next one
// finds a journal that says it is closed, in the machine's cache only. What it then writes must not stand behind a
// hole.
TEST_P(SegmentEdgeClosedTest, ItsFailedSyncIsNotBuiltUpon) {
  const EdgeStoreOptions options{.fsync = GetParam()};
  start(options);
  ASSERT_TRUE(commit("S", {}, true).ok());
  ASSERT_TRUE(commit("a", {chunk_for_tests(1, 100)}).ok());
  int appended = 0;
  disk_.hook = [&](const Step& step) -> absl::Status {
    if (step.kind == Step::Kind::kAppend && step.moment == Step::Moment::kAfter) {
      ++appended;
      disk_.odds.sync = 1;
    }
    // The process is dead from then on.
    if (appended > 0 && step.kind != Step::Kind::kSync && step.moment == Step::Moment::kBefore)
      return absl::UnavailableError("simulated: the process is dead");
    return absl::OkStatus();
  };
  EXPECT_FALSE(store_->close().ok());
  EXPECT_EQ(appended, 1);
  allow();
  disk_.odds = {};
  EXPECT_THAT(restart(options).journal, ElementsAre("S", "a"));
  ASSERT_TRUE(commit("b", {chunk_for_tests(2, 100)}).ok());
  ASSERT_TRUE(store_->close().ok());
  const EdgeRecovery recovery = after_power_loss(options);
  EXPECT_THAT(recovery.journal, ElementsAre("S", "a", "b"));
  EXPECT_THAT(recovery.damage, IsEmpty());
  EXPECT_EQ(store_->load(1).value(), chunk_for_tests(1, 100));
  EXPECT_EQ(store_->load(2).value(), chunk_for_tests(2, 100));
}

INSTANTIATE_TEST_SUITE_P(Fsync, SegmentEdgeClosedTest,
                         testing::Values(FsyncMode::kOn, FsyncMode::kDelayed, FsyncMode::kOff));

}  // namespace
}  // namespace orla::store
