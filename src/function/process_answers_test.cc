// Mode http: answers as servers write them, and what comes after a 101.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "function/host_fakes.h"
#include "function/process_client.h"
#include "function/process_http_for_test.h"

namespace orla::function {
namespace {

using std::chrono::seconds;

struct AnswerCase {
  std::string bytes;
  CallEnd end;
  int status = 0;
  Headers headers{};
  std::optional<std::uint64_t> length{};
  std::string body{};
};

TEST(ProcessAnswers, AnswersAsServersWriteThem) {
  HttpFunction fn(R"(
    c.sendall(body)
    return not body.endswith((b'end', b'20'))
)");
  ASSERT_TRUE(fn.start().ok());
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const AnswerCase cases[] = {
      {"HTTP/1.1 418 Teapot\r\nContent-Length: 2\r\n\r\nhi", CallEnd::kDone, 418, {}, 2, "hi"},
      {"HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", CallEnd::kDone, 600, {}, 0, ""},
      {"HTTP/1.1 999 \r\nContent-Length: 0\r\n\r\n", CallEnd::kDone, 999, {}, 0, ""},
      {"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", CallEnd::kDone, 200, {}, 2, "hi"},
      {"HTTP/1.0 200 OK\r\n\r\nto its end", CallEnd::kDone, 200, {}, std::nullopt, "to its end"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 1\r\n\r\na",
       CallEnd::kDone,
       200,
       {},
       1,
       "a"},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
       CallEnd::kDone,
       304,
       {{"Content-Length", "500"}},
       0,
       ""},
      {"HTTP/1.1 304 Not Modified\r\n\r\n", CallEnd::kDone, 304, {}, 0, ""},
      {"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc", CallEnd::kDone, 204, {}, 0, ""},
      // Trailers are no headers, also when they come at once with them.
      {ok + "Transfer-Encoding: chunked\r\nX-H: 1\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\nSet-Cookie: t\r\n\r\n",
       CallEnd::kDone,
       200,
       {{"X-H", "1"}},
       std::nullopt,
       "abc"},
      {ok + "Content-Length: 3\r\n\r\nabcMORE", CallEnd::kDone, 200, {}, 3, "abc"},
      {ok + "Set-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n",
       CallEnd::kDone,
       200,
       {{"Set-Cookie", "a=1"}, {"set-cookie", "b=2"}},
       0,
       ""},
      {ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", CallEnd::kFailed},
      {ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", CallEnd::kFailed},
      {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", CallEnd::kFailed},
      {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", CallEnd::kFailed},
      {"HTTP/1.1 99 X\r\n\r\n", CallEnd::kFailed},
      {"HTTP/2.0 200 OK\r\n\r\n", CallEnd::kFailed},
      {"hello\r\n\r\n", CallEnd::kFailed},
      {"HTTP/1.1 20", CallEnd::kFailed},
  };
  for (const AnswerCase& c : cases) {
    CallForTest call(c.bytes);
    const CallResult result = call.run(*fn.instance);
    EXPECT_EQ(result.end, c.end) << c.bytes << result.message;
    EXPECT_EQ(call.response.status(), c.status) << c.bytes;
    EXPECT_EQ(call.response.headers(), c.headers) << c.bytes;
    EXPECT_EQ(call.response.length(), c.length) << c.bytes;
    EXPECT_EQ(call.response.body(), c.body) << c.bytes;
  }
}

TEST(ProcessAnswers, AServerThatAcceptsFewConnectionsAtATimeIsReachedSoon) {
  ProcessFunctionForTest fn;
  fn.spec.options.mode = WatchdogMode::kHttp;
  fn.python(R"(
import os, socket, time
s = socket.socket()
s.bind(('127.0.0.1', int(os.environ['PORT'])))
s.listen(1)
while True:
    c, _ = s.accept()
    c.recv(65536)
    time.sleep(0.01)
    c.sendall(b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok')
    c.close()
)");
  ASSERT_TRUE(fn.start().ok());
  std::atomic<int> answered{0};
  const base::SteadyTime began = fn.clock.steady_now();
  {
    std::vector<std::jthread> calls;
    for (int i = 0; i < 50; ++i) {
      calls.emplace_back([&] {
        CallForTest call;
        call.head.method = "GET";
        if (call.run(*fn.instance).end == CallEnd::kDone && call.response.body() == "ok") ++answered;
      });
    }
  }
  EXPECT_EQ(answered, 50);
  // Left to the kernel, the last ones would come after 7 s and more.
  EXPECT_LT(fn.clock.steady_now() - began, seconds(6));
}

TEST(ProcessAnswers, AConnectionThatWasIdleForLongIsNotUsedAgain) {
  ManualClock clock;
  // How many requests the connection has seen.
  HttpFunction fn("    ok(c, (os.environ['PORT'] if target == '/port' else str(count)).encode())");
  ASSERT_TRUE(fn.start().ok());
  const auto port = static_cast<std::uint16_t>(std::stoi(fn.get("/port").second));
  ProcessClient client(clock, port, [] {
    return absl::StatusOr<base::FileDescriptor>(base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  });
  const auto ask = [&] {
    CallForTest call;
    call.head.method = "GET";
    const CallResult result = client.proxy(Call{call.head, call.whole, call.response, call.cancellation},
                                           ProcessClient::Body::kAsItComes, {});
    EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
    return call.response.body();
  };
  EXPECT_EQ(ask(), "1");
  EXPECT_EQ(ask(), "2");
  clock.advance(kLongestIdle);
  EXPECT_EQ(ask(), "3");
  clock.advance(kLongestIdle + std::chrono::milliseconds(1));
  EXPECT_EQ(ask(), "1");
}

// What a client says after a 101, and what it is told.
class TunnelEnds final : public RequestBody, public Response {
 public:
  std::optional<std::string_view> whole() const override { return switched_ ? std::nullopt : std::optional(""); }
  absl::StatusOr<std::size_t> read(char* to, std::size_t room) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return discarded_ || at_ < said_.size() || ends_; });
    if (discarded_) return absl::CancelledError("discarded");
    const std::size_t n = said_.copy(to, room, at_);
    at_ += n;
    return n;
  }
  void discard() override { set(discarded_); }
  absl::Status begin(int, Headers, std::optional<std::uint64_t>) override { return absl::InternalError("no 101"); }
  absl::Status write(std::string_view piece) override {
    const std::lock_guard lock(mutex_);
    heard_ += piece;
    changed_.notify_all();
    return absl::OkStatus();
  }
  absl::Status switch_protocols(Headers headers, std::string_view protocol) override {
    switched_ = true;
    headers_ = std::move(headers);
    protocol_ = protocol;
    return absl::OkStatus();
  }
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    said_ += text;
    changed_.notify_all();
  }
  void end() { set(ends_); }
  bool hears(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(10), [&] { return heard_.find(text) != std::string::npos; });
  }
  Headers headers_;
  std::string protocol_;

 private:
  void set(bool& flag) {
    const std::lock_guard lock(mutex_);
    flag = true;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string said_, heard_;
  std::size_t at_ = 0;
  bool ends_ = false, discarded_ = false;
  std::atomic<bool> switched_{false};
};

TEST(ProcessAnswers, A101MakesATunnelUpToTheEndOfEitherSide) {
  HttpFunction fn(R"(
    assert headers['upgrade'] == 'websocket' and headers['connection'] == 'Upgrade'
    c.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: 1\r\n\r\nfirst ')
    while True:
        data = c.recv(65536)
        if not data: c.sendall(b' they left'); return False
        c.sendall(data.upper())
        if b'bye' in data: return False
)");
  ASSERT_TRUE(fn.start().ok());
  for (const bool client_ends : {true, false}) {
    TunnelEnds ends;
    CallHead head;
    head.method = "GET";
    head.upgrade = "websocket";
    Cancellation cancellation;
    CallResult result;
    std::thread call([&] { result = fn.instance->call(Call{head, ends, ends, cancellation}); });
    EXPECT_TRUE(ends.hears("first "));
    ends.say("hello");
    EXPECT_TRUE(ends.hears("HELLO"));
    if (client_ends) {
      ends.end();
      EXPECT_TRUE(ends.hears(" they left"));
    } else {
      ends.say("bye");
      EXPECT_TRUE(ends.hears("BYE"));
    }
    call.join();
    EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
    EXPECT_EQ(ends.protocol_, "websocket");
    EXPECT_EQ(ends.headers_, (Headers{{"X-A", "1"}}));
  }
}

}  // namespace
}  // namespace orla::function
