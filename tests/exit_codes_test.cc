// How `orla` ends: its exit codes, what it says then, and that nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(ExitCodes, FleetFileErrorsAllAtOnceWithTheirPlace) {
  FleetUnderTest fleet("[fleet]\nname = \"x\"\nzoen = \"UTC\"\n[[node]]\nname = \"cloud\"\nlayer = \"sky\"\n");
  for (const std::string command : {"up", "check"}) {
    const base::Finished ended = run_program({command, fleet.fleet_path()});
    EXPECT_EQ(ended.status.code, 2) << ended.errors;
    EXPECT_THAT(ended.errors, HasSubstr(fleet.fleet_path() + ":3:1: "));
    EXPECT_THAT(ended.errors, HasSubstr("zone")) << "the nearest known key";
    EXPECT_THAT(ended.errors, ContainsRegex("fleet.toml:6:[0-9]+: .*sky"));
  }
}

TEST(ExitCodes, WrongUsage) {
  FleetUnderTest fleet(FleetText{}.full());
  EXPECT_EQ(run_program({}).status.code, 2);
  EXPECT_EQ(run_program({"fly"}).status.code, 2);
  EXPECT_EQ(run_program({"up"}).status.code, 2);
  EXPECT_EQ(run_program({"up", fleet.fleet_path(), "--for", "soon"}).status.code, 2);
  EXPECT_EQ(run_program({"up", (fleet.directory() / "none.toml").string()}).status.code, 2);
  EXPECT_EQ(run_program({"version"}).status.code, 0);
  EXPECT_EQ(run_program({"check", fleet.fleet_path()}).status.code, 0);
  const base::Finished unknown = run_program({"node", fleet.fleet_path(), "edge-7"});
  EXPECT_EQ(unknown.status.code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("edge-7"));
  EXPECT_THAT(unknown.errors, HasSubstr("edge-0"));
}

TEST(ExitCodes, DrainTimeout) {
  FleetUnderTest fleet(FleetText{.edges = 1, .levels = 1, .houses = 1, .length = "10m", .speed = 100}.full());
  ASSERT_TRUE(fleet.up({"--for", "1s", "--verify", "--drain-timeout", "1s"}));
  ASSERT_TRUE(fleet.stop("cloud", SIGKILL));
  const json summary = fleet.summary();
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 3) << summary;
  EXPECT_EQ(summary.at("drained"), false);
  EXPECT_EQ(fleet.end(), 3);
  EXPECT_THAT(fleet.errors(), HasSubstr("node cloud ended (signal 9"));
}

TEST(ExitCodes, InterruptedInTheMiddleLeavesNothingBehind) {
  FleetUnderTest fleet(FleetText{.edges = 2, .levels = 1, .houses = 2, .length = "1h", .speed = 60}.full());
  ASSERT_TRUE(fleet.up({}, FindState::kByRunRecord));
  std::vector<int> pids = {fleet.up_pid()};
  for (const std::string node : {"edge-0", "edge-1", "agg-1", "cloud"}) pids.push_back(fleet.pid(node));
  const std::filesystem::path state = fleet.state();
  EXPECT_TRUE(std::filesystem::is_directory(state));
  ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) { return s.at("samples_in").get<std::int64_t>() > 0; }));
  fleet.interrupt();
  const json summary = fleet.summary(std::chrono::seconds(6));
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("interrupted"), true);
  EXPECT_EQ(fleet.end(std::chrono::seconds(6)), 0);
  for (const int pid : pids) EXPECT_FALSE(runs(pid)) << pid;
  EXPECT_FALSE(std::filesystem::is_directory(state));
}

TEST(ExitCodes, StateInUseIsRefusedAndItsUserGoesOn) {
  FleetUnderTest fleet(FleetText{.edges = 1, .levels = 1, .houses = 1, .length = "4m", .speed = 30}.full());
  ASSERT_TRUE(fleet.up({"--verify"}));
  const base::Finished second =
      run_program({"up", fleet.fleet_path(), "--state", fleet.state().string(), "--for", "1s"});
  EXPECT_EQ(second.status.code, 4) << second.output;
  EXPECT_THAT(second.errors, HasSubstr("another process"));
  // The run record is still the first one's: a node finds its state by itself.
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  ASSERT_TRUE(fleet.start("edge-0", FindState::kByRunRecord));
  const json summary = fleet.summary();
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("windows_different"), 0);
  for (const std::string node : {"edge-0", "agg-1", "cloud"}) EXPECT_TRUE(runs(fleet.pid(node))) << node;
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

TEST(ExitCodes, StateOfAnotherFleetIsRefused) {
  FleetUnderTest fleet(FleetText{.edges = 1, .levels = 0, .houses = 1, .length = "1m"}.full());
  ASSERT_EQ(fleet.run({"--for", "20s"}).at("exit_code"), 0);
  std::string other = FleetText{.edges = 1, .levels = 0, .houses = 1, .length = "1m"}.full();
  other.replace(other.find("tested"), 6, "others");
  fleet.write("other.toml", other);
  const base::Finished ended = run_program(
      {"up", (fleet.directory() / "other.toml").string(), "--state", fleet.state().string(), "--for", "1s"});
  EXPECT_EQ(ended.status.code, 4) << ended.output;
  EXPECT_THAT(ended.errors, HasSubstr("tested"));
}

}  // namespace
}  // namespace orla::behaviour
