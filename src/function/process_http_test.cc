// Mode http.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "function/process_http_for_test.h"

namespace orla::function {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ProcessHttp, PassesRequestsAndAnswers) {
  HttpFunction fn(R"(
    text = '%s %s %s %s %s' % (method, target, headers.get('host'), headers.get('x-one'), headers.get('connection'))
    c.sendall(b'HTTP/1.1 201 Made\r\nX-A: 1\r\nx-a: 2\r\nConnection: keep-alive, X-Hop\r\nX-Hop: h\r\nContent-Length: %d\r\n\r\n' % (len(text) + len(body)) + text.encode() + body)
)");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call("!body");
  call.head.path = "/p%20q";
  call.head.query = "a=b";
  call.head.host = "example.org";
  call.head.headers = {{"X-One", "1"}, {"Connection", "close"}, {"Content-Length", "77"}};
  const CallResult result = call.run(*fn.instance);
  ASSERT_EQ(result.end, CallEnd::kDone) << result.message;
  EXPECT_EQ(call.response.status(), 201);
  EXPECT_EQ(call.response.body(), "POST /p%20q?a=b example.org 1 None!body");
  EXPECT_EQ(call.response.headers(), (Headers{{"X-A", "1"}, {"x-a", "2"}}));
  EXPECT_EQ(call.response.length(), call.response.body().size());
}

// Nagle's algorithm at the server and delayed acknowledgements at the client would make each call wait for 40 ms.
TEST(ProcessHttp, AnAnswerInTwoPiecesComesAtOnce) {
  HttpFunction fn("    c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n'); c.sendall(b'ok')");
  ASSERT_TRUE(fn.start().ok());
  const base::SystemClock clock;
  const base::SteadyTime began = clock.steady_now();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(fn.get("/").second, "ok");
  EXPECT_LT(clock.steady_now() - began, std::chrono::seconds(2));
}

// A port that the system gives to whoever asks for any could be another program's before the function listens there.
TEST(ProcessHttp, ListensWhereNobodyElseIsSent) {
  HttpFunction fn("    ok(c, os.environ['PORT'].encode())");
  ASSERT_TRUE(fn.start().ok());
  const int port = std::stoi(fn.get("/").second);
  const std::string range = base::read_file("/proc/sys/net/ipv4/ip_local_port_range", 256).value_or("32768");
  EXPECT_LT(port, std::stoi(range));
  EXPECT_GT(port, 1024);
}

TEST(ProcessHttp, ARequestThatIsNoneIsNotSent) {
  HttpFunction fn("    ok(c, str(count).encode())");
  ASSERT_TRUE(fn.start().ok());
  EXPECT_EQ(fn.get("/a\r\nX: y").first.end, CallEnd::kFailed);
  EXPECT_EQ(fn.get("/a HTTP/1.0").first.end, CallEnd::kFailed);
  EXPECT_EQ(fn.get("/a").second, "1");
}

TEST(ProcessHttp, KeepsConnections) {
  HttpFunction fn("    ok(c, str(count).encode())");
  ASSERT_TRUE(fn.start().ok());
  EXPECT_EQ(fn.get("/").second, "1");
  EXPECT_EQ(fn.get("/").second, "2");
  EXPECT_EQ(fn.get("/").second, "3");
}

TEST(ProcessHttp, AKeptConnectionThatTheServerClosedIsNotUsed) {
  // Corked, the answer and the close are one segment: the close is there when the answer is.
  HttpFunction fn(R"(
    c.setsockopt(socket.IPPROTO_TCP, 3, 1)
    ok(c, str(count).encode())
    return False
)");
  ASSERT_TRUE(fn.start().ok());
  for (int i = 0; i < 100; ++i) {
    const auto [result, body] = fn.get("/", "x");
    ASSERT_EQ(result.end, CallEnd::kDone) << result.message << " in round " << i;
    ASSERT_EQ(body, "1");
  }
}

TEST(ProcessHttp, NoRequestRunsTwiceWhenTheServerClosesAtAnyTime) {
  HttpFunction fn(R"(
    if target == '/runs': return ok(c, b' '.join(b'%d' % n for n in runs.values()))
    runs[target] = runs.get(target, 0) + 1
    ok(c, b'')
    time.sleep(len(runs) % 7 * 0.0001)
    return False
)",
                  "runs = {}");
  ASSERT_TRUE(fn.start().ok());
  int answered = 0;
  for (int i = 0; i < 300; ++i) {
    const CallResult result = fn.get("/" + std::to_string(i), "x").first;
    ASSERT_THAT(result.end, ::testing::AnyOf(CallEnd::kDone, CallEnd::kFailed)) << result.message;
    answered += result.end == CallEnd::kDone ? 1 : 0;
  }
  std::string runs;
  for (int tries = 0; runs.empty() && tries < 100; ++tries) runs = fn.get("/runs").second;
  EXPECT_EQ(runs.find_first_not_of("1 "), std::string::npos) << runs;
  EXPECT_GE(std::count(runs.begin(), runs.end(), '1'), answered);
  EXPECT_GE(answered, 150);
}

