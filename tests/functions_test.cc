// Functions of a fleet of real processes: deployed by the fleet file, called over the gateway, kept over a restart.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "node/http_client.h"
#include "tests/fleet_under_test.h"
#include "tests/gateway_under_test.h"

namespace orla::behaviour {
namespace {

using ::testing::HasSubstr;

// Answers with its standard input.
constexpr std::string_view kFleet = R"(
[fleet]
name = "functions"

[[node]]
name = "cloud"
layer = "cloud"
listen = "127.0.0.1:0"
http = "127.0.0.1:0"
gateway = "127.0.0.1:0"
gateway_auth = "auth"
images = "images"
processes = true
drain_notice = "10ms"

[[node]]
name = "edge-1"
layer = "edge"
parents = ["cloud"]

[[metric]]
name = "load"

[[input]]
node = "edge-1"
kind = "push"

[[rollup]]
name = "all"
metric = "load"
windows = ["1m"]

[[function]]
node = "cloud"
name = "cat"
image = "cat"
env_process = "/bin/cat"
environment = { mode = "serializing" }

[[function]]
node = "cloud"
name = "none"
image = "nowhere"
)";

class Functions : public ::testing::Test {
 protected:
  Functions() : fleet_(std::string(kFleet)) {
    std::filesystem::create_directories(fleet_.directory() / "auth");
    std::filesystem::create_directories(fleet_.directory() / "images/cat");
    fleet_.write("auth/basic-auth-user", "admin\n");
    fleet_.write("auth/basic-auth-password", "secret\n");
  }
  std::string gateway() const { return fleet_.status("cloud").at("gateway"); }
  node::HttpReply ask(const std::string& method, const std::string& path, const std::string& body = "") const {
    absl::StatusOr<node::HttpReply> reply =
        node::http_request(method, gateway() + path, body, std::chrono::seconds(10));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.value_or(node::HttpReply{});
  }
  FleetUnderTest fleet_;
};

TEST_F(Functions, OfTheFleetFileAnswerAndAreThereAfterARestart) {
  ASSERT_TRUE(fleet_.up());
  const node::HttpReply reply = ask("POST", "/function/cat", "hello");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.body, "hello");
  EXPECT_EQ(ask("GET", "/system/functions").status, 401);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("POST", "/function/none").status, 404);
  const auto metrics = node::http_request("GET", fleet_.http("cloud") + "/metrics", "", std::chrono::seconds(10));
  ASSERT_TRUE(metrics.ok());
  EXPECT_THAT(metrics->body,
              HasSubstr("gateway_function_invocation_total{function_name=\"cat.openfaas-fn\",code=\"200\"} 1\n"));
  EXPECT_THAT(metrics->body, Not(HasSubstr("none.openfaas-fn")));
  ASSERT_TRUE(fleet_.stop("cloud", SIGKILL));
  ASSERT_TRUE(fleet_.start("cloud"));
  EXPECT_EQ(ask("POST", "/function/cat", "again").body, "again");
  EXPECT_THAT(fleet_.log_of("cloud"), HasSubstr("function none.openfaas-fn of the fleet file cannot be deployed"));
  fleet_.interrupt();
  EXPECT_EQ(fleet_.end(), 0);
}

// What is taken out of the fleet file goes at the next start; what people have deployed, or taken over, stays.
TEST(FunctionsOfTheFleetFile, GoWithIt) {
  const std::string section = "[[function]]\nnode = \"cloud\"\nname = \"{}\"\nimage = \"native/echo\"\n";
  GatewayText text;
  for (const std::string name : {"one", "two", "three"}) text.functions += fmt::format(fmt::runtime(section), name);
  GatewayFleet nodes(text);
  ASSERT_TRUE(nodes.up());
  nodes.deploy({{"service", "own"}, {"image", "native/echo"}});
  nodes.deploy({{"service", "three"}, {"image", "native/echo"}, {"labels", {{"a", "b"}}}});
  text.functions = fmt::format(fmt::runtime(section), "one");
  nodes.fleet.write("fleet.toml", text.full());
  ASSERT_TRUE(nodes.restart(SIGTERM));
  const auto status = [&](const std::string& name) { return nodes.ask("POST", "/function/" + name, "x").status; };
  EXPECT_EQ(status("one"), 200);
  EXPECT_EQ(status("two"), 404);
  EXPECT_EQ(status("three"), 200);
  EXPECT_EQ(status("own"), 200);
}

}  // namespace
}  // namespace orla::behaviour
