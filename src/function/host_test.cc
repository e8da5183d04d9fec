#include "function/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/absl_view.h"
#include "function/host_fakes.h"
#include "function/replica_set.h"

namespace orla::function {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(Host, DeploysCallsListsAndRemoves) {
  TestHost host;
  ASSERT_TRUE(host.deploy("echo").ok());
  ASSERT_TRUE(host.deploy("beta.other").ok());
  EXPECT_TRUE(host->exists(key_of("echo")));
  EXPECT_FALSE(host->exists(key_of("echo.other")));
  std::string body;
  EXPECT_EQ(call(*host, "echo", &body).end, InvokeEnd::kAnswered);
  EXPECT_EQ(body, "ok");
  ASSERT_TRUE(host.ready("echo", 1));
  const auto all = host->list("");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].spec.key, key_of("beta.other"));
  EXPECT_EQ(all[1].spec.key, key_of("echo"));
  EXPECT_EQ(all[1].runtime, "native");
  EXPECT_EQ(all[1].replicas, 1u);
  EXPECT_EQ(all[1].available, 1u);
  EXPECT_EQ(all[1].invocations, 1u);
  EXPECT_THAT(all[1].notes, ::testing::ElementsAre("a note"));
  EXPECT_EQ(host->list("other").size(), 1u);
  EXPECT_EQ(host->find(key_of("echo"), true)->usage.memory_bytes, 1000u);
  ASSERT_TRUE(host->remove(key_of("echo")).ok());
  EXPECT_EQ(host->remove(key_of("echo")).code(), absl::StatusCode::kNotFound);
  const InvokeResult gone = call(*host, "echo");
  EXPECT_EQ(gone.end, InvokeEnd::kNotFound);
  EXPECT_THAT(gone.message, HasSubstr("echo.openfaas-fn"));
  EXPECT_TRUE(eventually([&] { return host.script("echo")->living == 0; }));
  EXPECT_EQ(host.script("echo")->stops, 1);
}

