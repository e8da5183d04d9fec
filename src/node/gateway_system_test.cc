// The system API, authentication, the asynchronous seam and the metrics, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "node/gateway_route.h"
#include "node/gateway_test_host.h"

namespace orla::node::gateway_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GatewaySystem, FunctionsAreDeployedChangedListedAndRemoved) {
  World world;
  Client client = world.client();
  EXPECT_EQ(client.ask(get("/system/functions")).body, "[]\n");
  const std::string deployment = json({{"service", "f"},
                                       {"image", "native/echo"},
                                       {"envProcess", "cat"},
                                       {"envVars", {{"a", "b"}}},
                                       {"labels", {{"l", "1"}}},
                                       {"annotations", {{"n", "2"}}},
                                       {"secrets", {"s"}},
                                       {"constraints", {"c"}},
                                       {"limits", {{"memory", "64Mi"}, {"cpu", "500m"}}},
                                       {"readOnlyRootFilesystem", true},
                                       {"registryAuth", "ignored"},
                                       {"network", "ignored"},
                                       {"unknown", {1, 2}}})
                                     .dump();
  EXPECT_EQ(client.ask(with_body("PUT", "/system/functions", deployment)).status, 404);
  EXPECT_EQ(client.ask(with_body("POST", "/system/functions", deployment)).status, 202);
  EXPECT_EQ(client.ask(with_body("POST", "/system/functions", deployment)).status, 409);
  EXPECT_EQ(client.ask(with_body("PUT", "/system/functions", deployment)).status, 202);
  const json list = json::parse(client.ask(get("/system/functions")).body);
  ASSERT_EQ(list.size(), 1u);
  const json& f = list[0];
  EXPECT_EQ(f["name"], "f");
  EXPECT_EQ(f["namespace"], "openfaas-fn");
  EXPECT_EQ(f["image"], "native/echo");
  EXPECT_EQ(f["envProcess"], "cat");
  EXPECT_EQ(f["envVars"], json({{"a", "b"}}));
  EXPECT_EQ(f["labels"], json({{"l", "1"}}));
  EXPECT_EQ(f["annotations"], json({{"n", "2"}}));
  EXPECT_EQ(f["secrets"], json({"s"}));
  EXPECT_EQ(f["limits"], json({{"memory", "64Mi"}, {"cpu", "500m"}}));
  EXPECT_EQ(f["readOnlyRootFilesystem"], true);
  EXPECT_EQ(f["invocationCount"], 0);
  EXPECT_EQ(f["replicas"], 1);
  EXPECT_EQ(f["availableReplicas"], 1);
  EXPECT_EQ(f["createdAt"], "2001-09-09T01:46:40Z");
  EXPECT_EQ(client.ask(get("/system/functions?namespace=other")).body, "[]\n");
  const json usage = json::parse(client.ask(get("/system/function/f?usage=1")).body)["usage"];
  EXPECT_EQ(usage, json({{"cpu", 500.0}, {"totalMemoryBytes", 4096}}));
  EXPECT_EQ(client.ask(get("/system/function/g")).status, 404);
  EXPECT_EQ(client.ask(with_body("POST", "/system/scale-function/f", R"({"serviceName":"f","replicas":3})")).status,
            202);
  EXPECT_EQ(json::parse(client.ask(get("/system/function/f")).body)["replicas"], 3);
  EXPECT_EQ(client.ask(with_body("POST", "/system/scale-function/g", R"({"replicas":3})")).status, 404);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/functions", R"({"functionName":"f"})")).status, 202);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/functions", R"({"functionName":"f"})")).status, 404);
}

