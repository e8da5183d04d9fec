#include "stream/small_row.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace orla::stream {
namespace {

using model::Duration;
using model::Partial;
using model::Time;

constexpr int kDecimals = 3;
const Time kSlice = model::from_ns(1'377'986'400'000'000'000);

// Merged in some order and laid to rest after every step, they come to what the samples' partial is.
TEST(SmallRow, IsThePartialOfItsSamples) {
  base::SeededRandom random(11);
  for (int round = 0; round < 200; ++round) {
    SmallRow row;
    Partial expected;
    DecimalSummary part;
    for (std::uint64_t i = 0, samples = 1 + random.below(30); i < samples; ++i) {
      // Few times and values, so that there are ties.
      const Duration at(static_cast<std::int64_t>(random.below(5) * 17'592'186'044'416));
      const auto value = static_cast<std::int32_t>(random.below(7)) - 3 + (random.below(9) == 0 ? -500'000'000 : 0);
      expected.add(kSlice + at, value / 1000.0, kDecimals);
      ASSERT_TRUE(part.merge(DecimalSummary::of(at, value)));
      if (random.below(3) != 0 && i + 1 < samples) continue;
      DecimalSummary both = row.get();
      ASSERT_TRUE(both.merge(part));
      ASSERT_TRUE(row.set(both));
      part = DecimalSummary();
    }
    Partial found;
    to_partial(row.get(), kSlice, kDecimals, found);
    ASSERT_EQ(found, expected);
    DecimalSummary back;
    ASSERT_TRUE(to_summary(expected, kSlice, kDecimals, back));
    to_partial(back, kSlice, kDecimals, found);
    ASSERT_EQ(found, expected);
  }
}

TEST(SmallRow, LeavesWhatDoesNotFit) {
  SmallRow row;
  ASSERT_TRUE(row.set(DecimalSummary::of(Duration((std::int64_t{1} << 48) - 1), 5)));
  EXPECT_FALSE(row.set(DecimalSummary::of(Duration(std::int64_t{1} << 48), 6)));
  EXPECT_FALSE(row.set(DecimalSummary::of(Duration(-1), 6)));
  EXPECT_EQ(row.get().last, 5);

  DecimalSummary most = DecimalSummary::of(Duration(1), INT32_MIN);  // a square of 2^62
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(most.merge(DecimalSummary::of(Duration(1), INT32_MIN)));
  EXPECT_FALSE(most.merge(DecimalSummary::of(Duration(1), INT32_MIN)));
  EXPECT_EQ(most.count, 3U);
  EXPECT_EQ(most.sum, 3 * std::int64_t{INT32_MIN});

  DecimalSummary many = DecimalSummary::of(Duration(1), 0);
  many.count = UINT32_MAX;
  EXPECT_FALSE(many.merge(DecimalSummary::of(Duration(1), 0)));
}

TEST(SmallRow, TakesOnlyDecimalsOfTheSlice) {
  DecimalSummary out;
  Partial partial;
  EXPECT_TRUE(to_summary(partial, kSlice, kDecimals, out));
  EXPECT_EQ(out.count, 0U);
  const auto takes = [&](Duration at, double value) {
    Partial one;
    one.add(kSlice + at, value, kDecimals);
    return to_summary(one, kSlice, kDecimals, out);
  };
  EXPECT_TRUE(takes(Duration(3), -2147483.648));
  EXPECT_FALSE(takes(Duration(3), 2147483.648));  // decimals of more than 32 bits
  EXPECT_FALSE(takes(Duration(3), 0.0001));
  EXPECT_FALSE(takes(Duration(3), 1e300));
  partial.add_contribution(0.5);
  partial.first_time = partial.last_time = kSlice;
  EXPECT_FALSE(to_summary(partial, kSlice, kDecimals, out));  // 0.5 as binary64 is no decimal
}

}  // namespace
}  // namespace orla::stream
