#include "link/relay_core.h"

#include <gtest/gtest.h>

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ConnectionId kOne{1};
constexpr ConnectionId kTwo{2};

class RelayCoreTest : public testing::Test {
 protected:
  RelayCoreTest() : relay(settings()) {
    relay.child_up(kOne);
    relay.child_up(kTwo);
    relay.session_up(now, 10'000);
  }

  static RelaySettings settings() {
    RelaySettings s;
    s.frame_bytes = 1000;
    s.max_delay = milliseconds(50);
    s.credit_bytes = 1000;
    return s;
  }

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
  static RelayCore::Rows rows(std::uint32_t group) {
    model::PartialRow row;
    row.group = model::GroupId{group};
    return std::make_shared<const model::Content>(model::Content{{row}, {}});
  }

  void frame(ConnectionId child, std::uint64_t id, std::vector<model::Range> ranges, std::size_t bytes = 10) {
    relay.frame(now, child, id, std::move(ranges), rows(static_cast<std::uint32_t>(id)), bytes);
  }
  // Time passes until queued parts are sent.
  std::vector<RelayCore::SendFrame> flush() {
    now += milliseconds(50);
    relay.tick(now);
    return take<RelayCore::SendFrame>();
  }
  template <typename T>
  std::vector<T> take() {
    std::vector<T> found;
    for (RelayCore::Action& action : relay.take_actions()) {
      if (auto* wanted = std::get_if<T>(&action)) found.push_back(std::move(*wanted));
    }
    return found;
  }
  static Refused refused(const RelayCore::ToChild& action) { return std::get<Refused>(action.message); }

  base::SteadyTime now{seconds(100)};
  RelayCore relay;
};

TEST_F(RelayCoreTest, MergesWhatIsQueuedIntoOneFrameWithOneRangePerOrigin) {
  frame(kOne, 1, {range("a", 1, 1)});
  frame(kTwo, 1, {range("b", 4, 4)});
  frame(kOne, 2, {range("a", 2, 2)});
  EXPECT_TRUE(relay.take_actions().empty());
  const auto sent = flush();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].id, 1U);
  EXPECT_EQ(sent[0].rows.size(), 3U);
  ASSERT_EQ(sent[0].ranges.size(), 2U);
  EXPECT_EQ(sent[0].ranges[0], range("a", 1, 2));
  EXPECT_EQ(sent[0].ranges[1], range("b", 4, 4));
}

TEST_F(RelayCoreTest, SendsAtOnceWhenAFrameIsFull) {
  frame(kOne, 1, {range("a", 1, 1)}, 600);
  EXPECT_TRUE(relay.take_actions().empty());
  frame(kOne, 2, {range("a", 2, 2)}, 600);
  EXPECT_EQ(take<RelayCore::SendFrame>().size(), 1U);
}

TEST_F(RelayCoreTest, KeepsToTheParentsCredit) {
  relay.session_up(now, 25);
  for (std::uint64_t i = 1; i <= 5; ++i) frame(kOne, i, {range("a", i, i)});
  auto sent = flush();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ranges[0], range("a", 1, 2));
  EXPECT_TRUE(flush().empty());
  relay.received(now, Acknowledge{{cursor("a", 2)}});
  sent = take<RelayCore::SendFrame>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ranges[0], range("a", 3, 4));
}

TEST_F(RelayCoreTest, AcknowledgementsGoToTheChildrenThatCarryTheOrigin) {
  frame(kOne, 1, {range("a", 1, 1)});
  frame(kTwo, 1, {range("b", 1, 1), range("c", 1, 1)});
  flush();
  relay.received(now, Acknowledge{{cursor("a", 1), cursor("b", 1), cursor("c", 1)}});
  const auto told = take<RelayCore::ToChild>();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(std::get<Acknowledge>(told[0].message).cursors, std::vector<model::Cursor>{cursor("a", 1)});
  EXPECT_EQ(std::get<Acknowledge>(told[1].message).cursors,
            (std::vector<model::Cursor>{cursor("b", 1), cursor("c", 1)}));
  EXPECT_TRUE(relay.idle());
  EXPECT_EQ(relay.held_bytes(), 0U);
  EXPECT_EQ(relay.counters().applied, 3U);
}

