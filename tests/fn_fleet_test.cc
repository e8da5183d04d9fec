// `orla fn` and the functions that come with Orla, against a gateway of a real fleet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "base/clock.h"
#include "tests/gateway_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

bool there_is(const std::string& tool) {
  for (const std::string folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
    if (base::exists(folder + tool)) return true;
  }
  return false;
}

class FnFleet : public ::testing::Test {
 protected:
  base::Finished fn(std::vector<std::string> arguments, int expected_code = 0) const {
    arguments.insert(arguments.begin(), "fn");
    if (arguments[1] != "new" && arguments[1] != "build") {
      arguments.insert(arguments.end(), {"--gateway", nodes.url()});
    }
    base::ProcessSpec spec;
    spec.argv = std::move(arguments);
    spec.argv.insert(spec.argv.begin(), program());
    spec.directory = nodes.images().string();
    absl::StatusOr<base::Finished> ended = base::run_to_end(spec, seconds(60));
    EXPECT_TRUE(ended.ok()) << ended.status();
    if (!ended.ok()) return {{-1, 0}, "", ""};
    EXPECT_EQ(ended->status.code, expected_code) << ::testing::PrintToString(spec.argv) << "\n"
                                                 << ended->output << ended->errors;
    return *std::move(ended);
  }
  json parsed(std::vector<std::string> arguments, int expected_code = 0) const {
    arguments.emplace_back("--json");
    const base::Finished ended = fn(arguments, expected_code);
    json out = json::parse(ended.output, nullptr, false);
    EXPECT_FALSE(out.is_discarded()) << ended.output << ended.errors;
    return out;
  }
  GatewayFleet nodes;
};

TEST_F(FnFleet, DeploysCallsScalesAndRemoves) {
  nodes.module("echo");
  nodes.module("code");
  ASSERT_TRUE(nodes.up());
  EXPECT_THAT(fn({"deploy", "echo.wasm", "--label", "com.openfaas.scale.max=4"}).output,
              HasSubstr(nodes.url() + "/function/echo"));
  EXPECT_EQ(parsed({"deploy", "code.wasm"}).at("status"), 202);
  EXPECT_THAT(fn({"deploy", "code.wasm", "--only-new"}, 4).errors, HasSubstr("code"));
  EXPECT_THAT(fn({"deploy", "none.wasm"}, 4).errors, HasSubstr("none.wasm"));
  fn({"deploy", "code.wasm", "--replace"});

  EXPECT_THAT(fn({"list"}).output, HasSubstr("echo.wasm"));
  const json listed = parsed({"list"});
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_THAT(fn({"describe", "echo"}).output, HasSubstr("com.openfaas.scale.max=4"));
  EXPECT_EQ(parsed({"describe", "echo"}).at("image"), "echo.wasm");
  fn({"describe", "none"}, 4);

  EXPECT_EQ(fn({"invoke", "echo", "--data", "hello"}).output, "hello");
  const json answered = parsed({"invoke", "code", "--query", "code=418", "--data", ""}, 1);
  EXPECT_EQ(answered.at("status"), 418);
  EXPECT_EQ(parsed({"invoke", "echo", "--data", "\xff"}).at("body_base64"), "/w==");
  fn({"invoke", "none", "--data", ""}, 1);

  EXPECT_THAT(fn({"scale", "echo", "3"}).output, HasSubstr("3"));
  EXPECT_TRUE(nodes.wait_for_replicas("echo", 3));
  fn({"scale", "echo", "1"});
  EXPECT_TRUE(nodes.wait_for_replicas("echo", 1));
  EXPECT_EQ(parsed({"scale", "echo", "99"}).at("replicas"), 4);
  fn({"scale", "none", "1"}, 4);
  fn({"remove", "echo"});
  fn({"remove", "echo"}, 4);
  EXPECT_EQ(parsed({"list"}).size(), 1u);
  parsed({"remove", "code"});
  EXPECT_EQ(nodes.ask("POST", "/function/code").status, 404);
}

