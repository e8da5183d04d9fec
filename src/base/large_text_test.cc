#include "base/large_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace orla::base {
namespace {

TEST(LargeText, HoldsWhatWasAppended) {
  LargeText text;
  EXPECT_EQ(text.view(), "");
  std::string expected;
  for (int i = 0; i < 2'000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 700), static_cast<char>('a' + i % 26));
    ASSERT_TRUE(text.append(piece).ok());
    expected += piece;
  }
  ASSERT_TRUE(text.append(std::string(300'000, 'z')).ok());
  expected.append(300'000, 'z');
  EXPECT_EQ(text.size(), expected.size());
  EXPECT_EQ(text.view(), expected);
  const LargeText moved = std::move(text);
  EXPECT_EQ(moved.view(), expected);
  EXPECT_EQ(text.size(), 0u);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace orla::base
