#include "function/wasm_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "function/wasm_api.h"
#include "function/wasm_call.h"
#include "function/wasm_for_test.h"

namespace orla::function {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

class Wasm : public ::testing::Test {
 protected:
  // Loads and starts; the query of the calls says what the sample does.
  Instance& command(const ModuleSpec& spec) {
    instance_ = nullptr;
    module_ = wasm_.load(spec);
    instance_ = wasm_.start(*module_);
    return *instance_;
  }
  Instance& command() { return command(wasm_.spec(built_wasm("test_command"))); }
  Instance& handler() { return command(wasm_.spec(built_wasm("test_handler"))); }
  static CallResult ask(Instance& instance, CallForTest& call, std::string query) {
    call.head.query = std::move(query);
    return call.run(instance);
  }
  std::string answer(Instance& instance, std::string query) {
    CallForTest call;
    const CallResult result = ask(instance, call, std::move(query));
    EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
    return call.response.body();
  }
  ModuleSpec spec_of_text(std::string_view text) {
    const auto library = find_wasmtime({});
    EXPECT_TRUE(library.ok()) << library.status();
    const auto api = open_wasmtime(*library);
    EXPECT_TRUE(api.ok()) << api.status();
    const auto bytes = wasm_of_text(**api, text);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const std::filesystem::path path = wasm_.place() / "text.wasm";
    EXPECT_TRUE(base::write_file_atomically(path, *bytes).ok());
    return wasm_.spec(path);
  }

  WasmForTest wasm_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Instance> instance_;
};

// --- Commands -------------------------------------------------------------------------------------------------------

TEST_F(Wasm, ACommandAnswersItsStandardOutput) {
  CallForTest call("hello");
  const CallResult result = ask(command(), call, "echo");
  EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
  EXPECT_TRUE(result.response_begun);
  EXPECT_TRUE(result.instance_usable);
  EXPECT_EQ(call.response.begins(), 1);
  EXPECT_EQ(call.response.status(), 200);
  EXPECT_EQ(call.response.length(), 5U);
  EXPECT_EQ(call.response.body(), "hello");
}

TEST_F(Wasm, ACommandThatWritesNothingAnswersNothing) {
  CallForTest call("unread");
  EXPECT_EQ(ask(command(), call, "nothing").end, CallEnd::kDone);
  EXPECT_EQ(call.response.status(), 200);
  EXPECT_EQ(call.response.length(), 0U);
}

TEST_F(Wasm, EachCallOfACommandIsAFreshInstance) {
  Instance& instance = command();
  for (int i = 0; i < 3; ++i) {
    CallForTest call("body " + std::to_string(i));
    EXPECT_EQ(ask(instance, call, "echo").end, CallEnd::kDone);
    EXPECT_EQ(call.response.body(), "body " + std::to_string(i));
  }
}

TEST_F(Wasm, ACommandSeesTheFactsAndItsOwnVariables) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_command"));
  spec.spec.environment = {{"colour", "blue"}};
  spec.spec.env_process = "tool  -v x";
  Instance& instance = command(spec);
  CallForTest call("body");
  call.head.method = "PUT";
  call.head.path = "/a";
  call.head.content_length = 4;
  call.head.headers = {{"content-type", "text/plain"}};
  EXPECT_EQ(ask(instance, call, "environment").end, CallEnd::kDone);
  EXPECT_THAT(call.response.body(),
              AllOf(HasSubstr("colour=blue\n"), HasSubstr("Http_Method=PUT\n"), HasSubstr("Http_Path=/a\n"),
                    HasSubstr("Http_Content_Length=4\n"), HasSubstr("Http_Content_Type=text/plain\n")));
  EXPECT_EQ(answer(instance, "arguments"), "tool\n-v\nx\n");
}

