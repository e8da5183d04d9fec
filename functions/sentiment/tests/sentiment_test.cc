#include "functions/sentiment/cpp/sentiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/files.h"

namespace orla::functions {
namespace {

// What the pinned TextBlob said, by make_cases.py.
nlohmann::json cases() {
  const std::string root = base::SystemEnvironment().get("ORLA_SOURCE_DIR").value_or(".");
  const absl::StatusOr<std::string> text = base::read_file(root + "/functions/sentiment/tests/cases.json", 1 << 22);
  return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
}

TEST(Sentiment, IsThatOfTextBlob) {
  const nlohmann::json all = cases();
  ASSERT_GE(all.size(), 1000u);
  int opinions = 0;
  for (const nlohmann::json& one : all) {
    const std::string text = one[0];
    const std::optional<Sentiment> got = sentiment_of(text);
    ASSERT_TRUE(got.has_value()) << text;
    EXPECT_NEAR(got->polarity, one[1].get<double>(), 1e-9) << one[0];
    EXPECT_NEAR(got->subjectivity, one[2].get<double>(), 1e-9) << one[0];
    if (std::abs(got->polarity) > 0.01) ++opinions;
  }
  EXPECT_GT(opinions, 600) << "cases that say something";
}

TEST(Sentiment, TextThatIsNotUtf8IsNone) {
  EXPECT_FALSE(sentiment_of("good \xff"));
  EXPECT_FALSE(sentiment_of("good \xc0\x80"));
  EXPECT_FALSE(sentiment_of("good \xed\xa0\x80"));
  EXPECT_FALSE(sentiment_of("good \xe2\x99"));
  EXPECT_TRUE(sentiment_of("good \xe2\x99\xa5"));
}

}  // namespace
}  // namespace orla::functions
