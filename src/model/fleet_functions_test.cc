// Gateways and functions in a fleet file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/fleet_file_sample.h"

namespace orla::model {
namespace {

using sample::parse;
using sample::replaced;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHttp = "http = \"127.0.0.1:8411\"\n";

std::string with_gateway(const std::string& settings, const std::string& functions) {
  return replaced(kHttp, std::string(kHttp) + settings) + functions;
}

TEST(FleetFunctions, AreReadWithPathsFromTheFleetFilesFolder) {
  const ParsedFleet parsed = parse(
      with_gateway("gateway = \"127.0.0.1:0\"\nimages = \"images\"\ngateway_auth = \"/etc/auth\"\nprocesses = true\n"
                   "wasmtime = \"lib/libwasmtime.so\"\nnamespaces = [\"dev\"]\nupstream_timeout = \"5s\"\n",
                   "\n[[function]]\nnode = \"edge-1\"\nname = \"echo\"\nnamespace = \"dev\"\nimage = \"echo.wasm\"\n"
                   "environment = { exec_timeout = \"1s\" }\nlabels = { \"com.openfaas.scale.min\" = \"2\" }\n"
                   "secrets = \"key\"\nmemory = \"64Mi\"\n"));
  ASSERT_TRUE(parsed.fleet) << to_string(parsed.errors);
  const GatewaySpec& gateway = parsed.fleet->node("edge-1")->gateway;
  EXPECT_EQ(gateway.address, "127.0.0.1:0");
  EXPECT_EQ(gateway.images, "dir/images");
  EXPECT_EQ(gateway.auth, "/etc/auth");
  EXPECT_EQ(gateway.wasmtime, "dir/lib/libwasmtime.so");
  EXPECT_TRUE(gateway.processes);
  EXPECT_EQ(gateway.upstream_timeout, std::chrono::seconds(5));
  EXPECT_EQ(gateway.drain_timeout, std::chrono::seconds(30));
  ASSERT_EQ(parsed.fleet->functions.size(), 1u);
  const FunctionEntry& function = parsed.fleet->functions[0];
  EXPECT_EQ(function.name, "echo");
  EXPECT_EQ(function.space, "dev");
  EXPECT_EQ(function.environment.at("exec_timeout"), "1s");
  EXPECT_EQ(function.labels.at("com.openfaas.scale.min"), "2");
  EXPECT_THAT(function.secrets, ElementsAre("key"));
  EXPECT_EQ(function.memory, "64Mi");
}

TEST(FleetFunctions, WhatDoesNotFitIsSaid) {
  const std::string function = "\n[[function]]\nname = \"echo\"\nimage = \"native/echo\"\nnode = ";
  const auto error = [&](const std::string& settings, const std::string& functions) {
    return to_string(parse(with_gateway(settings, functions)).errors);
  };
  EXPECT_THAT(error("gateway = \"0.0.0.0:8080\"\n", ""), HasSubstr("gateway: \"0.0.0.0:8080\" is not a loopback"));
  EXPECT_THAT(error("images = \"x\"\n", ""), HasSubstr("\"images\" of a node without \"gateway\""));
  EXPECT_THAT(error("wasmtime = \"x\"\n", ""), HasSubstr("\"wasmtime\" of a node without \"gateway\""));
  EXPECT_THAT(error("gateway = \"127.0.0.1:8411\"\n", ""), HasSubstr("is taken"));
  EXPECT_THAT(error("", function + "\"edge-1\"\n"), HasSubstr("\"edge-1\" hosts no functions"));
  EXPECT_THAT(error("", function + "\"edge-9\"\n"), HasSubstr("unknown node \"edge-9\""));
  EXPECT_THAT(error("gateway = \"127.0.0.1:0\"\n", function + "\"edge-1\"\nnamespace = \"dev\"\n"),
              HasSubstr("has no namespace \"dev\""));
  EXPECT_THAT(error("gateway = \"127.0.0.1:0\"\n", function + "\"edge-1\"\n" + function + "\"edge-1\"\n"),
              HasSubstr("a second function \"echo\""));
}

}  // namespace
}  // namespace orla::model