TEST_F(Wasm, AnExitCodeDecidesAndNothingOfAFailureIsSent) {
  Instance& instance = command();
  EXPECT_EQ(answer(instance, "exit0"), "before");
  CallForTest call;
  const CallResult result = ask(instance, call, "exit3");
  EXPECT_EQ(result.end, CallEnd::kFailed);
  EXPECT_EQ(result.message, "exit status 3");
  EXPECT_FALSE(result.response_begun);
  EXPECT_EQ(call.response.begins(), 0);
  EXPECT_THAT(wasm_.lines.lines(), Contains("sample-1: going to fail"));
}

TEST_F(Wasm, ATrapIsNamedAndTheNextCallIsWell) {
  Instance& instance = command();
  CallForTest aborts;
  const CallResult aborted = ask(instance, aborts, "abort");
  EXPECT_EQ(aborted.end, CallEnd::kFailed);
  EXPECT_THAT(aborted.message, StartsWith("unreachable code"));
  CallForTest dives;
  const CallResult dived = ask(instance, dives, "deep");
  EXPECT_EQ(dived.end, CallEnd::kFailed);
  EXPECT_THAT(dived.message, HasSubstr("in "));  // C's own stack ends in its memory, wasm's by a trap
  EXPECT_EQ(answer(instance, "exit0"), "before");
}

TEST_F(Wasm, ALoopEndsAtTheDeadline) {
  Instance& instance = command();
  CallForTest call;
  call.head.deadline = wasm_.clock.steady_now() + std::chrono::milliseconds(30);
  const CallResult result = ask(instance, call, "loop");
  EXPECT_EQ(result.end, CallEnd::kTimedOut);
  EXPECT_THAT(result.message, StartsWith("timed out after"));
  EXPECT_EQ(answer(instance, "exit0"), "before");
}

TEST_F(Wasm, ExecTimeoutEndsALoopAndASleep) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_command"));
  spec.options.exec_timeout = std::chrono::milliseconds(20);
  Instance& instance = command(spec);
  for (const char* what : {"loop", "sleep"}) {
    CallForTest call;
    EXPECT_EQ(ask(instance, call, what).end, CallEnd::kTimedOut) << what;
  }
}

TEST_F(Wasm, ACancellationEndsALoopAndASleep) {
  Instance& instance = command();
  for (const char* what : {"loop", "sleep"}) {
    CallForTest call;
    std::thread canceller([&] { call.cancellation.cancel(CancelReason::kClientGone); });
    EXPECT_EQ(ask(instance, call, what).end, CallEnd::kCancelled) << what;
    canceller.join();
  }
}

TEST_F(Wasm, MemoryHasALimit) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_command"));
  spec.options.memory_bytes = 16 << 20;
  Instance& instance = command(spec);
  CallForTest call;
  const CallResult result = ask(instance, call, "grow");
  EXPECT_EQ(result.end, CallEnd::kOutOfMemory);
  EXPECT_THAT(result.message, HasSubstr("of 16384 KiB"));
  EXPECT_EQ(answer(instance, "exit0"), "before");
}

TEST_F(Wasm, StreamingSendsWhatIsWritten) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_command"));
  spec.spec.environment = {{"mode", "streaming"}};
  Instance& instance = command(spec);
  CallForTest call;
  EXPECT_EQ(ask(instance, call, "chunks").end, CallEnd::kDone);
  EXPECT_THAT(call.response.pieces(), ElementsAre("chunk 0\n", "chunk 1\n", "chunk 2\n"));
  EXPECT_EQ(call.response.length(), std::nullopt);
  CallForTest fails;
  const CallResult failed = ask(instance, fails, "exit3");
  EXPECT_EQ(failed.end, CallEnd::kFailed);
  EXPECT_TRUE(failed.response_begun);
  EXPECT_EQ(answer(instance, "nothing"), "");
}

TEST_F(Wasm, ContentTypeIsTheFunctionsElseTheSettings) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_handler"));
  spec.options.content_type = "text/html";
  Instance& instance = command(spec);
  CallForTest sets;
  EXPECT_EQ(ask(instance, sets, "head").end, CallEnd::kDone);
  EXPECT_EQ(find_header(sets.response.headers(), "content-type"), "text/x-head");
  CallForTest leaves;
  EXPECT_EQ(ask(instance, leaves, "echo").end, CallEnd::kDone);
  EXPECT_THAT(leaves.response.headers(), ElementsAre(Pair("Content-Type", "text/html")));
}

