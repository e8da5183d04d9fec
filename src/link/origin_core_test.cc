#include "link/origin_core.h"

#include <gtest/gtest.h>

#include "link/ranges.h"

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = OriginCore::Alarm::Kind;

class OriginCoreTest : public testing::Test {
 protected:
  static OriginSettings settings(model::Durability durability) {
    OriginSettings s;
    s.node = "edge";
    s.durability = durability;
    return s;
  }

  void seal(OriginCore& core, int n, std::size_t bytes = 10) {
    for (int i = 0; i < n; ++i) {
      chains.resize(std::max<std::size_t>(chains.size(), core.next_sequence() + 1));
      chains[core.next_sequence()] = chunk_chain(core.chain(), core.next_sequence(), "rows");
      core.sealed(now, bytes, chains[core.next_sequence()]);
    }
  }

  model::Cursor cursor(const OriginCore& core, model::Sequence last) const {
    return {"edge", core.epoch(), last, last < chains.size() ? chains[last] : base::Digest{}};
  }

  template <typename T>
  std::vector<T> take(OriginCore& core) {
    std::vector<T> found;
    for (OriginCore::Action& action : core.take_actions()) {
      if (auto* wanted = std::get_if<T>(&action)) found.push_back(std::move(*wanted));
    }
    return found;
  }

  std::vector<model::Sequence> sent(OriginCore& core) {
    std::vector<model::Sequence> sequences;
    for (const auto& action : take<OriginCore::SendChunk>(core)) {
      sequences.push_back(action.sequence);
      frame_of[action.sequence] = action.frame;
    }
    return sequences;
  }

  // A disk edge with `n` chunks sealed and a session on which chunk 1 is out.
  OriginCore& with(int n, std::uint64_t credit = 1000) {
    core_ = std::make_unique<OriginCore>(settings(model::Durability::kDisk), random);
    core_->start({});
    seal(*core_, n);
    core_->session_up(now, credit);
    EXPECT_EQ(sent(*core_), n > 0 ? std::vector<model::Sequence>{1} : std::vector<model::Sequence>{});
    return *core_;
  }

  void refuse(OriginCore& core, model::Sequence sequence, RefusalReason reason, const model::Cursor& at) {
    core.received(now, Refused{frame_of.at(sequence), reason, {at}, "why"});
  }

  base::SeededRandom random{1};
  base::SteadyTime now{seconds(100)};
  std::vector<base::Digest> chains{base::Digest{}};
  std::map<model::Sequence, std::uint64_t> frame_of;
  std::unique_ptr<OriginCore> core_;
};

TEST_F(OriginCoreTest, ADiskEdgeChoosesItsEpochWithoutACloud) {
  OriginCore core(settings(model::Durability::kDisk), random);
  core.start({});
  EXPECT_TRUE(core.ready());
  EXPECT_NE(core.epoch(), model::Epoch{});
  EXPECT_TRUE(core.take_actions().empty());
  OriginState kept;
  kept.epoch = model::Epoch{42};
  kept.next_sequence = 8;
  kept.acknowledged = 5;
  kept.outbox = {{5, 1}, {6, 10}, {7, 20}};
  OriginCore again(settings(model::Durability::kDisk), random);
  again.start(kept);
  EXPECT_EQ(again.epoch(), model::Epoch{42});
  EXPECT_EQ(again.pending_chunks(), 2U);
  EXPECT_EQ(again.pending_bytes(), 30U);
  EXPECT_EQ(again.first_unsent(), 8U) << "what is on disk may have been sent";
  again.session_up(now, 1000);
  EXPECT_EQ(sent(again), std::vector<model::Sequence>{6});
}

TEST_F(OriginCoreTest, SendsOneChunkFirstThenAsFarAsTheCreditGoes) {
  OriginCore& core = with(10, 35);
  core.received(now, Acknowledge{{cursor(core, 1)}});
  const auto trims = core.take_actions();
  EXPECT_EQ(std::get<OriginCore::Trim>(trims[0]).through, 1U);
  ASSERT_EQ(trims.size(), 4U);  // three of 10 bytes fit into 35
  core.received(now, Acknowledge{{cursor(core, 3)}});
  EXPECT_EQ(sent(core), (std::vector<model::Sequence>{5, 6}));
  EXPECT_EQ(core.first_unsent(), 7U);
}

