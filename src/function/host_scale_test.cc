// Replicas that come and go, with and without load: scaling, new deployments, removal, draining, limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/absl_view.h"
#include "function/host_fakes.h"
#include "function/host_function.h"

namespace orla::function {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Callers, one after the other on each of some threads, until it ends.
class Load {
 public:
  Load(Host& host, const std::string& name, int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &host, name] {
        while (!stop_) {
          const InvokeResult result = call(host, name);
          if (result.end == InvokeEnd::kAnswered) {
            ++answered;
          } else {
            const std::lock_guard lock(mutex_);
            failed_.push_back(fmt::format("{}: {}", static_cast<int>(result.end), result.message));
          }
        }
      });
    }
  }
  ~Load() { end(); }
  // What failed.
  std::vector<std::string> end() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return failed_;
  }
  bool more(int calls) {
    const int before = answered;
    return eventually([&] { return answered >= before + calls; });
  }
  std::atomic<int> answered{0};

 private:
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<std::string> failed_;
  std::vector<std::thread> threads_;
};

CallResult slow_answer(const Call& call, FakeInstance&) {
  base::SystemClock().sleep(std::chrono::microseconds(200));
  return answer(call, "ok");
}

TEST(HostScale, UpAndDownUnderLoadNoCallFails) {
  TestHost host;
  const auto script = host.script("echo");
  script->concurrency = 2;
  script->call = slow_answer;
  ASSERT_TRUE(host.deploy("echo").ok());
  Load load(*host, "echo", 6);
  for (const std::uint32_t replicas : {5u, 1u, 8u, 3u, 0u, 4u, 1u, 20u, 0u, 2u}) {
    ASSERT_TRUE(host->scale(key_of("echo"), replicas).ok());
    ASSERT_TRUE(load.more(50));
  }
  EXPECT_THAT(load.end(), ::testing::IsEmpty());
}

TEST(HostScale, ANewDeploymentUnderLoadNoCallFails) {
  TestHost host;
  for (const char* image : {"one", "two"}) {
    host.script(image)->call = slow_answer;
    host.script(image)->concurrency = 3;
    host.script(image)->start_takes = milliseconds(3);
  }
  ASSERT_TRUE(host.deploy("echo", {{"min", "3"}}, Deploy::kCreate, "one").ok());
  ASSERT_TRUE(host.ready("echo", 3));
  Load load(*host, "echo", 6);
  for (int i = 0; i < 10; ++i) {
    const char* image = i % 2 == 0 ? "two" : "one";
    ASSERT_TRUE(host.deploy("echo", {{"min", "3"}}, Deploy::kUpdate, image).ok());
    ASSERT_TRUE(load.more(30));
    ASSERT_TRUE(eventually([&] { return host.script(i % 2 == 0 ? "one" : "two")->living == 0; }));
    ASSERT_TRUE(host.ready("echo", 3));
  }
  EXPECT_THAT(load.end(), ::testing::IsEmpty());
}

TEST(HostScale, TheOldReplicaServesUntilTheNewOneIsReady) {
  TestHost host;
  host.script("one")->says = "one";
  host.script("two")->says = "two";
  Gate start;
  host.script("two")->start_gate = &start;
  ASSERT_TRUE(host.deploy("echo", {}, Deploy::kCreate, "one").ok());
  ASSERT_TRUE(host.ready("echo", 1));
  // What does not load changes nothing, on disk neither.
  host.script("bad")->load_fails = true;
  EXPECT_EQ(host.deploy("echo", {}, Deploy::kUpdate, "bad").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(host->find(key_of("echo"), false)->spec.image, "native/one");
  // One that does not start leaves the old one in its place.
  host.script("broken")->failing_starts = 1'000'000;
  ASSERT_TRUE(host.deploy("echo", {}, Deploy::kUpdate, "broken").ok());
  ASSERT_TRUE(eventually([&] { return host.script("broken")->starts >= 2; }));
  std::string body;
  EXPECT_EQ(call(*host, "echo", &body).end, InvokeEnd::kAnswered);
  EXPECT_EQ(body, "one");
  ASSERT_TRUE(host.deploy("echo", {}, Deploy::kUpdate, "two").ok());
  ASSERT_TRUE(eventually([&] { return host.script("two")->starts == 1; }));
  EXPECT_EQ(call(*host, "echo", &body).end, InvokeEnd::kAnswered);
  EXPECT_EQ(body, "one");
  start.open();
  ASSERT_TRUE(eventually([&] { return host.script("one")->living == 0; }));
  EXPECT_EQ(call(*host, "echo", &body).end, InvokeEnd::kAnswered);
  EXPECT_EQ(body, "two");
  host.close();
  host.open();
  EXPECT_EQ(host->find(key_of("echo"), false)->spec.image, "native/two");
}

TEST(HostScale, RemovingLetsCallsFinish) {
  TestHost host;
  Gate gate;
  const auto script = host.script("echo");
  script->call = [&](const Call& call, FakeInstance&) -> CallResult {
    if (!gate.wait(call.cancellation)) return {.end = CallEnd::kCancelled, .message = {}};
    return answer(call, "ok");
  };
  ASSERT_TRUE(host.deploy("echo").ok());
  Caller caller;
  caller.begin(*host, "echo");
  ASSERT_TRUE(eventually([&] { return script->calls == 1; }));
  ASSERT_TRUE(host->remove(key_of("echo")).ok());
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kNotFound);
  // The same name again is another function.
  ASSERT_TRUE(host.deploy("echo").ok());
  EXPECT_FALSE(caller.over());
  EXPECT_EQ(script->stops, 0);
  gate.open();
  EXPECT_EQ(caller.result().end, InvokeEnd::kAnswered);
  EXPECT_TRUE(eventually([&] { return script->stops == 1; }));
}

