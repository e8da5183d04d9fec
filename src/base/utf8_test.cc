#include "base/utf8.h"

#include <gtest/gtest.h>

namespace orla::base {
namespace {

TEST(Utf8, AcceptsEachLengthAtItsBounds) {
  for (const char* good : {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "Z\xC3\xBCrich"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_EQ(to_utf8(good), good);
  }
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8, RefusesOverlongSurrogatesTooLargeAndCutOnes) {
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "a\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << testing::PrintToString(bad);
    EXPECT_TRUE(is_utf8(to_utf8(bad)));
  }
}

TEST(Utf8, ReplacesOnlyTheBytesThatAreWrong) {
  EXPECT_EQ(to_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(to_utf8("M\xFCnchen"), "M\xEF\xBF\xBDnchen");
  EXPECT_EQ(to_utf8("\xC3"), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace orla::base
