#include "verify/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orla::verify {
namespace {

std::vector<std::string> lines_of(const std::string& bytes, std::size_t piece) {
  Lines lines(base::bytes_in_memory(bytes, piece));
  std::vector<std::string> all;
  std::string_view line;
  for (;;) {
    const auto more = lines.next(line);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return all;
    all.push_back(lines.too_long() ? "<too long>" : std::string(line));
  }
}

using Texts = std::vector<std::string>;

TEST(Lines, EndsOfLines) {
  for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
    EXPECT_EQ(lines_of("", piece), Texts{});
    EXPECT_EQ(lines_of("a", piece), Texts{"a"});
    EXPECT_EQ(lines_of("a\nb\r\nc", piece), (Texts{"a", "b", "c"}));
    EXPECT_EQ(lines_of("a\n\r\n\nb\n", piece), (Texts{"a", "", "", "b"}));
    EXPECT_EQ(lines_of("a\rb\r\r\n", piece), Texts{"a\rb\r"});
    EXPECT_EQ(lines_of("a\r", piece), Texts{"a"});
  }
}

TEST(Lines, AByteOrderMarkIsNoContent) {
  for (const std::size_t piece : {1, 2, 1000}) {
    EXPECT_EQ(lines_of("\xef\xbb\xbf"
                       "a\n\xef\xbb\xbf"
                       "b",
                       piece),
              (Texts{"a",
                     "\xef\xbb\xbf"
                     "b"}));
    EXPECT_EQ(lines_of("\xef\xbb\xbf", piece), Texts{});
    EXPECT_EQ(lines_of("\xef\xbb", piece), Texts{"\xef\xbb"});
  }
}

TEST(Lines, OverlongLinesArePassedOver) {
  const std::string most(Lines::kMaxLineBytes, 'x');
  for (const std::size_t piece : {1000, 65536, 10000000}) {
    EXPECT_EQ(lines_of(most + "\r\n" + most + "x\nb\n", piece), (Texts{most, "<too long>", "b"}));
    EXPECT_EQ(lines_of(most + "\r\r\nb", piece), (Texts{"<too long>", "b"}));
    EXPECT_EQ(lines_of(most + most + most + most + most + "\nb\n", piece), (Texts{"<too long>", "b"}));
    EXPECT_EQ(lines_of(most + most + most + most + most, piece), Texts{"<too long>"});
    EXPECT_EQ(lines_of("a\n" + most, piece), (Texts{"a", most}));
  }
}

}  // namespace
}  // namespace orla::verify
