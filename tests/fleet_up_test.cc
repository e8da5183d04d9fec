// `orla up` from its first line to its exit code, and `orla query` beside it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> cells(const std::string& line) { return absl::StrSplit(line, ','); }

double number(const std::string& text) {
  double value = 0;
  EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
  return value;
}

// What the loads of one plug in one minute are, from the generated rows alone.
struct Minute {
  std::int64_t count = 0;
  std::int64_t thousandths = 0;
  double min = 0;
  double max = 0;
};

struct Independent {
  std::size_t rows = 0;
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t>, Minute> minutes;
};

Independent count_generated(int houses, const std::string& length) {
  const base::Finished made = run_program({"generate", "--houses", std::to_string(houses), "--for", length});
  EXPECT_TRUE(made.status.success()) << made.errors;
  Independent out;
  for (const std::string& line : lines_of(made.output)) {
    ++out.rows;
    const std::vector<std::string> c = cells(line);  // id, timestamp, value, property, plug, household, house
    if (c.at(3) != "1") continue;
    std::int64_t second = 0;
    EXPECT_TRUE(absl::SimpleAtoi(c.at(1), &second));
    const double value = number(c.at(2));
    Minute& m = out.minutes[{c.at(6), c.at(5), c.at(4), second / 60 * 60}];
    m.min = m.count == 0 ? value : std::min(m.min, value);
    m.max = m.count == 0 ? value : std::max(m.max, value);
    m.thousandths += std::llround(value * 1000);
    ++m.count;
  }
  return out;
}

