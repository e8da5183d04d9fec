#include "model/address.h"

#include <gtest/gtest.h>

namespace orla::model {
namespace {

TEST(Address, Loopback) {
  EXPECT_EQ(parse_address("127.0.0.1:80").value(), (Address{"127.0.0.1", 80}));
  EXPECT_EQ(parse_address("127.255.1.2:0").value(), (Address{"127.255.1.2", 0}));
  EXPECT_EQ(parse_address("localhost:65535").value(), (Address{"127.0.0.1", 65535}));
  EXPECT_EQ(parse_address("[::1]:7").value(), (Address{"::1", 7}));
  EXPECT_EQ(parse_address("[0:0::1]:7").value(), (Address{"::1", 7}));
}

TEST(Address, Refused) {
  for (const char* text : {"", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:8x",
                           "::1:80", "[::1]", "[x]:80", "[::2]:80", "0.0.0.0:80", "128.0.0.1:80", "example.org:80",
                           "127.1:80", "[127.0.0.1]:80", "127.0.0.1 :80"}) {
    EXPECT_FALSE(parse_address(text).ok()) << text;
  }
}

}  // namespace
}  // namespace orla::model
