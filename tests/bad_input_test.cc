// Files as they really come: each bad row is refused by itself and counted, the others count, and verify agrees.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

// A fleet of one edge that reads rows.csv, one series per value of `plug`.
std::string reads_rows(const std::string& time, const std::string& more = "") {
  return FleetText{.edges = 1, .levels = 0}.nodes() +
         fmt::format(
             "[[metric]]\nname = \"load\"\nallowed_lateness = \"10m\"\n"
             "[[input]]\nnode = \"edge-0\"\npath = \"rows.csv\"\nschema = \"mapping\"\ntime = {{ {} }}\n"
             "labels = {{ plug = \"plug\" }}\nvalues = {{ load = \"load\" }}\n{}"
             "[[rollup]]\nname = \"plug_load\"\nmetric = \"load\"\nby = [\"plug\"]\nslice = \"1m\"\n"
             "windows = [\"1m\", \"1h\", \"1d\"]\n"
             "[[rollup]]\nname = \"all_load\"\nfrom = \"plug_load\"\nacross = \"sum\"\n",
             time, more);
}

const std::string kUnix = "column = \"time\", format = \"unix\"";
constexpr std::int64_t kNoon = 1'381'312'800;  // 2013-10-09T10:00:00Z

struct Expected {
  std::int64_t measurements = 0;
  std::int64_t aggregated = 0;
  std::int64_t late = 0;
  std::int64_t rejected = 0;
};

json run_rows(FleetUnderTest& fleet, const std::string& rows, const Expected& expected) {
  fleet.write("rows.csv", rows);
  json summary = fleet.run({"--for", "30s", "--verify"});
  if (!summary.is_object()) return summary;
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_EQ(summary.at("inputs_different"), 0);
  EXPECT_EQ(summary.at("measurements"), expected.measurements);
  EXPECT_EQ(summary.at("aggregated"), expected.aggregated);
  EXPECT_EQ(summary.at("late"), expected.late);
  EXPECT_EQ(summary.at("rejected"), expected.rejected);
  return summary;
}

TEST(BadInput, DuplicatesAreSamplesOfTheirOwn) {
  FleetUnderTest fleet(reads_rows(kUnix));
  const std::string row = fmt::format("{},a,1.5\n", kNoon);
  run_rows(fleet, "time,plug,load\n" + row + row + row, {3, 3, 0, 0});
  const std::vector<std::string> windows = fleet.windows("plug_load");
  ASSERT_EQ(windows.size(), 4u);  // header, 1d, 1h, 1m
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_NE(windows[i].find(",a,3,4.5,1.5,1.5,1.5,0,1.5,1.5,0,true"), std::string::npos) << windows[i];
  }
}

TEST(BadInput, OutOfOrderWithinAndBeyondLateness) {
  FleetUnderTest fleet(reads_rows(kUnix));
  run_rows(fleet,
           fmt::format("time,plug,load\n{},a,1\n{},a,2\n{},a,3\n{},a,4\n{},b,5\n", kNoon, kNoon + 1000,
                       kNoon + 1000 - 600,  // exactly as late as is allowed
                       kNoon + 1000 - 601,  // a second more
                       kNoon - 100'000),    // another series: not late
           {5, 4, 1, 0});
}

TEST(BadInput, GapsOfWeeks) {
  FleetUnderTest fleet(reads_rows(kUnix));
  run_rows(fleet,
           fmt::format("time,plug,load\n{},a,1\n{},a,2\n{},a,3\n", kNoon, kNoon + 20 * 86'400, kNoon + 400 * 86'400),
           {3, 3, 0, 0});
  EXPECT_EQ(fleet.windows("plug_load").size(), 1u + 3 * 3);
}

TEST(BadInput, BothDaylightSavingDays) {
  FleetUnderTest fleet(reads_rows(kUnix));
  std::string rows = "time,plug,load\n";
  std::int64_t n = 0;
  // 2013-03-31 has 23 hours in Berlin, 2013-10-27 has 25. One sample every ten minutes.
  for (const auto& [midnight, hours] : {std::pair<std::int64_t, int>{1'364'684'400, 23}, {1'382'824'800, 25}}) {
    for (int i = 0; i < hours * 6; ++i, ++n) rows += fmt::format("{},a,{}\n", midnight + i * 600, i);
  }
  run_rows(fleet, rows, {n, n, 0, 0});
  const base::Finished days = run_program({"query", "windows", "--store", fleet.cloud_file().string(), "--rollup",
                                           "plug_load", "--window", "1d", "--format", "csv"});
  const std::vector<std::string> lines = lines_of(days.output);
  ASSERT_EQ(lines.size(), 3u) << days.output;
  EXPECT_EQ(lines[1].find("2013-03-30T23:00:00Z,2013-03-31T22:00:00Z,a,138,"), 0u) << lines[1];
  EXPECT_EQ(lines[2].find("2013-10-26T22:00:00Z,2013-10-27T23:00:00Z,a,150,"), 0u) << lines[2];
}

// Local times: the hour that comes twice, and the one that does not exist.
TEST(BadInput, LocalTimesOfDaylightSavingDays) {
  FleetUnderTest fleet(reads_rows("column = \"time\", format = \"%Y-%m-%d %H:%M:%S\", zone = \"Europe/Berlin\""));
  fleet.write("rows.csv",
              "time,plug,load\n2013-03-31 01:59:59,a,1\n2013-03-31 02:30:00,a,2\n2013-03-31 03:00:00,a,3\n"
              "2013-10-27 01:59:59,a,4\n2013-10-27 02:30:00,a,5\n2013-10-27 03:00:00,a,6\n");
  const json summary = fleet.run({"--for", "30s", "--verify"});
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("measurements"), 6);
}

