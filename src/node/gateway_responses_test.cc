// What of a function's response reaches the client, and what becomes of a request that is only half read: rows that
// reports about other gateways are made of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "node/gateway_test_host.h"

namespace orla::node::gateway_test {
namespace {

using function::InvokeEnd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What comes up to `end`.
std::string until(Client& client, std::string_view end) {
  std::string all;
  while (all.find(end) == std::string::npos) {
    const std::string some = client.some();
    if (some.empty()) break;
    all += some;
  }
  return all;
}

TEST(GatewayResponses, EveryStatusOfThreeDigitsPassesWithAReasonOrNone) {
  World world;
  std::atomic<int> status{0};
  world.host.add("status", [&](function::Invocation& call) {
    const absl::Status sent = call.response.respond(status, {}, "x");
    return sent.ok() ? ended(InvokeEnd::kAnswered) : ended(InvokeEnd::kFailed, "bad");
  });
  const std::pair<int, std::string> cases[] = {
      {200, "HTTP/1.1 200 OK\r\n"},
      {299, "HTTP/1.1 299 \r\n"},
      {404, "HTTP/1.1 404 Not Found\r\n"},
      {418, "HTTP/1.1 418 I'm a teapot\r\n"},
      {425, "HTTP/1.1 425 Too Early\r\n"},
      {599, "HTTP/1.1 599 "},
      {600, "HTTP/1.1 600 \r\n"},
      {999, "HTTP/1.1 999 \r\n"},
      {101, "HTTP/1.1 500 Internal Server Error\r\n"},  // without an upgrade it is no response
      {99, "HTTP/1.1 500 Internal Server Error\r\n"},
      {1000, "HTTP/1.1 500 Internal Server Error\r\n"},
  };
  Client client = world.client();
  for (const auto& [code, line] : cases) {
    status = code;
    client.send(get("/function/status"));
    const std::string reply = until(client, code > 199 && code < 1000 ? "\r\n\r\nx" : "bad\n");
    EXPECT_THAT(reply, StartsWith(line)) << code;
  }
}

TEST(GatewayResponses, ANotModifiedSaysOnlyTheLengthThatTheFunctionSays) {
  World world;
  world.host.add("same", [](function::Invocation& call) {
    function::Headers headers{{"ETag", "\"1\""}};
    if (call.head.query == "said") headers.emplace_back("Content-Length", "500");
    EXPECT_TRUE(call.response.respond(304, headers, "").ok());
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  client.send(get("/function/same"));
  const std::string silent = until(client, "\r\n\r\n");
  EXPECT_THAT(silent, HasSubstr("ETag: \"1\"\r\n"));
  EXPECT_THAT(silent, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(silent, Not(HasSubstr("Transfer-Encoding")));
  client.send(get("/function/same?said"));
  EXPECT_THAT(until(client, "\r\n\r\n"), HasSubstr("Content-Length: 500\r\n"));
}

TEST(GatewayResponses, ACallThatNeedsNoMoreOfItsBodyEnds) {
  World world;
  std::atomic<bool> read_ended{false};
  world.host.add("early", [&](function::Invocation& call) {
    std::thread reader([&] {
      char block[64];
      while (true) {
        const absl::StatusOr<std::size_t> n = call.body.read(block, sizeof block);
        if (!n.ok() || *n == 0) break;
      }
      read_ended = true;
    });
    EXPECT_TRUE(call.response.respond(200, {}, "enough").ok());
    call.body.discard();
    reader.join();
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  // The client sends nothing more and keeps its connection.
  client.send("POST /function/early HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\nabc");
  EXPECT_EQ(client.receive().body, "enough");
  EXPECT_THAT(world.host.counted(1), ElementsAre(200));
  EXPECT_TRUE(read_ended);
}

constexpr std::string_view kOffer =
    "GET /function/ws/chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n";

// Answers bytes with the same, up to their end.
function::InvokeResult talk(function::Invocation& call) {
  EXPECT_EQ(call.head.upgrade, "WebSocket");
  EXPECT_TRUE(call.response.switch_protocols({{"Sec-WebSocket-Accept", "x"}}, "websocket").ok());
  char block[4096];
  while (true) {
    const absl::StatusOr<std::size_t> n = call.body.read(block, sizeof block);
    if (!n.ok() || *n == 0) break;
    if (!call.response.write({block, *n}).ok()) break;
  }
  return ended(InvokeEnd::kAnswered);
}

TEST(GatewayUpgrade, BytesGoBothWaysAfterA101) {
  World world;
  world.host.add("ws", talk);
  Client client = world.client();
  // Bytes that are there with the request already are of the new protocol, and look like no request.
  client.send(std::string(kOffer) + std::string("\0\xff one", 6));
  const std::string reply = until(client, " one");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(reply, HasSubstr("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(reply, HasSubstr("Sec-WebSocket-Accept: x\r\n"));
  EXPECT_THAT(reply, HasSubstr("X-Call-Id: "));
  for (const std::string none : {"Content-Type", "Content-Length", "Transfer-Encoding"}) {
    EXPECT_THAT(reply, Not(HasSubstr(none)));
  }
  EXPECT_THAT(reply, HasSubstr(std::string("\r\n\r\n\0\xff one", 10)));
  const std::string large(1 << 20, 'z');
  std::thread sender([&] { client.send(large + "end"); });
  const std::string back = until(client, "end");
  sender.join();
  EXPECT_TRUE(back == large + "end");
  client.end_sending();
  EXPECT_TRUE(client.ends());
  EXPECT_THAT(world.host.counted(1), ElementsAre(101));
}

TEST(GatewayUpgrade, AnOfferThatIsNotTakenIsAnOrdinaryCall) {
  World world;
  world.host.add("ws", echo);
  Client client = world.client();
  EXPECT_EQ(client.ask(kOffer).status, 200);
  EXPECT_EQ(client.ask(with_body("POST", "/function/ws", "again")).body, "again") << "the connection goes on";
}

TEST(GatewayUpgrade, OnlyAWebSocketIsOffered) {
  World world;
  world.host.add("ws", [](function::Invocation& call) {
    EXPECT_EQ(call.response.switch_protocols({}, "x").code(), absl::StatusCode::kUnimplemented);
    EXPECT_TRUE(call.response.respond(200, {}, call.head.upgrade).ok());
    return ended(InvokeEnd::kAnswered);
  });
  const std::string cases[] = {
      get("/function/ws", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
      get("/function/ws", "Upgrade: websocket\r\n"),
      get("/function/ws", "Connection: Upgrade\r\n"),
      get("/function/ws", "Connection: Upgrade, close\r\nUpgrade: websocket\r\n"),
      get("/function/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: x\r\n"),
      with_body("POST", "/function/ws", "", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
      with_body("GET", "/function/ws", "body", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
      "GET /function/ws HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  };
  for (const std::string& request : cases) {
    const Reply reply = world.client().ask(request);
    EXPECT_EQ(reply.status, 200) << request;
    EXPECT_EQ(reply.body, "") << request;
  }
}

TEST(GatewayUpgrade, AClientThatGoesEndsTheCall) {
  World world;
  std::atomic<int> reason{-1};
  world.host.add("ws", [&](function::Invocation& call) {
    function::InvokeResult result = talk(call);
    reason = static_cast<int>(call.cancellation.reason());
    return result;
  });
  {
    Client client = world.client();
    client.send(kOffer);
    EXPECT_THAT(until(client, "\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  }
  EXPECT_THAT(world.host.counted(1), ElementsAre(101));
  EXPECT_GE(reason, 0);
}

}  // namespace
}  // namespace orla::node::gateway_test