TEST(Host, RefusesWhatCannotBeDeployed) {
  TestHost host;
  host.script("echo");
  const auto code = [&](FunctionSpec spec, Deploy how = Deploy::kCreate) { return host->deploy(spec, how).code(); };
  EXPECT_EQ(code(TestHost::spec("Echo")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(TestHost::spec("echo.No")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(TestHost::spec("echo", {{"minimum", "1"}})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(TestHost::spec("unknown")), absl::StatusCode::kInvalidArgument);
  FunctionSpec no_image = TestHost::spec("echo");
  no_image.image.clear();
  EXPECT_EQ(code(no_image), absl::StatusCode::kInvalidArgument);
  FunctionSpec no_secret = TestHost::spec("echo");
  no_secret.secrets = {"key"};
  EXPECT_EQ(code(no_secret), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(TestHost::spec("echo"), Deploy::kUpdate), absl::StatusCode::kNotFound);
  EXPECT_TRUE(host->list("").empty());
  EXPECT_TRUE(host.deploy("echo").ok());
  EXPECT_EQ(code(TestHost::spec("echo")), absl::StatusCode::kAlreadyExists);
}

TEST(Host, TwoHundredCallsAtZeroAreHeldForOneStart) {
  TestHost host;
  const auto script = host.script("echo");
  script->start_takes = milliseconds(100);
  ASSERT_TRUE(host.deploy("echo").ok());
  ASSERT_TRUE(host.ready("echo", 1));
  ASSERT_EQ(*host->scale(key_of("echo"), 0), 0u);
  ASSERT_TRUE(eventually([&] { return script->living == 0; }));
  script->starts = 0;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 200; ++i) {
    callers.push_back(std::make_unique<Caller>());
    callers.back()->begin(*host, "echo");
  }
  for (auto& caller : callers) {
    EXPECT_EQ(caller->result().end, InvokeEnd::kAnswered);
    EXPECT_EQ(caller->response.body, "ok");
  }
  EXPECT_EQ(script->starts, 1);
  EXPECT_EQ(script->calls, 200);
}

TEST(Host, HeldCallsAreReleasedInOrderAtTheCapacityOfWhatIsReady) {
  TestHost host;
  const auto script = host.script("echo");
  script->concurrency = 3;
  Gate start;
  script->start_gate = &start;
  std::mutex mutex;
  std::vector<int> order;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  script->call = [&](const Call& call, FakeInstance&) {
    const int now = ++inside;
    int before = most.load();
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    {
      const std::lock_guard lock(mutex);
      order.push_back(std::stoi(call.head.call_id));
    }
    base::SystemClock().sleep(milliseconds(2));
    --inside;
    return answer(call, "ok");
  };
  ASSERT_TRUE(host.deploy("echo", {{"min", "1"}, {"max", "1"}}).ok());
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 30; ++i) {
    callers.push_back(std::make_unique<Caller>());
    callers.back()->invocation->head.call_id = std::to_string(i);
    callers.back()->begin(*host, "echo");
  }
  EXPECT_EQ(host.counts("echo").waiting, 30u);
  start.open();
  for (auto& caller : callers) EXPECT_EQ(caller->result().end, InvokeEnd::kAnswered);
  EXPECT_LE(most, 3);
  // Those that run side by side may note themselves in any order: none is more than two places off.
  for (int i = 0; i < 30; ++i) EXPECT_NEAR(order[static_cast<std::size_t>(i)], i, 3);
  EXPECT_EQ(host.counts("echo").waiting, 0u);
}

TEST(Host, AFailedStartIsToldToThoseWhoWaitAndIsTriedAgainLater) {
  ManualClock clock;
  TestHost host({}, &clock);
  const auto script = host.script("echo");
  script->failing_starts = 2;
  Gate start;
  script->start_gate = &start;
  ASSERT_TRUE(host.deploy("echo").ok());
  Caller held;
  held.begin(*host, "echo");
  start.open();
  EXPECT_EQ(held.result().end, InvokeEnd::kNoEndpoints);
  EXPECT_THAT(held.result().message, HasSubstr("it is broken"));
  EXPECT_EQ(held.result().retry_after, seconds(1));
  // Until its time comes, calls are refused at once and nothing is started.
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kNoEndpoints);
  EXPECT_EQ(script->starts, 1);
  EXPECT_THAT(host->find(key_of("echo"), false)->notes.back(), HasSubstr("does not start: it is broken"));
  clock.advance(kFirstBackoff);
  ASSERT_TRUE(eventually([&] { return script->starts == 2 && script->failing_starts == 0; }));
  ASSERT_TRUE(eventually([&] { return call(*host, "echo").end == InvokeEnd::kNoEndpoints; }));
  clock.advance(kFirstBackoff * 2);
  ASSERT_TRUE(host.ready("echo", 1));
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  EXPECT_EQ(script->starts, 3);
  EXPECT_THAT(host->logs(key_of("echo"), {})->front().text, HasSubstr("did not start: it is broken"));
}

TEST(Host, ADeadReplicaIsReplacedAndItsCallGoesToAnother) {
  TestHost host;
  const auto script = host.script("echo");
  std::atomic<bool> die{true};
  script->call = [&](const Call& call, FakeInstance& instance) -> CallResult {
    if (die.exchange(false)) {
      instance.dead = true;
      return {.end = CallEnd::kUnreachable, .message = "gone", .instance_usable = false};
    }
    return answer(call, "ok");
  };
  ASSERT_TRUE(host.deploy("echo", {{"min", "2"}, {"max", "2"}}).ok());
  ASSERT_TRUE(host.ready("echo", 2));
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  EXPECT_EQ(script->calls, 2);
  // One that broke with a call inside: that call fails, the next one has a new replica, without delay.
  script->call = [&](const Call& call, FakeInstance& instance) -> CallResult {
    if (die.exchange(false)) {
      instance.dead = true;
      return {.end = CallEnd::kFailed, .message = "it crashed", .instance_usable = false};
    }
    return answer(call, "ok");
  };
  ASSERT_TRUE(eventually([&] { return script->living == 2; }));
  for (int i = 0; i < 10; ++i) {
    die = true;
    const InvokeResult failed = call(*host, "echo");
    EXPECT_EQ(failed.end, InvokeEnd::kFailed);
    EXPECT_EQ(failed.message, "it crashed");
    EXPECT_TRUE(failed.from_runtime);
    EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  }
  EXPECT_TRUE(eventually([&] { return script->living == 2 && host.available("echo") == 2; }));
}