TEST(FleetUp, CountsWhatWasGenerated) {
  const FleetText text{.edges = 2, .levels = 1, .houses = 2, .length = "5m"};
  FleetUnderTest fleet(text.full());
  const json summary = fleet.run({"--for", "30s", "--verify"});
  ASSERT_FALSE(summary.is_null());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("verified"), true);
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_EQ(summary.at("windows_missing"), 0);
  EXPECT_EQ(summary.at("windows_extra"), 0);
  EXPECT_EQ(summary.at("inputs_compared"), 2);
  EXPECT_EQ(summary.at("inputs_different"), 0);
  EXPECT_EQ(summary.at("drained"), true);
  EXPECT_EQ(summary.at("late"), 0);
  EXPECT_EQ(summary.at("rejected"), 0);
  EXPECT_EQ(summary.at("dropped"), 0);
  EXPECT_EQ(summary.at("pending"), 0);

  const Independent expected = count_generated(2, "5m");
  EXPECT_EQ(summary.at("measurements"), expected.rows);
  EXPECT_EQ(summary.at("aggregated"), expected.rows);

  // Every one-minute window of every plug, against the generated text.
  const base::Finished query = run_program({"query", "windows", "--store", fleet.cloud_file().string(), "--rollup",
                                            "plug_load", "--window", "1m", "--format", "csv", "--epoch"});
  ASSERT_TRUE(query.status.success()) << query.errors;
  const std::vector<std::string> lines = lines_of(query.output);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(cells(lines[0]), ElementsAre("start", "end", "house", "household", "plug", "count", "sum", "min", "max",
                                           "mean", "stddev", "first", "last", "revision", "final"));
  EXPECT_EQ(lines.size() - 1, expected.minutes.size());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> c = cells(lines[i]);
    ASSERT_EQ(c.size(), 15u) << lines[i];
    std::int64_t start = 0;
    std::int64_t end = 0;
    ASSERT_TRUE(absl::SimpleAtoi(c[0], &start) && absl::SimpleAtoi(c[1], &end));
    EXPECT_EQ(end - start, 60'000'000'000);
    const auto found = expected.minutes.find({c[2], c[3], c[4], start / 1'000'000'000});
    ASSERT_NE(found, expected.minutes.end()) << lines[i];
    const Minute& m = found->second;
    EXPECT_EQ(c[5], std::to_string(m.count)) << lines[i];
    EXPECT_EQ(number(c[6]), static_cast<double>(m.thousandths) / 1000) << lines[i];
    EXPECT_EQ(number(c[7]), m.min) << lines[i];
    EXPECT_EQ(number(c[8]), m.max) << lines[i];
    EXPECT_EQ(c[13], "0") << lines[i];
    EXPECT_EQ(c[14], "true") << lines[i];
  }
}

TEST(FleetUp, StaysUpAndAnswersQueries) {
  const FleetText text{.edges = 1, .levels = 1, .houses = 1, .length = "4m"};
  FleetUnderTest fleet(text.full());
  ASSERT_TRUE(fleet.up({"--verify"}));
  const json summary = fleet.summary();
  ASSERT_FALSE(summary.is_null());
  EXPECT_EQ(summary.at("windows_different"), 0) << summary;
  for (const std::string rollup : {"plug_load", "house_work", "house_load"}) {
    const base::Finished by_url = run_program(
        {"query", "windows", "--url", "http://" + fleet.http("cloud"), "--rollup", rollup, "--format", "csv"});
    EXPECT_TRUE(by_url.status.success()) << by_url.errors;
    EXPECT_EQ(lines_of(by_url.output), fleet.windows(rollup));
    EXPECT_GT(lines_of(by_url.output).size(), 4u) << rollup;
  }
  // Ordered by window, so the day comes first. An across-series row has no first and last.
  const std::vector<std::string> house = fleet.windows("house_load");
  ASSERT_GE(house.size(), 2u);
  EXPECT_EQ(house[0], "start,end,house,count,sum,min,max,mean,stddev,first,last,revision,final");
  EXPECT_THAT(house[1], HasSubstr(",,,"));
  EXPECT_EQ(house[1].substr(0, 42), "2013-08-31T22:00:00Z,2013-09-01T22:00:00Z,");

  // One group of one window, as JSON, by both ways.
  for (const auto& [way, where] :
       {std::pair<std::string, std::string>{"--url", fleet.http("cloud")}, {"--store", fleet.cloud_file().string()}}) {
    const base::Finished one =
        run_program({"query", "windows", way, where, "--rollup", "house_load", "--where", "house=0", "--from",
                     "2013-08-31T22:02:00Z", "--to", "2013-08-31T22:03:00Z", "--window", "1m", "--format", "json"});
    ASSERT_TRUE(one.status.success()) << one.errors;
    const json rows = json::parse(one.output).at("windows");
    ASSERT_EQ(rows.size(), 1u) << one.output;
    EXPECT_EQ(rows[0].at("labels").at("house"), "0");
    EXPECT_EQ(rows[0].at("start"), "2013-08-31T22:02:00Z");
    EXPECT_TRUE(rows[0].at("first").is_null());
  }
  const base::Finished forecasts =
      run_program({"query", "forecasts", "--url", fleet.http("cloud"), "--rollup", "house_load", "--format", "csv"});
  EXPECT_TRUE(forecasts.status.success()) << forecasts.errors;
  EXPECT_EQ(lines_of(forecasts.output).at(0), "start,end,step,house,made_at,predicted,actual,reason");
  EXPECT_GT(lines_of(forecasts.output).size(), 3u);

  fleet.interrupt();
  EXPECT_EQ(fleet.end(), 0);
}

TEST(FleetUp, ADayThatStartsEveryMinute) {
  const FleetText text{.edges = 2, .levels = 1, .houses = 2, .length = "10m"};
  FleetUnderTest fleet(text.full() +
                       "[[rollup]]\nname = \"house_day\"\nmetric = \"load\"\nby = [\"house\"]\nslice = \"1m\"\n"
                       "windows = [{ size = \"24h\", hop = \"1m\" }]\n");
  const json summary = fleet.run({"--for", "60s", "--verify"});
  ASSERT_FALSE(summary.is_null());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("verified"), true);
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_EQ(summary.at("windows_missing"), 0);
  EXPECT_EQ(summary.at("windows_extra"), 0);
  // Ten minutes of data are in the days that start up to 1,439 minutes before them, and in nine more; of two houses.
  EXPECT_EQ(fleet.windows("house_day").size(), 1 + 2 * (1440u + 9u));
}

TEST(FleetUp, ForStopsAPacedReplayAndVerifiesWhatWasRead) {
  const FleetText text{.edges = 1, .levels = 1, .houses = 1, .length = "1h", .speed = 100};
  FleetUnderTest fleet(text.full());
  const json first = fleet.run({"--for", "1s", "--verify"});
  ASSERT_FALSE(first.is_null());
  EXPECT_EQ(first.at("exit_code"), 0) << first;
  EXPECT_EQ(first.at("windows_different"), 0);
  EXPECT_GT(first.at("measurements").get<std::int64_t>(), 0);
  // A state that was used goes on where it stopped.
  const json second = fleet.run({"--for", "1s", "--verify"});
  ASSERT_FALSE(second.is_null());
  EXPECT_EQ(second.at("exit_code"), 0) << second;
  EXPECT_EQ(second.at("windows_different"), 0);
  EXPECT_GT(second.at("measurements").get<std::int64_t>(), first.at("measurements").get<std::int64_t>());
}

}  // namespace
}  // namespace orla::behaviour
