// Conformance of every model in the table, and the published formula worked out by hand.
#include "forecast/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace orla::forecast {
namespace {

TEST(Models, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const ModelRow& row : models()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.text.empty());
    EXPECT_EQ(find_model(row.name), row.model);
  }
  EXPECT_EQ(find_model("debs2013"), nullptr);
  EXPECT_EQ(find_model(""), nullptr);
}

TEST(Models, EveryModelGivesAFiniteValueOrAReason) {
  for (const ModelRow& row : models()) {
    for (const std::optional<double>& current : {std::optional<double>(), std::optional<double>(12.5)}) {
      for (const std::vector<double>& history : {std::vector<double>{}, {3}, {4, 8, 1e300, -2}}) {
        const Prediction made = row.model->predict(current, history);
        EXPECT_NE(made.value.has_value(), !made.reason.empty()) << row.name;
        if (made.value) {
          EXPECT_TRUE(std::isfinite(*made.value)) << row.name;
        }
        EXPECT_EQ(row.model->predict(current, history), made) << row.name << " does not repeat itself";
      }
    }
    EXPECT_EQ(row.model->predict(std::nullopt, {}).value, std::nullopt) << row.name;
  }
}

TEST(Models, TheOrderOfTheHistoryDoesNotMatter) {
  for (const ModelRow& row : models()) {
    std::vector<double> history = {1, 5, 9, 13};
    const Prediction made = row.model->predict(7, history);
    while (std::next_permutation(history.begin(), history.end())) {
      EXPECT_EQ(row.model->predict(7, history), made) << row.name;
    }
  }
}

const LoadModel& debs2014() { return *find_model("debs2014"); }

TEST(Debs2014, MeanOfNowAndTheMedianOfEarlierDays) {
  // (10 + median{2, 100, 4}) / 2 = (10 + 4) / 2
  EXPECT_EQ(debs2014().predict(10, std::vector<double>{2, 100, 4}).value, 7);
  // (10 + median{2, 4}) / 2 = (10 + 3) / 2
  EXPECT_EQ(debs2014().predict(10, std::vector<double>{4, 2}).value, 6.5);
  EXPECT_EQ(debs2014().predict(0, std::vector<double>{0}).value, 0);
}

TEST(Debs2014, OneAloneWhenTheOtherIsMissing) {
  EXPECT_EQ(debs2014().predict(10, {}).value, 10);
  EXPECT_EQ(debs2014().predict(std::nullopt, std::vector<double>{1, 2, 30, 40}).value, 16);
}

TEST(Debs2014, NothingFromNothingSaysWhy) {
  const Prediction made = debs2014().predict(std::nullopt, {});
  EXPECT_EQ(made.value, std::nullopt);
  EXPECT_NE(made.reason.find("no samples"), std::string::npos);
}

TEST(Comparators, PersistenceAndDayMedian) {
  EXPECT_EQ(persistence(3), 3);
  EXPECT_EQ(persistence(std::nullopt), std::nullopt);
  EXPECT_EQ(day_median(std::vector<double>{1, 9, 2}), 2);
  EXPECT_EQ(day_median({}), std::nullopt);
}

}  // namespace
}  // namespace orla::forecast
