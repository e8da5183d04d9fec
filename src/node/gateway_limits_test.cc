// What the gateway refuses: requests that are none, that are too large or too slow, and all of them once it goes down.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "node/gateway_test_host.h"

namespace orla::node::gateway_test {
namespace {

using function::InvokeEnd;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

struct Bad {
  std::string bytes;
  int status;
};

TEST(GatewayRequests, ShapesThatCouldBeReadInTwoWaysAreRefused) {
  const std::string post = "POST /function/echo HTTP/1.1\r\nHost: h\r\n";
  const std::vector<Bad> cases = {
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
      {post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
      {post + "Content-Length: 3, 3\r\n\r\nabc", 400},
      {post + "Content-Length: +3\r\n\r\nabc", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 0x3\r\n\r\nabc", 400},
      {post + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {post + "Content-Length:\r\n\r\n", 400},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {post + "Transfer-Encoding: identity\r\n\r\n", 501},
      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\nabc", 400},
      {post + "X-A: 1\r\n folded\r\n\r\n", 400},
      {post + "X-A: 1\nX-B: 2\r\n\r\n", 400},
      {post + "X-A: 1\rX-B: 2\r\n\r\n", 400},
      {post + "X-A : 1\r\n\r\n", 400},
      {post + " X-A: 1\r\n\r\n", 400},
      {post + ": 1\r\n\r\n", 400},
      {post + "no colon\r\n\r\n", 400},
      {post + std::string("X-A: a\0b\r\n\r\n", 12), 400},
      {post + "Host: other\r\n\r\n", 400},
      {"GET /function/echo HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET /function/echo HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"GET /function/echo HTTP/1.1\r\n\r\n", 400},
      {"GET /function/echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"GET /function/echo HTTP/2.0\r\nHost: h\r\n\r\n", 505},
      {"GET /function/echo\r\nHost: h\r\n\r\n", 400},
      {"GET  /function/echo HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /function/echo#x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET function/echo HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"\x16\x03\x01\x02\r\n\r\n", 400},
      {post + "Expect: else\r\n\r\n", 417},
  };
  World world;
  world.host.add("echo", echo);
  for (const Bad& bad : cases) {
    Client client = world.client();
    const Reply reply = client.ask(bad.bytes + get("/function/echo"));
    EXPECT_EQ(reply.status, bad.status) << bad.bytes << "\n" << reply.body;
    EXPECT_TRUE(client.ends()) << bad.bytes;
  }
}

TEST(GatewayRequests, SizesAreLimitedByName) {
  GatewaySettings settings;
  settings.limits.request = {.line_bytes = 200, .header_bytes = 1000, .headers = 10};
  settings.limits.body_bytes = 100'000;
  World world(settings);
  world.host.add("echo", echo);
  EXPECT_EQ(world.client().ask(get("/function/echo?" + std::string(300, 'a'))).status, 414);
  EXPECT_EQ(world.client().ask(get("/function/echo", "X-A: " + std::string(1000, 'a') + "\r\n")).status, 431);
  std::string many;
  for (int i = 0; i < 20; ++i) many += fmt::format("X-{}: 1\r\n", i);
  EXPECT_EQ(world.client().ask(get("/function/echo", many)).status, 431);
  EXPECT_EQ(world.client().ask("GET /function/echo HTTP/1.1\r\nHost: h\r\nX-A: " + std::string(2000, 'a')).status, 431);
  EXPECT_EQ(world.client().ask(with_body("POST", "/function/echo", std::string(100'001, 'a'))).status, 413);
  EXPECT_EQ(world.client().ask(with_body("POST", "/function/echo", std::string(100'000, 'a'))).status, 200);
  std::string chunked = "POST /function/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 101; ++i) chunked += "3e8\r\n" + std::string(1000, 'a') + "\r\n";
  EXPECT_EQ(world.client().ask(chunked).status, 413);
}

TEST(GatewayRequests, SlowClientsAreGivenUp) {
  GatewaySettings settings;
  settings.limits.header_timeout = settings.limits.read_timeout = settings.limits.body_idle = milliseconds(300);
  settings.limits.keep_alive = milliseconds(300);
  World world(settings);
  world.host.add("echo", echo);
  Client head = world.client();
  EXPECT_EQ(head.ask("GET /function/echo HTTP/1.1\r\nHo").status, 408);
  EXPECT_TRUE(head.ends());
  Client body = world.client();
  EXPECT_EQ(body.ask("POST /function/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab").status, 408);
  Client stream = world.client();
  EXPECT_EQ(stream.ask("POST /function/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\nab").status, 408);
  Client idle = world.client();
  EXPECT_EQ(idle.ask(get("/function/echo")).status, 200);
  EXPECT_TRUE(idle.ends());
  Client silent = world.client();
  EXPECT_TRUE(silent.ends());
}

TEST(GatewayRequests, AClientThatTakesNothingEndsItsCallAlone) {
  GatewaySettings settings;
  settings.limits.write_idle = milliseconds(300);
  World world(settings);
  std::promise<absl::Status> end;
  world.host.add("flood", [&](function::Invocation& call) {
    absl::Status status = call.response.begin(200, {}, std::nullopt);
    const std::string piece(100'000, 'x');
    for (int i = 0; i < 1000 && status.ok(); ++i) status = call.response.write(piece);
    end.set_value(status);
    return ended(InvokeEnd::kBroken);
  });
  world.host.add("echo", echo);
  Client client = world.client();
  client.send(get("/function/flood"));
  EXPECT_EQ(world.client().ask(get("/function/echo")).status, 200);
  EXPECT_EQ(end.get_future().get().code(), absl::StatusCode::kCancelled);
}

TEST(GatewayRequests, ConnectionsAreLimited) {
  GatewaySettings settings;
  settings.limits.connections = 2;
  World world(settings);
  world.host.add("echo", echo);
  Client a = world.client();
  Client b = world.client();
  EXPECT_EQ(a.ask(get("/function/echo")).status, 200);
  EXPECT_EQ(b.ask(get("/function/echo")).status, 200);
  const Reply refused = world.client().receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
}

TEST(GatewayRequests, AnUnreadBodyDoesNotSpoilTheNextRequest) {
  World world;
  world.host.add("deaf", [](function::Invocation& call) {
    call.response.respond(200, {}, "deaf").IgnoreError();
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  client.send(with_body("POST", "/function/deaf", std::string(150'000, 'a')));
  EXPECT_EQ(client.receive().body, "deaf");
  EXPECT_EQ(client.ask(get("/function/deaf")).body, "deaf");
}

TEST(GatewayDrain, TellsBalancersThenRefusesAndLetsRunningCallsFinish) {
  GatewaySettings settings;
  settings.drain_notice = milliseconds(400);
  World world(settings);
  std::promise<void> go;
  std::promise<void> running;
  world.host.add("slow", [&](function::Invocation& call) {
    running.set_value();
    go.get_future().wait();
    return echo(call);
  });
  world.host.add("echo", echo);
  Client slow = world.client();
  slow.send(with_body("POST", "/function/slow", "done"));
  running.get_future().wait();
  Client kept = world.client();
  EXPECT_EQ(kept.ask(get("/healthz")).status, 200);
  std::thread drains([&] { world.gateway->drain(); });
  const auto until_status = [&](const std::string& request, int status) {
    for (int i = 0; i < 500; ++i) {
      if (world.client().ask(request).status == status) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  };
  EXPECT_TRUE(until_status(get("/healthz"), 503));
  const Reply last = kept.ask(get("/function/echo"));
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(last.header("Connection"), "close");
  EXPECT_TRUE(until_status(get("/function/echo"), 503));
  const Reply refused = world.client().ask(get("/function/echo"));
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.header("Connection"), "close");
  go.set_value();
  EXPECT_EQ(slow.receive().body, "done");
  drains.join();
  EXPECT_TRUE(world.host.draining);
}

}  // namespace
}  // namespace orla::node::gateway_test
