#include "node/callbacks.h"

#include <gtest/gtest.h>

namespace orla::node {
namespace {

TEST(CallbackPolicy, OnlyPublicAddressesUnlessAllowed) {
  const auto policy = CallbackPolicy::parse({});
  ASSERT_TRUE(policy.ok());
  for (const char* address : {"127.0.0.1",
                              "127.255.255.255",
                              "0.0.0.0",
                              "10.1.2.3",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.168.1.1",
                              "169.254.169.254",
                              "100.64.0.1",
                              "224.0.0.1",
                              "255.255.255.255",
                              "::1",
                              "::",
                              "fe80::1",
                              "fe80::1%eth0",
                              "fd12::1",
                              "ff02::1",
                              "::ffff:127.0.0.1",
                              "::ffff:10.0.0.1",
                              "64:ff9b::10.0.0.1",
                              "2002:7f00:1::",
                              "::127.0.0.1"})
    EXPECT_TRUE(absl::IsPermissionDenied(policy->check_address(address))) << address;
  for (const char* address : {"8.8.8.8", "172.32.0.1", "172.15.0.1", "11.0.0.1", "100.128.0.1", "2606:4700::1111",
                              "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"})
    EXPECT_TRUE(policy->check_address(address).ok()) << address;
}

TEST(CallbackPolicy, WhatIsAllowedIsAllowed) {
  const auto policy = CallbackPolicy::parse({"127.0.0.1", "10.8.0.0/13", "fd00::/8"});
  ASSERT_TRUE(policy.ok()) << policy.status();
  for (const char* address : {"127.0.0.1", "10.8.0.1", "10.15.255.255", "fd00::1"})
    EXPECT_TRUE(policy->check_address(address).ok()) << address;
  for (const char* address : {"127.0.0.2", "10.16.0.0", "10.7.255.255", "fc00::1", "::1"})
    EXPECT_FALSE(policy->check_address(address).ok()) << address;
}

TEST(CallbackPolicy, RefusesWhatIsNoNetwork) {
  for (const char* text : {"", "localhost", "1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "::/129", "::1/x"})
    EXPECT_TRUE(absl::IsInvalidArgument(CallbackPolicy::parse({text}).status())) << text;
}

TEST(CallbackPolicy, LooksAtTheUrl) {
  const auto policy = CallbackPolicy::parse({"127.0.0.2"});
  ASSERT_TRUE(policy.ok());
  for (const char* url : {"http://example.org/a", "http://127.0.0.2:8080/", "http://8.8.8.8"})
    EXPECT_TRUE(policy->check_url(url).ok()) << url;
  for (const char* url : {"http://127.0.0.1/", "http://localhost/", "http://[::1]/", "https://example.org",
                          "example.org", "file:///etc/passwd", "http://user@example.org"})
    EXPECT_TRUE(absl::IsInvalidArgument(policy->check_url(url))) << url;
}

}  // namespace
}  // namespace orla::node
