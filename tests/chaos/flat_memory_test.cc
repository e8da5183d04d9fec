// A gateway that has been called, deployed to and asked for what there is not many thousand times is as it was before.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/clock.h"
#include "tests/chaos/chaos_fleet.h"
#include "tests/gateway_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// The names of series with their labels, without those of codes.
std::set<std::string> functions_in(const std::string& metrics) {
  std::set<std::string> names;
  for (const std::string& line : lines_of(metrics)) {
    const std::size_t begin = line.find("function_name=\"");
    if (begin != std::string::npos) names.insert(line.substr(begin + 15, line.find('"', begin + 15) - begin - 15));
  }
  return names;
}

class FlatMemory : public ::testing::Test {
 protected:
  FlatMemory() {
    nodes.module("echo");
    nodes.program("cat", "#!/bin/sh\nexec cat\n");
  }
  // `count` times, on `threads` connections.
  void repeat(int count, int threads, const std::function<void(GatewayConnection&, int)>& what) const {
    std::atomic<int> next{0};
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&] {
        GatewayConnection connection(nodes.url());
        for (int i = next++; i < count; i = next++) what(connection, i);
      });
    }
  }
  void calls(int count) const {
    std::atomic<int> wrong{0};
    repeat(count, 16, [&](GatewayConnection& connection, int i) {
      const std::string body = fmt::format("call {}", i);
      const auto answer = connection.ask("POST", "/function/echo", body);
      if (!answer.ok() || answer->status != 200 || answer->body != body) ++wrong;
    });
    EXPECT_EQ(wrong, 0);
  }
  // Each makes a function, calls it, and removes it; every tenth is a process.
  void pairs(int count) const {
    std::atomic<int> wrong{0};
    repeat(count, 4, [&](GatewayConnection& connection, int i) {
      const std::string name = fmt::format("made-{}", made + i);
      json spec = {{"service", name}, {"image", i % 10 == 0 ? "cat" : "echo.wasm"}};
      const auto is = [&](const absl::StatusOr<GatewayAnswer>& answer, int status) {
        if (!answer.ok() || answer->status != status) ++wrong;
      };
      is(connection.ask("POST", "/system/functions", spec.dump()), 202);
      is(connection.ask("POST", "/function/" + name, "x"), 200);
      is(connection.ask("DELETE", "/system/functions", json{{"functionName", name}}.dump()), 202);
    });
    EXPECT_EQ(wrong, 0);
    made += count;
  }
  void unknown_names(int count) const {
    repeat(count, 4, [&](GatewayConnection& connection, int i) {
      const std::string name = fmt::format("unknown-{}", i);
      for (const std::string& path : {"/function/" + name, "/function/" + name + "/a?b", "/async-function/" + name}) {
        const auto answer = connection.ask("POST", path, "x");
        EXPECT_TRUE(answer.ok() && answer->status == 404) << path;
      }
      connection.ask("GET", "/system/function/" + name).IgnoreError();
      connection.ask("GET", "/system/logs?name=" + name).IgnoreError();
    });
  }
  Held at_rest() const {
    Held held;
    EXPECT_TRUE(FleetUnderTest::until(seconds(30), [&] {
      held = held_by(nodes.pid());
      return held.descendants == 0;
    })) << to_string(held);
    return held;
  }
  GatewayFleet nodes;
  mutable int made = 0;
};

TEST_F(FlatMemory, AfterManyCallsDeploymentsAndUnknownNames) {
  const int all_calls = chaos() == Chaos::kLong ? 200'000 : 30'000;
  const int all_pairs = chaos() == Chaos::kLong ? 5'000 : 400;
  ASSERT_TRUE(nodes.up());
  nodes.deploy({{"service", "echo"}, {"image", "echo.wasm"}});
  calls(10'000);
  pairs(200);
  unknown_names(100);
  const Held warm = at_rest();
  calls(all_calls);
  const Held called = at_rest();
  pairs(all_pairs);
  unknown_names(500);
  const Held after = at_rest();
  fmt::print("warm: {}\nafter {} calls: {}\nafter {} pairs of deploy and remove, and 2,500 unknown names: {}\n",
             to_string(warm), all_calls, to_string(called), all_pairs, to_string(after));
  EXPECT_LT(called.resident_kib, warm.resident_kib + 8 * 1024);
  EXPECT_LT(after.resident_kib, warm.resident_kib + 16 * 1024);
  EXPECT_LE(after.descriptors, warm.descriptors + 2);
  EXPECT_LE(after.threads, warm.threads + 16);  // idle ones are kept for 5 s
  EXPECT_THAT(functions_in(nodes.metrics()), ::testing::ElementsAre("echo.openfaas-fn"));
}

}  // namespace
}  // namespace orla::behaviour