TEST_F(FnFleet, SecretsAndLogs) {
  nodes.program("tell", "#!/bin/sh\ncat /var/openfaas/secrets/word\necho \"asked for $Http_Query\" >&2\n");
  ASSERT_TRUE(nodes.up());
  base::write_file_atomically(nodes.images() / "value", "swordfish").IgnoreError();
  fn({"secret", "create", "word", "--from-file", "value"});
  fn({"secret", "create", "word", "--from-file", "value"}, 4);
  EXPECT_EQ(parsed({"secret", "list"}).at(0).at("name"), "word");
  EXPECT_THAT(fn({"secret", "list"}).output, Not(HasSubstr("swordfish")));
  fn({"deploy", "tell", "--secret", "none"}, 4);
  fn({"deploy", "tell", "--secret", "word", "--env", "mode=serializing"});
  EXPECT_EQ(fn({"invoke", "tell", "--query", "a", "--data", ""}).output, "swordfish");
  EXPECT_THAT(fn({"secret", "remove", "word"}, 4).errors, HasSubstr("in use"));

  // Followed: what was written before, and what comes.
  base::ProcessSpec spec;
  spec.argv = {program(), "fn", "logs", "tell", "-f", "--gateway", nodes.url()};
  spec.output = base::Output::pipe();
  base::SystemSpawner spawner;
  const auto following = spawner.start(spec);
  ASSERT_TRUE(following.ok()) << following.status();
  const auto next_line = [&](const std::string& holds) {
    for (;;) {
      const auto line = (*following)->read_line(base::ChildProcess::Stream::kOutput, seconds(10));
      ASSERT_TRUE(line.ok()) << "no line with " << holds << ": " << line.status();
      if (line->find(holds) != std::string::npos) return;
    }
  };
  next_line("asked for a");
  fn({"invoke", "tell", "--query", "b", "--data", ""});
  next_line("asked for b");
  EXPECT_FALSE((*following)->poll().has_value()) << "it ended by itself";
  const json line = parsed({"logs", "tell", "--tail", "1"});
  EXPECT_THAT(line.at("text").get<std::string>(), HasSubstr("asked for b"));
  fn({"logs", "none"}, 4);
  fn({"remove", "tell"});
  EXPECT_TRUE((*following)->wait(seconds(10)).has_value()) << "it follows a function that was removed";
  fn({"secret", "remove", "word"});
  EXPECT_EQ(parsed({"secret", "list"}), json::array());
}

TEST_F(FnFleet, CallsThatAreMadeLater) {
  nodes.module("code");
  ASSERT_TRUE(nodes.up());
  std::mutex mutex;
  std::string request;
  const SmallServer receiver(SmallServer::Speaks::kHttp, [&](const std::string& came) {
    const std::lock_guard lock(mutex);
    request = came;
    return std::string("200");
  });
  fn({"deploy", "code.wasm", "--annotation", "com.openfaas.retry.attempts=2", "--annotation",
      "com.openfaas.retry.min_wait=10ms", "--annotation", "com.openfaas.retry.max_wait=20ms"});
  const std::string id = fn({"invoke", "code", "--query", "code=201", "--data", "", "--async", "--callback",
                             fmt::format("http://127.0.0.1:{}/done?x=1", receiver.port())})
                             .output;
  ASSERT_TRUE(FleetUnderTest::until(seconds(20), [&] {
    const std::lock_guard lock(mutex);
    return !request.empty();
  }));
  {
    const std::lock_guard lock(mutex);
    EXPECT_THAT(request, HasSubstr("POST /done?x=1 HTTP/1.1\r\n"));
    EXPECT_THAT(request, HasSubstr("X-Function-Status: 201\r\n"));
    EXPECT_THAT(request, HasSubstr("X-Call-Id: " + id.substr(0, id.size() - 1) + "\r\n"));
  }
  fn({"invoke", "code", "--data", "", "--async", "--callback", "http://10.0.0.1/"}, 1);

  // What no attempt could do is a dead letter, which is made again.
  fn({"invoke", "code", "--query", "code=500", "--data", "", "--async"});
  json dead;
  ASSERT_TRUE(FleetUnderTest::until(seconds(20), [&] {
    dead = parsed({"dead", "list"});
    return dead.size() == 1;
  }));
  EXPECT_EQ(dead[0].at("attempts"), 2);
  EXPECT_EQ(dead[0].at("lastStatus"), 500);
  const std::string call = dead[0].at("callId");
  EXPECT_THAT(fn({"dead", "list"}).output, HasSubstr(call));
  fn({"dead", "replay", call});
  ASSERT_TRUE(FleetUnderTest::until(seconds(20), [&] { return parsed({"dead", "list"}).size() == 1; }));
  parsed({"dead", "remove", call});
  fn({"dead", "remove", call}, 4);
  EXPECT_EQ(parsed({"dead", "list"}), json::array());
}

