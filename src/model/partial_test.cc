#include "model/partial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace orla::model {
namespace {

TEST(Partial, SummarisesSamples) {
  Partial p;
  p.add(from_ns(20), 1.5, 1);
  p.add(from_ns(10), 4.0, 1);
  p.add(from_ns(30), -2.5, 1);
  p.add(from_ns(15), 3.0, 1);
  EXPECT_EQ(p.first_time, from_ns(10));
  EXPECT_EQ(p.last_time, from_ns(30));
  const Statistics s = statistics(p, 1);
  EXPECT_EQ(s.count, 4u);
  EXPECT_EQ(s.sum, 6.0);
  EXPECT_EQ(s.min, -2.5);
  EXPECT_EQ(s.max, 4.0);
  EXPECT_EQ(s.mean, 1.5);
  // Squares: 2.25 + 16 + 6.25 + 9 = 33.5; variance (4*33.5 - 36) / 16 = 6.125.
  EXPECT_EQ(s.stddev, std::sqrt(6.125));
  EXPECT_EQ(s.first, 4.0);
  EXPECT_EQ(s.last, -2.5);
  EXPECT_EQ(pick(p, 1, Statistic::kSum), 6.0);
  EXPECT_EQ(pick(p, 1, Statistic::kMin), -2.5);
  EXPECT_EQ(pick(p, 1, Statistic::kMax), 4.0);
  EXPECT_EQ(pick(p, 1, Statistic::kMean), 1.5);
  EXPECT_EQ(pick(p, 1, Statistic::kLast), -2.5);
}

TEST(Partial, FirstAndLastOfOneInstantGoByValue) {
  Partial p;
  p.add(from_ns(5), 2.0, 0);
  p.add(from_ns(5), 1.0, 0);
  p.add(from_ns(5), 3.0, 0);
  p.add(from_ns(5), 2.0, 0);
  EXPECT_EQ(p.first, 1.0);
  EXPECT_EQ(p.last, 3.0);
}

TEST(Partial, MinusZeroIsZero) {
  Partial a, b;
  a.add(from_ns(1), -0.0, 0);
  b.add(from_ns(1), 0.0, 0);
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(std::signbit(a.min) || std::signbit(a.max) || std::signbit(a.first) || std::signbit(a.last));
  Partial c;
  c.add_contribution(-0.0);
  EXPECT_FALSE(std::signbit(c.min) || std::signbit(c.max));
}

TEST(Partial, ContributionsAreSummedAsBinary) {
  Partial a;
  a.add_contribution(0.1);
  Partial b;
  b.add_contribution(0.2);
  a.merge(b);
  EXPECT_EQ(a.count, 2u);
  EXPECT_EQ(a.sums.sum(1), 0.1 + 0.2);  // 0.30000000000000004, not the decimal 0.3
  EXPECT_EQ(a.min, 0.1);
  EXPECT_EQ(a.max, 0.2);
}

TEST(Partial, EmptyIsNeutral) {
  Partial a;
  a.add(from_ns(1), 7, 0);
  Partial before = a;
  a.merge(Partial());
  EXPECT_TRUE(a == before);
  Partial empty;
  empty.merge(a);
  EXPECT_TRUE(empty == a);
  Partial odd;
  odd.min = 3;
  EXPECT_TRUE(odd == Partial());
}

TEST(Partial, EveryOrderAndSplitIsEqual) {
  base::SeededRandom random(21);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::pair<Time, double>> samples(15);
    for (auto& [time, value] : samples) {
      time = from_ns(static_cast<std::int64_t>(random.below(5)));
      value = random.below(2) == 0 ? static_cast<double>(random.below(4)) - 2 : random.unit();
    }
    Partial straight;
    for (const auto& [time, value] : samples) straight.add(time, value, 1);
    std::vector<Partial> parts(3);
    for (std::size_t i = samples.size(); i > 0; --i)
      parts[random.below(3)].add(samples[i - 1].first, samples[i - 1].second, 1);
    parts[1].merge(parts[0]);
    parts[2].merge(parts[1]);
    EXPECT_TRUE(parts[2] == straight);
  }
}

TEST(Canonicalize, SortsAndMerges) {
  const auto row = [](std::uint32_t group, std::int64_t slice, double value) {
    PartialRow r{GroupId{group}, from_ns(slice), {}};
    r.partial.add(from_ns(slice), value, 0);
    return r;
  };
  PartialRows rows;
  rows.push_back(row(2, 60, 1));
  rows.push_back(row(1, 60, 2));
  rows.push_back(row(2, 0, 3));
  rows.push_back(row(1, 60, 4));
  rows.push_back(row(1, 60, 5));
  canonicalize(rows);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].group, GroupId{1});
  EXPECT_EQ(rows[0].partial.count, 3u);
  EXPECT_EQ(rows[0].partial.sums.sum(0), 11.0);
  EXPECT_EQ(rows[1].slice, from_ns(0));
  EXPECT_EQ(rows[2].slice, from_ns(60));
  const PartialRows once = rows;
  canonicalize(rows);
  EXPECT_EQ(rows, once);
}

}  // namespace
}  // namespace orla::model