TEST(HostScale, DrainingFinishesWhatIsRunningAndRefusesTheRest) {
  TestHost host;
  Gate gate;
  const auto script = host.script("echo");
  script->concurrency = 1;
  script->call = [&](const Call& call, FakeInstance&) -> CallResult {
    if (!gate.wait(call.cancellation)) return {.end = CallEnd::kCancelled, .message = {}};
    return answer(call, "ok");
  };
  ASSERT_TRUE(host.deploy("echo", {{"max", "1"}}).ok());
  ASSERT_TRUE(host.deploy("other").ok());
  Caller running;
  Caller waiting;
  running.begin(*host, "echo");
  waiting.begin(*host, "echo");
  ASSERT_TRUE(eventually([&] { return script->calls == 1; }));
  std::thread drain([&] { host->drain(seconds(30)); });
  ASSERT_TRUE(eventually([&] { return call(*host, "other").end == InvokeEnd::kDraining; }));
  EXPECT_EQ(host.deploy("late").code(), absl::StatusCode::kUnavailable);
  gate.open();
  EXPECT_EQ(running.result().end, InvokeEnd::kAnswered);
  EXPECT_EQ(waiting.result().end, InvokeEnd::kAnswered);
  drain.join();
  EXPECT_EQ(script->living, 0);
}

TEST(HostScale, DrainingCancelsWhatDoesNotEndInTime) {
  TestHost host;
  Gate gate;
  const auto script = host.script("echo");
  script->concurrency = 1;
  script->call = [&](const Call& call, FakeInstance&) -> CallResult {
    gate.wait(call.cancellation);
    return {.end = CallEnd::kCancelled, .message = {}};
  };
  ASSERT_TRUE(host.deploy("echo", {{"max", "1"}}).ok());
  Caller running;
  Caller waiting;
  running.begin(*host, "echo");
  waiting.begin(*host, "echo");
  ASSERT_TRUE(eventually([&] { return script->calls == 1; }));
  host->drain(milliseconds(10));
  EXPECT_EQ(running.result().end, InvokeEnd::kDraining);
  EXPECT_EQ(waiting.result().end, InvokeEnd::kDraining);
  EXPECT_EQ(script->living, 0);
}

TEST(HostScale, TheAutoscalerFollowsTheLoadAndGoesToNone) {
  ManualClock clock;
  TestHost host({}, &clock);
  Gate gate;
  const auto script = host.script("echo");
  script->call = [&](const Call& call, FakeInstance&) -> CallResult {
    gate.wait(call.cancellation);
    return answer(call, "ok");
  };
  ASSERT_TRUE(
      host.deploy(
              "echo",
              {{"target", "10"}, {"target-proportion", "1"}, {"max", "6"}, {"zero", "true"}, {"zero-duration", "5m"}})
          .ok());
  ASSERT_TRUE(host.ready("echo", 1));
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 35; ++i) {
    callers.push_back(std::make_unique<Caller>());
    callers.back()->begin(*host, "echo");
  }
  // 35 calls over the short window ask for four.
  ASSERT_TRUE(eventually([&] {
    clock.advance(milliseconds(50));
    return host.replicas("echo") == 4;
  }));
  ASSERT_TRUE(host.ready("echo", 4));
  gate.open();
  for (auto& caller : callers) EXPECT_EQ(caller->result().end, InvokeEnd::kAnswered);
  const base::SteadyTime ended = clock.steady_now();
  ASSERT_TRUE(eventually([&] {
    clock.advance(milliseconds(200));
    return host.replicas("echo") == 1;
  }));
  EXPECT_GE(clock.steady_now() - ended, seconds(29));  // not before the burst was over
  ASSERT_TRUE(eventually([&] {
    clock.advance(seconds(1));
    return host.replicas("echo") == 0;
  }));
  EXPECT_GE(clock.steady_now() - ended, minutes(5));
  EXPECT_TRUE(eventually([&] { return script->living == 0; }));
  EXPECT_EQ(script->stops, 4);
  ASSERT_TRUE(eventually([&] {
    clock.advance(seconds(1));
    return script->idles == 1;
  }));
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  EXPECT_EQ(host.replicas("echo"), 1u);
}

