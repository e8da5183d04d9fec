// The same data gives the same bits, however many edges read it and through however many levels it goes.
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

// All windows of all rollups without the columns `revision` and `final`, which tell of the way, not of the data.
std::vector<std::string> windows_of_shape(int edges, int levels) {
  const FleetText text{.edges = edges, .levels = levels, .houses = 5, .length = "3m"};
  FleetUnderTest fleet(text.full());
  const json summary = fleet.run({"--for", "30s", "--verify"});
  std::vector<std::string> out;
  if (!summary.is_object()) return out;
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  for (const std::string rollup : {"plug_load", "house_work", "house_load"}) {
    for (const std::string& line : fleet.windows(rollup)) {
      std::vector<std::string> cells = absl::StrSplit(line, ',');
      EXPECT_GT(cells.size(), 2u);
      cells.resize(cells.size() - 2);
      out.push_back(absl::StrJoin(cells, ","));
    }
  }
  return out;
}

TEST(Shape, DoesNotMatter) {
  const std::vector<std::string> plain = windows_of_shape(1, 0);
  EXPECT_GT(plain.size(), 500u);
  for (const auto& [edges, levels] : {std::pair{1, 3}, {2, 1}, {5, 2}, {5, 0}}) {
    EXPECT_EQ(windows_of_shape(edges, levels), plain) << edges << " edges, " << levels << " levels";
  }
}

}  // namespace
}  // namespace orla::behaviour
