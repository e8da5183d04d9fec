#include "ingest/batch_builder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace orla::ingest {
namespace {

using model::from_ns;
using model::SeriesId;

TEST(BatchBuilder, GroupsPerSeriesAndKeepsTheOrderWithin) {
  BatchBuilder builder("edge/0", {});
  model::InputBatch out;
  out.end_of_input = true;
  builder.begin(out);
  const SeriesId a = *builder.define({"load", {{"plug", "1"}}});
  const SeriesId b = *builder.define({"load", {{"plug", "2"}}});
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
  EXPECT_EQ(model::index(*builder.define({"work", {}})), 2U);
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
  const SeriesId s = *builder.define({"m", {}});
  builder.add(s, from_ns(0), 0);
  builder.reject(2, {});
  EXPECT_FALSE(builder.full());
  EXPECT_EQ(builder.rows_left(), 1U);
  builder.add(s, from_ns(0), 0);
  EXPECT_TRUE(builder.full());
  builder.finish({});
  builder.begin(out);
}

// What the builder hands over of these decimals, in one series, must be these doubles, in that form.
void expect_form(BatchBuilder& builder, const std::vector<Decimal>& values, bool scaled, int decimals) {
  model::InputBatch out;
  builder.begin(out);
  const SeriesId id = builder.series_count() == 0 ? *builder.define({"load", {}}) : SeriesId{0};
  std::vector<double> expected;
  for (const Decimal& value : values) {
    builder.add(id, from_ns(1), value);
    expected.push_back(value.nearest());
  }
  builder.finish({});
  EXPECT_EQ(out.samples.scaled.size(), scaled ? values.size() : 0U);
  EXPECT_EQ(out.samples.values.size(), scaled ? 0U : values.size());
  EXPECT_EQ(out.samples.decimals, decimals);
  out.samples.make_plain();
  ASSERT_EQ(out.samples.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(out.samples.values[i]), std::bit_cast<std::uint64_t>(expected[i])) << i;
  }
}

TEST(BatchBuilder, DecimalsStayIntegersWhileTheyFit) {
  BatchBuilder builder("edge/0", {});
  expect_form(builder, {{5, 0}, {-15, 1, true}, {2500, 3}, {7, 0}}, true, 3);  // more decimals on the way
  expect_form(builder, {{5, 0}, {6, 0}}, true, 3);                             // as the batch before
  expect_form(builder, {{5, 0}, {6, 0}}, true, 0);                             // and as this one needed
  expect_form(builder, {{5, 0}, {3'000'000'000, 0}, {25, 1}}, false, 0);       // too large
  expect_form(builder, {{2'000'000'000, 0}, {5, 1}, {7, 0}}, false, 0);        // too large with a decimal
  expect_form(builder, {{5, 1}, {0, 0, true}, {7, 0}}, false, 0);              // -0.0
  expect_form(builder, {{123456789012345, 15}, {1, 0}}, false, 0);
  expect_form(builder, {{12, 15}, {1, 12}}, true, 15);
  expect_form(builder, {{25, 1}}, false, 0);  // too large for what the batch before needed
  expect_form(builder, {{25, 1}}, true, 1);
  expect_form(builder, {}, true, 0);
}

TEST(BatchBuilder, ManyDecimalsOfManySeries) {
  BatchBuilder builder("edge/0", {});
  model::InputBatch out;
  for (int batch = 0; batch < 3; ++batch) {
    builder.begin(out);
    for (int s = 0; batch == 0 && s < 7; ++s) (void)builder.define({"load", {{"plug", std::to_string(s)}}});
    for (int i = 0; i < 5000; ++i) {
      if (batch == 1 && i == 4000) {
        builder.add(SeriesId{0}, from_ns(i), 0.1 + 0.2);  // not of the general parser's making
        continue;
      }
      builder.add(SeriesId{static_cast<std::uint32_t>(i % 7)}, from_ns(i), Decimal{i, i % 4});
    }
    builder.finish({});
    EXPECT_EQ(out.samples.scaled.empty(), batch == 1);
    out.samples.make_plain();
    ASSERT_EQ(out.samples.runs.size(), 7U);
    for (const model::Batch::Run& run : out.samples.runs) {
      for (std::uint32_t k = run.begin; k < run.end; ++k) {
        const std::int64_t i = model::to_ns(out.samples.times[k]);
        const bool odd = batch == 1 && i == 4000;
        ASSERT_EQ(model::index(run.series), odd ? 0U : i % 7);
        ASSERT_EQ(out.samples.values[k], odd ? 0.1 + 0.2 : static_cast<double>(i) / std::pow(10, i % 4)) << i;
      }
    }
  }
}

TEST(BatchBuilder, DefinesNoMoreSeriesThanThereMayBe) {
  BatchBuilder builder("edge/0", {.series = 2});
  model::InputBatch out;
  builder.begin(out);
  EXPECT_TRUE(builder.define({"a", {}}));
  EXPECT_TRUE(builder.can_define({{"b", {}}}));
  EXPECT_FALSE(builder.can_define({{"b", {}}, {"c", {}}}));
  EXPECT_TRUE(builder.define({"b", {}}));
  EXPECT_FALSE(builder.can_define({{"c", {}}}));
  EXPECT_FALSE(builder.define({"c", {}}));
  builder.finish({});
  EXPECT_EQ(out.new_series.size(), 2U);
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
  const SeriesId s = *builder.define({"m", {}});
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