TEST_F(OriginCoreTest, AChunkLargerThanTheCreditGoesAlone) {
  OriginCore& core = with(0, 35);
  seal(core, 2, 1000);
  EXPECT_EQ(sent(core), std::vector<model::Sequence>{1});
  core.received(now, Acknowledge{{cursor(core, 1)}});
  EXPECT_EQ(sent(core), std::vector<model::Sequence>{2});
}

TEST_F(OriginCoreTest, ANewSessionSendsEverythingUnacknowledgedAgain) {
  OriginCore& core = with(3);
  core.received(now, Acknowledge{{cursor(core, 1)}});
  EXPECT_EQ(sent(core), (std::vector<model::Sequence>{2, 3}));
  core.session_down();
  EXPECT_TRUE(core.take_actions().empty());
  core.session_up(now, 1000);
  const auto first = take<OriginCore::SendChunk>(core);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].sequence, 2U);
  EXPECT_EQ(first[0].frame, 1U) << "frame ids start anew";
}

TEST_F(OriginCoreTest, AResendThatIsCoveredTrims) {
  OriginCore& core = with(5);
  refuse(core, 1, RefusalReason::kCursor, cursor(core, 3));
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 3U);
  EXPECT_EQ(std::get<OriginCore::Trim>(actions[0]).through, 3U);
  EXPECT_EQ(std::get<OriginCore::SendChunk>(actions[1]).sequence, 4U);
  EXPECT_EQ(std::get<OriginCore::SendChunk>(actions[2]).sequence, 5U);
}

TEST_F(OriginCoreTest, AGapIsSentAgainOnceNothingIsInFlight) {
  OriginCore& core = with(5);
  core.received(now, Acknowledge{{cursor(core, 1)}});
  EXPECT_EQ(sent(core), (std::vector<model::Sequence>{2, 3, 4, 5}));
  refuse(core, 3, RefusalReason::kCursor, cursor(core, 1));  // 2 was lost on the way
  refuse(core, 4, RefusalReason::kCursor, cursor(core, 1));
  EXPECT_TRUE(core.take_actions().empty());
  refuse(core, 2, RefusalReason::kCursor, cursor(core, 1));
  EXPECT_TRUE(core.take_actions().empty());
  refuse(core, 5, RefusalReason::kCursor, cursor(core, 1));
  now += seconds(1);
  core.tick(now);
  EXPECT_EQ(sent(core), std::vector<model::Sequence>{2});
}

TEST_F(OriginCoreTest, FullPausesLongerAndLonger) {
  OriginCore& core = with(1);
  std::chrono::nanoseconds last{};
  for (int i = 0; i < 5; ++i) {
    refuse(core, 1, RefusalReason::kFull, cursor(core, 0));
    EXPECT_EQ(core.stalled(), "why");
    const base::SteadyTime refused = now;
    while (sent(core).empty()) {
      now += milliseconds(10);
      core.tick(now);
      ASSERT_LT(now - refused, seconds(100));
    }
    EXPECT_GT(now - refused, last);
    last = (now - refused) * 1.0 > milliseconds(100) ? std::chrono::nanoseconds((now - refused).count() / 2) : last;
  }
  EXPECT_GT(last, seconds(1));
  core.received(now, Acknowledge{{cursor(core, 1)}});
  EXPECT_TRUE(core.stalled().empty());
  EXPECT_TRUE(core.drained());
}

TEST_F(OriginCoreTest, ACloudThatWentBackIsAnAlarmAndNoSpin) {
  OriginCore& core = with(5);
  core.received(now, Acknowledge{{cursor(core, 3)}});
  EXPECT_EQ(sent(core), (std::vector<model::Sequence>{4, 5}));
  for (const model::Sequence s : {4, 5}) refuse(core, s, RefusalReason::kCursor, cursor(core, 2));
  const auto alarms = take<OriginCore::Alarm>(core);
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_EQ(alarms[0].kind, Kind::kCloudLostData);
  EXPECT_NE(alarms[0].text.find("cloud lost data"), std::string::npos);
  core.tick(now);
  EXPECT_TRUE(sent(core).empty());
  EXPECT_EQ(core.pending_chunks(), 2U) << "nothing is dropped";
  now += seconds(1);
  core.tick(now);
  EXPECT_EQ(sent(core).size(), 1U);
  // A cloud that has nothing of the node at all.
  refuse(core, 4, RefusalReason::kCursor, {"edge", {}, 0, {}});
  EXPECT_TRUE(take<OriginCore::Alarm>(core).empty()) << "said once";
  EXPECT_FALSE(core.stalled().empty());
}