TEST(GatewaySystem, WhatIsWrongWithARequestIsNamed) {
  World world;
  Client client = world.client();
  const std::vector<std::tuple<std::string, std::string, std::string, std::string>> cases = {
      {"POST", "/system/functions", "", "no body"},
      {"POST", "/system/functions", "{", "not JSON"},
      {"POST", "/system/functions", "[]", "not a JSON object"},
      {"POST", "/system/functions", R"({"image":"native/echo"})", "service"},
      {"POST", "/system/functions", R"({"service":"f"})", "image"},
      {"POST", "/system/functions", R"({"service":"F_","image":"native/echo"})", "service"},
      {"POST", "/system/functions", R"({"service":"f","image":"refused"})", "image"},
      {"POST", "/system/functions", R"({"service":"f","image":"native/echo","namespace":"x"})", "namespace"},
      {"POST", "/system/functions", R"({"service":"f","image":"native/echo","envVars":{"a":1}})", "envVars.a"},
      {"POST", "/system/functions", R"({"service":"f","image":"native/echo","labels":[]})", "labels"},
      {"DELETE", "/system/functions", "{}", "functionName"},
      {"POST", "/system/scale-function/f", R"({"replicas":-1})", "replicas"},
      {"POST", "/system/scale-function/f", R"({"replicas":1,"serviceName":"g"})", "serviceName"},
      {"POST", "/system/secrets", R"({"name":"../x","value":"v"})", "name"},
      {"POST", "/system/secrets", R"({"name":"x"})", "value"},
      {"POST", "/system/secrets", R"({"name":"x","rawValue":"*"})", "rawValue"},
      {"POST", "/system/alert", R"({"alerts":1})", "alerts"},
  };
  for (const auto& [method, path, body, text] : cases) {
    const Reply reply = client.ask(with_body(method, path, body));
    EXPECT_EQ(reply.status, 400) << path << body;
    EXPECT_THAT(reply.body, HasSubstr(text)) << path << body;
    EXPECT_LT(reply.body.size(), 200u);
  }
  EXPECT_EQ(client.ask(with_body("PATCH", "/system/functions", "{}")).status, 405);
  EXPECT_EQ(client.ask(get("/system/nothing")).status, 404);
}

TEST(GatewaySystem, SecretsAreNeverShown) {
  World world;
  Client client = world.client();
  EXPECT_EQ(client.ask(with_body("POST", "/system/secrets", R"({"name":"a","value":"hidden"})")).status, 201);
  EXPECT_EQ(client.ask(with_body("POST", "/system/secrets", R"({"name":"a","value":"hidden"})")).status, 409);
  EXPECT_EQ(client.ask(with_body("POST", "/system/secrets", R"({"name":"b","rawValue":"AAH/"})")).status, 201);
  EXPECT_EQ(world.host.secret_values["b"], std::string("\0\x01\xff", 3));
  EXPECT_EQ(client.ask(get("/system/secrets")).body,
            "[{\"name\":\"a\",\"namespace\":\"openfaas-fn\"},{\"name\":\"b\",\"namespace\":\"openfaas-fn\"}]\n");
  EXPECT_EQ(client.ask(with_body("PUT", "/system/secrets", R"({"name":"a","value":"new"})")).status, 202);
  EXPECT_EQ(client.ask(with_body("PUT", "/system/secrets", R"({"name":"c","value":"new"})")).status, 404);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/secrets", R"({"name":"a"})")).status, 202);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/secrets", R"({"name":"a"})")).status, 404);
}

