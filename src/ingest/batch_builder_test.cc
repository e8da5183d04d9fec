#include "ingest/batch_builder.h"

#include <gtest/gtest.h>

namespace orla::ingest {
namespace {

using model::from_ns;
using model::SeriesId;

TEST(BatchBuilder, GroupsPerSeriesAndKeepsTheOrderWithin) {
  BatchBuilder builder("edge/0", {});
  model::InputBatch out;
  out.end_of_input = true;
  builder.begin(out);
  const SeriesId a = builder.define({"load", {{"plug", "1"}}});
  const SeriesId b = builder.define({"load", {{"plug", "2"}}});
  builder.add(b, from_ns(5), 1.5);
  builder.add(a, from_ns(9), 2.5);
  builder.add(b, from_ns(3), 3.5);
  builder.add(a, from_ns(9), 2.25);
  builder.add(b, from_ns(4), -0.5);
  builder.finish({100, 5});

  ASSERT_EQ(out.samples.runs.size(), 2U);
  EXPECT_EQ(out.samples.runs[0].series, b);
  EXPECT_EQ(out.samples.runs[0].end, 3U);
  EXPECT_EQ(out.samples.runs[1].series, a);
  EXPECT_EQ(out.samples.values, (std::vector<double>{1.5, 3.5, -0.5, 2.5, 2.25}));
  EXPECT_EQ(out.samples.times[2], from_ns(4));
  EXPECT_EQ(out.received, 5U);
  EXPECT_EQ(out.new_series.size(), 2U);
  EXPECT_EQ(out.position, (model::Position{100, 5}));
  EXPECT_FALSE(out.end_of_input);

  // The next batch starts from nothing but the numbers of the series.
  builder.begin(out);
  EXPECT_EQ(model::index(builder.define({"work", {}})), 2U);
  builder.add(a, from_ns(1), 7);
  builder.finish({120, 6});
  EXPECT_EQ(out.samples.runs.size(), 1U);
  EXPECT_EQ(out.samples.values, std::vector<double>{7});
  EXPECT_EQ(out.received, 1U);
}

TEST(BatchBuilder, RejectedRowsAreCountedShownAndIdentified) {
  BatchBuilder builder("edge/0", {});
  model::InputBatch out;
  builder.begin(out);
  model::SetDigest expected;
  for (std::uint64_t row = 1; row <= 20; ++row) {
    builder.reject(row, {row % 2 == 0 ? kNotFinite : kMalformed, 3, "found x"});
    expected.add(model::row_hash("edge/0", row));
  }
  builder.finish({});
  EXPECT_EQ(out.received, 20U);
  EXPECT_EQ(out.rejected, (model::ReasonCounts{{"malformed", 10}, {"not_finite", 10}}));
  EXPECT_EQ(out.rejected_set, expected);
  ASSERT_EQ(out.rejections.size(), model::kMaxShownRejections);
  EXPECT_EQ(out.rejections[1].reason, "not_finite");
  EXPECT_EQ(out.rejections[1].row, 2U);
  EXPECT_EQ(out.rejections[1].column, 3U);
}

TEST(BatchBuilder, IsFullAfterItsRows) {
  BatchBuilder builder("k", {.rows = 3});
  model::InputBatch out;
  builder.begin(out);
  const SeriesId s = builder.define({"m", {}});
  builder.add(s, from_ns(0), 0);
  builder.reject(2, {});
  EXPECT_FALSE(builder.full());
  EXPECT_EQ(builder.rows_left(), 1U);
  builder.add(s, from_ns(0), 0);
  EXPECT_TRUE(builder.full());
  builder.finish({});
  builder.begin(out);
  EXPECT_FALSE(builder.full());
  builder.count_lines(kMaxBatchLines);
  EXPECT_TRUE(builder.full());
}

TEST(BatchLimits, FollowTheSpeed) {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  EXPECT_EQ(batch_limits(0, {}).ahead, model::Duration::max());
  EXPECT_EQ(batch_limits(1, {}).ahead, milliseconds(50));
  EXPECT_EQ(batch_limits(7200, {}).ahead, milliseconds(360000));
  EXPECT_EQ(batch_limits(1, {}).behind, model::Duration::max());
  EXPECT_EQ(batch_limits(1, hours(1)).behind, hours(1));
  EXPECT_EQ(batch_limits(7200, milliseconds(1)).behind, milliseconds(360000));
  EXPECT_EQ(batch_limits(1e300, {}).ahead, model::Duration::max());

  BatchBuilder builder("k", {.ahead = milliseconds(50), .behind = milliseconds(10)});
  model::InputBatch out;
  builder.begin(out);
  EXPECT_TRUE(builder.fits(kLatestTime));
  const SeriesId s = builder.define({"m", {}});
  const model::Time t = kEarliestTime + hours(24);
  builder.add(s, t, 0);
  EXPECT_TRUE(builder.fits(t + milliseconds(50)));
  EXPECT_FALSE(builder.fits(t + milliseconds(51)));
  EXPECT_TRUE(builder.fits(t - milliseconds(10)));
  EXPECT_FALSE(builder.fits(t - milliseconds(11)));
  EXPECT_FALSE(builder.fits(kLatestTime));
}

TEST(Shown, IsReadableWhateverTheBytes) {
  EXPECT_EQ(shown("12.5"), "\"12.5\"");
  EXPECT_EQ(shown(std::string_view("a\0\xff\n\"", 5)), "\"a\\x00\\xff\\x0a\\\"\"");
  EXPECT_EQ(shown(std::string(60, 'x')), "\"" + std::string(48, 'x') + "\"... (60 bytes)");
}

}  // namespace
}  // namespace orla::ingest
