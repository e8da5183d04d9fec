#include "forecast/median.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace orla::forecast {
namespace {

std::optional<double> of(std::vector<double> values) { return median(values); }

TEST(Median, OfNothingIsNothing) { EXPECT_EQ(of({}), std::nullopt); }

TEST(Median, OddNumberGivesTheMiddleOne) {
  EXPECT_EQ(of({7}), 7);
  EXPECT_EQ(of({9, 1, 4}), 4);
  EXPECT_EQ(of({5, 5, 1, 5, 100}), 5);
}

TEST(Median, EvenNumberGivesTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(of({1, 2}), 1.5);
  EXPECT_EQ(of({10, 0, 4, 1}), 2.5);
  EXPECT_EQ(of({-3, -1, 5, 7}), 2);
}

TEST(Median, DoesNotOverflow) {
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(of({huge, huge}), huge);
}

}  // namespace
}  // namespace orla::forecast
