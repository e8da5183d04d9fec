// Calls that are made later, on a node that is killed, whose disk is full, and whose files are damaged.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "base/clock.h"
#include "base/random.h"
#include "tests/chaos/chaos_fleet.h"
#include "tests/chaos/small_disk.h"
#include "tests/gateway_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

const base::SystemClock clock_of_test;

// Says its call's id to the recorder, waits until that has taken it, and then for as long as the query says (seconds).
std::string recording_program(int port) {
  return fmt::format(
      "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{} || exit 1\necho \"$Http_X_Call_Id\" >&3\nread -r said <&3 || exit 1\n"
      "[ -z \"$Http_Query\" ] || sleep \"$Http_Query\"\n",
      port);
}

json recording_function() {
  return {{"service", "record"},
          {"image", "record"},
          {"envVars", {{"mode", "serializing"}}},
          {"annotations",
           {{"com.openfaas.retry.min_wait", "100ms"},
            {"com.openfaas.retry.max_wait", "500ms"},
            {"com.openfaas.retry.attempts", "1000"}}}};
}

// What became of posts, by call id.
struct Posts {
  std::set<std::string> accepted;
  std::set<std::string> refused;
  std::set<std::string> unknown;  // the connection broke before an answer
  std::map<int, int> statuses;
};

// `count` posts over eight connections at once, ids beginning with `prefix`. Some are wrong on purpose.
enum class Mix : std::uint8_t { kGood, kLarge, kSomeWrong };
Posts post_calls(const std::string& url, const std::string& prefix, int count, Mix mix,
                 std::atomic<int>* answered = nullptr) {
  Posts posts;
  std::mutex mutex;
  std::atomic<int> next{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        GatewayConnection connection(url);
        for (int i = next++; i < count; i = next++) {
          const std::string id = fmt::format("{}-{}", prefix, i);
          HttpHeaders headers = {{"X-Call-Id", id}};
          std::string target = "/async-function/record";
          std::string body(mix == Mix::kLarge ? 100'000 : 1, 'x');
          if (mix == Mix::kSomeWrong && i % 10 == 7) headers.emplace_back("X-Callback-Url", "http://10.1.2.3/");
          if (mix == Mix::kSomeWrong && i % 10 == 8) target += "-not";
          if (mix == Mix::kSomeWrong && i % 40 == 9) body.assign((1 << 20) + 1, 'x');
          const auto answer = connection.ask("POST", target, body, headers, seconds(20));
          if (answered != nullptr) ++*answered;
          const std::lock_guard lock(mutex);
          if (answer.ok()) {
            ++posts.statuses[answer->status];
            (answer->status == 202 ? posts.accepted : posts.refused).insert(id);
          } else if (!absl::IsUnavailable(answer.status())) {
            posts.unknown.insert(id);
          }
        }
      });
    }
  }
  return posts;
}

// All that were accepted were made, and none that was refused.
void expect_made(const Posts& posts, const Recorder& recorder, seconds patience) {
  const auto missing = [&] {
    const std::map<std::string, int> seen = recorder.seen();
    return std::count_if(posts.accepted.begin(), posts.accepted.end(),
                         [&](const std::string& id) { return seen.count(id) == 0; });
  };
  EXPECT_TRUE(FleetUnderTest::until(patience, [&] { return missing() == 0; }))
      << missing() << " of " << posts.accepted.size() << " accepted calls were not made";
  const std::map<std::string, int> seen = recorder.seen();
  for (const std::string& id : posts.refused) EXPECT_EQ(seen.count(id), 0u) << id << " was refused, and made";
}

class AsyncCalls : public ::testing::Test {
 protected:
  AsyncCalls() { nodes.program("record", recording_program(recorder.port())); }
  bool queue_empties(seconds patience = seconds(60)) const {
    const bool empty = FleetUnderTest::until(patience, [&] { return nodes.metric("orla_async_waiting") == 0; });
    EXPECT_TRUE(empty) << nodes.metric("orla_async_waiting") << " calls are left";
    return empty;
  }
  Recorder recorder;
  GatewayFleet nodes{{.node = "", .functions = "", .limits = "async_calls = 120\n"}};
};