TEST(GatewaySystem, LogsAreLinesOfJsonAndCanBeFollowed) {
  World world;
  world.host.add("f", echo);
  world.host.log("f", "one");
  world.host.log("f", "two");
  Client client = world.client();
  const Reply all = client.ask(get("/system/logs?name=f&tail=-1&follow=false"));
  EXPECT_EQ(all.header("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(all.header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(all.body,
            "{\"instance\":\"f-1\",\"name\":\"f\",\"namespace\":\"openfaas-fn\",\"text\":\"one\",\"timestamp\":"
            "\"2001-09-09T01:46:40Z\"}\n"
            "{\"instance\":\"f-1\",\"name\":\"f\",\"namespace\":\"openfaas-fn\",\"text\":\"two\",\"timestamp\":"
            "\"2001-09-09T01:46:40Z\"}\n");
  for (const std::string bad : {"", "name=", "name=f&tail=x", "name=f&follow=maybe", "name=f&since=yesterday"}) {
    EXPECT_EQ(client.ask(get("/system/logs?" + bad)).status, 422) << bad;
  }
  EXPECT_EQ(client.ask(get("/system/logs?name=g")).status, 404);

  Client follower = world.client();
  follower.send(get("/system/logs?name=f&tail=1&follow=1"));
  std::string seen;
  while (seen.find("\"two\"") == std::string::npos) seen += follower.some();
  EXPECT_THAT(seen, Not(HasSubstr("\"one\"")));
  world.host.log("f", "three");
  while (seen.find("\"three\"") == std::string::npos) seen += follower.some();
}

TEST(GatewaySystem, NamespacesInfoAndAlerts) {
  GatewaySettings settings;
  settings.namespaces = {"dev"};
  World world(settings);
  world.host.add("f", echo);
  Client client = world.client();
  EXPECT_EQ(client.ask(get("/system/namespaces")).body, "[\"openfaas-fn\",\"dev\"]\n");
  EXPECT_EQ(client.ask(get("/system/namespace/dev")).status, 200);
  EXPECT_EQ(client.ask(get("/system/namespace/other")).status, 404);
  EXPECT_EQ(client.ask(with_body("POST", "/system/namespace/", R"({"name":"x"})")).status, 501);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/namespace/dev", "{}")).status, 501);
  const json info = json::parse(client.ask(get("/system/info")).body);
  EXPECT_EQ(info["provider"]["provider"], "orla");
  EXPECT_TRUE(info["version"]["release"].is_string());
  EXPECT_TRUE(info["arch"].is_string());
  const Reply alert = client.ask(with_body(
      "POST", "/system/alert",
      R"({"alerts":[{"status":"firing","labels":{"function_name":"f.openfaas-fn"}},{"status":"resolved","labels":{"function_name":"g"}}]})"));
  EXPECT_EQ(alert.status, 500);
  EXPECT_EQ(alert.body, "[1] no such function\n");
  EXPECT_THAT(world.host.alerts, ElementsAre("f firing"));
}

TEST(GatewayAuth, GuardsTheSystemAndThePageWhateverThePathLooksLike) {
  const auto folder = base::TemporaryDirectory::create("gateway-auth");
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "basic-auth-user", "admin\n").ok());
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "basic-auth-password", "secret\n").ok());
  GatewaySettings settings;
  settings.auth = folder->path();
  World world(settings);
  world.host.add("echo", echo);
  Client client = world.client();
  const Reply refused = client.ask(get("/system/functions"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("WWW-Authenticate"), "Basic realm=\"Restricted\"");
  EXPECT_EQ(refused.body, "invalid credentials\n");
  const std::string good = "Authorization: Basic YWRtaW46c2VjcmV0\r\n";  // admin:secret
  EXPECT_EQ(client.ask(get("/system/functions", good)).status, 200);
  EXPECT_EQ(client.ask(get("/system/functions", "Authorization: Basic YWRtaW46c2VjcmVU\r\n")).status, 401);
  EXPECT_EQ(client.ask(get("/system/functions", "Authorization: Bearer secret\r\n")).status, 401);
  EXPECT_EQ(client.ask(get("/ui/")).status, 401);
  EXPECT_EQ(client.ask(get("/ui/", good)).status, 200);
  for (const std::string open : {"/function/echo", "/healthz"}) EXPECT_EQ(client.ask(get(open)).status, 200);
  EXPECT_EQ(client.ask(get("/")).status, 307);
  for (const std::string path :
       {"/function/../system/functions", "//system/functions", "/./system/functions", "/%73ystem/functions",
        "/system%2ffunctions", "/System/functions", "/healthz/../system/functions", "/function/echo/../../system"}) {
    const Reply reply = client.ask(get(path));
    EXPECT_TRUE(reply.status == 404 || reply.status == 400 || reply.body.empty()) << path << reply.status;
  }
  for (const std::string path : {"/system", "/system/", "/system//functions", "/system/../system/functions", "/ui/x"}) {
    EXPECT_EQ(client.ask(get(path)).status, 401) << path;
  }
}

