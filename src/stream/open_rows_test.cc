#include "stream/open_rows.h"

#include <gtest/gtest.h>

namespace orla::stream {
namespace {

using model::from_ns;
using model::GroupId;

void add(OpenRows& rows, std::size_t stream, std::int64_t slice, std::uint32_t group, double value) {
  const OpenRows::Place place = rows.at(stream, from_ns(slice), GroupId{group});
  place.slice->add(place, from_ns(slice), value);
}

TEST(OpenRows, ClosesSlicesThatHaveEnded) {
  OpenRows rows;
  rows.add_stream(model::Duration(60), {}, 0);
  rows.add_stream(model::Duration(120), {}, 0);
  add(rows, 0, 0, 1, 5);
  add(rows, 0, 60, 1, 6);
  add(rows, 1, 0, 2, 7);
  OpenRows::Closed closed;
  EXPECT_EQ(rows.close(0, from_ns(59), closed), 0u);
  EXPECT_EQ(rows.close(0, from_ns(60), closed), 1u);
  EXPECT_EQ(rows.close(1, from_ns(119), closed), 0u);
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.close(1, model::kMaxTime, closed), 1u);
  EXPECT_TRUE(rows.empty(1));
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_EQ(closed[0]->stream(), 0u);
  EXPECT_EQ(closed[0]->at(GroupId{1}).row->get().max, 5);
  EXPECT_EQ(closed[1]->stream(), 1u);
  EXPECT_EQ(closed[1]->at(GroupId{2}).row->get().max, 7);

  // The slice is opened anew.
  add(rows, 0, 0, 1, 8);
  EXPECT_EQ(rows.at(0, from_ns(0), GroupId{1}).row->count(), 1u);
  EXPECT_EQ(rows.size(), 2u);
  std::vector<SliceRows*> slices;
  rows.slices(slices);
  EXPECT_EQ(slices.size(), 2u);
}

}  // namespace
}  // namespace orla::stream