TEST_F(Wasm, ALargeResponseIsBegunAndSentOn) {
  CallForTest call;
  EXPECT_EQ(ask(command(), call, "large").end, CallEnd::kDone);
  EXPECT_EQ(call.response.body().size(), 320U * 65536);
  EXPECT_EQ(call.response.length(), std::nullopt);
}

TEST_F(Wasm, ALargeBodyIsStreamedThrough) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_command"));
  spec.spec.environment = {{"mode", "streaming"}};
  spec.options.memory_bytes = 4 << 20;
  Instance& instance = command(spec);
  CallForTest call;
  call.head.query = "echo";
  const std::string piece = "0123456789abcdef";
  RepeatedBody body(piece, 2 << 20);
  EXPECT_EQ(call.run(instance, body).end, CallEnd::kDone);
  const std::string answered = call.response.body();
  ASSERT_EQ(answered.size(), piece.size() << 21);
  for (std::size_t at = 0; at < answered.size(); at += 999'999) ASSERT_EQ(answered[at], piece[at % piece.size()]);
}

TEST_F(Wasm, AVeryLongLogLineIsCut) {
  Instance& instance = command();
  EXPECT_EQ(answer(instance, "line"), "logged");
  const std::vector<std::string> lines = wasm_.lines.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), std::string("sample-1: ").size() + kMaxLogLineBytes);
  EXPECT_EQ(lines[1], "sample-1: short");
}

TEST_F(Wasm, ItMayCloseItsOutput) { EXPECT_EQ(answer(command(), "close"), "first"); }

TEST_F(Wasm, TimePassesAndChanceIsThere) {
  Instance& instance = command();
  EXPECT_EQ(answer(instance, "nap"), "slept");
  EXPECT_THAT(answer(instance, "clock"), EndsWith(" 1 1"));
}

TEST_F(Wasm, ItSeesNoFilesButItsSecrets) {
  EXPECT_EQ(answer(command(), "files"), "none");
  ModuleSpec spec = wasm_.spec(built_wasm("test_command"));
  const std::filesystem::path secret = wasm_.place() / "secret-file";
  ASSERT_TRUE(base::write_file_atomically(secret, "s3cret\n").ok());
  spec.secrets = {{"password", secret}};
  Instance& instance = command(spec);
  EXPECT_EQ(answer(instance, "secret"), "s3cret\n");
  EXPECT_EQ(answer(instance, "files"), "none");
}

// --- Handlers -------------------------------------------------------------------------------------------------------

TEST_F(Wasm, AHandlerIsKeptForTheNextCall) {
  Instance& instance = handler();
  EXPECT_EQ(answer(instance, "calls"), "1 1");
  EXPECT_EQ(answer(instance, "calls"), "2 1");
  EXPECT_EQ(answer(instance, "calls"), "3 1");
}

TEST_F(Wasm, AHandlerReadsTheHeadAndSetsTheResponses) {
  CallForTest call("body");
  call.head.method = "PATCH";
  call.head.path = "/x/y";
  call.head.headers = {{"X-Greeting", "hi"}, {"B", "c"}};
  const CallResult result = ask(handler(), call, "head");
  EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
  EXPECT_EQ(call.response.status(), 201);
  EXPECT_THAT(call.response.headers(),
              ElementsAre(Pair("Content-Type", "text/x-head"), Pair("Set-Cookie", "a=1"), Pair("Set-Cookie", "b=2")));
  EXPECT_EQ(call.response.body(), "PATCH /x/y hi\nX-Greeting=hi\nB=c");
}

