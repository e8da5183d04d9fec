// Functions that are scaled, replaced and drained while they are called: nobody notices.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <barrier>
#include <set>

#include "base/clock.h"
#include "base/environment.h"
#include "tests/gateway_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

const base::SystemClock clock_of_test;

// Calls functions in turn, from kept and from fresh connections, until its end.
class SteadyLoad {
 public:
  struct Failure {
    base::SteadyTime began;
    std::string what;
    bool refused = false;  // 503 with Retry-After, or no connection was made or answered
  };
  SteadyLoad(const std::string& url, std::vector<std::string> functions) {
    for (int t = 0; t < 6; ++t) {
      threads_.emplace_back([this, url, functions, t] {
        GatewayConnection connection(url);
        for (std::size_t i = static_cast<std::size_t>(t); !stop_; ++i) {
          const std::string& function = functions[i % functions.size()];
          const bool fresh = t >= 4;
          if (fresh) connection.drop();
          const base::SteadyTime began = clock_of_test.steady_now();
          const auto answer = connection.ask(t % 2 == 0 ? "POST" : "GET", "/function/" + function, "hello");
          ++calls_;
          note(function, began, answer);
          clock_of_test.sleep(milliseconds(answer.ok() ? 5 : 20));
        }
      });
    }
  }
  ~SteadyLoad() { stop(); }
  SteadyLoad(const SteadyLoad&) = delete;
  SteadyLoad& operator=(const SteadyLoad&) = delete;

  void stop() {
    stop_ = true;
    threads_.clear();
  }
  int calls() const { return calls_; }
  std::vector<Failure> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  void expect_none(const std::string& when) const {
    for (const Failure& failure : failures()) ADD_FAILURE() << when << ": " << failure.what;
  }

 private:
  void note(const std::string& function, base::SteadyTime began, const absl::StatusOr<GatewayAnswer>& answer) {
    if (answer.ok() && answer->status / 100 == 2) return;
    Failure failure{began, function + ": ", !answer.ok()};
    if (answer.ok()) {
      failure.what += fmt::format("{} {}", answer->status, answer->body);
      failure.refused = answer->status == 503 && !answer->header("Retry-After").empty();
    } else {
      failure.what += answer.status().ToString();
    }
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::move(failure));
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> calls_{0};
  mutable std::mutex mutex_;
  std::vector<Failure> failures_;
  std::vector<std::jthread> threads_;
};

class UnderLoad : public ::testing::Test {
 protected:
  UnderLoad() {
    nodes.module("echo");
    nodes.module("slow");
    std::filesystem::create_directories(nodes.images() / "boot");
    std::filesystem::copy(source_dir() / "functions/boot/boot.py", nodes.images() / "boot/boot.py");
  }
  json boot(const std::string& version) const {
    return {{"service", "boot"},
            {"image", "boot"},
            {"envProcess", "python3 boot.py"},
            {"envVars", {{"mode", "http"}, {"BOOT_MS", "150"}, {"VERSION", version}}},
            {"labels", {{"com.openfaas.scale.zero", "true"}}}};
  }
  static json echo(const std::string& version) {
    return {{"service", "echo"}, {"image", "echo.wasm"}, {"envVars", {{"VERSION", version}}}};
  }
  static json cat(const std::string& version) {
    return {{"service", "cat"}, {"image", "boot"}, {"envProcess", "cat"}, {"envVars", {{"VERSION", version}}}};
  }
  GatewayFleet nodes{{.node = "drain_notice = \"300ms\"\n", .functions = "", .limits = ""}};
};

TEST_F(UnderLoad, NoCallFailsWhileFunctionsAreScaledReplacedAndDrained) {
  ASSERT_TRUE(nodes.up());
  nodes.deploy(boot("0"));
  nodes.deploy(echo("0"));
  nodes.deploy(cat("0"));
  nodes.deploy({{"service", "slow"}, {"image", "slow.wasm"}});
  const std::vector<std::string> functions = {"boot", "echo", "cat"};
  SteadyLoad load(nodes.url(), functions);
  for (const int replicas : {3, 0, 4, 1, 2}) {
    for (const std::string& function : functions) nodes.scale(function, replicas);
    clock_of_test.sleep(milliseconds(400));
    load.expect_none(fmt::format("scaled to {}", replicas));
  }
  for (const std::string version : {"1", "2", "3"}) {
    nodes.deploy(boot(version));
    nodes.deploy(echo(version));
    nodes.deploy(cat(version));
    clock_of_test.sleep(milliseconds(400));
    load.expect_none("deployed again as " + version);
  }
  EXPECT_GT(load.calls(), 300);

  // The node goes down: what it has is finished, what comes after the notice is refused in words or at once.
  std::vector<absl::StatusOr<GatewayAnswer>> slow(4, absl::UnknownError("not asked"));
  std::vector<std::jthread> waiting;
  for (auto& answer : slow) {
    waiting.emplace_back(
        [&answer, this] { answer = GatewayConnection(nodes.url()).ask("POST", "/function/slow?ms=1200"); });
  }
  ASSERT_TRUE(FleetUnderTest::until(
      seconds(10), [&] { return nodes.metric("orla_function_in_flight{function_name=\"slow.openfaas-fn\"}") == 4; }));
  load.expect_none("before the end");
  const base::SteadyTime asked = clock_of_test.steady_now();
  const int pid = nodes.pid();
  ::kill(pid, SIGTERM);
  EXPECT_TRUE(FleetUnderTest::until(seconds(10), [pid] { return !runs(pid); }));
  waiting.clear();
  load.stop();
  for (const auto& answer : slow) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 200) << answer->body;
  }
  int refused = 0;
  for (const SteadyLoad::Failure& failure : load.failures()) {
    EXPECT_TRUE(failure.refused) << failure.what;
    EXPECT_GE(failure.began - asked, milliseconds(250)) << "within the notice: " << failure.what;
    ++refused;
  }
  EXPECT_GT(refused, 0);
}

