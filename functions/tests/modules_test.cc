// The modules of functions/, as the build made them, in the WebAssembly runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "function/wasm_for_test.h"

namespace orla::functions {
namespace {

using function::CallForTest;
using function::CallResult;
using nlohmann::json;

// One replica of a module.
class Replica {
 public:
  explicit Replica(std::string_view name) {
    module_ = wasm_.load(wasm_.spec(function::built_wasm(name)));
    if (module_) instance_ = wasm_.start(*module_);
  }
  CallResult call(CallForTest& call, std::string query = "", std::chrono::seconds limit = std::chrono::seconds(20)) {
    call.head.query = std::move(query);
    call.head.deadline = wasm_.clock.steady_now() + limit;
    return call.run(*instance_);
  }
  std::string body(std::string request, std::string query = "") {
    CallForTest one(std::move(request));
    const CallResult result = call(one, std::move(query));
    EXPECT_EQ(result.end, function::CallEnd::kDone) << result.message;
    return one.response.body();
  }

 private:
  function::WasmForTest wasm_;
  std::unique_ptr<function::Module> module_;
  std::unique_ptr<function::Instance> instance_;
};

TEST(Modules, EchoBothStyles) {
  std::string large(300'000, 'x');
  large[12'345] = '\0';
  for (const char* name : {"echo", "echo-command"}) {
    Replica echo(name);
    EXPECT_EQ(echo.body("hello"), "hello") << name;
    EXPECT_EQ(echo.body(""), "") << name;
    EXPECT_EQ(echo.body(large), large) << name;
  }
}

TEST(Modules, CodeIsTheStatus) {
  Replica code("code");
  for (const int status : {200, 204, 301, 418, 500, 600, 999}) {
    CallForTest one;
    ASSERT_EQ(code.call(one, "a=1&code=" + std::to_string(status)).end, function::CallEnd::kDone);
    EXPECT_EQ(one.response.status(), status);
    EXPECT_EQ(function::find_header(one.response.headers(), "location").has_value(), status == 301);
  }
  CallForTest wrong;
  code.call(wrong, "code=42");
  EXPECT_EQ(wrong.response.status(), 400);
}

TEST(Modules, ChunkComesInPieces) {
  Replica chunk("chunk");
  CallForTest one;
  ASSERT_EQ(chunk.call(one, "pieces=3&ms=1").end, function::CallEnd::kDone);
  EXPECT_THAT(one.response.pieces(), ::testing::ElementsAre("piece 1 of 3\n", "piece 2 of 3\n", "piece 3 of 3\n"));
}

TEST(Modules, SlowSleeps) {
  Replica slow("slow");
  CallForTest one;
  const CallResult result = slow.call(one, "ms=120");
  EXPECT_EQ(one.response.body(), "slept 120 ms\n");
  EXPECT_GE(result.seconds, 0.12);
}

TEST(Modules, LoopIsEndedAtItsLimit) {
  Replica loop("loop");
  CallForTest one;
  EXPECT_EQ(loop.call(one, "", std::chrono::seconds(1)).end, function::CallEnd::kTimedOut);
}

TEST(Modules, HeadersAsJson) {
  Replica headers("headers");
  CallForTest one;
  one.head.method = "PUT";
  one.head.path = "/a%20b";
  one.head.headers = {{"X-A", "1"}, {"x-a", "a \"b\" \\"}};
  ASSERT_EQ(headers.call(one, "q=1").end, function::CallEnd::kDone);
  const json seen = json::parse(one.response.body());
  EXPECT_EQ(seen.at("method"), "PUT");
  EXPECT_EQ(seen.at("path"), "/a%20b");
  EXPECT_EQ(seen.at("query"), "q=1");
  EXPECT_EQ(seen.at("headers"), json::parse(R"([["X-A","1"],["x-a","a \"b\" \\"]])"));
}

// Counts that are in every table of primes.
TEST(Modules, Primes) {
  Replica primes("primes");
  for (const auto& [n, count] : {std::pair("0", "0"),
                                 {"2", "1"},
                                 {"3", "2"},
                                 {"4", "2"},
                                 {"9", "4"},
                                 {"100", "25"},
                                 {"1000000", "78498"},
                                 {"10000000", "664579"}}) {
    EXPECT_EQ(primes.body("", std::string("n=") + n), std::string(count) + "\n") << n;
  }
}

// FIPS 180-4's examples; a million times "a".
TEST(Modules, Sha256) {
  Replica sha256("sha256");
  EXPECT_EQ(sha256.body(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n");
  EXPECT_EQ(sha256.body("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n");
  EXPECT_EQ(sha256.body("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1\n");
  EXPECT_EQ(sha256.body(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0\n");
}

TEST(Modules, SentimentOverAThousandTexts) {
  const std::string root = base::SystemEnvironment().get("ORLA_SOURCE_DIR").value_or(".");
  const absl::StatusOr<std::string> text = base::read_file(root + "/functions/sentiment/tests/cases.json", 1 << 22);
  ASSERT_TRUE(text.ok()) << text.status();
  Replica sentiment("sentiment");
  for (const json& one : json::parse(*text)) {
    const json got = json::parse(sentiment.body(one[0].get<std::string>()));
    EXPECT_NEAR(got.at("polarity").get<double>(), one[1].get<double>(), 1e-9) << one[0];
    EXPECT_NEAR(got.at("subjectivity").get<double>(), one[2].get<double>(), 1e-9) << one[0];
  }
  CallForTest wrong("\xff");
  sentiment.call(wrong);
  EXPECT_EQ(wrong.response.status(), 400);
}

}  // namespace
}  // namespace orla::functions
