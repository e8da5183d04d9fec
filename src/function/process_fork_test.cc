// Modes streaming and serializing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "function/process_for_test.h"

namespace orla::function {

std::size_t descriptors_of_this_process() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}
std::size_t children_of_this_process() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string pids = base::read_file(task.path() / "children", 1 << 20).value_or("");
    count += static_cast<std::size_t>(std::count(pids.begin(), pids.end(), ' '));
  }
  return count;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

double seconds_since(const base::Clock& clock, base::SteadyTime began) {
  return std::chrono::duration<double>(clock.steady_now() - began).count();
}

TEST(ProcessStreaming, AnswersWithWhatTheProcessWrites) {
  ProcessFunctionForTest fn;
  fn.shell("cat; echo to the log >&2\n");
  ASSERT_TRUE(fn.start().ok()) << fn.start();
  CallForTest call("hello");
  const CallResult result = call.run(*fn.instance);
  EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
  EXPECT_TRUE(result.response_begun);
  EXPECT_EQ(call.response.status(), 200);
  EXPECT_EQ(call.response.body(), "hello");
  EXPECT_EQ(call.response.length(), std::nullopt);
  EXPECT_THAT(call.response.headers(),
              ElementsAre(std::pair<std::string, std::string>("Content-Type", "application/octet-stream")));
  EXPECT_THAT(fn.log.lines(), ElementsAre("fn-1: stderr: to the log"));
  EXPECT_GT(result.seconds, 0);
}

TEST(ProcessStreaming, IsFlushedAsItComes) {
  ProcessFunctionForTest fn;
  fn.shell("echo first; read line; echo second $line\n");
  ASSERT_TRUE(fn.start().ok());
  // The body's end comes only after the first line was seen.
  struct WaitingBody final : RequestBody {
    explicit WaitingBody(WholeResponse& response) : response(response) {}
    absl::StatusOr<std::size_t> read(char* to, std::size_t) override {
      if (sent) return 0;
      response.wait_for_bytes(6);
      sent = true;
      to[0] = 'x';
      to[1] = '\n';
      return 2;
    }
    WholeResponse& response;
    bool sent = false;
  };
  CallForTest call;
  WaitingBody body(call.response);
  EXPECT_EQ(call.run(*fn.instance, body).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "first\nsecond x\n");
}

