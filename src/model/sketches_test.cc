#include "model/sketches.h"

#include <gtest/gtest.h>

#include "model/partial.h"

namespace orla::model {
namespace {

Partial partial_of(SketchKinds kinds, std::initializer_list<double> values) {
  Partial p;
  p.sketches = Sketches(kinds);
  for (const double v : values) p.add(from_ns(1), v, 1);
  if (DistinctSketch* distinct = p.sketches.distinct()) distinct->add(values.size());
  return p;
}

TEST(Sketches, AreOnePointer) {
  static_assert(sizeof(Sketches) == sizeof(void*));
  // Beside the numbers: nothing that the alignment of the sums did not take before.
  static_assert(sizeof(Partial) == 112);
  EXPECT_TRUE(Sketches().none());
  EXPECT_TRUE(Sketches(SketchKinds{}).none());
}

TEST(Sketches, StatisticsShowNearestRanksWithinMinAndMax) {
  Partial p = partial_of({true, true}, {});
  for (int v = 1; v <= 1000; ++v) p.add(from_ns(v), v, 0);
  p.sketches.distinct()->add(77);
  const Statistics s = statistics(p, 0);
  EXPECT_NEAR(*s.p50, 500, 500 / 256.0);
  EXPECT_NEAR(*s.p90, 900, 900 / 256.0);
  EXPECT_NEAR(*s.p99, 990, 990 / 256.0);
  EXPECT_NEAR(*s.p999, 999, 999 / 256.0);
  EXPECT_EQ(s.distinct, 2u);
  const Statistics one = statistics(partial_of({true, false}, {0.1}), 1);
  EXPECT_EQ(one.p50, 0.1);  // the middle of its bin is not 0.1, but min and max are
  EXPECT_EQ(one.p999, 0.1);
  EXPECT_FALSE(one.distinct.has_value());
  EXPECT_FALSE(statistics(partial_of({}, {1}), 1).p50.has_value());
}

TEST(Sketches, MergedWithSamplesThatHaveNoneAreNone) {
  const Partial with = partial_of({true, true}, {1, 2});
  const Partial without = partial_of({}, {3});
  const Partial half = partial_of({true, false}, {4});
  Partial a = with;
  a.merge(without);
  Partial b = without;
  b.merge(with);
  EXPECT_EQ(a, b);
  EXPECT_TRUE(a.sketches.none());
  Partial c = with;
  c.merge(half);
  Partial d = half;
  d.merge(with);
  EXPECT_EQ(c, d);
  EXPECT_EQ(c.sketches.kinds(), (SketchKinds{true, false}));
  EXPECT_EQ(c.sketches.quantiles()->count(), 3u);
  Partial e;
  e.merge(with);
  e.merge(Partial());
  EXPECT_EQ(e, with);
}

TEST(Sketches, SumsAloneLeaveSketchesAsTheyAre) {
  Partial p;
  p.sketches = Sketches({true, false});
  p.merge_sums(partial_of({}, {3, 4}));
  EXPECT_EQ(p.count, 2u);
  EXPECT_EQ(p.sketches.quantiles()->count(), 0u);
  p.merge_sums(partial_of({}, {5}));
  EXPECT_EQ(p.max, 5);
  EXPECT_EQ(p.sketches.kinds(), (SketchKinds{true, false}));
}

TEST(Sketches, ContributionsHaveQuantilesToo) {
  Partial p;
  p.sketches = Sketches({true, false});
  for (int i = 0; i < 9; ++i) p.add_contribution(i < 5 ? 2.0 : 8.0);
  EXPECT_NEAR(*statistics(p, 0).p50, 2, 2 / 256.0);
  EXPECT_NEAR(*statistics(p, 0).p90, 8, 8 / 256.0);
}

TEST(Sketches, ComeBackFromTheirBytes) {
  for (const SketchKinds kinds : {SketchKinds{true, false}, SketchKinds{false, true}, SketchKinds{true, true}}) {
    const Sketches sketches = partial_of(kinds, {1, -2, 0, 300}).sketches;
    const std::string bytes = sketches.encode();
    EXPECT_EQ(*Sketches::decode(bytes), sketches);
    EXPECT_FALSE(Sketches::decode(bytes + 'x').ok());
    EXPECT_FALSE(Sketches::decode(bytes.substr(1)).ok());
  }
  EXPECT_FALSE(Sketches::decode("").ok());
  EXPECT_FALSE(Sketches::decode(std::string(1, '\0')).ok());
  EXPECT_FALSE(Sketches::decode("\x04").ok());
}

}  // namespace
}  // namespace orla::model