TEST_F(RelayCoreTest, ARefusedFrameIsSplitAndItsPartsGoAlone) {
  frame(kOne, 1, {range("a", 1, 1)});
  frame(kTwo, 1, {range("b", 1, 1)});
  frame(kOne, 2, {range("a", 2, 2)});
  ASSERT_EQ(flush().size(), 1U);
  relay.received(now, Refused{1, RefusalReason::kCursor, {cursor("a", 1), cursor("b", 0)}, "why"});
  // a's first part is covered: dropped, the acknowledgement passed on. The others go alone, at once.
  const auto actions = relay.take_actions();
  ASSERT_EQ(actions.size(), 4U);
  EXPECT_EQ(std::get<Acknowledge>(std::get<RelayCore::ToChild>(actions[0]).message).cursors[0], cursor("a", 1));
  EXPECT_EQ(std::get<RelayCore::SendFrame>(actions[2]).ranges, std::vector<model::Range>{range("b", 1, 1)});
  EXPECT_EQ(std::get<RelayCore::SendFrame>(actions[3]).ranges, std::vector<model::Range>{range("a", 2, 2)});
  // b's is refused alone: handed to its child with the child's frame id.
  relay.received(now, Refused{2, RefusalReason::kDigest, {cursor("b", 0)}, "why"});
  const auto told = take<RelayCore::ToChild>();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].child, kTwo);
  EXPECT_EQ(refused(told[1]).frame, 1U);
  EXPECT_EQ(refused(told[1]).reason, RefusalReason::kDigest);
  EXPECT_EQ(refused(told[1]).cursors, std::vector<model::Cursor>{cursor("b", 0)});
  EXPECT_EQ(relay.held_parts(), 1U);
}

TEST_F(RelayCoreTest, LaterPartsOfARefusedOriginAreHandedBackToo) {
  relay.session_up(now, 10);
  frame(kOne, 1, {range("a", 3, 3)});
  frame(kOne, 2, {range("a", 4, 4)});
  frame(kTwo, 1, {range("a", 5, 5)});
  frame(kOne, 3, {range("b", 1, 1)});
  ASSERT_EQ(flush().size(), 1U);
  relay.received(now, Refused{1, RefusalReason::kCursor, {cursor("a", 1)}, "gap"});
  std::vector<Refused> refusals;
  for (const auto& action : take<RelayCore::ToChild>()) {
    if (std::holds_alternative<Refused>(action.message)) {
      EXPECT_EQ(action.child, kOne);
      refusals.push_back(refused(action));
    }
  }
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_EQ(refusals[0].frame, 1U);
  EXPECT_EQ(refusals[1].frame, 2U);
  EXPECT_EQ(relay.held_parts(), 2U) << "another child's, and another origin's";
}

TEST_F(RelayCoreTest, AGapBehindAnEarlierPartWaitsForIt) {
  frame(kOne, 1, {range("a", 1, 1)}, 900);
  frame(kTwo, 1, {range("b", 1, 1)}, 100);  // frame 1: a1 b1
  ASSERT_EQ(take<RelayCore::SendFrame>().size(), 1U);
  frame(kOne, 2, {range("a", 2, 2)}, 1000);  // frame 2: a2
  ASSERT_EQ(take<RelayCore::SendFrame>().size(), 1U);
  relay.received(now, Refused{1, RefusalReason::kCursor, {cursor("a", 0), cursor("b", 5, 8)}, "b"});
  // While a2 is in flight a1 waits: it must not arrive behind it.
  auto sent = take<RelayCore::SendFrame>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ranges[0].node, "b");
  relay.received(now, Refused{2, RefusalReason::kCursor, {cursor("a", 0)}, "gap"});
  sent = take<RelayCore::SendFrame>();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].ranges[0], range("a", 1, 1));
  EXPECT_EQ(sent[1].ranges[0], range("a", 2, 2));
}

TEST_F(RelayCoreTest, TwoCopiesOfAChunkAreNeverInFlightAtOnce) {
  frame(kOne, 1, {range("a", 1, 2)});
  frame(kTwo, 1, {range("a", 1, 1)});
  const auto sent = flush();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ranges[0], range("a", 1, 2));
  relay.received(now, Acknowledge{{cursor("a", 2)}});
  EXPECT_TRUE(relay.idle());
  EXPECT_EQ(relay.counters().applied, 2U);
  EXPECT_EQ(relay.counters().duplicate, 1U);
}