TEST_F(OriginCoreTest, DigestsAndUnknownChunksExposeAClone) {
  OriginCore& core = with(3);
  refuse(core, 1, RefusalReason::kDigest, cursor(core, 0));
  EXPECT_EQ(take<OriginCore::Alarm>(core).at(0).kind, Kind::kClonedNode);

  OriginCore& ahead = with(3);
  ahead.received(now, Acknowledge{{cursor(ahead, 7)}});  // of chunks never sealed here
  EXPECT_EQ(take<OriginCore::Alarm>(ahead).at(0).kind, Kind::kClonedNode);
  EXPECT_EQ(ahead.acknowledged(), 0U) << "nothing is trimmed";

  OriginCore& other = with(3);
  model::Cursor forged = cursor(other, 2);
  forged.chain.high ^= 1;
  other.received(now, Acknowledge{{forged}});
  EXPECT_EQ(take<OriginCore::Alarm>(other).at(0).kind, Kind::kClonedNode);
  EXPECT_EQ(other.acknowledged(), 0U);
}

TEST_F(OriginCoreTest, AClosedEpochIsReplacedAndTheRestRenumbered) {
  OriginCore& core = with(5);
  const model::Epoch mine = core.epoch();
  const model::Epoch theirs{777};
  refuse(core, 1, RefusalReason::kCursor, {"edge", theirs, 9, {}});
  EXPECT_FALSE(core.settled());
  auto opens = take<OriginCore::SendOpen>(core);
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].message.replaces, mine);
  const model::Epoch fresh = opens[0].message.epoch;
  // The first answer tells how far the closed epoch came, the second opens.
  core.received(now, Opened{opens[0].message.request, false, {"edge", theirs, 9, {}}, 2, {}});
  opens = take<OriginCore::SendOpen>(core);
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].message.replaces, theirs);
  EXPECT_EQ(opens[0].message.epoch, fresh);
  core.received(now, Opened{opens[0].message.request, true, {"edge", fresh, 0, {}}, 9, {}});
  const auto renumber = take<OriginCore::Renumber>(core);
  ASSERT_EQ(renumber.size(), 1U);
  EXPECT_EQ(renumber[0].epoch, fresh);
  EXPECT_EQ(renumber[0].folded, 2U) << "the cursor of the edge's own closed epoch, not of the one just closed";
  OriginState state;
  state.epoch = fresh;
  state.next_sequence = 4;
  state.outbox = {{1, 10}, {2, 10}, {3, 10}};
  core.renumbered(now, state);
  EXPECT_TRUE(core.ready());
  EXPECT_EQ(sent(core), std::vector<model::Sequence>{1});
}

TEST_F(OriginCoreTest, AnAnswerThatIsLostIsAskedForAgain) {
  OriginCore& core = with(1);
  refuse(core, 1, RefusalReason::kCursor, {"edge", model::Epoch{777}, 9, {}});
  const auto first = take<OriginCore::SendOpen>(core);
  now += seconds(5);
  core.tick(now);
  const auto second = take<OriginCore::SendOpen>(core);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].message.epoch, first[0].message.epoch);
  // The answer to the first comes late, and is not heard.
  core.received(now, Opened{first[0].message.request, true, {"edge", first[0].message.epoch, 0, {}}, 0, {}});
  EXPECT_TRUE(core.take_actions().empty());
  core.session_down();
  core.session_up(now, 100);
  EXPECT_EQ(take<OriginCore::SendOpen>(core).at(0).message.epoch, first[0].message.epoch);
}

TEST_F(OriginCoreTest, ARenumberingThatFailsIsTriedAgain) {
  OriginCore& core = with(2);
  refuse(core, 1, RefusalReason::kCursor, {"edge", model::Epoch{777}, 9, {}});
  const OpenEpoch open = take<OriginCore::SendOpen>(core).at(0).message;
  core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, 1, {}});
  ASSERT_EQ(take<OriginCore::Renumber>(core).size(), 1U);
  core.renumber_failed(now);
  core.tick(now);
  EXPECT_TRUE(core.take_actions().empty());
  now += seconds(1);
  core.tick(now);
  EXPECT_EQ(take<OriginCore::Renumber>(core).at(0).folded, 1U);
}