TEST(GatewayAuth, ComparesWhatIsGivenByteForByte) {
  const auto folder = base::TemporaryDirectory::create("gateway-auth");
  ASSERT_TRUE(folder.ok());
  // A password with a colon and letters beyond ASCII, in files as editors of any system write them.
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "basic-auth-user", "admin\r\n").ok());
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "basic-auth-password", "s:\u00e9 \n\n").ok());
  GatewaySettings settings;
  settings.auth = folder->path();
  World world(settings);
  Client client = world.client();
  const std::pair<std::string, int> cases[] = {
      {"Basic YWRtaW46czrDqSA=", 200},  // admin:s:\u00e9 and a blank
      {"basic YWRtaW46czrDqSA=", 200},
      {"BASIC YWRtaW46czrDqSA=", 200},
      {"Basic YWRtaW46czrDqQ==", 401},  // without the blank
      {"Basic YWRtaW46", 401},          // admin:
      {"Basic OnM6w6kg", 401},          // :s:\u00e9
      {"Basic", 401},
      {"Basic ", 401},
      {"Basic :", 401},
      {"Basic *not base64*", 401},
      {"Bearer YWRtaW46czrDqSA=", 401},
      {"YWRtaW46czrDqSA=", 401},
      {"Digest username=\"admin\"", 401},
  };
  for (const auto& [value, status] : cases) {
    EXPECT_EQ(client.ask(get("/system/functions", "Authorization: " + value + "\r\n")).status, status) << value;
  }
  const std::string twice = "Authorization: Basic AAAA\r\nAuthorization: Basic YWRtaW46czrDqSA=\r\n";
  EXPECT_EQ(client.ask(get("/system/functions", twice)).status, 401) << "the first one counts";
}

TEST(GatewayAuth, MissingFilesAreAnError) {
  World world;
  GatewaySettings settings;
  settings.address = "127.0.0.1:0";
  settings.auth = "/nowhere";
  const auto gateway = Gateway::start(settings, world.host, nullptr, world.clock, world.log);
  ASSERT_FALSE(gateway.ok());
  EXPECT_THAT(std::string(gateway.status().message()), HasSubstr("basic-auth-user"));
}

class FakeAsync final : public AsyncCalls {
 public:
  void accept(AsyncCall call, std::function<void(const absl::Status&)> done) override {
    calls.push_back(call);
    done(next);
  }
  absl::Status cancel(std::string_view id) override {
    return id == "known" ? absl::OkStatus() : absl::NotFoundError("no such call");
  }
  absl::StatusOr<std::vector<store::DeadCall>> dead(const function::FunctionKey* key) override {
    if (key != nullptr && key->text() != "f.openfaas-fn") return std::vector<store::DeadCall>{};
    return std::vector<store::DeadCall>{{"a/b", "f.openfaas-fn", 3, 502, "broke",
                                         base::WallTime(std::chrono::seconds(1)),
                                         base::WallTime(std::chrono::seconds(2)), 5}};
  }
  absl::Status replay(std::string_view id) override { return cancel(id); }
  absl::Status forget(std::string_view id) override { return id == "a/b" ? absl::OkStatus() : cancel(id); }
  std::vector<AsyncCall> calls;
  absl::Status next;
};

