// `orla fn` against a small server that keeps what it was asked and answers what the test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using nlohmann::json;
using ::testing::HasSubstr;

struct Asked {
  std::string line;  // "POST /system/functions"
  std::string body;
  std::string authorization;
  std::string content_type;
  std::string callback;
};

class FakeGateway {
 public:
  FakeGateway() : acceptor_(io_, {asio::ip::make_address("127.0.0.1"), 0}), thread_([this] { serve(); }) {}
  ~FakeGateway() {
    // A connection that asks for nothing ends the loop.
    asio::io_context io;
    asio::ip::tcp::socket last(io);
    beast::error_code error;
    last.connect(acceptor_.local_endpoint(), error);
    last.close(error);
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
  void answer(const std::string& line, int status, const std::string& body) {
    const std::lock_guard lock(mutex_);
    answers_[line] = {status, body};
  }
  std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void serve() {
    while (true) {
      beast::error_code error;
      asio::ip::tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      beast::flat_buffer buffer;
      http::request<http::string_body> request;
      if (!error) http::read(socket, buffer, request, error);
      if (error) return;
      const auto text = [&](beast::string_view name) { return std::string(request[name]); };
      Asked asked{std::string(request.method_string()) + " " + std::string(request.target()), request.body(),
                  text("Authorization"), text("Content-Type"), text("X-Callback-Url")};
      http::response<http::string_body> response(http::status::not_found, 11);
      {
        const std::lock_guard lock(mutex_);
        if (const auto found = answers_.find(asked.line); found != answers_.end()) {
          response.result(static_cast<unsigned>(found->second.first));
          response.body() = found->second.second;
        }
        asked_.push_back(std::move(asked));
      }
      response.set("X-Call-Id", "id-1");
      response.keep_alive(false);
      response.prepare_payload();
      http::write(socket, response, error);
    }
  }

  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<int, std::string>> answers_;
  std::vector<Asked> asked_;
  std::jthread thread_;
};

base::Finished fn(const FakeGateway& gateway, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "fn");
  arguments.insert(arguments.end(), {"--gateway", gateway.url()});
  return run_program(std::move(arguments));
}

TEST(FnCommand, DeployUpdatesOrCreates) {
  FakeGateway gateway;
  gateway.answer("POST /system/functions", 202, "");
  const base::Finished ended =
      fn(gateway, {"deploy", "mods/echo.wasm", "--env", "a=b=c", "--env", "d=", "--label", "com.openfaas.scale.max=4",
                   "--secret", "s", "--fprocess", "cat", "--memory-limit", "64Mi"});
  EXPECT_EQ(ended.status.code, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr(gateway.url() + "/function/echo"));
  const std::vector<Asked> asked = gateway.asked();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].line, "PUT /system/functions");
  EXPECT_EQ(asked[1].line, "POST /system/functions");
  EXPECT_EQ(json::parse(asked[1].body),
            json::parse(R"({"service":"echo","image":"mods/echo.wasm","envVars":{"a":"b=c","d":""},"secrets":["s"],
                           "labels":{"com.openfaas.scale.max":"4"},"envProcess":"cat","limits":{"memory":"64Mi"}})"));
  gateway.answer("PUT /system/functions", 400, "image: no such file\n");
  const base::Finished refused = fn(gateway, {"deploy", "x"});
  EXPECT_EQ(refused.status.code, 4);
  EXPECT_THAT(refused.errors, HasSubstr("image: no such file"));
  EXPECT_EQ(fn(gateway, {"deploy", "x", "--env", "novalue"}).status.code, 2);
  EXPECT_EQ(fn(gateway, {"deploy"}).status.code, 2);
}

TEST(FnCommand, ListAndDescribe) {
  FakeGateway gateway;
  gateway.answer("GET /system/functions?namespace=ns", 200,
                 R"([{"name":"echo","image":"echo.wasm","invocationCount":7,"replicas":2,"availableReplicas":1}])");
  const base::Finished listed = fn(gateway, {"list", "-n", "ns"});
  EXPECT_EQ(listed.output, "FUNCTION  IMAGE      CALLS  REPLICAS  READY\necho      echo.wasm  7      2         1\n");
  EXPECT_EQ(json::parse(fn(gateway, {"list", "-n", "ns", "--json"}).output).at(0).at("name"), "echo");
  gateway.answer("GET /system/function/echo?usage=1", 200, R"({"name":"echo","labels":{"a":"b"},"replicas":1})");
  EXPECT_THAT(fn(gateway, {"describe", "echo"}).output, HasSubstr("a=b"));
  EXPECT_EQ(fn(gateway, {"describe", "other"}).status.code, 4);
}