TEST(HostScale, AlertsStepUpAndGoStraightBack) {
  TestHost host;
  ASSERT_TRUE(host.deploy("echo", {{"max", "10"}, {"factor", "30"}}).ok());
  EXPECT_TRUE(host->alert(key_of("echo"), true).ok());
  EXPECT_EQ(host.replicas("echo"), 4u);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(host->alert(key_of("echo"), true).ok());
  EXPECT_EQ(host.replicas("echo"), 10u);
  EXPECT_TRUE(host->alert(key_of("echo"), false).ok());
  EXPECT_EQ(host.replicas("echo"), 1u);
  EXPECT_EQ(host->alert(key_of("none"), true).code(), absl::StatusCode::kNotFound);
}

TEST(HostScale, ByHandStaysWithinTheBounds) {
  TestHost host;
  ASSERT_TRUE(host.deploy("echo", {{"min", "2"}, {"max", "4"}}).ok());
  EXPECT_EQ(*host->scale(key_of("echo"), 1), 2u);
  EXPECT_EQ(*host->scale(key_of("echo"), 9), 4u);
  EXPECT_EQ(*host->scale(key_of("echo"), 0), 0u);
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  EXPECT_EQ(host.replicas("echo"), 2u);
  EXPECT_EQ(host->scale(key_of("none"), 1).status().code(), absl::StatusCode::kNotFound);
}

TEST(HostLimits, CallsThatWaitAreBoundedOnTheNodeAndPerFunction) {
  HostLimits limits;
  limits.waiting_calls = 4;
  TestHost host(limits);
  Gate start;
  for (const char* name : {"a", "b"}) {
    host.script(name)->start_gate = &start;
    ASSERT_TRUE(host.deploy(name).ok());
  }
  std::vector<std::unique_ptr<Caller>> held;
  const auto begin = [&](const std::string& name) {
    held.push_back(std::make_unique<Caller>());
    held.back()->begin(*host, name);
  };
  for (int i = 0; i < 3; ++i) begin("a");
  const InvokeResult fourth = call(*host, "a");
  EXPECT_EQ(fourth.end, InvokeEnd::kOverloaded);
  EXPECT_THAT(fourth.message, HasSubstr("waiting_calls"));
  begin("b");
  const InvokeResult fifth = call(*host, "b");
  EXPECT_EQ(fifth.end, InvokeEnd::kOverloaded);
  EXPECT_THAT(fifth.message, HasSubstr("4 calls wait on this node"));
  start.open();
  for (auto& caller : held) EXPECT_EQ(caller->result().end, InvokeEnd::kAnswered);
}

TEST(HostLimits, RunningCallsLeaveThreadsForOtherFunctions) {
  HostLimits limits;
  limits.running_calls = 4;
  TestHost host(limits);
  Gate gate;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto block = [&](const Call& call, FakeInstance&) {
    const int now = ++inside;
    for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    gate.wait(call.cancellation);
    --inside;
    return answer(call, "ok");
  };
  for (const char* name : {"a", "b"}) {
    host.script(name)->call = block;
    ASSERT_TRUE(host.deploy(name).ok());
    ASSERT_TRUE(host.ready(name, 1));
  }
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 20; ++i) {
    callers.push_back(std::make_unique<Caller>());
    callers.back()->begin(*host, i < 15 ? "a" : "b");
  }
  ASSERT_TRUE(eventually([&] { return inside == 4; }));
  EXPECT_EQ(host.counts("a").in_flight, 3u);
  EXPECT_EQ(host.counts("b").in_flight, 1u);
  gate.open();
  for (auto& caller : callers) EXPECT_EQ(caller->result().end, InvokeEnd::kAnswered);
  EXPECT_LE(most, 4);
}

