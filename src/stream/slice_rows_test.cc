#include "stream/slice_rows.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "stream/open_rows.h"

namespace orla::stream {
namespace {

using model::from_ns;
using model::GroupId;
using model::Partial;
using model::PartialRow;
using model::PartialRows;
using model::Time;
using Which = RowOrder::Which;

PartialRows copied(const std::vector<SliceRows*>& slices, Which which) {
  PartialRows rows;
  const RowOrder order(slices, which);
  order.visit([&](const SliceRows& slice, GroupId group, const SmallRow& row) {
    slice.copy_out(group, row, rows.emplace_back());
  });
  EXPECT_EQ(rows.size(), order.rows());
  return rows;
}

void add(OpenRows& rows, std::size_t stream, std::int64_t slice, std::uint32_t group, double value) {
  const OpenRows::Place place = rows.at(stream, from_ns(slice), GroupId{group});
  place.slice->add(place, from_ns(slice), value);
  place.slice->mark_changed(place);
}

// Samples of every kind, alone, as summaries and as partials, into groups near and far, against plain partials.
TEST(SliceRows, AreThePartialsOfTheirSamples) {
  base::SeededRandom random(5);
  for (int round = 0; round < 30; ++round) {
    OpenRows rows;
    rows.add_stream(model::Duration(1000), {}, 1);
    rows.add_stream(model::Duration(500), {}, 1);
    std::map<std::pair<std::uint32_t, Time>, Partial> expected;
    for (int i = 0; i < 600; ++i) {
      const auto group = static_cast<std::uint32_t>(random.below(2) == 0 ? random.below(40) : random.below(100'000));
      const Time slice = from_ns(static_cast<std::int64_t>(random.below(3) * 1000));
      const Time time = slice + model::Duration(static_cast<std::int64_t>(random.below(500)));
      const OpenRows::Place place = rows.at(group % 2, slice, GroupId{group});
      Partial& partial = expected[{group, slice}];
      const auto whole = static_cast<std::int32_t>(random.below(1000)) - 500;
      switch (random.below(8)) {
        case 0:
          place.slice->add(place, time, 0.123);
          partial.add(time, 0.123, 1);
          break;
        case 1: {
          Partial other;
          other.add(time, whole / 10.0, 1);
          other.add(time, random.below(2) == 0 ? 7.0 : 1e200, 1);
          place.slice->add_sums(place, other);
          partial.merge(other);
          break;
        }
        case 2:
        case 3:
          place.slice->add_sums(place, DecimalSummary::of(time - slice, whole));
          partial.add(time, whole / 10.0, 1);
          break;
        default:
          place.slice->add(place, time, whole / 10.0);
          partial.add(time, whole / 10.0, 1);
      }
      EXPECT_EQ(place.slice->count(*place.row), partial.count);
    }
    PartialRows right;
    for (const auto& [key, partial] : expected) right.push_back({GroupId{key.first}, key.second, partial});
    std::vector<SliceRows*> slices;
    rows.slices(slices);
    EXPECT_EQ(copied(slices, Which::kAll), right);
    EXPECT_EQ(rows.size(), right.size());
    PartialRows moved;
    RowOrder(slices, Which::kAll).visit([&](SliceRows& slice, GroupId group, SmallRow& row) {
      slice.move_out(group, row, moved.emplace_back());
    });
    EXPECT_EQ(moved, right);
  }
}

TEST(SliceRows, HaveTheSketchesOfTheirStream) {
  SliceRows rows(0, from_ns(0), {.quantiles = true, .distinct = false}, 1);
  const SliceRows::Place place = rows.at(GroupId{3});
  rows.add(place, from_ns(5), 2.5);
  ASSERT_NE(rows.sketches(place), nullptr);
  EXPECT_EQ(rows.sketches(place)->quantiles()->count(), 1U);
  rows.add_sums(place, DecimalSummary::of(model::Duration(6), 35));
  EXPECT_EQ(rows.sketches(place)->quantiles()->count(), 1U);
  EXPECT_EQ(rows.count(*place.row), 2U);
  SliceRows none(0, from_ns(0), {}, 1);
  EXPECT_EQ(none.sketches(none.at(GroupId{3})), nullptr);
}

TEST(SliceRows, KeepTheirInputBesideWhatTheyAre) {
  SliceRows rows(0, from_ns(0), {}, 1);
  const SliceRows::Place place = rows.at(GroupId{3});
  EXPECT_EQ(SliceRows::input(*place.row), SliceRows::kNoInput);
  SliceRows::set_input(*place.row, 7);
  rows.add(place, from_ns(5), 2.5);
  rows.add(place, from_ns(5), 1e99);
  EXPECT_EQ(SliceRows::input(*place.row), 7U);
  SliceRows::set_input(*place.row, 8);
  EXPECT_EQ(SliceRows::input(*place.row), 8U);
  EXPECT_EQ(rows.count(*place.row), 2U);
}

TEST(SliceRows, ListEachChangedRowOnceAndSorted) {
  OpenRows rows;
  rows.add_stream(model::Duration(60), {}, 0);
  add(rows, 0, 60, 3, 1);
  add(rows, 0, 0, 2, 1);
  add(rows, 0, 60, 3, 2);
  std::vector<SliceRows*> slices;
  rows.slices(slices);
  EXPECT_EQ(copied(slices, Which::kAll).size(), 2u);
  const PartialRows first = copied(slices, Which::kChanged);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].group, GroupId{2});
  EXPECT_EQ(first[1].partial.count, 2u);
  for (SliceRows* slice : slices) slice->forget_changes();
  EXPECT_TRUE(copied(slices, Which::kChanged).empty());
  EXPECT_FALSE(slices[0]->changed());
  add(rows, 0, 60, 4, 9);
  EXPECT_TRUE(slices[1]->changed());
  const PartialRows second = copied(slices, Which::kChanged);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].group, GroupId{4});
  rows.mark_all_changed(0);
  EXPECT_EQ(copied(slices, Which::kChanged), copied(slices, Which::kAll));
}

// Two keepers of rows hold parts of one row: when one has changed, both are wanted.
TEST(RowOrder, FindsAllPartsOfRowsThatChanged) {
  OpenRows a;
  OpenRows b;
  for (OpenRows* rows : {&a, &b}) rows->add_stream(model::Duration(60), {}, 0);
  for (OpenRows* rows : {&a, &b})
    for (const std::uint32_t group : {1U, 2U, 40U})
      for (const std::int64_t slice : {0, 60}) add(*rows, 0, slice, group, 1);
  add(a, 0, 0, 50, 1);
  std::vector<SliceRows*> slices;
  a.slices(slices);
  b.slices(slices);
  for (SliceRows* slice : slices) slice->forget_changes();
  add(b, 0, 60, 2, 5);
  const PartialRows parts = copied(slices, Which::kPartsOfChanged);
  ASSERT_EQ(parts.size(), 2u);
  for (const PartialRow& part : parts) {
    EXPECT_EQ(part.group, GroupId{2});
    EXPECT_EQ(part.slice, from_ns(60));
  }
  EXPECT_EQ(parts[0].partial.count + parts[1].partial.count, 3u);
  EXPECT_EQ(copied(slices, Which::kAll).size(), 13u);
}

}  // namespace
}  // namespace orla::stream