TEST(BadInput, NotANumberInfinityAndNonsense) {
  FleetUnderTest fleet(reads_rows(kUnix));
  const json summary = run_rows(fleet,
                                fmt::format("time,plug,load\n{0},a,1\n{0},a,NaN\n{0},a,inf\n{0},a,-Infinity\n{0},a,"
                                            "1e999\n{0},a,x\n{0}\nyesterday,a,1\n{0},a,2\n",
                                            kNoon),
                                {9, 2, 0, 7});
  ASSERT_TRUE(summary.is_object());
  std::int64_t by_reason = 0;
  for (const auto& [reason, n] : summary.at("rejected_by_reason").items()) by_reason += n.get<std::int64_t>();
  EXPECT_EQ(by_reason, 7) << summary.at("rejected_by_reason");
  EXPECT_GE(summary.at("rejected_by_reason").at("not_finite").get<int>(), 3);
  const std::vector<std::string> windows = fleet.windows("plug_load");
  ASSERT_GE(windows.size(), 2u);
  EXPECT_NE(windows[1].find(",a,2,3,1,2,1.5,0.5,"), std::string::npos) << windows[1];
}

TEST(BadInput, CarriageReturnsAndByteOrderMark) {
  FleetUnderTest fleet(reads_rows(kUnix));
  run_rows(fleet, fmt::format("\xEF\xBB\xBFtime,plug,load\r\n{0},a,1\r\n{1},a,2\r\n", kNoon, kNoon + 1), {2, 2, 0, 0});
}

TEST(BadInput, HalfWrittenLastLine) {
  FleetUnderTest fleet(reads_rows(kUnix));
  const std::string cut = fmt::format("time,plug,load\n{},a,1\n{},a", kNoon, kNoon + 1);
  run_rows(fleet, cut, {2, 1, 0, 1});
}

TEST(BadInput, RowsFromTheFarFutureWithoutMaxJump) {
  FleetUnderTest fleet(reads_rows(kUnix));
  run_rows(fleet, fmt::format("time,plug,load\n{},a,1\n{},a,2\n{},a,3\n", kNoon, kNoon + 3'000'000'000, kNoon + 60),
           {3, 2, 1, 0});
}

TEST(BadInput, RowsFromTheFarFutureAreHeldAndRejected) {
  FleetUnderTest fleet(reads_rows(kUnix, "max_jump = \"1d\"\n"));
  run_rows(fleet,
           fmt::format("time,plug,load\n{},a,1\n{},a,2\n{},a,3\n{},a,4\n", kNoon, kNoon + 3'000'000'000, kNoon + 60,
                       kNoon + 120),
           {4, 3, 0, 1});
}

// Nothing was compared, and that is no success.
TEST(BadInput, NoRows) {
  FleetUnderTest fleet(reads_rows(kUnix));
  for (const std::string rows : {"time,plug,load\n", ""}) {
    fleet.write("rows.csv", rows);
    const json summary = fleet.run({"--for", "10s", "--verify"});
    ASSERT_TRUE(summary.is_object());
    EXPECT_EQ(summary.at("measurements"), 0) << summary;
    if (rows.empty()) continue;  // without even the header line: an error as well
    EXPECT_EQ(summary.at("exit_code"), 1) << summary;
    EXPECT_EQ(summary.at("verified"), false);
    EXPECT_EQ(summary.at("windows_compared"), 0);
  }
}

TEST(BadInput, RealHourOfPlugs) {
  const std::filesystem::path file = source_dir() / "tests" / "data" / "tracebase" / "hour.csv";
  FleetUnderTest fleet(
      FleetText{.edges = 1, .levels = 1}.nodes() +
      fmt::format("[[metric]]\nname = \"load\"\n[[input]]\nnode = \"edge-0\"\npath = \"{}\"\n"
                  "[[rollup]]\nname = \"plug_load\"\nmetric = \"load\"\nby = [\"house\", \"household\", \"plug\"]\n",
                  file.string()));
  const json summary = fleet.run({"--for", "30s", "--verify"});
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  const auto lines = static_cast<std::int64_t>(lines_of(base::read_file(file, 1 << 20).value_or("")).size());
  EXPECT_EQ(summary.at("measurements"), lines);
  EXPECT_EQ(summary.at("aggregated"), lines);
  EXPECT_EQ(summary.at("rejected"), 0);
}

}  // namespace
}  // namespace orla::behaviour
