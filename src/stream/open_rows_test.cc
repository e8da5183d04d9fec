#include "stream/open_rows.h"

#include <gtest/gtest.h>

namespace orla::stream {
namespace {

using model::from_ns;
using model::GroupId;
using model::PartialRows;

void add(OpenRows& rows, std::size_t stream, std::int64_t slice, std::uint32_t group, double value) {
  OpenRows::Row& row = rows.at(stream, from_ns(slice), GroupId{group});
  row.content.partial.add(from_ns(slice), value, 0);
  rows.mark_changed(row);
}

TEST(OpenRows, TakesSlicesThatHaveEnded) {
  OpenRows rows;
  rows.add_stream(model::Duration(60), {});
  rows.add_stream(model::Duration(120), {});
  add(rows, 0, 0, 1, 5);
  add(rows, 0, 60, 1, 6);
  add(rows, 1, 0, 2, 7);
  PartialRows taken;
  EXPECT_EQ(rows.take(0, from_ns(59), taken, nullptr), 0u);
  EXPECT_EQ(rows.take(0, from_ns(60), taken, nullptr), 1u);
  EXPECT_EQ(rows.take(1, from_ns(119), taken, nullptr), 0u);
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.take(1, model::kMaxTime, taken, nullptr), 1u);
  EXPECT_TRUE(rows.empty(1));
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].partial.max, 5);
  EXPECT_EQ(taken[1].partial.max, 7);
}

TEST(OpenRows, ListsEachChangedRowOnceAndSorted) {
  OpenRows rows;
  rows.add_stream(model::Duration(60), {});
  add(rows, 0, 60, 3, 1);
  add(rows, 0, 0, 2, 1);
  add(rows, 0, 60, 3, 2);
  EXPECT_EQ(rows.all().size(), 2u);
  const PartialRows first = rows.take_changed();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].group, GroupId{2});
  EXPECT_EQ(first[1].partial.count, 2u);
  EXPECT_TRUE(rows.take_changed().empty());

  // Changed, taken, and its memory used again before the changes are asked for.
  add(rows, 0, 0, 2, 9);
  PartialRows gone;
  rows.take(0, from_ns(60), gone, nullptr);
  add(rows, 0, 120, 4, 3);
  const PartialRows second = rows.take_changed();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].group, GroupId{4});
  EXPECT_EQ(second[0].partial.count, 1u);

  rows.mark_all_changed(0);
  EXPECT_EQ(rows.take_changed(), rows.all());
}

}  // namespace
}  // namespace orla::stream