TEST(ProcessStreaming, ALargeBodyThatStreamsGoesThrough) {
  ProcessFunctionForTest fn;
  fn.shell("exec cat\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  RepeatedBody body("0123456789abcdef", 500'000);
  EXPECT_EQ(call.run(*fn.instance, body).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body().size(), 8'000'000U);
  EXPECT_TRUE(call.response.body().ends_with("0123456789abcdef"));
}

TEST(ProcessStreaming, ALargeBodyThatNobodyReadsIsNoMatter) {
  ProcessFunctionForTest fn;
  fn.shell("echo done\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest whole(std::string(4'000'000, 'x'));
  EXPECT_EQ(whole.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(whole.response.body(), "done\n");
  CallForTest streamed;
  RepeatedBody body(std::string(1000, 'x'), 4000);
  EXPECT_EQ(streamed.run(*fn.instance, body).end, CallEnd::kDone);
  EXPECT_EQ(streamed.response.body(), "done\n");
}

TEST(ProcessStreaming, ANonZeroExitIsStill200AndACrashIsNot) {
  ProcessFunctionForTest fn;
  fn.shell("case $Http_Path in /exit) exit 3;; /crash) kill -SEGV $$; sleep 5;; esac\n");
  fn.spec.options.exec_timeout = seconds(10);
  ASSERT_TRUE(fn.start().ok());
  CallForTest exits;
  exits.head.path = "/exit";
  EXPECT_EQ(exits.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(exits.response.status(), 200);
  EXPECT_EQ(exits.response.body(), "");
  EXPECT_THAT(fn.log.lines(), Contains("fn-1: the function ended with exit code 3"));
}

TEST(ProcessStreaming, HasALowerPriorityThanTheNode) {
  ProcessFunctionForTest fn;
  fn.shell("nice; cat /proc/self/autogroup 2>/dev/null || echo nice 10\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  EXPECT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  const int own = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_THAT(call.response.body(), ::testing::StartsWith(std::to_string(std::max(own, 10)) + "\n"));
  EXPECT_THAT(call.response.body(), HasSubstr("nice 10\n"));
}

TEST(ProcessSerializing, TheExitCodeDecides) {
  ProcessFunctionForTest fn;
  fn.shell("cat; [ $Http_Path = /fail ] && { echo broken >&2; exit 4; }; exit 0\n");
  fn.spec.options.mode = WatchdogMode::kSerializing;
  fn.spec.options.content_type = "text/plain";
  ASSERT_TRUE(fn.start().ok());
  CallForTest good("body");
  EXPECT_EQ(good.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(good.response.status(), 200);
  EXPECT_EQ(good.response.length(), 4U);
  EXPECT_EQ(good.response.body(), "body");
  EXPECT_THAT(good.response.headers(), ElementsAre(std::pair<std::string, std::string>("Content-Type", "text/plain")));
  CallForTest bad("body");
  bad.head.path = "/fail";
  const CallResult result = bad.run(*fn.instance);
  EXPECT_EQ(result.end, CallEnd::kFailed);
  EXPECT_FALSE(result.response_begun);
  EXPECT_TRUE(result.instance_usable);
  EXPECT_EQ(result.message, "the function ended with exit code 4: broken");
  EXPECT_EQ(bad.response.begins(), 0);
}

TEST(ProcessEnvironment, IsExactlyWhatItShouldBe) {
  ProcessFunctionForTest fn;
  fn.shell("exec env\n");
  fn.spec.spec.environment = {{"GREETING", "hi there"}, {"LANG", "en_GB.UTF-8"}};
  ASSERT_TRUE(fn.start().ok());
  CallForTest call("12345");
  call.head.method = "PUT";
  call.head.path = "/a%20b";
  call.head.query = "x=1&y=%202";
  call.head.host = "gateway:8080";
  call.head.content_length = 5;
  call.head.headers = {{"content-type", "text/plain"}, {"X-API-KEY", "one"}, {"x-api-key", "two"}, {"Proxy", "p"}};
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  std::vector<std::string> lines;
  std::istringstream text(call.response.body());
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("SHLVL=")) lines.push_back(line);
  }
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre(
                         "GREETING=hi there", "LANG=en_GB.UTF-8", "HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin",
                         "Http_Method=PUT", "Http_Path=/a%20b", "Http_Query=x=1&y=%202", "Http_Host=gateway:8080",
                         "Http_ContentLength=5", "Http_Content_Length=5", "Http_Content_Type=text/plain",
                         "Http_X_Api_Key=one", "Http_Proxy=p"));
  CallForTest chunked;
  ASSERT_EQ(chunked.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_THAT(chunked.response.body(), HasSubstr("Http_ContentLength=-1\n"));
  EXPECT_THAT(chunked.response.body(), HasSubstr("Http_Content_Length=-1\n"));
  EXPECT_THAT(chunked.response.body(), HasSubstr("Http_Transfer_Encoding=chunked\n"));
}

TEST(ProcessFork, HasNoDescriptorsOfThisProcess) {
  ProcessFunctionForTest fn;
  fn.shell("ls /proc/self/fd | sort | tr '\\n' ' '\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "0 1 2 3 ");  // 3: ls reads the folder
}

TEST(ProcessFork, ADirectoryRunsTheProgramThatEnvProcessNames) {
  ProcessFunctionForTest fn;
  fn.script("tool", "#!/bin/sh\nprintf '%s|' \"$0\" \"$@\"; pwd\n");
  fn.spec.spec.env_process = "tool a  b";
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), (fn.spec.image / "tool").string() + "|a||b|" + fn.spec.image.string() + "\n");
  fn.spec.spec.env_process = "printf %s-%s x y";  // in PATH
  ASSERT_TRUE(fn.start().ok());
  CallForTest printf_call;
  ASSERT_EQ(printf_call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(printf_call.response.body(), "x-y");
}

TEST(ProcessFork, AProgramIsSearchedWhereTheReplicaCanSeeIt) {
  if (probe_isolation().namespaces == Isolation::Namespaces::kNone) GTEST_SKIP() << "replicas see all files here";
  const base::TemporaryDirectory hidden = *base::TemporaryDirectory::create("orla-hidden-");
  const std::filesystem::path wrong = hidden.path() / "printf";
  ASSERT_TRUE(base::write_file_atomically(wrong, "#!/bin/sh\necho wrong\n").ok());
  ASSERT_EQ(::chmod(wrong.c_str(), 0755), 0);
  ProcessFunctionForTest fn;
  fn.spec.spec.environment["PATH"] = hidden.path().string() + ":/usr/bin:/bin";
  fn.spec.spec.env_process = "printf %s-%s x y";
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "x-y");
}

TEST(ProcessFork, AnImageThatCannotRunIsRefused) {
  ProcessFunctionForTest fn;
  EXPECT_THAT(std::string(fn.load().message()), HasSubstr("is a directory: envProcess has to name the program"));
  fn.spec.spec.env_process = "no-such-program x";
  EXPECT_THAT(std::string(fn.load().message()), HasSubstr("begins with \"no-such-program\""));
  fn.spec.spec.env_process = "";
  fn.spec.image = fn.script("data", "x");
  ::chmod(fn.spec.image.c_str(), 0644);
  EXPECT_THAT(std::string(fn.load().message()), HasSubstr("is not executable"));
  fn.spec.image = "/nowhere";
  EXPECT_EQ(fn.load().code(), absl::StatusCode::kInvalidArgument);
  fn.shell("true");
  fn.spec.spec.annotations["com.orla.process.network"] = "some";
  EXPECT_EQ(fn.load().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ProcessFork, EndsAtItsTimeLimit) {
  ProcessFunctionForTest fn;
  fn.shell("echo begun; sleep 60\n");
  fn.spec.options.exec_timeout = milliseconds(300);
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  const base::SteadyTime began = fn.clock.steady_now();
  const CallResult result = call.run(*fn.instance);
  EXPECT_EQ(result.end, CallEnd::kTimedOut);
  EXPECT_EQ(result.message, "the function ran longer than its exec_timeout of 300 ms");
  EXPECT_TRUE(result.response_begun);
  EXPECT_GE(seconds_since(fn.clock, began), 0.3);
  EXPECT_LT(seconds_since(fn.clock, began), 5);
  CallForTest lowered;
  lowered.head.headers = {{"X-Timeout", "50ms"}};
  EXPECT_EQ(lowered.run(*fn.instance).message, "the function ran longer than its exec_timeout of 50 ms");
  CallForTest raised;
  raised.head.headers = {{"x-timeout", "1h"}};
  EXPECT_EQ(raised.run(*fn.instance).message, "the function ran longer than its exec_timeout of 300 ms");
  CallForTest deadline;
  deadline.head.deadline = fn.clock.steady_now() + milliseconds(100);
  EXPECT_EQ(deadline.run(*fn.instance).message, "the function ran until the call's deadline");
  EXPECT_EQ(children_of_this_process(), 0U);
}

TEST(ProcessFork, ACancelledCallEndsAtOnceWithAllThatItStarted) {
  ProcessFunctionForTest fn;
  fn.shell("trap '' TERM; (trap '' TERM; setsid sleep 61 & sleep 62) & echo begun; while :; do sleep 1; done\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  std::thread canceller([&] {
    call.response.wait_for_bytes(6);
    call.cancellation.cancel(CancelReason::kClientGone);
  });
  const CallResult result = call.run(*fn.instance);
  canceller.join();
  EXPECT_EQ(result.end, CallEnd::kCancelled);
  EXPECT_EQ(result.message, "the client has gone");
  EXPECT_EQ(children_of_this_process(), 0U);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = base::read_file(entry.path() / "cmdline", 1 << 16).value_or("");
    EXPECT_THAT(line, Not(::testing::AnyOf(HasSubstr(std::string("sleep\00061", 8)),
                                           HasSubstr(std::string("sleep\00062", 8)))));
  }
}

TEST(ProcessFork, MisbehaviourHarmsOneCallOnly) {
  ProcessFunctionForTest fn;
  fn.shell(R"(case $Http_Path in
    /early) exec >&-; sleep 0.2; exit 0;;
    /unread) exit 0;;
    /line) head -c 1048576 /dev/zero | tr '\0' 'x' >&2; echo >&2; echo fine;;
    /orphan) sleep 600 & setsid sleep 601 & echo left;;
  esac
)");
  fn.spec.options.log_buffer_bytes = 100;
  ASSERT_TRUE(fn.start().ok());
  // The one that goes on for ever has little time; the others need theirs, however busy the machine is.
  ProcessFunctionForTest endless;
  endless.shell("exec yes\n");
  endless.spec.options.exec_timeout = milliseconds(400);
  ASSERT_TRUE(endless.start().ok());
  const auto run = [&](const char* path, ProcessFunctionForTest& function) {
    CallForTest call(std::string(100'000, 'b'));
    call.head.path = path;
    const CallEnd end = call.run(*function.instance).end;
    return std::pair(end, call.response.body());
  };
  const std::size_t descriptors = descriptors_of_this_process();
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(run("/early", fn), std::pair(CallEnd::kDone, std::string()));
    EXPECT_EQ(run("/unread", fn), std::pair(CallEnd::kDone, std::string()));
    EXPECT_EQ(run("/line", fn), std::pair(CallEnd::kDone, std::string("fine\n")));
    EXPECT_EQ(run("/orphan", fn), std::pair(CallEnd::kDone, std::string("left\n")));
  }
  EXPECT_EQ(run("/endless", endless).first, CallEnd::kTimedOut);
  EXPECT_THAT(fn.log.lines(), Contains("fn-1: stderr: " + std::string(100, 'x') + " ... (line cut)"));
  EXPECT_EQ(descriptors_of_this_process(), descriptors);
  EXPECT_EQ(children_of_this_process(), 0U);
  EXPECT_TRUE(fn.instance->usable());
  EXPECT_TRUE(endless.instance->usable());
}