TEST(FnCommand, Invoke) {
  FakeGateway gateway;
  gateway.answer("PUT /function/echo/a/b?q=1%20%26", 200, "answered");
  const base::Finished called = fn(gateway, {"invoke", "echo", "-X", "PUT", "--path", "a/b", "--query", "q=1 &",
                                             "--data", "hello", "--content-type", "text/x"});
  EXPECT_EQ(called.status.code, 0) << called.errors;
  EXPECT_EQ(called.output, "answered");
  EXPECT_THAT(called.errors, HasSubstr("200 OK"));
  EXPECT_EQ(gateway.asked().at(0).body, "hello");
  EXPECT_EQ(gateway.asked().at(0).content_type, "text/x");

  gateway.answer("POST /function/code", 418, "teapot");
  const base::Finished teapot = fn(gateway, {"invoke", "code", "--data", ""});
  EXPECT_EQ(teapot.status.code, 1);
  EXPECT_EQ(teapot.output, "teapot");
  const json shown = json::parse(fn(gateway, {"invoke", "code", "--data", "", "--json"}).output);
  EXPECT_EQ(shown.at("status"), 418);
  EXPECT_EQ(shown.at("body"), "teapot");

  gateway.answer("POST /async-function/echo", 202, "");
  const base::Finished queued =
      fn(gateway, {"invoke", "echo", "--data", "x", "--async", "--callback", "http://10.0.0.1/done"});
  EXPECT_EQ(queued.output, "id-1\n");
  EXPECT_EQ(gateway.asked().back().callback, "http://10.0.0.1/done");
  EXPECT_EQ(run_program({"fn", "invoke", "echo", "--gateway", "http://127.0.0.1:1", "--data", ""}).status.code, 4);
  EXPECT_EQ(run_program({"fn", "invoke", "echo", "--gateway", "https://127.0.0.1:1"}).status.code, 2);
}

TEST(FnCommand, LogsScaleRemoveSecretsAndDeadLetters) {
  FakeGateway gateway;
  FleetUnderTest files("");
  files.write("password", "pw\n");
  const std::string password = (files.directory() / "password").string();
  gateway.answer("GET /system/logs?name=echo&tail=2", 200,
                 "{\"timestamp\":\"T\",\"instance\":\"echo-1\",\"text\":\"a\"}\n"
                 "{\"timestamp\":\"U\",\"instance\":\"echo-1\",\"text\":\"b\"}\n");
  EXPECT_EQ(fn(gateway, {"logs", "echo", "--tail", "2", "--password-file", password}).output,
            "T echo-1 a\nU echo-1 b\n");
  EXPECT_EQ(gateway.asked().back().authorization, "Basic YWRtaW46cHc=");

  gateway.answer("POST /system/scale-function/echo", 202, "");
  gateway.answer("GET /system/function/echo", 200, R"({"name":"echo","replicas":5})");
  EXPECT_THAT(fn(gateway, {"scale", "echo", "9"}).output, HasSubstr("5 replicas wanted (asked for 9"));
  gateway.answer("DELETE /system/functions", 202, "");
  EXPECT_EQ(fn(gateway, {"remove", "echo"}).output, "Removed echo\n");
  EXPECT_EQ(json::parse(gateway.asked().back().body), json::parse(R"({"functionName":"echo"})"));

  gateway.answer("POST /system/secrets", 201, "");
  EXPECT_EQ(fn(gateway, {"secret", "create", "db", "--from-file", password}).output, "Created secret db\n");
  EXPECT_EQ(json::parse(gateway.asked().back().body), json::parse(R"({"name":"db","rawValue":"cHcK"})"));
  EXPECT_EQ(fn(gateway, {"secret", "remove", "db"}).status.code, 4);

  gateway.answer("GET /system/dead-letters?name=echo", 200,
                 R"([{"callId":"c1","function":"echo","attempts":10,"lastStatus":500,"lastError":"e","bytes":3}])");
  EXPECT_THAT(fn(gateway, {"dead", "list", "--function", "echo"}).output, HasSubstr("c1    echo      10"));
  gateway.answer("POST /system/dead-letters/c1/replay", 202, "");
  EXPECT_EQ(fn(gateway, {"dead", "replay", "c1"}).output, "Queued again: c1\n");
}

TEST(FnCommand, NewWritesAFolderThatBuilds) {
  const absl::StatusOr<base::TemporaryDirectory> place = base::TemporaryDirectory::create("orla-fn");
  ASSERT_TRUE(place.ok());
  const auto run = [&](std::vector<std::string> arguments) {
    base::ProcessSpec spec;
    spec.argv = {program(), "fn"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.directory = place->path().string();
    return base::run_to_end(spec, std::chrono::seconds(60)).value();
  };
  for (const std::string language : {"c", "cpp"}) {
    const std::string name = "hello-" + language;
    ASSERT_EQ(run({"new", name, "--lang", language}).status.code, 0);
    const base::Finished built = run({"build", name});
    ASSERT_EQ(built.status.code, 0) << built.errors;
    EXPECT_EQ(built.errors, "") << "the template compiles without a warning";
    const std::string module = base::read_file(place->path() / name / (name + ".wasm"), 1 << 24).value();
    EXPECT_EQ(module.substr(0, 4), std::string("\0asm", 4));
    EXPECT_THAT(module, HasSubstr("orla_handle"));
  }
  for (const std::string language : {"python", "js"}) {
    ASSERT_EQ(run({"new", language, "--lang", language}).status.code, 0);
    EXPECT_THAT(base::read_file(place->path() / language / "README.md", 1 << 20).value(),
                HasSubstr("orla fn deploy " + language + " --env mode=http"));
    EXPECT_EQ(run({"build", language}).status.code, 2);
  }
  const base::Finished again = run({"new", "python", "--lang", "js"});
  EXPECT_EQ(again.status.code, 2);
  EXPECT_THAT(again.errors, HasSubstr("exists already"));
  EXPECT_FALSE(base::exists(place->path() / "python" / "handler.js"));
  EXPECT_EQ(run({"new", "Not_A_Label", "--lang", "c"}).status.code, 2);
  EXPECT_EQ(run({"new", "x", "--lang", "cobol"}).status.code, 2);
}

}  // namespace
}  // namespace orla::behaviour
