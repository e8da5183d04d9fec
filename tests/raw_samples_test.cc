// keep = "raw": every sample that was generated is at the cloud, once, whatever was killed on the way.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

// Time in s, house, household, plug, value.
using Sample = std::tuple<std::int64_t, std::string, std::string, std::string, double>;

double number(const std::string& text) {
  double out = 0;
  EXPECT_TRUE(absl::SimpleAtod(text, &out)) << text;
  return out;
}

std::string raw_fleet(const FleetText& text) {
  std::string fleet = text.full();
  const std::string rollup = "name = \"plug_load\"\n";
  const std::size_t at = fleet.find(rollup);
  EXPECT_NE(at, std::string::npos);
  return fleet.insert(at + rollup.size(), "keep = \"raw\"\n");
}

// id, time, value, property (1: load), plug, household, house
std::vector<Sample> generated(const FleetText& text) {
  std::vector<Sample> out;
  const base::Finished made = run_program({"generate", "--houses", std::to_string(text.houses), "--for", text.length});
  for (const std::string& line : lines_of(made.output)) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (cells.size() == 7 && cells[3] == "1")
      out.emplace_back(std::stoll(cells[1]), cells[6], cells[5], cells[4], number(cells[2]));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Sample> stored(const std::vector<std::string>& where) {
  std::vector<std::string> arguments = {"query", "samples", "--metric", "load", "--csv", "--epoch"};
  arguments.insert(arguments.end(), where.begin(), where.end());
  const base::Finished asked = run_program(arguments);
  EXPECT_EQ(asked.status.code, 0) << asked.errors;
  std::vector<Sample> out;
  std::vector<std::string> lines = lines_of(asked.output);
  EXPECT_FALSE(lines.empty());
  if (lines.empty()) return out;
  EXPECT_EQ(lines.front(), "time,house,household,plug,value");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], ',');
    if (cells.size() != 5) {
      ADD_FAILURE() << lines[i];
      break;
    }
    const std::int64_t ns = std::stoll(cells[0]);
    EXPECT_EQ(ns % 1'000'000'000, 0) << lines[i];
    out.emplace_back(ns / 1'000'000'000, cells[1], cells[2], cells[3], number(cells[4]));
  }
  std::sort(out.begin(), out.end());
  return out;
}

class RawSamples : public ::testing::TestWithParam<const char*> {};

TEST_P(RawSamples, AreAllThereOnceWhateverIsKilled) {
  const FleetText text{.edges = 2, .levels = 1, .houses = 2, .length = "5m", .speed = 75, .durability = GetParam()};
  FleetUnderTest fleet(raw_fleet(text));
  ASSERT_TRUE(fleet.up({"--verify"}));
  for (const std::string node : {"edge-0", "agg-1", "cloud"}) {
    SCOPED_TRACE(node);
    const json before = fleet.status("edge-1");
    const std::int64_t read = before.is_object() ? before.at("samples_in").get<std::int64_t>() : 0;
    ASSERT_TRUE(fleet.wait_until("edge-1", [&](const json& s) {
      return s.at("samples_in").get<std::int64_t>() > std::max<std::int64_t>(read, 0);
    }));
    ASSERT_TRUE(fleet.stop(node, SIGKILL));
    ASSERT_TRUE(fleet.start(node));
    ASSERT_TRUE(fleet.wait_until(node, [](const json& s) { return s.at("ready").get<bool>(); }));
  }
  EXPECT_FALSE(fleet.status("edge-1").at("drained").get<bool>()) << "the replay was over too early";
  const json summary = fleet.summary(std::chrono::seconds(60));
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  const std::vector<Sample> expected = generated(text);
  ASSERT_GT(expected.size(), 1000u);
  EXPECT_EQ(summary.at("raw_samples_compared"), expected.size());
  EXPECT_EQ(summary.at("raw_series_different"), 0);
  // From the running cloud and from its file.
  EXPECT_TRUE(stored({"--url", fleet.http("cloud")}) == expected);
  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
  EXPECT_TRUE(stored({"--store", fleet.cloud_file().string()}) == expected);
}

INSTANTIATE_TEST_SUITE_P(Durability, RawSamples, ::testing::Values("disk", "memory"));

TEST(RawSamplesQuery, AnswersPageByPageAndComplainsClearly) {
  const FleetText text{.edges = 1, .levels = 0, .houses = 1, .length = "1m"};
  FleetUnderTest fleet(raw_fleet(text));
  ASSERT_EQ(fleet.run({"--for", "60s", "--verify"}).at("exit_code"), 0);
  const std::string store = fleet.cloud_file().string();
  const std::vector<Sample> all = generated(text);
  std::vector<Sample> some;
  for (const Sample& sample : all)
    if (std::get<3>(sample) == "0" && std::get<0>(sample) >= std::get<0>(all.front()) + 10) some.push_back(sample);
  EXPECT_EQ(stored({"--store", store, "--label", "plug=0", "--from",
                    fmt::format("{}000000000", std::get<0>(all.front()) + 10)}),
            some);
  EXPECT_EQ(stored({"--store", store, "--limit", "7"}).size(), 7u);
  const base::Finished other = run_program({"query", "samples", "--metric", "work", "--store", store});
  EXPECT_EQ(other.status.code, 2);
  EXPECT_NE(other.errors.find("no samples of \"work\" are kept; those of load are"), std::string::npos) << other.errors;
  const base::Finished label =
      run_program({"query", "samples", "--metric", "load", "--label", "floor=1", "--store", store});
  EXPECT_EQ(label.status.code, 2);
  EXPECT_NE(label.errors.find("has a label \"floor\"; there are: house, household, plug"), std::string::npos)
      << label.errors;
}

}  // namespace
}  // namespace orla::behaviour
