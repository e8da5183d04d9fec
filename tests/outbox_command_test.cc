// What an edge keeps is looked at, damaged, and sent by hand.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/files.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

json inspect(const std::string& directory) {
  const base::Finished looked = run_program({"outbox", "inspect", directory, "--json"});
  EXPECT_EQ(looked.status.code, 0) << looked.output;
  return json::parse(looked.output, nullptr, false);
}

int code_of(std::vector<std::string> arguments) { return run_program(std::move(arguments)).status.code; }

TEST(OutboxCommand, LooksAtAStoppedEdgeAndDrainsIt) {
  const FleetText text{.edges = 1, .levels = 0, .houses = 4, .length = "30m", .speed = 0};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up({}));
  const std::string edge = (fleet.state() / "edge-0").string();
  EXPECT_EQ(code_of({"outbox", "verify", edge}), 4);  // it runs
  EXPECT_EQ(code_of({"outbox", "verify", (fleet.state() / "cloud").string()}), 2);
  EXPECT_EQ(code_of({"outbox", "inspect", (fleet.state() / "none").string()}), 2);
  fleet.summary();
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
  const json drained = inspect(edge);
  EXPECT_EQ(drained.at("node"), "edge-0");
  EXPECT_EQ(drained.at("chunks"), 0);
  EXPECT_EQ(drained.at("acknowledged"), drained.at("next_sequence").get<int>() - 1);
  EXPECT_TRUE(drained.at("sound").get<bool>());
}

TEST(OutboxCommand, FindsADamagedByteAndSendsTheRest) {
  const FleetText text{.edges = 1, .levels = 0, .houses = 4, .length = "30m", .speed = 0};
  FleetUnderTest fleet(text.full());
  // The edge alone, until it has read everything; then it is killed.
  ASSERT_TRUE(fleet.start("edge-0"));
  ASSERT_TRUE(fleet.wait_until("edge-0", [](const json& s) {
    return s.at("inputs").at(0).at("ended").get<bool>() && s.at("outbox").at("chunks").get<int>() > 0;
  }));
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  const std::string edge = (fleet.state() / "edge-0").string();
  EXPECT_EQ(code_of({"outbox", "verify", edge}), 0);
  const json before = inspect(edge);
  ASSERT_GT(before.at("chunks").get<int>(), 0);
  EXPECT_TRUE(before.at("sound").get<bool>());

  // Nobody to send to: the time runs out, and everything is still there.
  EXPECT_EQ(code_of({"outbox", "drain", edge, "--fleet", fleet.fleet_path(), "--limit", "1s"}), 3);
  EXPECT_EQ(inspect(edge).at("chunks"), before.at("chunks"));

  // One byte in the middle of the rows.
  const std::filesystem::path segment = std::filesystem::path(edge) / "outbox-00000001";
  std::string bytes = base::read_file(segment, 1 << 30).value();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(base::write_file_atomically(segment, bytes).ok());
  EXPECT_EQ(code_of({"outbox", "verify", edge}), 1);
  const json damaged = inspect(edge);
  EXPECT_EQ(damaged.at("lost"), 1);
  EXPECT_EQ(damaged.at("chunks"), before.at("chunks"));
  ASSERT_EQ(damaged.at("damage").size(), 1U);
  EXPECT_EQ(damaged.at("damage").at(0).at("file"), "outbox-00000001");

  ASSERT_TRUE(fleet.start("cloud"));
  EXPECT_EQ(code_of({"outbox", "drain", edge, "--fleet", fleet.fleet_path(), "--limit", "20s"}), 0);
  EXPECT_EQ(inspect(edge).at("chunks"), 0);
  EXPECT_TRUE(fleet.stop("cloud", SIGTERM));
}

}  // namespace
}  // namespace orla::behaviour