TEST(ProcessHttp, KindsOfAnswers) {
  HttpFunction fn(R"(
    if target == '/chunked': c.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n')
    elif target == '/close':
        c.sendall(b'HTTP/1.0 200 OK\r\n\r\nuntil the end')
        return False
    elif target == '/continue': c.sendall(b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate')
    elif target == '/204': c.sendall(b'HTTP/1.1 204 No Content\r\n\r\n')
    elif target == '/304': c.sendall(b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\n\r\n')
    elif target == '/302': c.sendall(b'HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n')
    elif method == 'HEAD': c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
    else: c.sendall(b'HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy')
)");
  ASSERT_TRUE(fn.start().ok());
  const auto run = [&](const char* path, const char* method = "GET") {
    auto call = std::make_unique<CallForTest>();
    call->head.path = path;
    call->head.method = method;
    EXPECT_EQ(call->run(*fn.instance).end, CallEnd::kDone) << path;
    return call;
  };
  EXPECT_EQ(run("/chunked")->response.body(), "abcde");
  EXPECT_EQ(run("/chunked")->response.length(), std::nullopt);
  EXPECT_EQ(run("/close")->response.body(), "until the end");
  EXPECT_EQ(run("/continue")->response.body(), "late");
  EXPECT_EQ(run("/204")->response.status(), 204);
  EXPECT_EQ(run("/304")->response.status(), 304);
  EXPECT_EQ(run("/302")->response.headers(), (Headers{{"Location", "/there"}}));
  EXPECT_EQ(run("/x", "HEAD")->response.length(), 1000U);
  EXPECT_EQ(run("/x", "HEAD")->response.body(), "");
  EXPECT_EQ(run("/x")->response.status(), 503);
  EXPECT_EQ(run("/x")->response.body(), "busy");
}

TEST(ProcessHttp, BrokenAnswersFailTheCallOnly) {
  HttpFunction fn(R"(
    if target == '/nothing': return False
    if target == '/garbage': c.sendall(b'this is not HTTP\r\n\r\n')
    if target == '/half': c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    if target == '/chunk': c.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')
    if target == '/101': c.sendall(b'HTTP/1.1 101 Switching Protocols\r\n\r\n')
    if target == '/huge': c.sendall(b'HTTP/1.1 200 OK\r\nX: ' + b'h' * 100000 + b'\r\n\r\n')
    if target == '/good':
        ok(c, b'good')
        return
    return False
)");
  ASSERT_TRUE(fn.start().ok());
  for (const char* path : {"/nothing", "/garbage", "/half", "/chunk", "/101", "/huge"}) {
    const CallResult result = fn.get(path).first;
    EXPECT_EQ(result.end, CallEnd::kFailed) << path;
    EXPECT_TRUE(result.instance_usable) << path;
    EXPECT_EQ(result.response_begun, path == std::string("/half") || path == std::string("/chunk")) << path;
    EXPECT_EQ(fn.get("/good").second, "good");
  }
}

TEST(ProcessHttp, StreamsBothWays) {
  HttpFunction fn(R"(
    if target == '/early':  # answers before the body has come, then reads it
        c.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n')
        got = c.recv(65536)
        while b'0\r\n\r\n' not in got: got += c.recv(65536)
        c.sendall(b'%x\r\n%s\r\n0\r\n\r\n' % (len(got), got))
        return
    ok(c, headers.get('transfer-encoding', headers.get('content-length')).encode() + b' %d' % len(body))
)");
  ASSERT_TRUE(fn.start().ok());
  struct WaitingBody final : RequestBody {
    explicit WaitingBody(WholeResponse& response) : response(response) {}
    absl::StatusOr<std::size_t> read(char* to, std::size_t) override {
      if (sent) return 0;
      response.wait_for_bytes(5);
      sent = true;
      std::copy_n("abc", 3, to);
      return 3;
    }
    WholeResponse& response;
    bool sent = false;
  };
  CallForTest early;
  early.head.path = "/early";
  WaitingBody body(early.response);
  EXPECT_EQ(early.run(*fn.instance, body).end, CallEnd::kDone);
  EXPECT_EQ(early.response.body(), "first3\r\nabc\r\n0\r\n\r\n");

  CallForTest chunked;
  RepeatedBody large(std::string(1000, 'x'), 2000);
  EXPECT_EQ(chunked.run(*fn.instance, large).end, CallEnd::kDone);
  EXPECT_EQ(chunked.response.body(), "chunked 2000000");
  CallForTest sized;
  sized.head.content_length = 2'000'000;
  RepeatedBody same(std::string(1000, 'x'), 2000);
  EXPECT_EQ(sized.run(*fn.instance, same).end, CallEnd::kDone);
  EXPECT_EQ(sized.response.body(), "2000000 2000000");
}

TEST(ProcessHttp, BuffersTheRequestWhenAsked) {
  HttpFunction fn("    ok(c, str(headers.get('content-length')).encode())");
  fn.spec.options.buffer_request_body = true;
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  RepeatedBody body("abc", 10);
  EXPECT_EQ(call.run(*fn.instance, body).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "30");
}

TEST(ProcessHttp, EndsAtItsTimeLimitAndWhenCancelled) {
  HttpFunction fn(R"(
    if target == '/slow': time.sleep(30)
    ok(c, b'quick')
)");
  fn.spec.options.exec_timeout = milliseconds(200);
  ASSERT_TRUE(fn.start().ok());
  const CallResult slow = fn.get("/slow").first;
  EXPECT_EQ(slow.end, CallEnd::kTimedOut);
  EXPECT_EQ(slow.message, "the function ran longer than its exec_timeout of 200 ms");
  EXPECT_TRUE(slow.instance_usable);
  EXPECT_EQ(fn.get("/").second, "quick");
  CallForTest call;
  call.head.path = "/slow";
  call.cancellation.cancel(CancelReason::kDraining);
  EXPECT_EQ(call.run(*fn.instance).end, CallEnd::kCancelled);
}

TEST(ProcessHttp, WaitsUntilItListensAndIsReady) {
  HttpFunction fn(
      "    ok(c, b'') if target != '/ready' or time.time() > begun + 0.6 else c.sendall(b'HTTP/1.1 503 "
      "No\\r\\nContent-Length: 0\\r\\n\\r\\n')",
      "begun = time.time()\ntime.sleep(0.2)");
  fn.spec.options.ready_path = "/ready";
  const base::SteadyTime began = fn.clock.steady_now();
  ASSERT_TRUE(fn.start().ok());
  EXPECT_GE(fn.clock.steady_now() - began, milliseconds(600));
  EXPECT_EQ(fn.get("/").first.end, CallEnd::kDone);
}

TEST(ProcessHttp, AProcessThatDoesNotListenDoesNotStart) {
  ProcessFunctionForTest fn;
  fn.spec.options.mode = WatchdogMode::kHttp;
  fn.shell("echo no server here >&2; exit 3\n");
  const absl::Status ended = fn.start();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("ended with exit code 3 before it listened on 127.0.0.1:"));
  EXPECT_THAT(fn.log.lines(), Contains("fn-1: stderr: no server here"));
  fn.shell("sleep 60\n");
  EXPECT_EQ(fn.start(seconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  fn.spec.options.upstream_url = "nonsense";
  EXPECT_EQ(fn.load().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ProcessHttp, IsNotUsableOnceItsProcessHasEnded) {
  HttpFunction fn(R"(
    if target == '/die': os._exit(7)
    ok(c, b'alive')
)");
  ASSERT_TRUE(fn.start().ok());
  EXPECT_TRUE(fn.instance->usable());
  EXPECT_EQ(fn.get("/").second, "alive");
  const CallResult died = fn.get("/die").first;
  EXPECT_EQ(died.end, CallEnd::kFailed);
  EXPECT_FALSE(died.instance_usable);
  EXPECT_FALSE(fn.instance->usable());
  const CallResult after = fn.get("/").first;
  EXPECT_EQ(after.end, CallEnd::kUnreachable);
  EXPECT_FALSE(after.instance_usable);
}

TEST(ProcessHttp, LogsBothStreamsAndStopsWithSigterm) {
  HttpFunction fn(
      "    ok(c, b'')",
      "def end(*_):\n    print('told to end', flush=True)\n    os._exit(0)\nsignal.signal(signal.SIGTERM, end)\n"
      "print('to stderr', file=sys.stderr, flush=True)");
  ASSERT_TRUE(fn.start().ok());
  fn.instance->stop(seconds(5));
  EXPECT_FALSE(fn.instance->usable());
  fn.instance.reset();
  EXPECT_THAT(fn.log.lines(), Contains("fn-1: stderr: to stderr"));
  EXPECT_THAT(fn.log.lines(), Contains("fn-1: stdout: told to end"));
  EXPECT_EQ(children_of_this_process(), 0U);
}

TEST(ProcessHttp, UpstreamUrlFixesThePort) {
  HttpFunction fn("    ok(c, os.environ['upstream_url'].encode())");
  fn.spec.options.upstream_url = "http://127.0.0.1:$PORT";
  ASSERT_TRUE(fn.start().ok());
  const std::string chosen = fn.get("/").second;
  EXPECT_TRUE(chosen.starts_with("http://127.0.0.1:"));
  fn.instance.reset();
  fn.spec.options.upstream_url = chosen;
  ASSERT_TRUE(fn.start().ok());
  EXPECT_EQ(fn.get("/").second, chosen);
  Cancellation cancellation;
  const auto second = fn.module->start("fn-2", fn.clock.steady_now() + seconds(5), cancellation);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(fn.module->notes(), Contains(HasSubstr("only one replica can listen there")));
}

}  // namespace
}  // namespace orla::function
