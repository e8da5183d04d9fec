#include "base/url.h"

#include <gtest/gtest.h>

namespace orla::base {
namespace {

TEST(Url, DecodingUndoesEncoding) {
  std::string all;
  for (int c = 1; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percent_decode(percent_encode(all), Plus::kSpace), all);
  EXPECT_EQ(percent_decode("%zz%4", Plus::kLiteral), "%zz%4");
}

TEST(Url, ReadsQueries) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(parse_query("a=1&b=x+y%26&&c&=d&e=f=g"),
            (Pairs{{"a", "1"}, {"b", "x y&"}, {"c", ""}, {"", "d"}, {"e", "f=g"}}));
  EXPECT_EQ(parse_query(""), Pairs{});
}

}  // namespace
}  // namespace orla::base