// Many calls at once to functions without a replica, each of whose processes listens only after 400 ms.
TEST_F(UnderLoad, CallsFromZeroStartEachReplicaOnce) {
  const bool in_length = base::SystemEnvironment().get("ORLA_CHAOS").value_or("") == "long";
  const int rounds = in_length ? 20 : 3;
  constexpr int kCalls = 200;
  ASSERT_TRUE(nodes.up());
  for (const int replicas : {1, 2}) {
    json spec = boot("0");
    spec["envVars"]["BOOT_MS"] = "400";
    spec["labels"]["com.openfaas.scale.min"] = spec["labels"]["com.openfaas.scale.max"] = std::to_string(replicas);
    nodes.deploy(spec);
    ASSERT_TRUE(nodes.wait_for_replicas("boot", replicas));
    for (int round = 0; round < rounds; ++round) {
      nodes.scale("boot", 0);
      ASSERT_TRUE(nodes.wait_for_replicas("boot", 0));
      const auto starts = [&] {
        const GatewayAnswer logs = nodes.ask("GET", "/system/logs?name=boot");
        std::set<std::string> instances;
        for (const std::string& line : lines_of(logs.body)) {
          const json said = json::parse(line, nullptr, false);
          if (said.value("text", "").find("started") != std::string::npos) instances.insert(said.at("instance"));
        }
        return static_cast<int>(instances.size());
      };
      const int before = starts();
      std::map<int, int> statuses;
      std::mutex mutex;
      std::barrier gate(kCalls);
      {
        std::vector<std::jthread> threads;
        for (int i = 0; i < kCalls; ++i) {
          threads.emplace_back([&] {
            gate.arrive_and_wait();
            const auto answer = GatewayConnection(nodes.url()).ask("POST", "/function/boot", "x");
            const std::lock_guard lock(mutex);
            ++statuses[answer.ok() ? answer->status : 0];
          });
        }
      }
      EXPECT_EQ(statuses, (std::map<int, int>{{200, kCalls}}));
      ASSERT_TRUE(nodes.wait_for_replicas("boot", replicas));
      EXPECT_EQ(starts() - before, replicas) << "round " << round;
    }
  }
}

// A node has the descriptors that it may have; when there are none left it takes connections again once there are.
TEST_F(UnderLoad, WithoutDescriptorsAndWithThemAgain) {
  ASSERT_TRUE(nodes.up());
  nodes.deploy(echo("0"));
  const int pid = nodes.pid();
  rlimit limit{};
  ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 1 << 18));
  const rlimit few{static_cast<rlim_t>(held_by(pid).descriptors) + 10, limit.rlim_max};
  ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, &few, nullptr), 0);
  {
    std::vector<std::jthread> threads;
    std::atomic<int> answered{0};
    std::barrier gate(60);
    for (int i = 0; i < 60; ++i) {
      threads.emplace_back([&] {
        GatewayConnection connection(nodes.url());
        const auto answer = connection.ask("POST", "/function/echo", "x", {}, seconds(1));
        answered += answer.ok() && answer->status == 200 ? 1 : 0;
        gate.arrive_and_wait();
      });
    }
    threads.clear();
    EXPECT_GE(answered, 5);
    EXPECT_LT(answered, 20);
  }
  EXPECT_TRUE(FleetUnderTest::until(seconds(10), [&] {
    const auto answer = GatewayConnection(nodes.url()).ask("POST", "/function/echo", "again", {}, seconds(1));
    return answer.ok() && answer->body == "again";
  }));
  ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
  EXPECT_EQ(nodes.ask("POST", "/function/echo", "x").body, "x");
}

}  // namespace
}  // namespace orla::behaviour
