#include "function/retry_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orla::function {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr base::WallTime kNow{seconds(784'111'777)};  // Sun, 06 Nov 1994 08:49:37 GMT (RFC 9110, 5.6.7)

RetryOptions read(const std::map<std::string, std::string>& annotations) {
  const auto options = read_retry_options(annotations);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(RetryOptions{});
}

TEST(RetryPolicy, ReadsAnnotations) {
  EXPECT_EQ(read({{"other", "x"}}).attempts, 10);
  const RetryOptions options = read({{"com.openfaas.retry.attempts", "3"},
                                     {"com.openfaas.retry.codes", "500, 418"},
                                     {"com.openfaas.retry.min_wait", "250ms"},
                                     {"com.openfaas.retry.max_wait", "1m"},
                                     {"com.openfaas.retry.backoff", "equal"}});
  EXPECT_EQ(options.attempts, 3);
  EXPECT_THAT(options.codes, ::testing::ElementsAre(500, 418));
  EXPECT_EQ(options.min_wait, std::chrono::milliseconds(250));
  EXPECT_EQ(options.max_wait, seconds(60));
  EXPECT_EQ(options.backoff, Backoff::kEqual);
}

TEST(RetryPolicy, RefusesWhatItDoesNotKnow) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"attempts", "0"},
                                                                                    {"attempts", "1001"},
                                                                                    {"attempts", "3x"},
                                                                                    {"codes", ""},
                                                                                    {"codes", "500,"},
                                                                                    {"codes", "99"},
                                                                                    {"codes", "600"},
                                                                                    {"min_wait", "-1s"},
                                                                                    {"min_wait", "3m"},
                                                                                    {"max_wait", "25h"},
                                                                                    {"backoff", "none"},
                                                                                    {"jitter", "full"}}) {
    const auto options = read_retry_options({{"com.openfaas.retry." + name, value}});
    EXPECT_TRUE(absl::IsInvalidArgument(options.status())) << name << "=" << value;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr("com.openfaas.retry." + name));
  }
}

TEST(RetryPolicy, WhichEndsCallForAnotherAttempt) {
  struct Row {
    Attempt attempt;
    bool retried;
  };
  for (const Row& row : std::vector<Row>{{{1, 200, false, {}}, false},
                                         {{1, 200, true, {}}, false},
                                         {{1, 500, false, {}}, true},
                                         {{1, 503, false, {}}, false},
                                         {{1, 503, true, {}}, true},
                                         {{1, 404, false, {}}, false},
                                         {{9, 429, false, {}}, true},
                                         {{10, 429, false, {}}, false},
                                         {{10, 503, true, {}}, false}}) {
    EXPECT_EQ(is_retried({}, row.attempt), row.retried) << row.attempt.status << " of attempt " << row.attempt.number;
  }
}

TEST(RetryPolicy, WaitsGrowUpToTheLongest) {
  base::SeededRandom random(1);
  RetryOptions options;
  options.backoff = Backoff::kExponential;
  const auto wait = [&](std::uint32_t number) { return wait_after(options, {number, 500, false, {}}, kNow, random); };
  EXPECT_EQ(wait(1), seconds(10));
  EXPECT_EQ(wait(2), seconds(20));
  EXPECT_EQ(wait(4), seconds(80));
  EXPECT_EQ(wait(5), seconds(120));
  EXPECT_EQ(wait(999), seconds(120));
  options.backoff = Backoff::kEqual;
  nanoseconds least = seconds(1000);
  nanoseconds most{};
  for (int i = 0; i < 1000; ++i) {
    least = std::min(least, wait(2));
    most = std::max(most, wait(2));
  }
  EXPECT_GE(least, seconds(10));
  EXPECT_LT(least, seconds(11));
  EXPECT_LE(most, seconds(20));
  EXPECT_GT(most, seconds(19));
  options.backoff = Backoff::kFull;
  for (int i = 0; i < 1000; ++i) least = std::min(least, wait(2));
  EXPECT_LT(least, seconds(1));
}

TEST(RetryPolicy, RetryAfterTakesThePlaceOfTheBackoff) {
  base::SeededRandom random(1);
  RetryOptions options;
  options.backoff = Backoff::kExponential;
  const auto wait = [&](int status, std::string after) {
    return wait_after(options, {1, status, false, after}, kNow, random);
  };
  EXPECT_EQ(wait(429, "300"), seconds(300));
  EXPECT_EQ(wait(503, "Sun, 06 Nov 1994 08:50:37 GMT"), seconds(60));
  EXPECT_EQ(wait(503, "Sun, 06 Nov 1994 08:00:00 GMT"), options.min_wait);
  EXPECT_EQ(wait(503, "1"), options.min_wait);
  EXPECT_EQ(wait(503, "4000000000"), kLongestWait);
  EXPECT_EQ(wait(503, "soon"), seconds(10));
  EXPECT_EQ(wait(500, "300"), seconds(10));
}

}  // namespace
}  // namespace orla::function