TEST(ProcessFork, MaxInflightRefusesAtOnceAndStopWaits) {
  ProcessFunctionForTest fn;
  fn.shell("echo in; read x; echo out\n");
  fn.spec.options.max_inflight = 1;
  ASSERT_TRUE(fn.start().ok());
  EXPECT_EQ(fn.instance->concurrency(), 1U);
  struct HeldBody final : RequestBody {
    absl::StatusOr<std::size_t> read(char*, std::size_t) override {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return open; });
      return 0;
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  } body;
  CallForTest first;
  CallResult first_result;
  std::thread runs([&] { first_result = first.run(*fn.instance, body); });
  first.response.wait_for_bytes(3);
  CallForTest second;
  EXPECT_EQ(second.run(*fn.instance).end, CallEnd::kBusy);
  std::thread stops([&] { fn.instance->stop(seconds(20)); });
  while (fn.instance->usable()) std::this_thread::yield();
  CallForTest third;
  EXPECT_EQ(third.run(*fn.instance).end, CallEnd::kUnreachable);
  {
    const std::lock_guard lock(body.mutex);
    body.open = true;
  }
  body.changed.notify_all();
  runs.join();
  stops.join();
  EXPECT_EQ(first_result.end, CallEnd::kDone) << first_result.message;
  EXPECT_EQ(first.response.body(), "in\nout\n");
}

TEST(ProcessFork, LogsAsTheSettingsSay) {
  ProcessFunctionForTest fn;
  fn.shell("printf 'one\\r\\n\\ntwo' >&2\n");
  fn.spec.options.prefix_logs = false;
  fn.spec.options.log_call_id = true;
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  call.head.call_id = "id-7";
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_THAT(fn.log.lines(), ElementsAre("fn-1: [id-7] one", "fn-1: [id-7] ", "fn-1: [id-7] two"));
}

}  // namespace
}  // namespace orla::function
