#include "link/root_core.h"

#include <gtest/gtest.h>

#include <limits>

namespace orla::link {
namespace {

constexpr ConnectionId kOne{1};
constexpr ConnectionId kTwo{2};
using Verdict = RootCore::Verdict;

class RootCoreTest : public testing::Test {
 protected:
  static model::Range range(std::string node, model::Sequence first, model::Sequence last, std::uint64_t epoch = 7) {
    model::Range r;
    r.node = std::move(node);
    r.epoch = model::Epoch{epoch};
    r.first = first;
    r.last = last;
    r.chain_before = {0, first - 1};
    r.chain_after = {0, last};
    return r;
  }
  static model::Cursor cursor(std::string node, model::Sequence last, std::uint64_t epoch = 7) {
    return {std::move(node), model::Epoch{epoch}, last, {0, last}};
  }
  bool fold(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges) {
    if (root.offer(child, frame, ranges) != Verdict::kFold) return false;
    root.folded(child, frame, ranges);
    return true;
  }
  template <typename T>
  std::vector<T> take() {
    std::vector<T> found;
    for (RootCore::Action& action : root.take_actions()) {
      if (auto* wanted = std::get_if<T>(&action)) found.push_back(std::move(*wanted));
    }
    return found;
  }
  Refused refusal() {
    const auto told = take<RootCore::ToChild>();
    EXPECT_EQ(told.size(), 1U);
    return told.empty() ? Refused{} : std::get<Refused>(told[0].message);
  }
  void expect_accounts() {
    const RootCore::Counters& c = root.counters();
    EXPECT_EQ(c.received, c.applied + c.duplicate + c.refused + c.pending);
  }

  RootCore root{{cursor("a", 5)}, {{"a", model::Epoch{3}, 11}}};
};

TEST_F(RootCoreTest, FoldsTheNextChunksAndAcknowledgesAfterTheCommit) {
  EXPECT_FALSE(root.dirty());
  EXPECT_TRUE(fold(kOne, 1, {range("a", 6, 8)}));
  EXPECT_TRUE(fold(kTwo, 1, {range("a", 9, 9), range("b", 1, 2)}));
  EXPECT_TRUE(root.take_actions().empty()) << "nothing tentative is told";
  EXPECT_EQ(root.cursor("a").last, 5U);
  EXPECT_EQ(root.changes().cursors, (std::vector<model::Cursor>{cursor("a", 9), cursor("b", 2)}));
  EXPECT_EQ(root.counters().pending, 6U);
  root.committed();
  const auto told = take<RootCore::ToChild>();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(std::get<Acknowledge>(told[0].message).cursors, std::vector<model::Cursor>{cursor("a", 9)});
  EXPECT_EQ(std::get<Acknowledge>(told[1].message).cursors,
            (std::vector<model::Cursor>{cursor("a", 9), cursor("b", 2)}));
  EXPECT_FALSE(root.dirty());
  EXPECT_EQ(root.counters().applied, 6U);
  expect_accounts();
}

TEST_F(RootCoreTest, TellsWhichNumbersStandAsTombstones) {
  model::Range lossy = range("a", 6, 9);
  lossy.note.tombstones = {{7, 8, "damaged", {}, {}, {}}};
  EXPECT_TRUE(fold(kOne, 1, {lossy}));
  model::Range next = range("a", 10, 10);
  next.note.tombstones = {{10, 10, "drop_oldest", {}, {}, {}}};
  EXPECT_TRUE(fold(kOne, 2, {next}));
  EXPECT_TRUE(root.cursor("a").tombstones.empty()) << "not committed";
  const std::vector<model::SequenceRange> stand = {{7, 8}, {10, 10}};
  ASSERT_EQ(root.changes().cursors.size(), 1U);
  EXPECT_EQ(root.changes().cursors[0].tombstones, stand);
  root.committed();
  const auto told = take<RootCore::ToChild>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(std::get<Acknowledge>(told[0].message).cursors.at(0).tombstones, stand);
  // The original that comes later is refused with the same.
  EXPECT_FALSE(fold(kTwo, 1, {range("a", 7, 8)}));
  EXPECT_EQ(refusal().cursors.at(0).tombstones, stand);
  // And so is the epoch when it is closed; the next one starts without any.
  root.open(kOne, {1, "a", model::Epoch{8}, model::Epoch{7}});
  const RootCore::Changes changes = root.changes();
  ASSERT_EQ(changes.closed.size(), 1U);
  EXPECT_EQ(changes.closed[0].tombstones, stand);
  root.committed();
  const auto opened = take<RootCore::AnswerOpen>();
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].message.replaced_last, 10U);
  EXPECT_EQ(opened[0].message.replaced_tombstones, stand);
  EXPECT_TRUE(opened[0].message.current.tombstones.empty());
  // From the store, the same.
  RootCore again({changes.cursors}, {changes.closed});
  again.open(kOne, {1, "a", model::Epoch{9}, model::Epoch{7}});
  for (RootCore::Action& action : again.take_actions()) {
    if (const auto* answer = std::get_if<RootCore::AnswerOpen>(&action)) {
      EXPECT_FALSE(answer->message.opened);
      EXPECT_EQ(answer->message.replaced_tombstones, stand);
    }
  }
}

