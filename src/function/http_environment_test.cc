#include "function/http_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orla::function {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

TEST(HttpEnvironment, NamesThingsAsTheWatchdogDoes) {
  CallHead head;
  head.method = "PUT";
  head.path = "/a/b";
  head.query = "x=1&y=2";
  head.host = "node:8080";
  head.content_length = 12;
  head.headers = {{"content-type", "text/csv"},  {"X-Call-Id", "7"},   {"X-FORWARDED-FOR", "first"},
                  {"X-Forwarded-For", "second"}, {"Method", "header"}, {"x=y", "z"}};
  const auto variables = http_environment(head);
  EXPECT_THAT(variables, Contains(Pair("Http_Method", "PUT")));
  EXPECT_THAT(variables, Not(Contains(Pair("Http_Method", "header"))));
  EXPECT_THAT(variables, Contains(Pair("Http_Path", "/a/b")));
  EXPECT_THAT(variables, Contains(Pair("Http_Query", "x=1&y=2")));
  EXPECT_THAT(variables, Contains(Pair("Http_Host", "node:8080")));
  EXPECT_THAT(variables, Contains(Pair("Http_ContentLength", "12")));
  EXPECT_THAT(variables, Contains(Pair("Http_Content_Length", "12")));
  EXPECT_THAT(variables, Contains(Pair("Http_Content_Type", "text/csv")));
  EXPECT_THAT(variables, Contains(Pair("Http_X_Call_Id", "7")));
  EXPECT_THAT(variables, Contains(Pair("Http_X_Forwarded_For", "first")));
  EXPECT_THAT(variables, Not(Contains(Pair("Http_X_Forwarded_For", "second"))));
  EXPECT_THAT(variables, Contains(Pair("Http_X_y", "z")));
  EXPECT_THAT(variables, Not(Contains(Key("Http_Transfer_Encoding"))));
}

TEST(HttpEnvironment, ALengthThatIsNotKnownIsMinusOne) {
  const auto variables = http_environment({});
  EXPECT_THAT(variables, Contains(Pair("Http_Content_Length", "-1")));
  EXPECT_THAT(variables, Contains(Pair("Http_Transfer_Encoding", "chunked")));
  EXPECT_THAT(variables, Not(Contains(Key("Http_Query"))));
}

}  // namespace
}  // namespace orla::function