TEST_F(FnFleet, TemplatesOfEveryLanguageAnswer) {
  ASSERT_TRUE(nodes.up());
  for (const std::string language : {"c", "cpp"}) {
    const std::string name = "hello-" + language;
    fn({"new", name, "--lang", language});
    fn({"build", name});
    fn({"deploy", name + "/" + name + ".wasm", "--name", name});
    EXPECT_EQ(fn({"invoke", name, "--data", "you"}).output, "Hello, you!\n");
  }
  fn({"new", "hello-py", "--lang", "python"});
  fn({"deploy", "hello-py", "--env", "mode=http", "--fprocess", "python3 server.py"});
  EXPECT_EQ(fn({"invoke", "hello-py", "--data", "you"}).output, "Hello, you!\n");
  if (!there_is("node")) GTEST_SKIP() << "there is no node: the template of JavaScript was not called";
  fn({"new", "hello-js", "--lang", "js"});
  fn({"deploy", "hello-js", "--env", "mode=http", "--fprocess", "node server.js"});
  EXPECT_EQ(fn({"invoke", "hello-js", "--data", "you"}).output, "Hello, you!\n");
}

TEST_F(FnFleet, MatricesAndSentiments) {
  nodes.module("sentiment");
  ASSERT_TRUE(nodes.up());
  fn({"deploy", "native/matrix", "--name", "matrix"});
  const auto operation = [&](const std::string& name, const json& body) {
    return json::parse(
        fn({"invoke", "matrix", "--path", name, "--content-type", "application/json", "--data", body.dump()}).output,
        nullptr, false);
  };
  const json a = {{"rows", 2}, {"columns", 2}, {"type", "f8"}, {"elements", {1, 2, 3, 4}}};
  const json b = {{"rows", 2}, {"columns", 1}, {"type", "f8"}, {"elements", {5, 6}}};
  EXPECT_EQ(operation("multiply", json::array({a, b})).at("elements"), json({17.0, 39.0}));
  const json inverse = operation("invert", a).at("elements");
  const double expected[] = {-2, 1, 1.5, -0.5};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(inverse.at(i).get<double>(), expected[i], 1e-12);
  EXPECT_NEAR(operation("log", a).at("elements").at(3).get<double>(), std::log(4.0), 1e-15);

  fn({"deploy", "sentiment.wasm"});
  const json cases = json::parse(
      base::read_file(source_dir() / "functions/sentiment/tests/cases.json", 1 << 22).value_or(""), nullptr, false);
  ASSERT_GE(cases.size(), 1000u);
  const auto check = [&](const std::string& name, std::size_t step) {
    GatewayConnection connection(nodes.url());
    for (std::size_t i = 0; i < cases.size(); i += step) {
      const auto answer = connection.ask("POST", "/function/" + name, cases[i][0].get<std::string>());
      ASSERT_TRUE(answer.ok()) << answer.status();
      const json said = json::parse(answer->body, nullptr, false);
      ASSERT_TRUE(said.is_object()) << answer->body;
      EXPECT_NEAR(said.at("polarity").get<double>(), cases[i][1].get<double>(), 1e-9) << cases[i][0];
      EXPECT_NEAR(said.at("subjectivity").get<double>(), cases[i][2].get<double>(), 1e-9) << cases[i][0];
    }
  };
  check("sentiment", 1);
  // The real one, where its library is.
  base::ProcessSpec look;
  look.argv = {"/usr/bin/python3", "-c", "import textblob"};
  const auto has_library = base::run_to_end(look, seconds(20));
  if (!has_library.ok() || !has_library->status.success()) return;
  std::filesystem::copy(source_dir() / "functions/sentiment/python", nodes.images() / "sentiment-python",
                        std::filesystem::copy_options::recursive);
  fn({"deploy", "sentiment-python", "--env", "mode=http", "--fprocess", "/usr/bin/python3 server.py"});
  check("sentiment-python", 10);
}

}  // namespace
}  // namespace orla::behaviour