TEST(Host, AReplicaThatDiesIdleIsFound) {
  ManualClock clock;
  TestHost host({}, &clock);
  const auto script = host.script("echo");
  FakeInstance* last = nullptr;
  script->call = [&](const Call& call, FakeInstance& instance) {
    last = &instance;
    return answer(call, "ok");
  };
  ASSERT_TRUE(host.deploy("echo").ok());
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kAnswered);
  last->dead = true;
  EXPECT_EQ(script->starts, 1);
  ASSERT_TRUE(eventually([&] {
    clock.advance(milliseconds(100));
    return script->starts == 2 && script->living == 1;
  }));
  // Those that are dead before their first call are started with a growing pause only.
  script->stillborn = 1'000'000;
  ASSERT_TRUE(host->scale(key_of("echo"), 0).ok());
  ASSERT_TRUE(eventually([&] { return script->living == 0; }));
  script->starts = 0;
  EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kNoEndpoints);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(call(*host, "echo").end, InvokeEnd::kNoEndpoints);
  EXPECT_EQ(script->starts, 2);
}

TEST(Host, AnUnreachableCallGivesUpAfterSomeReplicas) {
  TestHost host;
  const auto script = host.script("echo");
  script->call = [](const Call&, FakeInstance& instance) -> CallResult {
    instance.dead = true;
    return {.end = CallEnd::kUnreachable, .message = "gone", .instance_usable = false};
  };
  ASSERT_TRUE(host.deploy("echo", {{"min", "5"}, {"max", "5"}}).ok());
  ASSERT_TRUE(host.ready("echo", 5));
  const InvokeResult result = call(*host, "echo");
  EXPECT_EQ(result.end, InvokeEnd::kCantReach);
  EXPECT_EQ(script->calls, 3);
}

TEST(Host, TranslatesHowCallsEnd) {
  struct Row {
    CallEnd end;
    bool begun;
    InvokeEnd expected;
    bool from_runtime;
  };
  const Row kTable[] = {
      {CallEnd::kDone, true, InvokeEnd::kAnswered, false},
      {CallEnd::kDone, false, InvokeEnd::kFailed, true},
      {CallEnd::kFailed, false, InvokeEnd::kFailed, true},
      {CallEnd::kFailed, true, InvokeEnd::kBroken, false},
      {CallEnd::kTimedOut, false, InvokeEnd::kTimedOut, true},
      {CallEnd::kTimedOut, true, InvokeEnd::kBroken, false},
      {CallEnd::kOutOfMemory, false, InvokeEnd::kFailed, true},
      {CallEnd::kCancelled, false, InvokeEnd::kCancelled, false},
      {CallEnd::kUnreachable, true, InvokeEnd::kBroken, false},
      {CallEnd::kBusy, false, InvokeEnd::kOverloaded, false},
  };
  TestHost host;
  const auto script = host.script("echo");
  ASSERT_TRUE(host.deploy("echo").ok());
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    script->call = [&](const Call&, FakeInstance&) -> CallResult {
      return {.end = kTable[i].end, .message = "why", .response_begun = kTable[i].begun, .seconds = 0.25};
    };
    const InvokeResult result = call(*host, "echo");
    EXPECT_EQ(result.end, kTable[i].expected) << "row " << i;
    EXPECT_EQ(result.from_runtime, kTable[i].from_runtime) << "row " << i;
    EXPECT_EQ(result.seconds, 0.25);
  }
}