TEST_F(Wasm, AHandlersBodyComesWholeOrInPieces) {
  Instance& instance = handler();
  CallForTest whole("whole body");
  EXPECT_EQ(ask(instance, whole, "body").end, CallEnd::kDone);
  EXPECT_EQ(whole.response.body(), "whole body");
  CallForTest pieces;
  pieces.head.query = "body";
  RepeatedBody body("0123456789", 5000);
  EXPECT_EQ(pieces.run(instance, body).end, CallEnd::kDone);
  EXPECT_EQ(pieces.response.body().size(), 50'000U);
  CallForTest too_long;
  too_long.head.query = "body";
  RepeatedBody more(std::string(1000, 'x'), 2000);
  EXPECT_EQ(too_long.run(instance, more).end, CallEnd::kDone);
  EXPECT_EQ(too_long.response.status(), 413);
}

TEST_F(Wasm, WhatAHandlerReturnsDecides) {
  Instance& instance = handler();
  CallForTest five;
  const CallResult failed = ask(instance, five, "five");
  EXPECT_EQ(failed.end, CallEnd::kFailed);
  EXPECT_EQ(failed.message, "the handler returned 5");
  EXPECT_FALSE(failed.response_begun);
  EXPECT_EQ(answer(instance, "calls"), "2 1");
  CallForTest flushed;
  const CallResult broken = ask(instance, flushed, "flushfail");
  EXPECT_EQ(broken.end, CallEnd::kFailed);
  EXPECT_TRUE(broken.response_begun);
}

TEST_F(Wasm, AHandlerFlushes) {
  CallForTest call;
  EXPECT_EQ(ask(handler(), call, "flush").end, CallEnd::kDone);
  EXPECT_EQ(call.response.status(), 206);
  EXPECT_THAT(call.response.pieces(), ElementsAre("one", "two"));
}

TEST_F(Wasm, ABrokenHandlerIsThrownAway) {
  Instance& instance = handler();
  for (const auto& [what, message] : {std::pair("trap", "unreachable code"),
                                      std::pair("outside", "orla.write was given bytes outside of the function's")}) {
    EXPECT_EQ(answer(instance, "calls"), "1 1") << what;
    CallForTest call;
    const CallResult result = ask(instance, call, what);
    EXPECT_EQ(result.end, CallEnd::kFailed);
    EXPECT_THAT(result.message, HasSubstr(message));
    EXPECT_TRUE(result.instance_usable);
  }
  CallForTest loops;
  loops.head.deadline = wasm_.clock.steady_now() + std::chrono::milliseconds(20);
  EXPECT_EQ(ask(instance, loops, "loop").end, CallEnd::kTimedOut);
  EXPECT_EQ(answer(instance, "calls"), "1 1");
}

TEST_F(Wasm, AHandlerAtItsMemoryLimitIsThrownAway) {
  ModuleSpec spec = wasm_.spec(built_wasm("test_handler"));
  spec.options.memory_bytes = 8 << 20;
  Instance& instance = command(spec);
  EXPECT_EQ(answer(instance, "keep"), "full");
  EXPECT_EQ(answer(instance, "calls"), "1 1");
}

TEST_F(Wasm, AHandlerLogs) {
  EXPECT_EQ(answer(handler(), "log"), "ok");
  EXPECT_THAT(wasm_.lines.lines(), ElementsAre("sample-1: from the handler", "sample-1: printed"));
}

TEST_F(Wasm, ManyCallsAtATime) {
  Instance& instance = handler();
  EXPECT_EQ(instance.concurrency(), kDefaultWasmConcurrency);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        CallForTest call("thread " + std::to_string(t) + " call " + std::to_string(i));
        const CallResult result = ask(instance, call, "echo");
        const std::string expected = "thread " + std::to_string(t) + " call " + std::to_string(i);
        if (result.end == CallEnd::kDone && call.response.body() == expected) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 16 * 200);
}

