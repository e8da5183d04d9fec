#include "model/series.h"

#include <gtest/gtest.h>

namespace orla::model {
namespace {

TEST(Series, IsShownWithItsLabels) {
  EXPECT_EQ(to_string(Series{"load", {{"house", "3"}, {"household", "0"}, {"plug", "7"}}}),
            "load{house=3,household=0,plug=7}");
  EXPECT_EQ(to_string(Series{"load", {}}), "load");
}

TEST(Series, IdentityTellsEqualFromDifferent) {
  const Series a{"m", {{"a", "bc"}}};
  EXPECT_EQ(identity(a), identity(Series{"m", {{"a", "bc"}}}));
  EXPECT_NE(identity(a), identity(Series{"m", {{"ab", "c"}}}));
  EXPECT_NE(identity(a), identity(Series{"ma", {{"", "bc"}}}));
  EXPECT_NE(identity(Series{"m", {}}), identity(Series{"m", {{"", ""}}}));
  EXPECT_NE(identity(Series{"m", {{"a", "1"}, {"b", "2"}}}), identity(Series{"m", {{"a", "1b2"}}}));
}

TEST(GroupDef, IdentityCoversEveryMember) {
  const GroupDef base{"plug_load", 17, 60'000'000'000, 3, {{"house", "1"}}};
  EXPECT_EQ(identity(base), identity(GroupDef(base)));
  GroupDef other = base;
  other.stream = "x";
  EXPECT_NE(identity(base), identity(other));
  other = base;
  other.definition = 18;
  EXPECT_NE(identity(base), identity(other));
  other = base;
  other.slice_ns = 1;
  EXPECT_NE(identity(base), identity(other));
  other = base;
  other.decimals = 2;
  EXPECT_NE(identity(base), identity(other));
  other = base;
  other.labels[0].second = "2";
  EXPECT_NE(identity(base), identity(other));
}

}  // namespace
}  // namespace orla::model