TEST_F(OriginCoreTest, AMemoryEdgeOpensItsEpochBeforeItIsReady) {
  OriginCore core(settings(model::Durability::kMemory), random);
  core.start({});
  EXPECT_FALSE(core.ready());
  core.session_up(now, 100);
  auto open = take<OriginCore::SendOpen>(core).at(0).message;
  EXPECT_EQ(open.replaces, model::Epoch{});
  core.received(now, Opened{open.request, false, {"edge", model::Epoch{5}, 17, {}}, {}, {}});
  open = take<OriginCore::SendOpen>(core).at(0).message;
  EXPECT_EQ(open.replaces, model::Epoch{5});
  core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, 17, {{true, "positions"}}});
  const auto started = take<OriginCore::Started>(core);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].epoch, open.epoch);
  EXPECT_EQ(started[0].states.at(0).bytes, "positions");
  EXPECT_TRUE(core.ready());
  EXPECT_EQ(core.next_sequence(), 1U);
}

TEST_F(OriginCoreTest, AMemoryEdgeWhoseEpochIsClosedForgetsEverything) {
  OriginCore core(settings(model::Durability::kMemory), random);
  core.start({});
  core.session_up(now, 100);
  auto open = take<OriginCore::SendOpen>(core).at(0).message;
  core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, {}, {}});
  core.take_actions();
  seal(core, 3);
  ASSERT_EQ(sent(core).size(), 1U);
  refuse(core, 1, RefusalReason::kCursor, {"edge", model::Epoch{6}, 2, {}});
  const auto actions = core.take_actions();
  EXPECT_FALSE(core.ready());
  EXPECT_EQ(core.pending_chunks(), 0U);
  ASSERT_EQ(actions.size(), 3U);
  EXPECT_EQ(std::get<OriginCore::Alarm>(actions[0]).kind, Kind::kEpochClosed);
  EXPECT_TRUE(std::holds_alternative<OriginCore::EpochLost>(actions[1]));
  EXPECT_EQ(std::get<OriginCore::SendOpen>(actions[2]).message.replaces, model::Epoch{6});
}

TEST_F(OriginCoreTest, AnUnreadableChunkIsAnAlarmAndTriedAgain) {
  OriginCore& core = with(2);
  core.unreadable(now, 1, "damaged page");
  EXPECT_EQ(take<OriginCore::Alarm>(core).at(0).kind, Kind::kUnreadable);
  core.tick(now);
  EXPECT_TRUE(sent(core).empty());
  now += seconds(1);
  core.tick(now);
  EXPECT_EQ(sent(core), std::vector<model::Sequence>{1});
}

TEST_F(OriginCoreTest, ATombstoneKeepsItsNumberAndItsChain) {
  OriginCore& core = with(3);
  EXPECT_EQ(core.pending_bytes(), 30U);
  core.lost(2, 4);
  core.lost(9, 4);  // there is none
  EXPECT_EQ(core.pending_bytes(), 24U);
  EXPECT_EQ(core.pending_chunks(), 3U);
  model::Cursor at = cursor(core, 3);
  at.tombstones = {{2, 2}};
  core.received(now, Acknowledge{{at}});
  const auto trims = take<OriginCore::Trim>(core);
  ASSERT_EQ(trims.size(), 1U);
  EXPECT_EQ(trims[0].through, 3U);
  EXPECT_EQ(trims[0].tombstones, at.tombstones) << "what stands is told with the acknowledgement";
  EXPECT_EQ(core.pending_bytes(), 0U);
}