TEST(HostLimits, MaxInflightOfEveryReplicaIsAnsweredAtOnce) {
  TestHost host;
  Gate gate;
  const auto script = host.script("echo");
  script->concurrency = 2;
  script->call = [&](const Call& call, FakeInstance&) {
    gate.wait(call.cancellation);
    return answer(call, "ok");
  };
  FunctionSpec spec = TestHost::spec("echo", {{"max", "1"}});
  spec.environment["max_inflight"] = "2";
  ASSERT_TRUE(host->deploy(spec, Deploy::kCreate).ok());
  ASSERT_TRUE(host.ready("echo", 1));
  Caller one;
  Caller two;
  one.begin(*host, "echo");
  two.begin(*host, "echo");
  ASSERT_TRUE(eventually([&] { return script->calls == 2; }));
  const InvokeResult third = call(*host, "echo");
  EXPECT_EQ(third.end, InvokeEnd::kOverloaded);
  EXPECT_THAT(third.message, HasSubstr("max_inflight of 2"));
  gate.open();
}

TEST(HostLimits, FunctionsReplicasAndFollowers) {
  HostLimits limits;
  limits.functions = 3;
  limits.replicas = 4;
  limits.replicas_of_function = 3;
  limits.log_followers = 1;
  TestHost host(limits);
  EXPECT_EQ(host.deploy("a", {{"min", "4"}}).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(host.deploy("a", {{"min", "3"}}).ok());
  ASSERT_TRUE(host.ready("a", 3));
  EXPECT_EQ(*host->scale(key_of("a"), 20), 3u);
  EXPECT_EQ(host.deploy("b", {{"min", "2"}}).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(host.deploy("b").ok());
  ASSERT_TRUE(host.ready("b", 1));
  ASSERT_TRUE(host->scale(key_of("b"), 0).ok());
  EXPECT_TRUE(eventually([&] { return host.deploy("c").ok(); })) << "once the replica of b has ended";
  ASSERT_TRUE(host.ready("c", 1));
  EXPECT_EQ(host.deploy("d").code(), absl::StatusCode::kResourceExhausted);
  const InvokeResult none = call(*host, "b");
  EXPECT_EQ(none.end, InvokeEnd::kNoEndpoints);
  EXPECT_THAT(none.message, HasSubstr("limit replicas"));
  const auto one = host->follow(
      key_of("a"), [](const LogLine&) {}, [] {});
  EXPECT_TRUE(one.ok());
  EXPECT_EQ(host->follow(
                    key_of("b"), [](const LogLine&) {}, [] {})
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(host->follow(
                    key_of("x"), [](const LogLine&) {}, [] {})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TEST(HostCountsTest, ByStatusWithBucketsAndNothingForUnknownNames) {
  TestHost host;
  ASSERT_TRUE(host.deploy("echo").ok());
  host->count(key_of("echo"), 200, 0.005);
  host->count(key_of("echo"), 200, 0.3);
  host->count(key_of("echo"), 500, 100);
  host->count(key_of("nobody"), 200, 1);
  EXPECT_EQ(call(*host, "nobody").end, InvokeEnd::kNotFound);
  ASSERT_EQ(host->counts().size(), 1u);
  const FunctionCounts counts = host.counts("echo");
  EXPECT_EQ(counts.ended.at(200).count, 2u);
  EXPECT_DOUBLE_EQ(counts.ended.at(200).seconds, 0.305);
  EXPECT_THAT(counts.ended.at(200).buckets, ::testing::ElementsAre(1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2));
  EXPECT_THAT(counts.ended.at(500).buckets, ::testing::Each(0));
  for (int status = 100; status < 1'000; ++status) host->count(key_of("echo"), status, 0);
  EXPECT_LE(host.counts("echo").ended.size(), kStatusesCounted + 9);
}

TEST(HostLogs, FollowersSeeLinesAndTheRemoval) {
  TestHost host;
  const auto script = host.script("echo");
  script->call = [](const Call& call, FakeInstance& instance) {
    instance.log->line(instance.name(), "called");
    return answer(call, "ok");
  };
  ASSERT_TRUE(host.deploy("echo").ok());
  std::atomic<int> lines{0};
  std::atomic<int> ends{0};
  const auto handle = host->follow(
      key_of("echo"), [&](const LogLine& line) { lines += line.text == "called"; }, [&] { ++ends; });
  ASSERT_TRUE(handle.ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  EXPECT_TRUE(eventually([&] { return lines == 5; }));
  EXPECT_EQ(host->logs(key_of("echo"), {})->size(), 5u);
  EXPECT_EQ(host->logs(key_of("none"), {}).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(host->remove(key_of("echo")).ok());
  EXPECT_TRUE(eventually([&] { return ends == 1; }));
}

TEST(HostLimits, AStartHasItsTime) {
  const ManualClock clock;
  TestHost host({.start_timeout = seconds(7)}, &clock);
  ASSERT_TRUE(host.deploy("echo").ok());
  ASSERT_TRUE(host.ready("echo", 1));
  EXPECT_EQ(host.script("echo")->start_deadline.load(), clock.steady_now() + seconds(7));
}

}  // namespace
}  // namespace orla::function
