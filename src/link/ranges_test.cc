#include "link/ranges.h"

#include <gtest/gtest.h>

namespace orla::link {
namespace {

model::Range range(std::string node, std::uint64_t epoch, model::Sequence first, model::Sequence last) {
  model::Range r;
  r.node = std::move(node);
  r.epoch = model::Epoch{epoch};
  r.first = first;
  r.last = last;
  r.chain_before = {0, first - 1};
  r.chain_after = {0, last};
  return r;
}

TEST(Ranges, WellFormedOnesAreAccepted) {
  EXPECT_TRUE(check_ranges({range("a", 7, 1, 1)}).ok());
  EXPECT_TRUE(check_ranges({range("a", 7, 1, 9), range("b", 7, 3, 3)}).ok());
}

TEST(Ranges, MalformedOnesAreRefused) {
  EXPECT_FALSE(check_ranges({}).ok());
  EXPECT_FALSE(check_ranges({range("", 7, 1, 1)}).ok());
  EXPECT_FALSE(check_ranges({range("a", 0, 1, 1)}).ok());
  EXPECT_FALSE(check_ranges({range("a", 7, 0, 1)}).ok());
  EXPECT_FALSE(check_ranges({range("a", 7, 2, 1)}).ok());
  EXPECT_FALSE(check_ranges({range("a", 7, 1, kMaxSequence + 1)}).ok());
  EXPECT_FALSE(check_ranges({range("a", 7, 1, 1), range("a", 7, 2, 2)}).ok());
  EXPECT_FALSE(check_ranges({range("b", 7, 1, 1), range("a", 7, 1, 1)}).ok());
}

TEST(Ranges, TooManyAreRefused) {
  std::vector<model::Range> ranges;
  for (std::size_t i = 0; i <= kMaxRangesPerFrame; ++i)
    ranges.push_back(range("n" + std::to_string(1000000 + i), 1, 1, 1));
  EXPECT_FALSE(check_ranges(ranges).ok());
  ranges.pop_back();
  EXPECT_TRUE(check_ranges(ranges).ok());
}

TEST(Ranges, ContinueOnlyTheNextOfTheSameOriginAndChain) {
  const model::Range before = range("a", 7, 1, 3);
  EXPECT_TRUE(continues(before, range("a", 7, 4, 6)));
  EXPECT_FALSE(continues(before, range("a", 7, 5, 6)));
  EXPECT_FALSE(continues(before, range("a", 7, 3, 6)));
  EXPECT_FALSE(continues(before, range("a", 8, 4, 6)));
  EXPECT_FALSE(continues(before, range("b", 7, 4, 6)));
  model::Range forged = range("a", 7, 4, 6);
  forged.chain_before.high = 1;
  EXPECT_FALSE(continues(before, forged));
}

TEST(Ranges, AppendKeepsTheNewestNotesAndAllStatesSinceTheSnapshot) {
  model::Range a = range("a", 7, 1, 1);
  a.note.publications = {{"load", model::from_ns(10)}, {"work", model::from_ns(11)}};
  a.note.ledgers = {{"a/0", {}}};
  a.note.ledgers[0].second.received = 5;
  a.note.states = {{false, "s1"}};
  model::Range b = range("a", 7, 2, 2);
  b.note.publications = {{"load", model::from_ns(20)}};
  b.note.ledgers = {{"a/0", {}}, {"a/1", {}}};
  b.note.ledgers[0].second.received = 9;
  b.note.states = {{false, "s2"}};
  append(a, b);
  EXPECT_EQ(a.first, 1U);
  EXPECT_EQ(a.last, 2U);
  EXPECT_EQ(a.chain_after, b.chain_after);
  EXPECT_EQ(a.note.publications,
            (std::vector<model::Publication>{{"load", model::from_ns(20)}, {"work", model::from_ns(11)}}));
  ASSERT_EQ(a.note.ledgers.size(), 2U);
  EXPECT_EQ(a.note.ledgers[0].second.received, 9U);
  EXPECT_EQ(a.note.states.size(), 2U);
  model::Range c = range("a", 7, 3, 3);
  c.note.states = {{true, "all"}, {false, "s3"}};
  append(a, c);
  EXPECT_EQ(a.note.states, (std::vector<model::StateEntry>{{true, "all"}, {false, "s3"}}));
}

TEST(Ranges, AppendJoinsTombstonesThatFollowEachOtherForOneReason) {
  model::Range all = range("a", 7, 1, 1);
  for (model::Sequence s = 2; s <= 6; ++s) {
    model::Range next = range("a", 7, s, s);
    const char* reason = s == 6 ? "damaged" : "drop_oldest";
    const auto minute = static_cast<std::int64_t>(s);
    if (s != 3) {
      next.note.tombstones = {
          {s, s, reason, {{"a/0", 10 * s}}, model::from_ns(100 - minute), model::from_ns(200 + minute)}};
    }
    append(all, next);
  }
  EXPECT_EQ(all.note.tombstones, (std::vector<model::Tombstone>{
                                     {2, 2, "drop_oldest", {{"a/0", 20}}, model::from_ns(98), model::from_ns(202)},
                                     {4, 5, "drop_oldest", {{"a/0", 90}}, model::from_ns(95), model::from_ns(205)},
                                     {6, 6, "damaged", {{"a/0", 60}}, model::from_ns(94), model::from_ns(206)}}));
  EXPECT_TRUE(check_ranges({all}).ok());
}

TEST(Ranges, TombstonesThatContradictTheirRangeAreMalformed) {
  const auto refused = [](std::vector<model::Tombstone> tombstones) {
    model::Range one = range("a", 7, 3, 9);
    one.note.tombstones = std::move(tombstones);
    return check_ranges({one}).code() == absl::StatusCode::kInvalidArgument;
  };
  const auto stone = [](model::Sequence first, model::Sequence last) {
    return model::Tombstone{first, last, "damaged", {}, {}, {}};
  };
  EXPECT_FALSE(refused({stone(3, 5), stone(6, 9)}));
  EXPECT_TRUE(refused({stone(2, 3)}));
  EXPECT_TRUE(refused({stone(9, 10)}));
  EXPECT_TRUE(refused({stone(6, 5)}));
  EXPECT_TRUE(refused({stone(3, 5), stone(5, 6)}));
  EXPECT_TRUE(refused({stone(6, 7), stone(4, 5)}));
  EXPECT_TRUE(refused({{3, 3, "", {}, {}, {}}}));
  EXPECT_TRUE(refused({{3, 3, "damaged", {{"b", 1}, {"a", 1}}, {}, {}}}));
  EXPECT_TRUE(refused({{3, 3, "damaged", {{"a", 1}, {"a", 1}}, {}, {}}}));
  EXPECT_TRUE(refused({{3, 3, "damaged", std::vector<std::pair<std::string, std::uint64_t>>(2000), {}, {}}}));
  model::Range wide = range("a", 7, 1, 100'000);
  for (model::Sequence s = 1; s <= 2 * kMaxTombstonesPerRange + 2; s += 2) wide.note.tombstones.push_back(stone(s, s));
  EXPECT_FALSE(check_ranges({wide}).ok());
  wide.note.tombstones.pop_back();
  EXPECT_TRUE(check_ranges({wide}).ok());
}

TEST(Ranges, NumbersOfTombstonesAreBoundedByJoiningTheOldest) {
  std::vector<model::SequenceRange> ranges;
  for (model::Sequence s = 1; s <= kMaxTombstoneRanges; ++s) add_numbers(ranges, {10 * s, 10 * s + 2});
  EXPECT_EQ(ranges.size(), kMaxTombstoneRanges);
  EXPECT_TRUE(contains(ranges, 12));
  EXPECT_FALSE(contains(ranges, 13));
  EXPECT_FALSE(contains(ranges, 9));
  EXPECT_FALSE(contains(ranges, 10'000));
  add_numbers(ranges, {643, 650});  // goes on with the last
  EXPECT_EQ(ranges.size(), kMaxTombstoneRanges);
  add_numbers(ranges, {700, 700});
  EXPECT_EQ(ranges.size(), kMaxTombstoneRanges);
  EXPECT_EQ(ranges.front(), (model::SequenceRange{10, 22}));
  EXPECT_EQ(ranges.back(), (model::SequenceRange{700, 700}));
  EXPECT_TRUE(contains(ranges, 15)) << "between the two that became one";
  EXPECT_FALSE(contains(ranges, 23));
}

TEST(Ranges, ACursorCoversUpToItsNumberInItsEpochOnly) {
  const model::Cursor cursor{"a", model::Epoch{7}, 5, {}};
  EXPECT_TRUE(covers(cursor, range("a", 7, 5, 5)));
  EXPECT_FALSE(covers(cursor, range("a", 7, 5, 6)));
  EXPECT_FALSE(covers(cursor, range("a", 8, 1, 1)));
  EXPECT_FALSE(covers(cursor, range("b", 7, 1, 1)));
}

TEST(Ranges, TheChainDependsOnNumberRowsAndEverythingBefore) {
  const base::Digest one = chunk_chain({}, 1, "rows");
  EXPECT_EQ(one, chunk_chain({}, 1, "rows"));
  EXPECT_NE(one, chunk_chain({}, 2, "rows"));
  EXPECT_NE(one, chunk_chain({}, 1, "rowt"));
  EXPECT_NE(chunk_chain(one, 2, "x"), chunk_chain({}, 2, "x"));
}

TEST(Ranges, WireBytesCountWhatIsLarge) {
  model::Range a = range("a", 7, 1, 1);
  const std::size_t empty = wire_bytes(a);
  a.note.states.push_back({true, std::string(1000, 'x')});
  EXPECT_GE(wire_bytes(a), empty + 1000);
  EXPECT_GE(wire_bytes(UpMessage(FrameMessage{1, {a}, std::string(500, 'r')})), empty + 1500);
}

}  // namespace
}  // namespace orla::link
