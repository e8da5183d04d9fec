#include "model/batch.h"

#include <gtest/gtest.h>

namespace orla::model {
namespace {

TEST(Batch, EvenlySpacedDecimalsBecomePlain) {
  Batch batch;
  batch.runs = {{SeriesId{4}, 0, 3}, {SeriesId{2}, 3, 3}, {SeriesId{1}, 3, 4}};
  batch.paces = {{from_ns(100), Duration(10)}, {from_ns(7), Duration(1)}, {from_ns(-5), Duration(0)}};
  batch.scaled = {1234, -1, 0, 2'147'483'647};
  batch.decimals = 3;
  ASSERT_EQ(batch.size(), 4U);
  EXPECT_EQ(batch.newest(), from_ns(120));
  batch.make_plain();
  EXPECT_EQ(batch.times, (std::vector<Time>{from_ns(100), from_ns(110), from_ns(120), from_ns(-5)}));
  EXPECT_EQ(batch.values, (std::vector<double>{1.234, -0.001, 0, 2147483.647}));
  EXPECT_TRUE(batch.paces.empty());
  EXPECT_TRUE(batch.scaled.empty());
  EXPECT_EQ(batch.newest(), from_ns(120));
}

// The last time of a run may be the last of all times.
TEST(Batch, NoStepIsTakenBeyondARun) {
  Batch batch;
  batch.runs = {{SeriesId{0}, 0, 2}};
  batch.paces = {{kMaxTime - Duration(9), Duration(9)}};
  batch.values = {1, 2};
  batch.make_plain();
  EXPECT_EQ(batch.times, (std::vector<Time>{kMaxTime - Duration(9), kMaxTime}));
}

TEST(Batch, NothingHasNoNewestTime) {
  Batch batch;
  EXPECT_EQ(batch.newest(), kMinTime);
  EXPECT_EQ(batch.size(), 0U);
}

}  // namespace
}  // namespace orla::model
