// The contract of calls as clients see it, over real sockets: one row, one test.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/version.h"
#include "node/gateway_test_host.h"

namespace orla::node::gateway_test {
namespace {

using function::InvokeEnd;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Says what it was given.
function::InvokeResult show(function::Invocation& call) {
  std::string text =
      fmt::format("{} {} {} host={}\n", call.head.method, call.head.path, call.head.query, call.head.host);
  for (const auto& [name, value] : call.head.headers) text += fmt::format("{}={}\n", name, value);
  call.response.respond(200, {}, text + body_of(call)).IgnoreError();
  return ended(InvokeEnd::kAnswered);
}

TEST(GatewayCalls, EveryMethodOfTheContractReachesTheFunctionAndOthersDoNot) {
  World world;
  world.host.add("show", show);
  Client client = world.client();
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    const Reply reply = client.ask(with_body(method, "/function/show/a", "b"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.body, StartsWith(method + " /a "));
  }
  const Reply head = client.ask("HEAD /function/show HTTP/1.1\r\nHost: h\r\n\r\n", Client::Of::kHead);
  EXPECT_EQ(head.status, 200);
  EXPECT_GT(std::stoi(head.header("Content-Length")), 10);
  const Reply trace = client.ask("TRACE /function/show HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(trace.status, 405);
  EXPECT_EQ(client.ask(get("/function/show")).status, 200) << "the connection goes on";
}

TEST(GatewayCalls, PathAndQueryPassUndecoded) {
  World world;
  world.host.add("show", show);
  Client client = world.client();
  EXPECT_THAT(client.ask(get("/function/show")).body, StartsWith("GET /  host=example\n"));
  EXPECT_THAT(client.ask(get("/function/show/")).body, StartsWith("GET /  host"));
  EXPECT_THAT(client.ask(get("/function/show/a%2Fb//c/../d?x=%20&y=1?&z")).body,
              StartsWith("GET /a%2Fb//c/../d x=%20&y=1?&z host"));
  EXPECT_THAT(client.ask(get("/function/show.openfaas-fn/a")).body, StartsWith("GET /a  host"));
  EXPECT_THAT(client.ask(get("http://other/function/show/a?q")).body, StartsWith("GET /a q host=example"));
}

TEST(GatewayCalls, HeadersOfTheRequestFollowTheRules) {
  World world;
  world.host.add("show", show);
  Client client = world.client();
  const std::string seen = client
                               .ask(get("/function/show",
                                        "X-A: 1\r\nX-A: 2\r\nConnection: keep-alive, X-Named\r\nX-Named: 1\r\n"
                                        "Keep-Alive: 5\r\nProxy-Connection: a\r\nProxy-Authenticate: a\r\n"
                                        "Proxy-Authorization: a\r\nTE: trailers\r\nTrailer: a\r\nUpgrade: a\r\n"
                                        "X-Start-Time: 5\r\n"))
                               .body;
  EXPECT_THAT(seen, HasSubstr("X-A=1\nX-A=2\n"));
  for (const std::string gone :
       {"Connection", "X-Named", "Keep-Alive", "Proxy-", "TE=", "Trailer", "Upgrade", "Host="}) {
    if (gone == "Host=") continue;
    EXPECT_THAT(seen, Not(HasSubstr(gone)));
  }
  EXPECT_THAT(seen, HasSubstr("X-Forwarded-Host=example\n"));
  EXPECT_THAT(seen, HasSubstr("X-Forwarded-For=127.0.0.1:"));
  EXPECT_THAT(seen, HasSubstr(fmt::format("User-Agent=orla/{}\n", base::Version())));
  EXPECT_THAT(seen, Not(HasSubstr("X-Start-Time=5\n")));
  EXPECT_THAT(seen, HasSubstr("X-Start-Time=1"));

  const std::string kept = client
                               .ask(get("/function/show",
                                        "X-Call-Id: mine\r\nX-Forwarded-For: a\r\nX-Forwarded-Host: b\r\n"
                                        "User-Agent: curl\r\n"))
                               .body;
  EXPECT_THAT(kept, HasSubstr("X-Call-Id=mine\n"));
  EXPECT_THAT(kept, HasSubstr("X-Forwarded-For=a\n"));
  EXPECT_THAT(kept, HasSubstr("X-Forwarded-Host=b\n"));
  EXPECT_THAT(kept, HasSubstr("User-Agent=curl\n"));
  EXPECT_THAT(kept, Not(HasSubstr("orla/")));
}

TEST(GatewayCalls, HeadersOfTheResponseFollowTheRules) {
  World world;
  world.host.add("echo", echo);
  world.host.add("own", [](function::Invocation& call) {
    call.response
        .respond(201,
                 {{"Content-Type", "a/b"},
                  {"X-Call-Id", "its"},
                  {"Connection", "close"},
                  {"Set-Cookie", "a"},
                  {"Set-Cookie", "b"}},
                 "x")
        .IgnoreError();
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  const Reply reply = client.ask(with_body("POST", "/function/echo", "hi", "Content-Type: text/csv\r\n"));
  EXPECT_EQ(reply.body, "hi");
  EXPECT_EQ(reply.header("Content-Type"), "text/csv");
  EXPECT_THAT(reply.header("X-Call-Id"),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_THAT(reply.header("X-Start-Time"), MatchesRegex("1[0-9]{18}"));
  EXPECT_EQ(reply.header("X-Served-By"), fmt::format("orla/{}", base::Version()));
  EXPECT_THAT(reply.header("X-Duration-Seconds"), MatchesRegex("[0-9]+\\.[0-9]{6}"));
  EXPECT_THAT(reply.header("Date"), MatchesRegex("..., [0-9]{2} ... [0-9]{4} [0-9:]{8} GMT"));
  EXPECT_EQ(client.ask(with_body("POST", "/function/echo", "hi")).header("Content-Type"), "text/plain");
  const Reply own = client.ask(get("/function/own", "X-Call-Id: mine\r\n"));
  EXPECT_EQ(own.status, 201);
  EXPECT_EQ(own.header("Content-Type"), "a/b");
  EXPECT_EQ(own.header("X-Call-Id"), "its");
  EXPECT_EQ(own.header("Connection"), "");
  EXPECT_EQ(std::count_if(own.headers.begin(), own.headers.end(), [](auto& h) { return h.first == "Set-Cookie"; }), 2);
}

TEST(GatewayCalls, RedirectsAndStatusesPassThrough) {
  World world;
  world.host.add("moved", [](function::Invocation& call) {
    call.response.respond(302, {{"Location", "http://elsewhere/"}}, "").IgnoreError();
    return ended(InvokeEnd::kAnswered);
  });
  world.host.add("none", [](function::Invocation& call) {
    call.response.respond(204, {}, "").IgnoreError();
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  const Reply moved = client.ask(get("/function/moved"));
  EXPECT_EQ(moved.status, 302);
  EXPECT_EQ(moved.header("Location"), "http://elsewhere/");
  const Reply none = client.ask(get("/function/none"));
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.header("Content-Length"), "");
  EXPECT_EQ(client.ask(get("/function/moved")).status, 302);
}

struct EndCase {
  InvokeEnd end;
  bool from_runtime;
  int status;
  std::string body;
  std::string internal;
  bool retry_after;
};

TEST(GatewayCalls, EndsWithoutAResponseBecomeStatuses) {
  const std::vector<EndCase> cases = {
      {InvokeEnd::kNotFound, false, 404, "error finding function f.openfaas-fn: why\n", "", false},
      {InvokeEnd::kNoEndpoints, false, 503, "No endpoints available for: f.openfaas-fn. why\n", "proxy", true},
      {InvokeEnd::kOverloaded, false, 429, "why\n", "", true},
      {InvokeEnd::kDraining, false, 503, "this node is going down\n", "", true},
      {InvokeEnd::kCantReach, false, 500, "Can't reach service for: f.openfaas-fn. why\n", "proxy", false},
      {InvokeEnd::kFailed, true, 500, "why\n", "of-watchdog", false},
      {InvokeEnd::kFailed, false, 500, "why\n", "", false},
      {InvokeEnd::kTimedOut, true, 504, "why\n", "of-watchdog", false},
      {InvokeEnd::kTimedOut, false, 502, "", "", false},
      {InvokeEnd::kBroken, false, 500, "why\n", "", false},
  };
  World world;
  std::atomic<std::size_t> at{0};
  world.host.add("f", [&](function::Invocation&) {
    function::InvokeResult result = ended(cases[at].end, "why");
    result.from_runtime = cases[at].from_runtime;
    result.retry_after = std::chrono::seconds(7);
    return result;
  });
  for (at = 0; at < cases.size(); ++at) {
    const EndCase& c = cases[at];
    const Reply reply = world.client().ask(get("/function/f", "X-Call-Id: id\r\n"));
    EXPECT_EQ(reply.status, c.status) << at;
    EXPECT_EQ(reply.body, c.body) << at;
    EXPECT_EQ(reply.header("X-OpenFaaS-Internal"), c.internal) << at;
    EXPECT_EQ(reply.header("Retry-After"), c.retry_after ? "7" : "") << at;
    EXPECT_EQ(reply.header("X-Call-Id"), "id") << at;
  }
  EXPECT_THAT(world.host.counted(9), UnorderedElementsAre(503, 429, 503, 500, 500, 500, 504, 502, 500));
}

TEST(GatewayCalls, UnknownAndBadNames) {
  World world;
  Client client = world.client();
  const Reply unknown = client.ask(get("/function/nobody"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, StartsWith("error finding function nobody.openfaas-fn: "));
  EXPECT_EQ(client.ask(with_body("POST", "/function/nobody", "body")).status, 404) << "the body is read";
  for (const std::size_t size : {4u, 100'000u}) {  // by the host, and before the body is read
    const Reply named =
        world.client().ask(with_body("POST", "/function/nobody", std::string(size, 'x'), "X-Call-Id: mine\r\n"));
    EXPECT_EQ(named.status, 404) << size;
    EXPECT_EQ(named.header("X-Call-Id"), "mine") << size;
  }
  for (const std::string bad :
       {"/function/", "/function/a%20b", "/function/a%2e%2e/x", "/function//system/functions"}) {
    const Reply reply = client.ask(get(bad));
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_EQ(reply.header("X-OpenFaaS-Internal"), "proxy") << bad;
  }
  EXPECT_THAT(world.host.counted(), IsEmpty()) << "no series for names that are not deployed";
}

TEST(GatewayCalls, StreamsTheResponseAsItIsWritten) {
  World world;
  std::mutex mutex;
  std::condition_variable go;
  int allowed = 0;
  world.host.add("stream", [&](function::Invocation& call) {
    EXPECT_TRUE(call.response.begin(200, {{"Content-Type", "text/event-stream"}}, std::nullopt).ok());
    for (int i = 1; i <= 3; ++i) {
      std::unique_lock lock(mutex);
      go.wait(lock, [&] { return allowed >= i; });
      EXPECT_TRUE(call.response.write(fmt::format("event {}\n", i)).ok());
    }
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  client.send(get("/function/stream"));
  EXPECT_THAT(client.some(), HasSubstr("Transfer-Encoding: chunked"));
  for (int i = 1; i <= 3; ++i) {
    {
      const std::lock_guard lock(mutex);
      allowed = i;
    }
    go.notify_all();
    EXPECT_THAT(client.some(), StartsWith(fmt::format("8\r\nevent {}\n", i)));
  }
  // The last chunk may have come with the last event.
  const Reply next = client.ask(get("/function/nobody"));
  EXPECT_TRUE(next.status == 404 || next.status == 0);
}

TEST(GatewayCalls, StreamsALargeBodyBothWays) {
  World world;
  world.host.add("stream", [](function::Invocation& call) {
    EXPECT_FALSE(call.body.whole());
    EXPECT_EQ(call.head.content_length, 3'000'000u);
    EXPECT_TRUE(call.response.begin(200, {}, std::nullopt).ok());
    char piece[10'000];
    while (true) {
      const absl::StatusOr<std::size_t> n = call.body.read(piece, sizeof piece);
      if (!n.ok() || *n == 0) break;
      if (!call.response.write({piece, *n}).ok()) break;
    }
    return ended(InvokeEnd::kAnswered);
  });
  std::string body(3'000'000, 'a');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 26);
  Client client = world.client();
  std::thread sender([&] { client.send(with_body("POST", "/function/stream", body)); });
  const Reply reply = client.receive();
  sender.join();
  EXPECT_TRUE(reply.whole);
  EXPECT_TRUE(reply.body == body);
  world.host.add("echo", echo);
  EXPECT_EQ(client.ask(with_body("POST", "/function/echo", "again")).body, "again");
}

// A function answers without its request's body: what is skipped of that must not come to the next request.
TEST(GatewayCalls, WhatAFunctionLeavesOfABodyComesToNoOther) {
  World world;
  world.host.add("early", [](function::Invocation& call) {
    EXPECT_TRUE(call.response.respond(200, {}, "early").ok());
    return ended(InvokeEnd::kAnswered);
  });
  world.host.add("read", [](function::Invocation& call) {
    std::string all;
    char piece[10'000];
    while (true) {
      const absl::StatusOr<std::size_t> n = call.body.read(piece, sizeof piece);
      if (!n.ok() || *n == 0) break;
      all.append(piece, *n);
    }
    EXPECT_TRUE(call.response.respond(200, {}, all).ok());
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  for (const char letter : {'a', 'b', 'c'}) {
    const std::string request = with_body("POST", "/function/early", std::string(200'000, 'x'));
    client.send(request.substr(0, 50'000));
    EXPECT_EQ(client.receive().body, "early");
    client.send(request.substr(50'000));
    const std::string body(100'000, letter);
    const Reply reply = client.ask(with_body("POST", "/function/read", body));
    EXPECT_TRUE(reply.body == body) << reply.body.size() << " bytes, beginning with " << reply.body.substr(0, 10);
  }
}

TEST(GatewayCalls, ChunkedBodiesWholeAndInPieces) {
  World world;
  world.host.add("echo", echo);
  Client client = world.client();
  const std::string head = "POST /function/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(client.ask(head + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: ignored\r\n\r\n").body, "abcde");
  client.send(head);
  client.send("3\r\nab");
  client.send("c\r\n0\r");
  client.send("\n\r\n");
  EXPECT_EQ(client.receive().body, "abc");
}

TEST(GatewayCalls, ExpectContinueIsAnsweredBeforeTheBody) {
  World world;
  world.host.add("echo", echo);
  Client client = world.client();
  client.send("POST /function/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  EXPECT_EQ(client.ask("hi").body, "hi");
  // Of a function that is not there nothing is to be sent.
  client.send("POST /function/nobody HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 404);
  EXPECT_TRUE(client.ends());
}

TEST(GatewayCalls, PipelinedRequestsAreAnsweredInOrder) {
  World world;
  world.host.add("echo", echo);
  Client client = world.client();
  std::string all;
  for (int i = 0; i < 50; ++i) all += with_body("POST", "/function/echo", std::to_string(i));
  client.send(all);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.receive().body, std::to_string(i));
}

TEST(GatewayCalls, AnAbortedCallIsCancelledAndAPipelinedOneIsNot) {
  World world;
  std::atomic<int> reason{-1};
  std::mutex mutex;
  std::condition_variable changed;
  bool running = false;
  world.host.add("slow", [&](function::Invocation& call) {
    std::unique_lock lock(mutex);
    running = true;
    changed.notify_all();
    const function::Cancellation::Subscription on(call.cancellation, [&] { changed.notify_all(); });
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return call.cancellation.cancelled(); });
    reason = static_cast<int>(call.cancellation.reason());
    changed.notify_all();
    return ended(InvokeEnd::kCancelled);
  });
  {
    Client client = world.client();
    client.send(get("/function/slow"));
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return running; }));
  }
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return reason >= 0; }));
  EXPECT_EQ(reason, static_cast<int>(function::CancelReason::kClientGone));
}

TEST(GatewayCalls, ABrokenResponseEndsTheConnectionWithoutItsLastChunk) {
  World world;
  world.host.add("broken", [](function::Invocation& call) {
    EXPECT_TRUE(call.response.begin(200, {}, std::nullopt).ok());
    EXPECT_TRUE(call.response.write("half").ok());
    return ended(InvokeEnd::kBroken);
  });
  world.host.add("short", [](function::Invocation& call) {
    EXPECT_TRUE(call.response.begin(200, {}, 10).ok());
    EXPECT_TRUE(call.response.write("half").ok());
    return ended(InvokeEnd::kAnswered);
  });
  for (const std::string name : {"broken", "short"}) {
    const Reply reply = world.client().ask(get("/function/" + name));
    EXPECT_EQ(reply.status, 200);
    EXPECT_FALSE(reply.whole) << name;
  }
}

TEST(GatewayCalls, AFunctionCannotWriteBadHeadersOrTooMuch) {
  World world;
  world.host.add("bad", [](function::Invocation& call) {
    const absl::Status status = call.response.respond(200, {{"X-A", "1\r\nX-B: 2"}}, "x");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return ended(InvokeEnd::kFailed, "bad header");
  });
  world.host.add("much", [](function::Invocation& call) {
    EXPECT_TRUE(call.response.begin(200, {}, 2).ok());
    EXPECT_EQ(call.response.write("abc").code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(call.response.write("ab").ok());
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  EXPECT_EQ(client.ask(get("/function/bad")).status, 500);
  EXPECT_EQ(client.ask(get("/function/much")).body, "ab");
}

TEST(GatewayCalls, Http10ClientsGetWhatTheyCanRead) {
  World world;
  world.host.add("echo", echo);
  world.host.add("stream", [](function::Invocation& call) {
    EXPECT_TRUE(call.response.begin(200, {}, std::nullopt).ok());
    EXPECT_TRUE(call.response.write("one ").ok());
    EXPECT_TRUE(call.response.write("two").ok());
    return ended(InvokeEnd::kAnswered);
  });
  Client client = world.client();
  const Reply kept = client.ask("GET /function/echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.header("Connection"), "keep-alive");
  const Reply reply = client.ask("GET /function/stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(reply.header("Transfer-Encoding"), "");
  EXPECT_EQ(reply.body, "one two");
}

}  // namespace
}  // namespace orla::node::gateway_test