TEST_F(AsyncCalls, AcceptedByANodeThatIsKilledAreMade) {
  const int rounds = chaos() == Chaos::kLong ? 20 : (chaos() == Chaos::kShort ? 2 : 4);
  base::SeededRandom random(chaos_seed());
  ASSERT_TRUE(nodes.up());
  nodes.deploy(recording_function());
  Posts all;
  std::map<int, int> statuses;
  int twice = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("ORLA_CHAOS_SEED={} round {}", chaos_seed(), round));
    const int pid = nodes.pid();
    const int after = 5 + static_cast<int>(random.below(185));  // answers
    std::atomic<int> answered{0};
    std::jthread killer([&] {
      const base::SteadyTime patience = clock_of_test.steady_now() + seconds(20);
      while (answered < after && clock_of_test.steady_now() < patience) std::this_thread::yield();
      ::kill(pid, SIGKILL);
    });
    Posts posts = post_calls(nodes.url(), fmt::format("round{}", round), 200, Mix::kSomeWrong, &answered);
    killer.join();
    ASSERT_TRUE(FleetUnderTest::until(seconds(8), [pid] { return !runs(pid); }));
    ASSERT_TRUE(nodes.fleet.start("cloud"));
    ASSERT_TRUE(nodes.found_again());
    expect_made(posts, recorder, seconds(60));
    all.accepted.merge(posts.accepted);
    all.refused.merge(posts.refused);
    all.unknown.merge(posts.unknown);
    for (const auto& [status, count] : posts.statuses) statuses[status] += count;
  }
  EXPECT_TRUE(queue_empties());
  expect_made(all, recorder, seconds(1));
  EXPECT_GT(all.accepted.size(), 20u);
  EXPECT_GT(all.refused.size(), 5u);
  int unknown_made = 0;
  const std::map<std::string, int> seen = recorder.seen();
  for (const auto& [id, count] : seen) {
    twice += count > 1 ? 1 : 0;
    unknown_made += all.unknown.count(id) > 0 ? 1 : 0;
    EXPECT_TRUE(all.accepted.count(id) + all.unknown.count(id) > 0) << id << " was made, and never posted";
  }
  std::string said;
  for (const auto& [status, count] : statuses) said += fmt::format(" {}: {}", status, count);
  fmt::print(
      "{} kills while posts came (statuses{}): {} accepted, all made, {} of them more than once; {} refused, none "
      "made; {} without an answer, {} of them made\n",
      rounds, said, all.accepted.size(), twice, all.refused.size(), all.unknown.size(), unknown_made);
}

// One that runs long is made once while its node lives, and what is posted again is not made again.
TEST_F(AsyncCalls, ThatRunLongAreMadeOnce) {
  ASSERT_TRUE(nodes.up());
  nodes.deploy(recording_function());
  const std::string length = chaos() == Chaos::kLong ? "20" : "3";
  const HttpHeaders id = {{"X-Call-Id", "long"}};
  const std::string target = "/async-function/record?" + length;
  EXPECT_EQ(nodes.ask("POST", target, "", id).status, 202);
  EXPECT_EQ(nodes.ask("POST", target, "", id).status, 202);
  EXPECT_TRUE(queue_empties());
  EXPECT_EQ(nodes.ask("POST", target, "", id).status, 202);
  EXPECT_EQ(nodes.ask("POST", "/async-function/record", "", {{"X-Call-Id", "after"}}).status, 202);
  EXPECT_TRUE(queue_empties());
  EXPECT_EQ(recorder.seen(), (std::map<std::string, int>{{"after", 1}, {"long", 1}}));
}

TEST_F(AsyncCalls, OnAFullDiskAreRefusedAndNoneOfTheAcceptedIsLost) {
  const SmallDisk disk(nodes.fleet.directory() / "state" / "cloud", 16 << 20);
  if (!disk.why_not().empty()) GTEST_SKIP() << "no file system can be mounted here: " << disk.why_not();
  ASSERT_TRUE(nodes.up());
  nodes.deploy(recording_function());
  Posts before = post_calls(nodes.url(), "before", 40, Mix::kGood);
  EXPECT_EQ(before.accepted.size(), 40u);
  disk.fill();
  Posts full = post_calls(nodes.url(), "full", 24, Mix::kLarge);
  EXPECT_GT(full.statuses[500], 0) << "no post was refused on a full disk";
  EXPECT_EQ(full.unknown.size(), 0u);
  // It can be called meanwhile.
  EXPECT_EQ(nodes.ask("POST", "/function/record", "", {{"X-Call-Id", "now"}}).status, 200);
  disk.make_room();
  expect_made(before, recorder, seconds(30));
  expect_made(full, recorder, seconds(30));
  EXPECT_TRUE(FleetUnderTest::until(seconds(20), [&] {
    return nodes.ask("POST", "/async-function/record", "", {{"X-Call-Id", "again"}}).status == 202;
  }));
  EXPECT_TRUE(queue_empties());
  EXPECT_EQ(recorder.count("again"), 1);
  ASSERT_TRUE(nodes.restart(SIGTERM));
  EXPECT_TRUE(queue_empties());
  EXPECT_EQ(recorder.count("now"), 1);
  expect_made(full, recorder, seconds(1));
}