TEST_F(RootCoreTest, TombstonesOfARolledBackCommitAreForgotten) {
  model::Range lossy = range("a", 6, 6);
  lossy.note.tombstones = {{6, 6, "damaged", {}, {}, {}}};
  EXPECT_TRUE(fold(kOne, 1, {lossy}));
  root.changes();
  root.rolled_back("disk full");
  EXPECT_TRUE(fold(kOne, 2, {range("a", 6, 6)}));
  EXPECT_TRUE(root.changes().cursors.at(0).tombstones.empty());
}

TEST_F(RootCoreTest, ATombstoneWithAnotherChainIsADigestMismatch) {
  model::Range forged = range("a", 6, 6);
  forged.chain_before.high = 9;
  forged.note.tombstones = {{6, 6, "damaged", {}, {}, {}}};
  EXPECT_FALSE(fold(kOne, 1, {forged}));
  EXPECT_EQ(refusal().reason, RefusalReason::kDigest);
  // The original was folded in; its tombstone has the same chain and is only a resend.
  EXPECT_TRUE(fold(kOne, 2, {range("a", 6, 6)}));
  root.changes();
  root.committed();
  root.take_actions();
  model::Range late = range("a", 6, 6);
  late.note.tombstones = {{6, 6, "damaged", {}, {}, {}}};
  EXPECT_FALSE(fold(kOne, 3, {late}));
  EXPECT_EQ(refusal().reason, RefusalReason::kCursor);
}

TEST_F(RootCoreTest, TombstonesOutsideTheirRangeAreMalformed) {
  model::Range wrong = range("a", 6, 6);
  wrong.note.tombstones = {{6, 7, "damaged", {}, {}, {}}};
  EXPECT_FALSE(fold(kOne, 1, {wrong}));
  EXPECT_EQ(refusal().reason, RefusalReason::kMalformed);
}

TEST_F(RootCoreTest, AnythingButTheNextIsRefusedWithTheCursor) {
  for (const model::Range& r : {range("a", 7, 7), range("a", 5, 6), range("a", 1, 2), range("a", 1, 1, 8),
                                range("a", 12, 12, 3), range("c", 2, 2)}) {
    EXPECT_EQ(root.offer(kOne, 9, {r}), Verdict::kAnswered);
    const Refused told = refusal();
    EXPECT_EQ(told.frame, 9U);
    EXPECT_EQ(told.reason, RefusalReason::kCursor);
    ASSERT_EQ(told.cursors.size(), 1U);
    EXPECT_EQ(told.cursors[0], root.cursor(r.node));
  }
  EXPECT_EQ(root.cursor("c").epoch, model::Epoch{});
  EXPECT_FALSE(root.dirty());
  expect_accounts();
  // 7 and 6 are gaps, 5 and 1..2 covered, one chunk each of an unknown and a closed epoch, c2 a gap.
  EXPECT_EQ(root.counters().duplicate, 5U);
  EXPECT_EQ(root.counters().refused, 3U);
}

TEST_F(RootCoreTest, OneBadRangeRefusesTheWholeFrame) {
  EXPECT_EQ(root.offer(kOne, 1, {range("a", 6, 6), range("b", 2, 2)}), Verdict::kAnswered);
  EXPECT_EQ(refusal().cursors.size(), 2U);
  EXPECT_TRUE(fold(kOne, 2, {range("a", 6, 6)}));
}

TEST_F(RootCoreTest, ARefusalThatDependsOnTheOpenCommitWaitsForIt) {
  EXPECT_TRUE(fold(kOne, 1, {range("a", 6, 6)}));
  // The same chunk over another way: told now, the committed cursor would make it come again, the tentative one would
  // let the edge drop what is not durable.
  EXPECT_EQ(root.offer(kTwo, 4, {range("a", 6, 6)}), Verdict::kAnswered);
  EXPECT_TRUE(root.take_actions().empty());
  expect_accounts();
  root.committed();
  const auto told = take<RootCore::ToChild>();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(std::get<Refused>(told[1].message).cursors[0], cursor("a", 6));
  EXPECT_EQ(root.counters().duplicate, 1U);
  expect_accounts();
}

