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

TEST(Url, SplitsWhereARequestGoes) {
  const auto plain = parse_http_url("http://example.org");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->host, "example.org");
  EXPECT_EQ(plain->port, 80);
  EXPECT_EQ(plain->target, "/");
  const auto whole = parse_http_url("HTTP://[fe80::1]:8080/a%20b?c=d#e");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->authority, "[fe80::1]:8080");
  EXPECT_EQ(whole->host, "fe80::1");
  EXPECT_EQ(whole->port, 8080);
  EXPECT_EQ(whole->target, "/a%20b?c=d");
  EXPECT_EQ(parse_http_url("http://h?x")->target, "/?x");
}

TEST(Url, RefusesWhatIsNoHttpUrl) {
  for (const char* text :
       {"", "h", "ftp://h", "https://h", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536",
        "http://h:80x", "http://a@h", "http://h h", "http://h/\r\nX: y", "http://[::1", "http://[x]", "http://[::1]x",
        "http://h\\x", "http://h\x80", "http://a:b:80"}) {
    EXPECT_EQ(parse_http_url(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace orla::base
