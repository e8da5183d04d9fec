// The fleets in examples/ are read, planned, and can run beside each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/fleet_file.h"
#include "model/plan.h"

namespace orla::model {
namespace {

using testing::ElementsAre;

Fleet example(const char* path, std::string_view variable = "", const char* value = "") {
  absl::StatusOr<Fleet> fleet = load_fleet(path, [&](std::string_view name) -> std::optional<std::string> {
    if (name == variable) return value;
    return std::nullopt;
  });
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  return fleet.ok() ? *std::move(fleet) : Fleet();
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> names;
  for (const TableDef& table : plan.tables) names.push_back(table.name);
  return names;
}

TEST(Examples, SmartGrid) {
  const Fleet fleet = example("examples/smart-grid/fleet.toml");
  EXPECT_TRUE(check_files(fleet).ok()) << check_files(fleet);
  const Plan plan = make_plan(fleet);
  EXPECT_THAT(names(plan), ElementsAre("plug_load", "household_load", "house_load"));
  EXPECT_EQ(plan.streams.size(), 1u);
  EXPECT_EQ(plan.forecasts.size(), 2u);
  EXPECT_THAT(plan.feeders(0), ElementsAre("edge-darmstadt", "edge-rodgau"));
  EXPECT_EQ(fleet.inputs.at(0).speed, 107520);
  EXPECT_EQ(example("examples/smart-grid/fleet.toml", "ORLA_SPEED", "0").inputs.at(0).speed, 0);
}

TEST(Examples, Debs2014) {
  const Fleet fleet = example("examples/debs2014/fleet.toml");
  const Plan plan = make_plan(fleet);
  EXPECT_THAT(names(plan), ElementsAre("plug_load", "plug_work", "house_load"));
  ASSERT_EQ(fleet.inputs.size(), 10u);
  EXPECT_EQ(plan.feeders(0).size(), 10u);
  EXPECT_EQ(fleet.inputs[9].kind, InputSpec::Kind::kGenerator);
  EXPECT_THAT(fleet.inputs[9].select.at("house"), ElementsAre("9"));

  const Fleet real = example("examples/debs2014/fleet.toml", "ORLA_DEBS2014", "/data/sorted.csv.gz");
  EXPECT_EQ(real.inputs[0].kind, InputSpec::Kind::kCsv);
  EXPECT_EQ(real.inputs[0].path, "/data/sorted.csv.gz");
}

TEST(Examples, Push) {
  const Fleet fleet = example("examples/push/fleet.toml");
  ASSERT_EQ(fleet.inputs.size(), 1u);
  EXPECT_EQ(fleet.inputs[0].kind, InputSpec::Kind::kPush);
  EXPECT_THAT(names(make_plan(fleet)), ElementsAre("cpu_by_host", "mem_by_host"));
}

TEST(Examples, ShareNoAddress) {
  std::set<std::string> addresses;
  for (const char* path :
       {"examples/smart-grid/fleet.toml", "examples/debs2014/fleet.toml", "examples/push/fleet.toml"}) {
    for (const NodeSpec& node : example(path).nodes) {
      for (const std::string& address : {node.listen, node.http}) {
        EXPECT_TRUE(address.empty() || addresses.insert(address).second) << address;
      }
    }
  }
}

}  // namespace
}  // namespace orla::model