TEST(Host, EndsCallsAtTheirDeadlineWhereverTheyAre) {
  TestHost host;
  const base::SystemClock clock;
  Gate never;
  Gate start;
  const auto script = host.script("echo");
  script->concurrency = 1;
  script->start_gate = &start;
  script->call = [&](const Call& call, FakeInstance&) -> CallResult {
    never.wait(call.cancellation);
    return {.end = CallEnd::kCancelled, .message = {}};
  };
  ASSERT_TRUE(host.deploy("echo", {{"min", "1"}, {"max", "1"}}).ok());
  Caller at_zero(clock.steady_now() + milliseconds(20));
  at_zero.begin(*host, "echo");
  EXPECT_EQ(at_zero.result().end, InvokeEnd::kNoEndpoints);
  EXPECT_THAT(at_zero.result().message, HasSubstr("in time"));
  start.open();
  Caller running(clock.steady_now() + milliseconds(100));
  running.begin(*host, "echo");
  ASSERT_TRUE(eventually([&] { return script->calls == 1; }));
  Caller waiting(clock.steady_now() + milliseconds(20));
  waiting.begin(*host, "echo");
  Caller gone;
  gone.begin(*host, "echo");
  EXPECT_EQ(host.counts("echo").waiting, 2u);
  gone.invocation->cancellation.cancel(CancelReason::kClientGone);
  EXPECT_EQ(gone.result().end, InvokeEnd::kCancelled);
  EXPECT_EQ(waiting.result().end, InvokeEnd::kTimedOut);
  EXPECT_EQ(running.result().end, InvokeEnd::kTimedOut);
  EXPECT_FALSE(running.result().from_runtime);
  Caller late;
  late.invocation->cancellation.cancel(CancelReason::kClientGone);
  late.begin(*host, "echo");
  EXPECT_EQ(late.result().end, InvokeEnd::kCancelled);
  EXPECT_EQ(host.counts("echo").waiting, 0u);
}

TEST(Host, SecretsAreGivenAsFilesAndKeptWhileInUse) {
  TestHost host;
  const FunctionKey key{"token", "openfaas-fn"};
  ASSERT_TRUE(host->add_secret(key, "one").ok());
  EXPECT_EQ(host->add_secret(key, "two").code(), absl::StatusCode::kAlreadyExists);
  host.script("echo");
  FunctionSpec spec = TestHost::spec("echo");
  spec.secrets = {"token"};
  ASSERT_TRUE(host->deploy(spec, Deploy::kCreate).ok());
  ASSERT_EQ(host.runtime().last_secrets.size(), 1u);
  EXPECT_EQ(host.runtime().last_secrets[0].first, "token");
  const std::filesystem::path file = host.runtime().last_secrets[0].second;
  EXPECT_EQ(*base::read_file(file, 100), "one");
  ASSERT_TRUE(host->change_secret(key, "two").ok());
  EXPECT_EQ(*base::read_file(file, 100), "two");
  EXPECT_EQ(host->remove_secret(key).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(host->secrets("openfaas-fn").size(), 1u);
  EXPECT_TRUE(host->secrets("other").empty());
  ASSERT_TRUE(host->remove(spec.key).ok());
  EXPECT_TRUE(host->remove_secret(key).ok());
  EXPECT_EQ(host->remove_secret(key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(host->change_secret(key, "x").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(eventually([&] { return !base::exists(file); }));
}

TEST(Host, TakesUpWhatWasDeployedWithItsScaleAndSecrets) {
  TestHost host;
  ASSERT_TRUE(host->add_secret({"token", "openfaas-fn"}, "one").ok());
  ASSERT_TRUE(host.deploy("three").ok());
  ASSERT_TRUE(host.deploy("none").ok());
  ASSERT_TRUE(host.deploy("gone").ok());
  ASSERT_EQ(*host->scale(key_of("three"), 3), 3u);
  ASSERT_EQ(*host->scale(key_of("none"), 0), 0u);
  ASSERT_TRUE(host->remove(key_of("gone")).ok());
  const auto created = host->find(key_of("three"), false)->created;
  host.close();
  EXPECT_EQ(host.script("three")->living, 0);
  ASSERT_TRUE(base::write_file_atomically(host.state() / "specs" / "bad.openfaas-fn.json", "{").ok());
  host.open();
  ASSERT_EQ(host->list("").size(), 2u);
  ASSERT_TRUE(host.ready("three", 3));
  EXPECT_EQ(host->find(key_of("three"), false)->created, created);
  EXPECT_EQ(host.replicas("none"), 0u);
  EXPECT_EQ(call(*host, "none").end, InvokeEnd::kAnswered);
  EXPECT_EQ(host->secrets("").size(), 1u);
  EXPECT_TRUE(base::exists(host.state() / "specs" / ".damaged-bad.openfaas-fn.json"));
}

}  // namespace
}  // namespace orla::function
