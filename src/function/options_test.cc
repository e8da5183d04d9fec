#include "function/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/absl_view.h"

namespace orla::function {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(ParseDuration, TakesSecondsAndGoDurations) {
  const std::pair<std::string_view, nanoseconds> kGood[] = {
      {"0", seconds(0)},
      {"30", seconds(30)},
      {"+30", seconds(30)},
      {"007", seconds(7)},
      {"1m30s", seconds(90)},
      {"250ms", milliseconds(250)},
      {"1.5h", minutes(90)},
      {".5s", milliseconds(500)},
      {"2.s", seconds(2)},
      {"100us", nanoseconds(100'000)},
      {"100\u00b5s", nanoseconds(100'000)},
      {"100\u03bcs", nanoseconds(100'000)},
      {"7ns", nanoseconds(7)},
      {"1s1s", seconds(2)},
      {"0s", seconds(0)},
      {"87600h", hours(87'600)},
      {"315360000", hours(87'600)},
  };
  for (const auto& [text, expected] : kGood) {
    const auto found = parse_duration(text);
    ASSERT_TRUE(found.ok()) << text << ": " << found.status();
    EXPECT_EQ(*found, expected) << text;
  }
}

TEST(ParseDuration, RefusesTheRest) {
  for (const std::string_view text : {"",
                                      "+",
                                      "-1",
                                      "-1s",
                                      "1.5",
                                      "s",
                                      ".s",
                                      "1 s",
                                      " 1s",
                                      "1s ",
                                      "1d",
                                      "1S",
                                      "1m30",
                                      "1e3",
                                      "1..5s",
                                      "0x10",
                                      "87601h",
                                      "315360001",
                                      "99999999999999999999",
                                      "99999999999999999999s",
                                      "1s-1s"}) {
    const auto found = parse_duration(text);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(base::message(found.status()).find(fmt::format("\"{}\"", text)), std::string::npos);
  }
}

TEST(ParseMemory, TakesKubernetesQuantities) {
  const std::pair<std::string_view, std::uint64_t> kGood[] = {
      {"65536", 65536},
      {"128Mi", 134'217'728},
      {"1G", 1'000'000'000},
      {"1k", 1'000},
      {"1Ki", 1'024},
      {"1.5Gi", 1'610'612'736},
      {"0.5Ki", 512},
      {".5Ki", 512},
      {"1e6", 1'000'000},
      {"1E6", 1'000'000},
      {"12e-1", 2},
      {"1E", 1'000'000'000'000'000'000},
      {"128974848000m", 128'974'848},
      {"1m", 1},
      {"0.1", 1},
      {"1Ei", 1ull << 60},
      {"1e+3", 1'000},
      {"4Ei", 1ull << 62},
  };
  for (const auto& [text, expected] : kGood) {
    const auto found = parse_memory(text);
    ASSERT_TRUE(found.ok()) << text << ": " << found.status();
    EXPECT_EQ(*found, expected) << text;
  }
  for (const std::string_view text : {"", "Mi", "-1Mi", "1 Mi", "1MB", "1mi", "0", "0Gi", "1K", "5Ei", "1e19", "1e",
                                      "e3", "1e+-3", "9999999999999999999", "1.0000000000000000001", "nan", "+1"}) {
    EXPECT_FALSE(parse_memory(text).ok()) << text;
  }
}

TEST(ParseCpu, TakesKubernetesQuantities) {
  const std::pair<std::string_view, double> kGood[] = {{"2", 2},      {"0.5", 0.5},     {"500m", 0.5},
                                                       {"100m", 0.1}, {"1500m", 1.5},   {"250000u", 0.25},
                                                       {"1e1", 10},   {"100k", 100'000}};
  for (const auto& [text, expected] : kGood) {
    const auto found = parse_cpu(text);
    ASSERT_TRUE(found.ok()) << text << ": " << found.status();
    EXPECT_EQ(*found, expected) << text;
  }
  for (const std::string_view text : {"", "0", "-1", "1Ki", "m", "101k", "1M", "1E", "0.5 ", "half"}) {
    EXPECT_FALSE(parse_cpu(text).ok()) << text;
  }
}

FunctionSpec with_environment(std::string name, std::string value) {
  FunctionSpec spec;
  spec.environment[std::move(name)] = std::move(value);
  return spec;
}
FunctionSpec with_label(std::string name, std::string value) {
  FunctionSpec spec;
  spec.labels["com.openfaas.scale." + std::move(name)] = std::move(value);
  return spec;
}

TEST(ReadOptions, DefaultsAreThoseOfTheContract) {
  const auto options = read_options({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->mode, WatchdogMode::kStreaming);
  EXPECT_EQ(options->exec_timeout, seconds(30));
  EXPECT_EQ(options->read_timeout, seconds(30));
  EXPECT_EQ(options->write_timeout, seconds(30));
  EXPECT_EQ(options->healthcheck_interval, seconds(30));
  EXPECT_EQ(options->max_inflight, 0u);
  EXPECT_EQ(options->content_type, "");
  EXPECT_EQ(options->upstream_url, "");
  EXPECT_EQ(options->ready_path, "");
  EXPECT_FALSE(options->buffer_request_body);
  EXPECT_TRUE(options->prefix_logs);
  EXPECT_EQ(options->log_buffer_bytes, 65536);
  EXPECT_FALSE(options->log_call_id);
  EXPECT_EQ(options->memory_bytes, std::nullopt);
  EXPECT_EQ(options->cpu_cores, std::nullopt);
  EXPECT_EQ(options->scale.min, 1u);
  EXPECT_EQ(options->scale.max, 20u);
  EXPECT_FALSE(options->scale.zero);
  EXPECT_EQ(options->scale.zero_duration, minutes(15));
  EXPECT_EQ(options->scale.type, ScaleOptions::Type::kCapacity);
  EXPECT_EQ(options->scale.target, 50);
  EXPECT_EQ(options->scale.target_proportion, 0.9);
  EXPECT_EQ(options->scale.factor, 20u);
  EXPECT_EQ(options->scale.down_window, minutes(1));
}

FunctionSpec with_labels(std::map<std::string, std::string> labels) {
  FunctionSpec spec;
  spec.labels = std::move(labels);
  return spec;
}
FunctionSpec with_limits(std::string memory, std::string cpu) {
  FunctionSpec spec;
  spec.limits = {.memory = std::move(memory), .cpu = std::move(cpu)};
  return spec;
}
FunctionSpec with_requests(std::string memory, std::string cpu) {
  FunctionSpec spec;
  spec.requests = {.memory = std::move(memory), .cpu = std::move(cpu)};
  return spec;
}

struct Good {
  FunctionSpec spec;
  std::function<bool(const FunctionOptions&)> holds;
};

TEST(ReadOptions, ReadsEachVariableAndLabel) {
  using O = const FunctionOptions&;
  const Good kTable[] = {
      {with_environment("mode", "http"), [](O o) { return o.mode == WatchdogMode::kHttp; }},
      {with_environment("mode", "serializing"), [](O o) { return o.mode == WatchdogMode::kSerializing; }},
      {with_environment("mode", "streaming"), [](O o) { return o.mode == WatchdogMode::kStreaming; }},
      {with_environment("exec_timeout", "0"), [](O o) { return o.exec_timeout == seconds(0); }},
      {with_environment("exec_timeout", "2m"), [](O o) { return o.exec_timeout == minutes(2); }},
      {with_environment("exec_timeout", ""), [](O o) { return o.exec_timeout == seconds(30); }},
      {with_environment("read_timeout", "5"), [](O o) { return o.read_timeout == seconds(5); }},
      {with_environment("write_timeout", "6s"),
       [](O o) { return o.write_timeout == seconds(6) && o.healthcheck_interval == seconds(6); }},
      {with_environment("healthcheck_interval", "7s"),
       [](O o) { return o.healthcheck_interval == seconds(7) && o.write_timeout == seconds(30); }},
      {with_environment("max_inflight", "3"), [](O o) { return o.max_inflight == 3; }},
      {with_environment("content_type", "text/csv"), [](O o) { return o.content_type == "text/csv"; }},
      {with_environment("upstream_url", "http://127.0.0.1:5000"),
       [](O o) { return o.upstream_url == "http://127.0.0.1:5000"; }},
      {with_environment("upstream_url", "http://localhost:80/"),
       [](O o) { return o.upstream_url == "http://localhost:80/"; }},
      {with_environment("ready_path", "/ready"), [](O o) { return o.ready_path == "/ready"; }},
      {with_environment("http_buffer_req_body", "true"), [](O o) { return o.buffer_request_body; }},
      {with_environment("prefix_logs", "false"), [](O o) { return !o.prefix_logs; }},
      {with_environment("log_buffer_size", "-1"), [](O o) { return o.log_buffer_bytes == -1; }},
      {with_environment("log_buffer_size", "1024"), [](O o) { return o.log_buffer_bytes == 1024; }},
      {with_environment("log_callid", "1"), [](O o) { return o.log_call_id; }},
      {with_environment("anything", "else"), [](O) { return true; }},
      {with_label("min", "3"), [](O o) { return o.scale.min == 3 && o.scale.max == 20; }},
      {with_label("min", "0"), [](O o) { return o.scale.min == 1; }},
      {with_label("min", "30"), [](O o) { return o.scale.min == 30 && o.scale.max == 30; }},
      {with_label("max", "7"), [](O o) { return o.scale.max == 7; }},
      {with_label("zero", "true"), [](O o) { return o.scale.zero; }},
      {with_label("zero-duration", "20s"), [](O o) { return o.scale.zero_duration == seconds(20); }},
      {with_label("type", "rps"), [](O o) { return o.scale.type == ScaleOptions::Type::kRps; }},
      {with_label("type", "queue"), [](O o) { return o.scale.type == ScaleOptions::Type::kQueue; }},
      {with_label("type", "capacity"), [](O o) { return o.scale.type == ScaleOptions::Type::kCapacity; }},
      {with_label("target", "2.5"), [](O o) { return o.scale.target == 2.5; }},
      {with_label("target-proportion", "1"), [](O o) { return o.scale.target_proportion == 1; }},
      {with_label("factor", "100"), [](O o) { return o.scale.factor == 100; }},
      {with_label("down.window", "5m"), [](O o) { return o.scale.down_window == minutes(5); }},
      {with_labels({{"com.example", "x"}, {"com.openfaas.scale", "x"}}), [](O) { return true; }},
      {with_limits("64Mi", "500m"), [](O o) { return o.memory_bytes == 64u << 20 && o.cpu_cores == 0.5; }},
      {with_requests("64Mi", ""), [](O o) { return !o.memory_bytes; }},
  };
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    const auto options = read_options(kTable[i].spec);
    ASSERT_TRUE(options.ok()) << "row " << i << ": " << options.status();
    EXPECT_TRUE(kTable[i].holds(*options)) << "row " << i;
  }
}

TEST(ReadOptions, RefusesWhatIsWrongAndNamesIt) {
  struct Bad {
    FunctionSpec spec;
    std::string_view says;
  };
  const Bad kTable[] = {
      {with_environment("mode", "static"), "environment variable \"mode\" is \"static\"; expected one of streaming"},
      {with_environment("exec_timeout", "-1s"), "environment variable \"exec_timeout\": \"-1s\" is not a duration"},
      {with_environment("read_timeout", "0"), "\"read_timeout\" is \"0\"; expected more than 0"},
      {with_environment("write_timeout", "0s"), "\"write_timeout\" is \"0s\"; expected more than 0"},
      {with_environment("healthcheck_interval", "x"), "\"healthcheck_interval\""},
      {with_environment("max_inflight", "-1"), "\"max_inflight\" is \"-1\"; expected a number from 0 to 1000000"},
      {with_environment("max_inflight", "1.5"), "\"max_inflight\""},
      {with_environment("content_type", "a\nb"), "\"content_type\""},
      {with_environment("upstream_url", "http://example.org:80"), "expected http://127.0.0.1:PORT"},
      {with_environment("upstream_url", "http://127.0.0.1"), "\"upstream_url\""},
      {with_environment("upstream_url", "http://127.0.0.1:70000"), "\"upstream_url\""},
      {with_environment("ready_path", "ready"), "\"ready_path\""},
      {with_environment("http_buffer_req_body", "yes"), "\"http_buffer_req_body\" is \"yes\"; expected true or false"},
      {with_environment("prefix_logs", "2"), "\"prefix_logs\""},
      {with_environment("log_buffer_size", "0"), "\"log_buffer_size\""},
      {with_environment("log_buffer_size", "-2"), "\"log_buffer_size\""},
      {with_environment("log_callid", "on"), "\"log_callid\""},
      {with_environment("a=b", "c"), "environment variable \"a=b\": expected a name without '=' and NUL"},
      {with_environment("", "c"), "environment variable \"\": expected a name"},
      {with_environment(std::string("a\0b", 3), "c"), "expected a name without '=' and NUL"},
      {with_environment("a", std::string("b\0c", 3)), "environment variable \"a\": its value holds a NUL"},
      {with_label("min", "-1"), "label \"com.openfaas.scale.min\" is \"-1\""},
      {with_label("min", "1001"), "expected a number from 0 to 1000"},
      {with_label("max", "0"), "com.openfaas.scale.max"},
      {with_label("zero", "maybe"), "com.openfaas.scale.zero"},
      {with_label("zero-duration", "0"), "com.openfaas.scale.zero-duration"},
      {with_label("type", "cpu"), "expected one of capacity, rps, queue"},
      {with_label("target", "0"), "com.openfaas.scale.target"},
      {with_label("target", "nan"), "com.openfaas.scale.target"},
      {with_label("target-proportion", "1.1"), "com.openfaas.scale.target-proportion"},
      {with_label("factor", "101"), "com.openfaas.scale.factor"},
      {with_label("down.window", "6m"), "com.openfaas.scale.down.window\" is \"6m\"; expected at most 5m"},
      {with_label("minimum", "1"),
       "label \"com.openfaas.scale.minimum\" is not known; the known ones are com.openfaas.scale.min, "
       "com.openfaas.scale.max, "},
      {with_label("", "1"), "is not known"},
      {with_labels({{"com.openfaas.scale.min", "5"}, {"com.openfaas.scale.max", "4"}}),
       "\"com.openfaas.scale.max\" is \"4\"; expected at least com.openfaas.scale.min, 5"},
      {with_limits("lots", ""), "limits.memory is \"lots\"; expected bytes"},
      {with_limits("", "-1"), "limits.cpu is \"-1\"; expected cores"},
      {with_requests("1MB", ""), "requests.memory is \"1MB\"; expected bytes"},
      {with_requests("", "x"), "requests.cpu"},
  };
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    const auto options = read_options(kTable[i].spec);
    ASSERT_FALSE(options.ok()) << "row " << i;
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << "row " << i;
    EXPECT_NE(base::message(options.status()).find(kTable[i].says), std::string::npos)
        << "row " << i << ": " << base::message(options.status());
  }
}

TEST(ReadOptions, RefusesAnnotationsOfRetriesThatAreNotUnderstood) {
  FunctionSpec spec;
  spec.annotations = {{"com.openfaas.retry.attempts", "5"}, {"topic", "any"}};
  EXPECT_TRUE(read_options(spec).ok());
  spec.annotations["com.openfaas.retry.codes"] = "5xx";
  const absl::Status status = read_options(spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(status.message().find("com.openfaas.retry.codes"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace orla::function