TEST_F(RootCoreTest, ARollbackAsksForEverythingAgain) {
  EXPECT_TRUE(fold(kOne, 1, {range("a", 6, 6)}));
  EXPECT_TRUE(fold(kOne, 2, {range("z", 1, 1)}));
  EXPECT_EQ(root.offer(kTwo, 4, {range("a", 6, 6)}), Verdict::kAnswered);
  root.open(kTwo, {1, "z", model::Epoch{20}, model::Epoch{7}});
  root.rolled_back("disk full");
  std::vector<RefusalReason> reasons;
  for (const auto& action : root.take_actions()) {
    if (const auto* to = std::get_if<RootCore::ToChild>(&action)) {
      const auto& refused = std::get<Refused>(to->message);
      reasons.push_back(refused.reason);
      EXPECT_EQ(refused.cursors[0], root.cursor(refused.cursors[0].node));
    } else {
      EXPECT_FALSE(std::get<RootCore::AnswerOpen>(action).message.opened);
    }
  }
  EXPECT_EQ(reasons, (std::vector{RefusalReason::kFull, RefusalReason::kFull, RefusalReason::kCursor}));
  EXPECT_EQ(root.cursor("a"), cursor("a", 5));
  EXPECT_EQ(root.cursor("z").epoch, model::Epoch{});
  EXPECT_FALSE(root.dirty());
  expect_accounts();
  EXPECT_TRUE(fold(kOne, 5, {range("a", 6, 6)}));
}

TEST_F(RootCoreTest, AnotherChainIsAnAlarm) {
  model::Range forged = range("a", 6, 6);
  forged.chain_before.high = 1;
  EXPECT_EQ(root.offer(kOne, 1, {forged}), Verdict::kAnswered);
  auto actions = root.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<RootCore::Alarm>(actions[0]));
  EXPECT_EQ(std::get<Refused>(std::get<RootCore::ToChild>(actions[1]).message).reason, RefusalReason::kDigest);
  model::Range resent = range("a", 4, 5);
  resent.chain_after.high = 1;
  EXPECT_EQ(root.offer(kOne, 2, {resent}), Verdict::kAnswered);
  actions = root.take_actions();
  EXPECT_EQ(std::get<Refused>(std::get<RootCore::ToChild>(actions.at(1)).message).reason, RefusalReason::kDigest);
  model::Range first = range("new", 1, 1);
  first.chain_before.low = 9;
  EXPECT_EQ(root.offer(kOne, 3, {first}), Verdict::kAnswered);
  EXPECT_EQ(root.counters().alarms, 3U);
}

TEST_F(RootCoreTest, MalformedFramesAreRefusedAndNothingElse) {
  const auto huge = std::numeric_limits<model::Sequence>::max();
  for (const std::vector<model::Range>& ranges : {std::vector<model::Range>{},
                                                  {range("b", 1, 1), range("a", 6, 6)},
                                                  {range("a", 6, 6), range("a", 7, 7)},
                                                  {range("a", 7, 6)},
                                                  {range("a", 0, 6)},
                                                  {range("a", 6, huge)},
                                                  {range("a", 6, 6, 0)},
                                                  {range("", 1, 1)}}) {
    EXPECT_EQ(root.offer(kOne, 1, ranges), Verdict::kAnswered);
    EXPECT_EQ(refusal().reason, RefusalReason::kMalformed);
  }
  EXPECT_FALSE(root.dirty());
  EXPECT_TRUE(fold(kOne, 2, {range("a", 6, 6)}));
}

TEST_F(RootCoreTest, OpenEpochIsACompareAndSwapAnsweredAfterTheCommit) {
  root.open(kOne, {1, "a", model::Epoch{8}, {}});  // a has an epoch
  auto answer = take<RootCore::AnswerOpen>().at(0).message;
  EXPECT_FALSE(answer.opened);
  EXPECT_EQ(answer.current, cursor("a", 5));
  EXPECT_TRUE(fold(kTwo, 1, {range("a", 6, 6)}));
  root.open(kOne, {2, "a", model::Epoch{8}, model::Epoch{7}});
  EXPECT_TRUE(root.take_actions().empty());
  EXPECT_EQ(root.offer(kTwo, 2, {range("a", 7, 7)}), Verdict::kAnswered) << "closed at once";
  const RootCore::Changes changes = root.changes();
  EXPECT_EQ(changes.closed, (std::vector<ClosedOrigin>{{"a", model::Epoch{7}, 6}}));
  ASSERT_EQ(changes.cursors.size(), 1U);
  EXPECT_EQ(changes.cursors[0].epoch, model::Epoch{8});
  EXPECT_EQ(changes.cursors[0].last, 0U);
  root.committed();
  const auto actions = root.take_actions();
  ASSERT_EQ(actions.size(), 3U);
  // Chunk 6 is acknowledged in the epoch it was of.
  EXPECT_EQ(std::get<Acknowledge>(std::get<RootCore::ToChild>(actions[0]).message).cursors[0], cursor("a", 6));
  EXPECT_EQ(std::get<Refused>(std::get<RootCore::ToChild>(actions[1]).message).cursors[0].epoch, model::Epoch{8});
  answer = std::get<RootCore::AnswerOpen>(actions[2]).message;
  EXPECT_TRUE(answer.opened);
  EXPECT_EQ(answer.replaced_last, 6U);
  // Idempotent.
  root.open(kOne, {3, "a", model::Epoch{8}, model::Epoch{7}});
  answer = take<RootCore::AnswerOpen>().at(0).message;
  EXPECT_TRUE(answer.opened);
  EXPECT_EQ(answer.replaced_last, 6U);
  // A closed epoch never comes back, and tells how far it came.
  root.open(kOne, {4, "a", model::Epoch{7}, model::Epoch{8}});
  EXPECT_FALSE(take<RootCore::AnswerOpen>().at(0).message.opened);
  root.open(kOne, {5, "a", model::Epoch{9}, model::Epoch{3}});
  answer = take<RootCore::AnswerOpen>().at(0).message;
  EXPECT_FALSE(answer.opened);
  EXPECT_EQ(answer.replaced_last, 11U);
  expect_accounts();
}