TEST_F(OriginCoreTest, ADiskEdgeSealsOnWhileItsEpochIsReplaced) {
  OriginCore& core = with(3);
  const model::Epoch old = core.epoch();
  refuse(core, 1, RefusalReason::kCursor, {"edge", model::Epoch{6}, 0, {}});
  core.take_actions();
  EXPECT_FALSE(core.settled());
  EXPECT_TRUE(core.ready());
  core.session_down();  // the cloud is away
  seal(core, 2);
  EXPECT_EQ(core.pending_chunks(), 5U);
  EXPECT_TRUE(sent(core).empty());
  now += seconds(10);
  core.session_up(now, 1000);
  auto open = take<OriginCore::SendOpen>(core).at(0).message;
  EXPECT_EQ(open.replaces, old);
  // The cloud had folded 2 in, the first as a tombstone, before the epoch was closed.
  Opened no{open.request, false, {"edge", model::Epoch{6}, 0, {}}, 2, {}};
  no.replaced_tombstones = {{1, 1}};
  core.received(now, no);
  open = take<OriginCore::SendOpen>(core).at(0).message;
  EXPECT_EQ(open.replaces, model::Epoch{6});
  core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, 0, {}});
  auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  const auto& trim = std::get<OriginCore::Trim>(actions[0]);
  EXPECT_EQ(trim.through, 2U);
  EXPECT_EQ(trim.tombstones, no.replaced_tombstones);
  const auto& renumber = std::get<OriginCore::Renumber>(actions[1]);
  EXPECT_EQ(renumber.epoch, open.epoch);
  EXPECT_EQ(renumber.folded, 2U);
  seal(core, 1);  // while the owner tries
  EXPECT_EQ(core.pending_chunks(), 4U);
  OriginState state;
  state.epoch = open.epoch;
  state.next_sequence = 5;
  state.outbox = {{1, 10}, {2, 10}, {3, 10}, {4, 10}};
  core.renumbered(now, state);
  EXPECT_TRUE(core.settled());
  EXPECT_EQ(sent(core), std::vector<model::Sequence>{1});
}

TEST_F(OriginCoreTest, AnEpochInDoubtIsReopenedBeforeAnythingIsSealed) {
  for (const bool known : {true, false}) {
    OriginCore core(settings(model::Durability::kDisk), random);
    OriginState kept;
    kept.reopen = true;
    if (known) {
      kept.epoch = model::Epoch{42};
      kept.next_sequence = 8;
      kept.acknowledged = 5;
      kept.outbox = {{6, 10}, {7, 20}};
    }
    core.start(kept);
    EXPECT_FALSE(core.ready());
    EXPECT_TRUE(core.take_actions().empty());
    core.session_up(now, 1000);
    auto open = take<OriginCore::SendOpen>(core).at(0).message;
    if (known) {
      EXPECT_EQ(open.replaces, model::Epoch{42});
      core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, 6, {}});
    } else {
      // The cloud has another one, and says so; that is replaced.
      core.received(now, Opened{open.request, false, {"edge", model::Epoch{7}, 3, {}}, {}, {}});
      open = take<OriginCore::SendOpen>(core).at(0).message;
      EXPECT_EQ(open.replaces, model::Epoch{7});
      core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, 3, {}});
    }
    const auto renumber = take<OriginCore::Renumber>(core);
    ASSERT_EQ(renumber.size(), 1U);
    EXPECT_EQ(renumber[0].folded, known ? 6U : 0U);
    EXPECT_FALSE(core.ready());
    OriginState state;
    state.epoch = open.epoch;
    if (known) {
      state.next_sequence = 2;
      state.outbox = {{1, 20}};
    }
    core.renumbered(now, state);
    EXPECT_TRUE(core.ready());
    EXPECT_EQ(core.epoch(), open.epoch);
    seal(core, 1);
    EXPECT_EQ(sent(core), std::vector<model::Sequence>{1});
  }
}

TEST_F(OriginCoreTest, AReopenedEpochOfWhichTheCloudHasMoreIsAnAlarmOfItsOwn) {
  OriginCore core(settings(model::Durability::kDisk), random);
  OriginState kept;
  kept.reopen = true;
  kept.epoch = model::Epoch{42};
  kept.next_sequence = 8;
  kept.acknowledged = 7;
  core.start(kept);
  core.session_up(now, 1000);
  const auto open = take<OriginCore::SendOpen>(core).at(0).message;
  core.received(now, Opened{open.request, true, {"edge", open.epoch, 0, {}}, 11, {}});
  auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(std::get<OriginCore::Alarm>(actions[0]).kind, Kind::kLostChunks);
  EXPECT_EQ(std::get<OriginCore::Renumber>(actions[1]).folded, 7U);
}

TEST_F(OriginCoreTest, ForeignAndOldCursorsChangeNothing) {
  OriginCore& core = with(3);
  model::Cursor foreign = cursor(core, 2);
  foreign.node = "other";
  model::Cursor old = cursor(core, 2);
  old.epoch = model::Epoch{1};
  core.received(now, Acknowledge{{foreign, old}});
  core.received(now, Acknowledge{{cursor(core, 1)}});
  core.take_actions();
  core.received(now, Acknowledge{{cursor(core, 1)}});
  EXPECT_EQ(core.acknowledged(), 1U);
  EXPECT_TRUE(core.take_actions().empty());
}

}  // namespace
}  // namespace orla::link
