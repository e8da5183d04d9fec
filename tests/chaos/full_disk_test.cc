// A disk that is full turns into backpressure, and recovers by itself when there is room again.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/chaos/chaos_fleet.h"
#include "tests/chaos/small_disk.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::seconds;

const base::SystemClock clock_of_test;

class FullDisk : public ::testing::TestWithParam<std::string> {};

TEST_P(FullDisk, StopsTheFleetUntilThereIsRoom) {
  const std::string node = GetParam();
  const ChaosText text{.disk_edges = 2, .memory_edges = 0, .houses = 2, .length = "8m", .speed = 60};
  FleetUnderTest fleet(text.full());
  const SmallDisk disk(fleet.directory() / "state" / node, 64 << 20);
  if (!disk.why_not().empty()) GTEST_SKIP() << "no file system can be mounted here: " << disk.why_not();
  ASSERT_TRUE(fleet.up({"--verify"}));
  ASSERT_TRUE(reads_on(fleet, "edge-0"));
  disk.fill();
  // Commits fail, and are tried again.
  EXPECT_TRUE(fleet.wait_until(node, [](const json& s) { return s.at("commit_failures").get<int>() > 0; }));
  const std::int64_t failures = number_of(fleet, node, "/commit_failures");
  EXPECT_TRUE(fleet.wait_until(node, [&](const json& s) { return s.at("commit_failures").get<int>() > failures; }));
  if (node == "edge-0") {
    // It stops reading.
    std::int64_t read = -1;
    EXPECT_TRUE(FleetUnderTest::until(seconds(20), [&] {
      const std::int64_t before = read;
      clock_of_test.sleep(std::chrono::milliseconds(700));
      read = number_of(fleet, node, "/samples_in");
      return read >= 0 && read == before;
    }));
    EXPECT_FALSE(fleet.status(node).at("inputs").at(0).at("ended").get<bool>());
  }
  disk.make_room();
  EXPECT_TRUE(reads_on(fleet, "edge-0"));
  expect_everything_once(fleet.summary(seconds(120)), text.rows());
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, FullDisk, ::testing::Values("edge-0", "cloud"), [](const auto& info) {
  return info.param == "cloud" ? std::string("Cloud") : std::string("Edge");
});

}  // namespace
}  // namespace orla::behaviour