TEST_F(RootCoreTest, ANodeWithoutAnEpochOpensItsFirst) {
  root.open(kOne, {1, "new", model::Epoch{8}, model::Epoch{4}});
  EXPECT_FALSE(take<RootCore::AnswerOpen>().at(0).message.opened);
  root.open(kOne, {2, "new", model::Epoch{8}, {}});
  EXPECT_TRUE(root.dirty());
  root.committed();
  const auto answer = take<RootCore::AnswerOpen>().at(0).message;
  EXPECT_TRUE(answer.opened);
  EXPECT_FALSE(answer.replaced_last.has_value());
  EXPECT_TRUE(fold(kOne, 1, {range("new", 1, 1, 8)}));
}

TEST_F(RootCoreTest, AChildThatLeftIsToldNothing) {
  EXPECT_TRUE(fold(kOne, 1, {range("a", 6, 6)}));
  EXPECT_EQ(root.offer(kOne, 2, {range("a", 6, 6)}), Verdict::kAnswered);
  root.open(kOne, {1, "a", model::Epoch{8}, model::Epoch{7}});
  root.child_down(kOne);
  root.committed();
  EXPECT_TRUE(root.take_actions().empty());
  expect_accounts();
}

TEST_F(RootCoreTest, RefuseCountsAndAnswers) {
  const std::vector<model::Range> ranges = {range("a", 6, 7)};
  ASSERT_EQ(root.offer(kOne, 1, ranges), Verdict::kFold);
  root.refuse(kOne, 1, ranges, RefusalReason::kFull, "parked partials at their bound");
  const Refused told = refusal();
  EXPECT_EQ(told.reason, RefusalReason::kFull);
  EXPECT_EQ(told.cursors[0], cursor("a", 5));
  EXPECT_EQ(root.counters().refused, 2U);
  expect_accounts();
}

TEST_F(RootCoreTest, NothingIsAddedToACommitUnderWay) {
  EXPECT_TRUE(fold(kOne, 1, {range("a", 6, 6)}));
  EXPECT_EQ(root.changes().cursors.size(), 1U);
  // The commit fails and is repeated as it was; what comes meanwhile must not be counted as durable with it.
  EXPECT_EQ(root.offer(kOne, 2, {range("a", 7, 7)}), Verdict::kAnswered);
  EXPECT_EQ(refusal().reason, RefusalReason::kFull);
  root.open(kTwo, {1, "b", model::Epoch{8}, {}});
  EXPECT_EQ(root.changes().cursors.size(), 1U);
  root.committed();
  EXPECT_EQ(take<RootCore::ToChild>().size(), 1U);
  EXPECT_EQ(root.cursor("b").epoch, model::Epoch{});
  EXPECT_TRUE(root.dirty());
  EXPECT_EQ(root.changes().cursors.at(0).node, "b");
  root.committed();
  EXPECT_TRUE(take<RootCore::AnswerOpen>().at(0).message.opened);
  expect_accounts();
}

TEST_F(RootCoreTest, FramesThatCannotBeDecodedAreCounted) {
  root.refuse(kOne, 1, {range("a", 6, 7)}, RefusalReason::kMalformed, "no rows");
  EXPECT_EQ(refusal().reason, RefusalReason::kMalformed);
  EXPECT_EQ(root.counters().received, 2U);
  root.refuse(kOne, 2, {range("a", 9, 7)}, RefusalReason::kMalformed, "nothing in it is right");
  EXPECT_EQ(root.counters().received, 2U);
  expect_accounts();
}

}  // namespace
}  // namespace orla::link