// Files of a stopped node that hold something else than was written: what is lost is said, and all else goes on.
TEST_F(AsyncCalls, OnANodeWhoseFilesAreDamagedGoOn) {
  nodes.module("echo");
  ASSERT_TRUE(nodes.up());
  nodes.deploy(recording_function());
  nodes.deploy({{"service", "echo"}, {"image", "echo.wasm"}});
  nodes.deploy({{"service", "lost"}, {"image", "echo.wasm"}});
  EXPECT_EQ(nodes.ask("POST", "/async-function/record", "", {{"X-Call-Id", "before"}}).status, 202);
  EXPECT_TRUE(queue_empties());
  ASSERT_TRUE(nodes.fleet.stop("cloud", SIGKILL));
  const std::filesystem::path state = nodes.fleet.state() / "cloud" / "functions";
  std::vector<std::filesystem::path> files = {state / "calls.sqlite", state / "calls.sqlite-wal",
                                              state / "specs" / "lost.openfaas-fn.json"};
  for (const auto& entry : std::filesystem::directory_iterator(state / "modules")) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 4u);
  for (const auto& file : files) {
    std::string bytes = base::read_file(file, 64 << 20).value_or("");
    ASSERT_GT(bytes.size(), 100u) << file;
    for (std::size_t i = 0; i < bytes.size(); i += 3) bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    ASSERT_TRUE(base::write_file_atomically(file, bytes).ok());
  }
  ASSERT_TRUE(nodes.fleet.start("cloud"));
  ASSERT_TRUE(nodes.found_again());
  EXPECT_EQ(nodes.ask("POST", "/function/echo", "hello").body, "hello");
  EXPECT_EQ(nodes.ask("POST", "/function/lost").status, 404);
  EXPECT_EQ(nodes.ask("POST", "/async-function/record", "", {{"X-Call-Id", "after"}}).status, 202);
  EXPECT_TRUE(queue_empties());
  EXPECT_EQ(recorder.count("after"), 1);
  EXPECT_THAT(nodes.fleet.log_of("cloud"), HasSubstr("the queue of calls for later is damaged"));
  EXPECT_THAT(nodes.fleet.log_of("cloud"), HasSubstr("lost.openfaas-fn"));
}

// A result whose receiver is away or silent waits for it on the disk, and holds up no other call.
TEST_F(AsyncCalls, WhoseReceiverIsAwayHoldUpNoOtherAndAreNotMadeAgain) {
  ASSERT_TRUE(nodes.up());
  nodes.deploy(recording_function());
  std::mutex mutex;
  std::multiset<std::string> received;
  std::atomic<bool> open{false};
  const SmallServer receiver(SmallServer::Speaks::kHttp, [&](const std::string& request) -> std::string {
    if (!open) return "503";
    const std::size_t at = request.find("X-Call-Id: ") + 11;
    const std::lock_guard lock(mutex);
    received.insert(request.substr(at, request.find('\r', at) - at));
    return "200";
  });
  const SmallServer silent(SmallServer::Speaks::kHttp, [](const std::string&) { return std::string("0"); });
  const auto post = [&](const std::string& id, int port) {
    return nodes
        .ask("POST", "/async-function/record", "",
             {{"X-Call-Id", id}, {"X-Callback-Url", fmt::format("http://127.0.0.1:{}/", port)}})
        .status;
  };
  for (int i = 0; i < 70; ++i) EXPECT_EQ(post(fmt::format("kept{}", i), receiver.port()), 202);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(post(fmt::format("silent{}", i), silent.port()), 202);
  EXPECT_TRUE(FleetUnderTest::until(seconds(20), [&] { return recorder.seen().size() == 80; }));
  // More than may run at a time wait for their receivers.
  const Posts others = post_calls(nodes.url(), "other", 20, Mix::kGood);
  EXPECT_EQ(others.accepted.size(), 20u);
  expect_made(others, recorder, seconds(5));
  EXPECT_TRUE(FleetUnderTest::until(seconds(20), [&] { return nodes.metric("orla_async_callbacks_waiting") == 80; }));
  ASSERT_TRUE(nodes.restart(SIGKILL));
  open = true;
  EXPECT_TRUE(FleetUnderTest::until(seconds(60), [&] {
    const std::lock_guard lock(mutex);
    return received.size() >= 70;
  }));
  for (const auto& [id, count] : recorder.seen()) EXPECT_EQ(count, 1) << id << " was made again";
  const std::lock_guard lock(mutex);
  EXPECT_EQ(std::set<std::string>(received.begin(), received.end()).size(), 70u);
}

}  // namespace
}  // namespace orla::behaviour
