// `orla bench functions`, briefly: its fields, and that it sees an answer that is not the request's body.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

base::Finished bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "functions", "--json", "--seconds", "0.1", "--runs", "1",
                                       "--connections", "4", "--cold", "2", "--disk", "0"});
  return run_program(std::move(arguments), std::chrono::seconds(240));
}

std::filesystem::path functions() { return std::filesystem::path(program()).parent_path().parent_path() / "functions"; }

TEST(BenchFunctions, ReportsEachRuntime) {
  if (!base::exists(functions() / "echo-process")) GTEST_SKIP() << "a static program is not built with sanitizers";
  const base::Finished ended = bench({"--idle", "3", "--rest", "0"});
  ASSERT_EQ(ended.status.code, 0) << ended.errors << ended.output;
  const json report = json::parse(ended.output);
  EXPECT_EQ(report.at("bench"), "functions");
  EXPECT_EQ(report.at("verified"), true);
  std::vector<std::string> runtimes;
  for (const json& row : report.at("runtimes")) {
    runtimes.push_back(row.at("runtime"));
    for (const char* field : {"cold_p50_us", "cold_p99_us", "warm_p50_us", "warm_p99_us", "warm_calls_per_s", "rps",
                              "rps_per_cpu_s", "deploy_ms"}) {
      ASSERT_TRUE(row.at(field).is_number()) << row;
      EXPECT_GT(row.at(field), 0) << field << row;
    }
    EXPECT_LE(row.at("cold_p50_us"), row.at("cold_p99_us"));
    EXPECT_LE(row.at("warm_p50_us"), row.at("warm_p99_us"));
    EXPECT_TRUE(row.at("bytes_per_instance").is_number()) << row;
    EXPECT_TRUE(row.at("cold_disk_p50_us").is_null()) << "--disk 0 leaves it out";
    EXPECT_TRUE(row.at("cold_disk_p99_us").is_null());
  }
  EXPECT_THAT(runtimes, ElementsAre("wasm handler", "wasm command", "native", "process serializing"));
  ASSERT_EQ(report.at("idle").size(), 2u);
  EXPECT_EQ(report.at("idle").at(0).at("modules"), 1);
  EXPECT_EQ(report.at("idle").at(1).at("modules"), 3);
  for (const json& row : report.at("idle")) {
    EXPECT_EQ(row.at("functions"), 3);
    EXPECT_GT(row.at("resident_bytes"), 1'000'000);
  }
}

TEST(BenchFunctions, SeesAWrongAnswer) {
  if (!base::exists(functions() / "echo-process")) GTEST_SKIP() << "a static program is not built with sanitizers";
  const base::Finished ended = bench({"--idle", "0", "--echo", (functions() / "sha256.wasm").string()});
  EXPECT_EQ(ended.status.code, 1) << ended.errors << ended.output;
  const json report = json::parse(ended.output, nullptr, false);
  ASSERT_TRUE(report.is_object()) << ended.output << ended.errors;
  EXPECT_EQ(report.at("verified"), false);
  EXPECT_THAT(report.at("problem").get<std::string>(), HasSubstr("wasm-handler"));
}

}  // namespace
}  // namespace orla::behaviour