TEST_F(RelayCoreTest, APartOfSeveralOriginsThatIsPartlyCoveredIsHandedDownToBeSplit) {
  frame(kOne, 1, {range("a", 1, 1), range("b", 1, 1)});
  ASSERT_EQ(flush().size(), 1U);
  relay.received(now, Refused{1, RefusalReason::kCursor, {cursor("a", 1), cursor("b", 0)}, "why"});
  const auto told = take<RelayCore::ToChild>();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Acknowledge>(told[0].message));
  EXPECT_EQ(refused(told[1]).cursors, (std::vector<model::Cursor>{cursor("a", 1), cursor("b", 0)}));
  EXPECT_TRUE(relay.idle());
}

TEST_F(RelayCoreTest, ALostParentMeansEverythingIsSentAgainOnTheNextSession) {
  frame(kOne, 1, {range("a", 1, 1)});
  flush();
  frame(kOne, 2, {range("a", 2, 2)});
  relay.session_down();
  EXPECT_TRUE(flush().empty());
  relay.session_up(now, 1000);
  const auto sent = take<RelayCore::SendFrame>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].id, 1U);
  EXPECT_EQ(sent[0].ranges[0], range("a", 1, 2));
}

TEST_F(RelayCoreTest, AChildThatLeavesTakesItsQueuedPartsWithIt) {
  relay.session_up(now, 10);
  frame(kOne, 1, {range("a", 1, 1)});
  frame(kOne, 2, {range("a", 2, 2)});
  ASSERT_EQ(flush().size(), 1U);
  relay.child_down(kOne);
  EXPECT_EQ(relay.held_parts(), 1U);
  EXPECT_EQ(relay.counters().dropped, 1U);
  // The one in flight may still be folded in, or refused: then nobody is told.
  relay.received(now, Refused{1, RefusalReason::kCursor, {cursor("a", 0)}, "why"});
  EXPECT_TRUE(take<RelayCore::ToChild>().empty());
  EXPECT_TRUE(relay.idle());
}

TEST_F(RelayCoreTest, MalformedAndOverdrawnFramesAreRefusedHere) {
  frame(kOne, 1, {});
  frame(kOne, 2, {range("b", 1, 1), range("a", 1, 1)});
  relay.unreadable(kOne, 3, "no rows");
  frame(kOne, 4, {range("a", 1, 1)}, 1500);
  frame(kOne, 5, {range("a", 2, 2)}, 501);
  std::vector<std::pair<std::uint64_t, RefusalReason>> found;
  for (const auto& action : take<RelayCore::ToChild>()) {
    found.emplace_back(refused(action).frame, refused(action).reason);
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::uint64_t, RefusalReason>>{{1, RefusalReason::kMalformed},
                                                                         {2, RefusalReason::kMalformed},
                                                                         {3, RefusalReason::kMalformed},
                                                                         {5, RefusalReason::kFull}}));
}

TEST_F(RelayCoreTest, OpenEpochPassesThroughWithItsOwnNumbersAndSurvivesTheSession) {
  OpenEpoch open{5, "a", model::Epoch{9}, model::Epoch{7}};
  relay.open(kOne, open);
  open.node = "b";
  relay.open(kTwo, open);
  auto up = take<RelayCore::SendOpen>();
  ASSERT_EQ(up.size(), 2U);
  EXPECT_NE(up[0].message.request, up[1].message.request);
  relay.session_down();
  relay.session_up(now, 1000);
  up = take<RelayCore::SendOpen>();
  ASSERT_EQ(up.size(), 2U);
  relay.received(now, Opened{up[1].message.request, true, cursor("b", 0, 9), 3, {{true, "s"}}});
  const auto down = take<RelayCore::ToChild>();
  ASSERT_EQ(down.size(), 1U);
  EXPECT_EQ(down[0].child, kTwo);
  const auto& opened = std::get<Opened>(down[0].message);
  EXPECT_EQ(opened.request, 5U);
  EXPECT_EQ(opened.replaced_last, 3U);
  EXPECT_EQ(opened.states.size(), 1U);
  relay.received(now, Opened{up[1].message.request, true, cursor("b", 0, 9), 3, {}});
  EXPECT_TRUE(relay.take_actions().empty());
}

}  // namespace
}  // namespace orla::link