TEST(GatewayAsync, DeadLettersAreListedReplayedAndForgotten) {
  FakeAsync async;
  World world({}, &async);
  Client client = world.client();
  EXPECT_EQ(client.ask(get("/system/dead-letters")).body,
            "[{\"attempts\":3,\"bytes\":5,\"callId\":\"a/b\",\"firstAt\":\"1970-01-01T00:00:01Z\",\"function\":\"f\","
            "\"lastAt\":\"1970-01-01T00:00:02Z\",\"lastError\":\"broke\",\"lastStatus\":502,"
            "\"namespace\":\"openfaas-fn\"}]\n");
  EXPECT_EQ(client.ask(get("/system/dead-letters?name=g")).body, "[]\n");
  EXPECT_EQ(client.ask(with_body("POST", "/system/dead-letters/known/replay", "")).status, 202);
  EXPECT_EQ(client.ask(with_body("POST", "/system/dead-letters/other/replay", "")).status, 404);
  EXPECT_EQ(client.ask(with_body("POST", "/system/dead-letters/known/again", "")).status, 404);
  EXPECT_EQ(client.ask(get("/system/dead-letters/known/replay")).status, 405);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/dead-letters/a%2Fb", "")).status, 202);
  EXPECT_EQ(client.ask(with_body("DELETE", "/system/dead-letters/other", "")).status, 404);
  World without;
  EXPECT_EQ(without.client().ask(get("/system/dead-letters")).status, 501);
}

TEST(GatewayAsync, CallsAreTakenAndTakenBack) {
  FakeAsync async;
  World world({}, &async);
  world.host.add("f", echo);
  Client client = world.client();
  const Reply taken = client.ask(
      with_body("POST", "/async-function/f/a?b=c", "body", "X-Callback-Url: http://there/x\r\nX-Call-Id: id\r\n"));
  EXPECT_EQ(taken.status, 202);
  EXPECT_EQ(taken.body, "");
  EXPECT_EQ(taken.header("X-Call-Id"), "id");
  EXPECT_NE(taken.header("X-Start-Time"), "");
  EXPECT_NE(taken.header("X-Served-By"), "");
  ASSERT_EQ(async.calls.size(), 1u);
  EXPECT_EQ(async.calls[0].key.text(), "f.openfaas-fn");
  EXPECT_EQ(async.calls[0].head.path, "/a");
  EXPECT_EQ(async.calls[0].head.query, "b=c");
  EXPECT_EQ(async.calls[0].head.call_id, "id");
  EXPECT_EQ(async.calls[0].body, "body");
  EXPECT_EQ(async.calls[0].callback_url, "http://there/x");
  EXPECT_EQ(client.ask(with_body("POST", "/async-function/f", "", "X-Callback-Url: ftp://x\r\n")).status, 400);
  EXPECT_EQ(client.ask(with_body("POST", "/async-function/f", "", "X-Callback-Url:\r\n")).status, 202) << "as none";
  EXPECT_EQ(client.ask(with_body("POST", "/async-function/g", "")).status, 404);
  EXPECT_EQ(client.ask(get("/async-function/f")).status, 405);
  async.next = absl::InternalError("disk");
  const Reply failed = client.ask(with_body("POST", "/async-function/f", ""));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.body, "Error queuing request: disk\n");
  async.next = absl::ResourceExhaustedError("full");
  EXPECT_EQ(client.ask(with_body("POST", "/async-function/f", "")).status, 429);
  EXPECT_EQ(client.ask(with_body("DELETE", "/async-function/known", "")).status, 202);
  EXPECT_EQ(client.ask(with_body("DELETE", "/async-function/other", "")).status, 404);
}

TEST(GatewayMetrics, HaveTheNamesOfTheContract) {
  World world;
  world.host.add("f", echo);
  const std::string text = gateway_metrics(world.host);
  for (const std::string line :
       {"gateway_function_invocation_total{function_name=\"f.openfaas-fn\",code=\"200\"} 2\n",
        "gateway_function_invocation_started{function_name=\"f.openfaas-fn\"} 3\n",
        "gateway_functions_seconds_bucket{function_name=\"f.openfaas-fn\",code=\"200\",le=\"0.25\"} 1\n",
        "gateway_functions_seconds_bucket{function_name=\"f.openfaas-fn\",code=\"200\",le=\"+Inf\"} 2\n",
        "gateway_functions_seconds_sum{function_name=\"f.openfaas-fn\",code=\"200\"} 0.75\n",
        "gateway_service_count{function_name=\"f.openfaas-fn\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace orla::node::gateway_test
