#include "function/spec.h"

#include <gtest/gtest.h>

#include "base/absl_view.h"

namespace orla::function {
namespace {

TEST(CheckLabel, TakesRfc1123LabelsOnly) {
  for (const std::string_view good : {"a", "0", "echo", "echo-2", "a--b", "openfaas-fn"}) {
    EXPECT_TRUE(check_label("function name", good).ok()) << good;
  }
  EXPECT_TRUE(check_label("function name", std::string(63, 'a')).ok());
  for (const std::string& bad : {std::string(), std::string("Echo"), std::string("-a"), std::string("a-"),
                                 std::string("a.b"), std::string("a_b"), std::string("a/b"), std::string("..")}) {
    const absl::Status status = check_label("function name", bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_NE(base::message(status).find("function name"), std::string::npos);
  }
  EXPECT_EQ(base::message(check_label("namespace", std::string(64, 'a'))),
            "the namespace has 64 bytes; expected at most 63");
}

TEST(KeyOf, SplitsAtTheLastDot) {
  EXPECT_EQ(key_of("echo"), (FunctionKey{"echo", "openfaas-fn"}));
  EXPECT_EQ(key_of("echo.other"), (FunctionKey{"echo", "other"}));
  EXPECT_EQ(key_of("a.b.c"), (FunctionKey{"a.b", "c"}));
  EXPECT_EQ(key_of(""), (FunctionKey{"", "openfaas-fn"}));
  EXPECT_EQ(key_of("echo.other").text(), "echo.other");
}

}  // namespace
}  // namespace orla::function
