// Black-box cases against a gateway of a real process, most of them from public reports about other platforms: what was
// sent, and what has to come back.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "model/address.h"
#include "tests/gateway_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An http-mode process on raw sockets: the request's path says what it does.
constexpr std::string_view kServer = R"(#!/usr/bin/python3
import os, socket, threading, time
def serve(c):
    data = b''
    while True:
        while b'\r\n\r\n' not in data:
            more = c.recv(65536)
            if not more: return c.close()
            data += more
        head, data = data.split(b'\r\n\r\n', 1)
        path = head.split(b' ')[1]
        if path == b'/ws':
            offered = b'\r\nUpgrade: websocket' in head and b'\r\nConnection: Upgrade' in head
            if offered:
                c.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi ')
                while True:
                    more = c.recv(65536)
                    if not more: return c.close()
                    c.sendall(more.upper())
            c.sendall(b'HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n')
        elif path == b'/early':
            c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nenough')
        elif path == b'/slow':
            time.sleep(20)
        elif path == b'/events':
            c.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n')
            time.sleep(20)
        else:
            c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(head) + head)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', int(os.environ['PORT'])))
s.listen(64)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
)";

// Bytes to a gateway and back.
class Raw {
 public:
  explicit Raw(std::string_view url) {
    const auto where = model::parse_address(url.substr(url.find("//") + 2));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (where.ok()) address.sin_port = htons(where->port);
    socket_ = base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // What comes, up to `end`, the connection's end, or 10 s without anything.
  std::string until(std::string_view end) const {
    std::string all;
    while (all.find(end) == std::string::npos) {
      pollfd look{socket_.get(), POLLIN, 0};
      char block[65536];
      const ssize_t n = ::poll(&look, 1, 10'000) > 0 ? ::recv(socket_.get(), block, sizeof block, 0) : 0;
      if (n <= 0) break;
      all.append(block, static_cast<std::size_t>(n));
    }
    return all;
  }
  void end_sending() const { ::shutdown(socket_.get(), SHUT_WR); }

 private:
  base::FileDescriptor socket_;
};

class Contract : public ::testing::Test {
 protected:
  Contract() : nodes({"namespaces = [\"dev\"]\n", "", ""}) {}
  // With these modules deployed, and the process above among the images.
  void start(const std::vector<std::string>& modules) {
    for (const std::string& name : modules) nodes.module(name);
    nodes.program("raw/server.py", std::string(kServer));
    ASSERT_TRUE(nodes.up());
    for (const std::string& name : modules) nodes.deploy({{"service", name}, {"image", name + ".wasm"}});
  }
  void deploy_raw(json environment = json::object()) {
    environment["mode"] = "http";
    nodes.deploy({{"service", "raw"}, {"image", "raw"}, {"envProcess", "./server.py"}, {"envVars", environment}});
    ASSERT_TRUE(nodes.wait_for_replicas("raw", 1));
  }
  bool nothing_in_flight(const std::string& name) {
    return FleetUnderTest::until(std::chrono::seconds(5), [&] {
      return nodes.metrics().find(fmt::format("orla_function_in_flight{{function_name=\"{}.openfaas-fn\"}} 0\n",
                                              name)) != std::string::npos;
    });
  }
  GatewayFleet nodes;
};

struct Asked {
  std::string method;
  std::string path;
  std::string body;
  int status;
  std::string says;  // within the body
};

TEST_F(Contract, TheSystemApiTakesWhatItShouldAndNamesWhatIsWrong) {
  start({});
  const std::string f = "/system/functions";
  const std::string s = "/system/secrets";
  const auto spec = [](const std::string& more) { return R"({"service":"x","image":"native/echo")" + more + "}"; };
  const std::string deep(100'000, '[');
  const Asked rows[] = {
      {"GET", f, "", 200, "[]"},
      {"GET", f + "?namespace=", "", 200, "[]"},
      {"PUT", f, spec(""), 404, "x.openfaas-fn"},
      {"POST", f,
       spec(R"(,"namespace":null,"envProcess":null,"envVars":null,"constraints":null,"secrets":null,"labels":null,)"
            R"("annotations":null,"limits":null,"requests":null,"readOnlyRootFilesystem":null,"registryAuth":null)"),
       202, ""},
      {"POST", f, spec(""), 409, "already"},
      {"PUT", f, spec(R"(,"unknown":{"a":[1]},"network":"n","limits":{"memory":"","cpu":null})"), 202, ""},
      {"PUT", f, spec(R"(,"labels":{"com.openfaas.scale.min":""})"), 202, ""},
      {"PUT", f, spec(R"(,"labels":{"com.openfaas.scale.min":"5","com.openfaas.scale.max":"2"})"), 400, "scale.min"},
      {"PUT", f, spec(R"(,"labels":{"com.openfaas.scale.min":"1e1"})"), 400, "1e1"},
      {"PUT", f, spec(R"(,"labels":{"com.openfaas.scale.mim":"1"})"), 400, "mim"},
      {"PUT", f, spec(R"(,"labels":{"a":1})"), 400, "labels.a"},
      {"PUT", f, spec(R"(,"readOnlyRootFilesystem":"true")"), 400, "readOnlyRootFilesystem"},
      {"PUT", f, spec(R"(,"limits":{"memory":"128mb"})"), 400, "128mb"},
      {"PUT", f, spec(R"(,"envVars":{"exec_timeout":"5 s"})"), 400, "exec_timeout"},
      {"PUT", f, spec(R"(,"envVars":{"a=b":"c"})"), 400, "a=b"},
      {"PUT", f, spec(R"(,"envVars":{"":"c"})"), 400, "environment variable"},
      {"PUT", f, spec(R"(,"envVars":{"a":"b\u0000c"})"), 400, "NUL"},
      {"PUT", f, spec(R"(,"secrets":["none"])"), 400, "none"},
      {"PUT", f, spec(R"(,"namespace":"nowhere")"), 400, "nowhere"},
      {"POST", f, "", 400, "no body"},
      {"POST", f, "null", 400, "not a JSON object"},
      {"POST", f, deep, 400, "not JSON"},
      {"POST", f, R"({"service":"a.b","image":"native/echo"})", 400, "a.b"},
      {"POST", f, R"({"service":"Up","image":"native/echo"})", 400, "Up"},
      {"POST", f, R"({"service":"a\u0000b","image":"native/echo"})", 400, "lower-case"},
      {"POST", f, fmt::format(R"({{"service":"{}","image":"native/echo"}})", std::string(63, 'a')), 202, ""},
      {"POST", f, fmt::format(R"({{"service":"{}","image":"native/echo"}})", std::string(64, 'a')), 400, "63"},
      {"POST", f, R"({"service":"r","image":"ghcr.io/openfaas/figlet:latest"})", 400, "registry"},
      {"POST", f, R"({"service":"r","image":"../fleet.toml"})", 400, "outside"},
      {"POST", f, R"({"service":"r","image":"/bin/cat"})", 400, "outside"},
      {"POST", f, R"({"service":"r","image":"native/none"})", 400, "native/none"},
      {"PATCH", f, "{}", 405, "POST"},
      {"GET", "/system/function/x?usage=1&namespace=", "", 200, "totalMemoryBytes"},
      {"GET", "/system/function/x?namespace=dev", "", 404, "x.dev"},
      {"POST", "/system/scale-function/x", R"({"serviceName":"x","replicas":1.5})", 400, "replicas"},
      {"POST", "/system/scale-function/x", R"({"serviceName":"x","replicas":"2"})", 400, "replicas"},
      {"POST", "/system/scale-function/x", R"({"replicas":null})", 400, "replicas"},
      {"POST", "/system/scale-function/x", R"({"replicas":4294967295})", 202, ""},
      {"POST", "/system/scale-function/x?namespace=dev", R"({"replicas":1})", 404, "x.dev"},
      {"POST", s, R"({"name":"empty","value":""})", 201, ""},
      {"POST", s, R"({"name":"key","value":"a\nb\n","rawValue":null})", 201, ""},
      {"POST", s, R"({"name":"key","namespace":"dev","value":"other"})", 201, ""},
      {"POST", s, R"({"name":"key","value":"again"})", 409, "key"},
      {"POST", s, R"({"name":"a..b","value":"v"})", 400, "name"},
      {"POST", s, R"({"name":"a b","value":"v"})", 400, "name"},
      {"POST", s, R"({"name":"n"})", 400, "value"},
      {"PUT", f, spec(R"(,"secrets":["key"])"), 202, ""},
      {"DELETE", s, R"({"name":"key"})", 409, "in use"},
      {"PUT", s, R"({"name":"key","value":"new"})", 202, ""},
      {"GET", s, "", 200, R"([{"name":"empty","namespace":"openfaas-fn"},{"name":"key","namespace":"openfaas-fn"}])"},
      {"GET", "/system/logs?name=x&since=1h", "", 422, "since"},
      {"GET", "/system/logs?name=x&tail=x", "", 422, "tail"},
      {"GET", "/system/logs?name=none", "", 404, "none"},
      {"POST", "/system/namespace/", R"({"name":"more"})", 501, "namespaces"},
      {"POST", "/system/alert", R"({"alerts":[],"status":"firing"})", 200, ""},
      {"DELETE", f, "", 400, "no body"},
      {"DELETE", f, "{}", 400, "functionName"},
      {"DELETE", f, R"({"functionName":"x","namespace":""})", 202, ""},
      {"DELETE", f, R"({"functionName":"x"})", 404, "x"},
      {"DELETE", s, R"({"name":"key"})", 202, ""},
  };
  GatewayConnection connection(nodes.url());
  for (const Asked& row : rows) {
    const auto answer = connection.ask(row.method, row.path, row.body);
    ASSERT_TRUE(answer.ok()) << row.method << row.path << answer.status();
    EXPECT_EQ(answer->status, row.status) << row.method << row.path << row.body.substr(0, 200) << answer->body;
    EXPECT_THAT(answer->body, HasSubstr(row.says)) << row.method << row.path << row.body.substr(0, 200);
  }
}

TEST_F(Contract, OddRequestsReachAFunctionAsTheyWereSentOrAreRefused) {
  start({"headers"});
  struct Row {
    std::string request;
    std::string status;
    std::string path{}, query{};
  };
  const auto get = [](const std::string& target, const std::string& more = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + more + "\r\n";
  };
  const Row rows[] = {
      {get("/function/headers"), "200", "/", ""},
      {get("/function/headers?"), "200", "/", ""},
      {get("/function/headers//"), "200", "//", ""},
      {get("/function/headers/a%2Fb/../c/./%00/;x?a=1?b=%23&&c"), "200", "/a%2Fb/../c/./%00/;x", "a=1?b=%23&&c"},
      {get("/function/headers/../../system/functions"), "200", "/../../system/functions", ""},
      {get("http://elsewhere/function/headers/x?y"), "200", "/x", "y"},
      {get("/function/headers.openfaas-fn/x"), "200", "/x", ""},
      {get("/function/headers.dev/x"), "404"},
      {get("/function/Headers"), "404"},
      {get("//function/headers"), "404"},
      {get("/function/"), "400"},
      {get("/function/" + std::string(200, 'a')), "400"},
      {get("/function/a%20b"), "400"},
      {get("/function/headers#x"), "400"},
      {"GET /function/headers HTTP/1.1\r\nHost: a b\r\n\r\n", "400"},
      {"get /function/headers HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "405"},
      {"PROPFIND /function/headers HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "405"},
      {"CONNECT /function/headers HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "405"},
  };
  for (const Row& row : rows) {
    const Raw raw(nodes.url());
    raw.send(row.request);
    const std::string reply = raw.until("there is no such text");
    ASSERT_THAT(reply, StartsWith("HTTP/1.1 " + row.status)) << row.request;
    if (row.path.empty()) continue;
    const json seen = json::parse(reply.substr(reply.find("\r\n\r\n") + 4), nullptr, false);
    ASSERT_TRUE(seen.is_object()) << reply;
    EXPECT_EQ(seen["path"], row.path);
    EXPECT_EQ(seen["query"], row.query);
  }
}

TEST_F(Contract, AWebSocketReachesAProcess) {
  start({"echo"});
  deploy_raw();
  const std::string offer = " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  const Raw raw(nodes.url());
  raw.send("GET /function/raw/ws" + offer);
  EXPECT_THAT(raw.until("hi "), AllOf(StartsWith("HTTP/1.1 101 Switching Protocols\r\n"), HasSubstr("\r\n\r\nhi ")));
  for (const std::string word : {"one", "two"}) {
    raw.send(word);
    EXPECT_EQ(raw.until(word == "one" ? "ONE" : "TWO"), word == "one" ? "ONE" : "TWO");
  }
  raw.end_sending();
  EXPECT_EQ(raw.until("never"), "") << "the function's end is the client's";
  EXPECT_TRUE(nothing_in_flight("raw"));
  EXPECT_THAT(nodes.metrics(), HasSubstr("{function_name=\"raw.openfaas-fn\",code=\"101\"} 1\n"));
  {
    const Raw leaves(nodes.url());
    leaves.send("GET /function/raw/ws" + offer);
    leaves.until("hi ");
  }
  EXPECT_TRUE(nothing_in_flight("raw")) << "a client that goes ends its call";
  EXPECT_EQ(nodes.ask("GET", "/function/raw/ws").status, 426) << "without an offer";
  const Raw ordinary(nodes.url());
  ordinary.send("GET /function/echo" + offer);
  EXPECT_THAT(ordinary.until("\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Contract, AnAnswerBeforeTheBodysEndFreesTheReplica) {
  start({});
  deploy_raw();
  const Raw raw(nodes.url());
  raw.send("POST /function/raw/early HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\nonly this");
  EXPECT_THAT(raw.until("enough"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(nothing_in_flight("raw"));
}

TEST_F(Contract, EventsComeAtOnceAndAClientThatGoesEndsThem) {
  start({});
  deploy_raw();
  {
    const Raw raw(nodes.url());
    raw.send("GET /function/raw/events HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n");
    EXPECT_THAT(raw.until("data: 1\n\n"), HasSubstr("data: 1\n\n"));
  }
  EXPECT_TRUE(nothing_in_flight("raw"));
}

TEST_F(Contract, XTimeoutLowersAndNeverRaises) {
  start({"slow"});
  deploy_raw({{"exec_timeout", "1s"}});
  nodes.deploy({{"service", "slow"}, {"image", "slow.wasm"}, {"envVars", {{"exec_timeout", "1s"}}}});
  struct Row {
    std::string path, timeout, says;
  };
  const Row rows[] = {
      {"/function/slow?ms=20000", "200ms", "timed out after 0.2 s"},
      {"/function/slow?ms=20000", "1h", "timed out after 1 s"},
      {"/function/slow?ms=20000", "0", "timed out after 1 s"},
      {"/function/raw/slow", "200ms", "exec_timeout of 200 ms"},
      {"/function/raw/slow", "1h", "exec_timeout of 1000 ms"},
  };
  for (const Row& row : rows) {
    const GatewayAnswer answer = nodes.ask("GET", row.path, "", {{"X-Timeout", row.timeout}});
    EXPECT_EQ(answer.status, 504) << row.path << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(row.says)) << row.path;
  }
}

TEST_F(Contract, LinesOfALogAreKeptWhatTheyAre) {
  start({});
  nodes.program("logger",
                "#!/bin/sh\nprintf 'caf\\351 \\033[31m\\r\\n\\n{\"a\": \"b\"}\\n' >&2\n"
                "head -c 200000 /dev/zero | tr '\\0' y >&2\nprintf '\\nno end' >&2\n");
  nodes.deploy({{"service", "logger"}, {"image", "logger"}, {"envVars", {{"prefix_logs", "false"}}}});
  ASSERT_EQ(nodes.ask("GET", "/function/logger").status, 200);
  std::vector<std::string> texts;
  for (const std::string& line : lines_of(nodes.ask("GET", "/system/logs?name=logger&tail=-1").body)) {
    const json one = json::parse(line, nullptr, false);
    ASSERT_TRUE(one.is_object()) << line.substr(0, 200);
    if (!one["text"].get<std::string>().starts_with("orla:")) texts.push_back(one["text"]);
  }
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_EQ(texts[0], "caf\xef\xbf\xbd \x1b[31m");
  EXPECT_EQ(texts[1], "");
  EXPECT_EQ(texts[2], "{\"a\": \"b\"}");
  EXPECT_EQ(texts[3].size(), 64u * 1024) << "with the words that say it was cut";
  EXPECT_THAT(texts[3], ::testing::EndsWith("y ... (line cut)"));
  EXPECT_EQ(texts[4], "no end");
}

}  // namespace
}  // namespace orla::behaviour