TEST_F(Wasm, ACallEndsWithItsReplica) {
  instance_ = nullptr;
  Instance& instance = command();
  CallForTest call;
  CallResult result;
  std::thread caller([&] { result = ask(instance, call, "sleep"); });
  while (wasm_.lines.lines().empty()) std::this_thread::yield();
  instance.stop(std::chrono::milliseconds(20));
  instance_ = nullptr;
  caller.join();
  EXPECT_EQ(result.end, CallEnd::kFailed);
}

// --- Loading --------------------------------------------------------------------------------------------------------

TEST_F(Wasm, SaysWhyAFileIsNoFunction) {
  const std::filesystem::path path = wasm_.place() / "x.wasm";
  ASSERT_TRUE(base::write_file_atomically(path, std::string("\0asm\1\0\0\0garbage", 15)).ok());
  const auto refusal = [&](const ModuleSpec& spec) {
    const absl::StatusOr<std::unique_ptr<Module>> module = wasm_.runtime->load(spec);
    EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(module.status().message());
  };
  EXPECT_THAT(refusal(wasm_.spec(path)), HasSubstr("not a WebAssembly module"));
  EXPECT_THAT(refusal(wasm_.spec(wasm_.place() / "none.wasm")), HasSubstr("cannot open"));
  EXPECT_THAT(refusal(spec_of_text("(module (memory (export \"memory\") 1))")), HasSubstr("neither _start"));
  EXPECT_THAT(refusal(spec_of_text("(module (func (export \"_start\")))")), HasSubstr("exports no memory"));
  EXPECT_THAT(refusal(spec_of_text("(module (memory (export \"memory\") 1) (func (export \"orla_handle\")))")),
              HasSubstr("orla_handle is not a function of nothing that gives an i32"));
  EXPECT_THAT(refusal(spec_of_text("(module (import \"env\" \"magic\" (func)) (memory (export \"memory\") 1)"
                                   " (func (export \"_start\")))")),
              HasSubstr("env::magic"));
  EXPECT_THAT(refusal(spec_of_text("(module (memory (export \"memory\") 10000) (func (export \"_start\")))")),
              HasSubstr("raise limits.memory"));
  ModuleSpec http = wasm_.spec(built_wasm("test_command"));
  http.spec.environment = {{"mode", "http"}};
  http.options.mode = WatchdogMode::kHttp;
  EXPECT_THAT(refusal(http), HasSubstr("mode=http"));
}

TEST_F(Wasm, AMissingLibrarySaysWhatToDo) {
  const auto runtime = make_wasm_runtime("no/such/libwasmtime.so", wasm_.place() / "modules", wasm_.clock);
  const auto module = runtime->load(wasm_.spec(built_wasm("test_command")));
  EXPECT_EQ(module.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(module.status().message()), AllOf(HasSubstr("no/such/libwasmtime.so"), HasSubstr("./up")));
}

TEST_F(Wasm, AnInstanceThatDoesNotStartIsNoReplica) {
  const std::unique_ptr<Module> module =
      wasm_.load(spec_of_text("(module (memory (export \"memory\") 1) (func (export \"_initialize\") unreachable)"
                              " (func (export \"orla_handle\") (result i32) i32.const 0))"));
  ASSERT_NE(module, nullptr);
  Cancellation cancellation;
  const auto started = module->start("x-1", wasm_.clock.steady_now() + std::chrono::seconds(5), cancellation);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("_initialize broke: unreachable code"));
  const std::unique_ptr<Module> loops =
      wasm_.load(spec_of_text("(module (memory (export \"memory\") 1) (func (export \"_initialize\") (loop br 0))"
                              " (func (export \"orla_handle\") (result i32) i32.const 0))"));
  const auto late = loops->start("x-2", wasm_.clock.steady_now() + std::chrono::milliseconds(20), cancellation);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(Wasm, IdleModulesAreLoadedAgain) {
  Instance& instance = command();
  EXPECT_EQ(answer(instance, "exit0"), "before");
  instance_ = nullptr;
  module_->idle();
  instance_ = wasm_.start(*module_);
  EXPECT_EQ(answer(*instance_, "exit0"), "before");
}

}  // namespace
}  // namespace orla::function
