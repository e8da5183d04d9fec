// Runs every SQL example of docs/cloud-schema.md on a small cloud's file.
#include "store/cloud_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "store/cloud_for_tests.h"
#include "store/sqlite_cloud_store.h"

namespace orla::store {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using testing::ElementsAre;

constexpr char kPage[] = "docs/cloud-schema.md";

// Two houses as the page's examples name them: a day in minutes and as a whole, forecasts, a ledger.
model::Fleet page_fleet() {
  model::Fleet fleet = small_fleet();
  fleet.rollups = {test_rollup("plug_load", {"house", "plug"}, {"1m"}),
                   test_rollup("house_load", {"house"}, {"1m", "1d"})};
  fleet.rollups[1].metric.clear();
  fleet.rollups[1].from = "plug_load";
  fleet.rollups[1].across = model::Statistic::kSum;
  fleet.forecasts = {{{"plug_load", "house_load"}, "debs2014", {minutes(1)}}};
  return fleet;
}

CloudCommit page_commit() {
  CloudCommit commit;
  for (int m = 0; m < 2; ++m) {
    for (int p = 9; p < 11; ++p) {
      WindowRow row = merge_row(plug(0, p), kNoon + minutes(m), {1.0 * p, 2.0 * p}, static_cast<std::uint64_t>(m));
      row.table = "plug_load";
      commit.windows.push_back(row);
    }
  }
  WindowRow day = across_row(0, kNoon - hours(14), {100, 150});
  day.table = "house_load";
  day.window = "1d";
  day.end = day.start + hours(24);
  commit.windows.push_back(day);
  // Kept for the houses' days, and hidden.
  WindowRow hidden = merge_row(plug(0, 9), kNoon - hours(14), {1});
  hidden.table = "plug_load";
  hidden.window = "1d";
  commit.windows.push_back(hidden);
  const std::vector<model::Label> house = {{"house", "0"}};
  const std::int64_t step = 60'000'000'000;
  commit.forecasts = {{"house_load", step, house, kNoon, kNoon + minutes(2), 10, "", 13},
                      {"house_load", step, house, kNoon + minutes(1), kNoon + minutes(3), 10, "", 6},
                      {"house_load", step, house, kNoon + minutes(2), kNoon + minutes(4), std::nullopt, "none", 6}};
  commit.publication = {{"plug_load", kNoon + minutes(61)}, {"house_load", model::kMaxTime}};
  OriginRow origin;
  origin.cursor = {"edge-1", model::Epoch(7), 12, {}};
  model::Ledger ledger;
  ledger.received = 10;
  ledger.aggregated = 7;
  ledger.rejected = {{"malformed", 2}, {"not_finite", 1}};
  ledger.rejected_set = {3, 1};
  origin.ledgers = {{"edge-1/0", ledger}};
  origin.losses = {{"damaged", 2, {{"edge-1/0", 120}}}};
  commit.origins = {origin};
  return commit;
}

class CloudSchemaTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto store =
        SqliteCloudStore::open(directory_.path().string(), model::make_plan(page_fleet()), {Fsync::kOff, 0}).value();
    const absl::Status status = store->commit(page_commit());
    ASSERT_TRUE(status.ok()) << status;
    database_ = Database::open((directory_.path() / kCloudFileName).string(), OpenMode::kReadOnly).value();
  }

  // Rows as texts, columns separated by "|".
  std::vector<std::string> rows(const std::string& sql, int columns) {
    absl::StatusOr<Statement> statement = database_->prepare(sql);
    EXPECT_TRUE(statement.ok()) << statement.status();
    std::vector<std::string> out;
    if (!statement.ok()) return out;
    absl::StatusOr<bool> row = statement->step();
    for (; row.ok() && *row; row = statement->step()) {
      std::string line;
      for (int c = 0; c < columns; ++c) {
        if (c > 0) line += '|';
        line += statement->is_null(c) ? "NULL" : std::string(statement->text(c));
      }
      out.push_back(line);
    }
    EXPECT_TRUE(row.ok()) << row.status();
    return out;
  }

  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("cloud-schema").value();
  std::unique_ptr<Database> database_;
};

TEST_F(CloudSchemaTest, EveryExampleOfThePageGivesRows) {
  const std::string page = base::read_file(kPage, 1 << 20).value();
  const std::string open = "```sql\n";
  int examples = 0;
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::string sql = page.substr(at, page.find("```", at) - at);
    EXPECT_FALSE(rows(sql, 1).empty()) << sql;
    ++examples;
  }
  EXPECT_GE(examples, 8);
}

TEST_F(CloudSchemaTest, EveryTableAndViewIsOnThePage) {
  const std::string page = base::read_file(kPage, 1 << 20).value();
  for (const std::string& name :
       rows("SELECT name FROM sqlite_master WHERE type IN ('table','view') AND name NOT LIKE 'sqlite_%'", 1)) {
    const bool documented =
        page.find("`" + name + "`") != std::string::npos || page.find("### " + name + "\n") != std::string::npos;
    EXPECT_TRUE(documented) << name;
  }
}

TEST_F(CloudSchemaTest, TheViewOfWindowsReadsLikeThePage) {
  EXPECT_THAT(
      rows("SELECT rollup, window, labels, start, \"end\", count, sum, mean, first, last, revision, final FROM "
           "windows WHERE rollup='plug_load' AND labels ->> 'plug' = '9' ORDER BY start_ns",
           12),
      ElementsAre("plug_load|1m|{\"house\":\"0\",\"plug\":\"9\"}|2013-09-13T12:00:00Z|2013-09-13T12:01:00Z|2|27.0|"
                  "13.5|9.0|18.0|0|1",
                  "plug_load|1m|{\"house\":\"0\",\"plug\":\"9\"}|2013-09-13T12:01:00Z|2013-09-13T12:02:00Z|2|27.0|"
                  "13.5|9.0|18.0|1|0"));
  EXPECT_THAT(rows("SELECT DISTINCT window FROM windows WHERE rollup='plug_load'", 1), ElementsAre("1m"));
  EXPECT_THAT(rows("SELECT rollup, window, start, sum, first FROM windows WHERE rollup='house_load'", 5),
              ElementsAre("house_load|1d|2013-09-12T22:00:00Z|250.0|NULL"));
}

TEST_F(CloudSchemaTest, TheViewOfForecastsGivesTheirError) {
  EXPECT_THAT(rows("SELECT step, made_at, start, predicted, actual, error, reason FROM forecasts ORDER BY start_ns", 7),
              ElementsAre("1m|2013-09-13T12:00:00Z|2013-09-13T12:02:00Z|10.0|13.0|-3.0|",
                          "1m|2013-09-13T12:01:00Z|2013-09-13T12:03:00Z|10.0|6.0|4.0|",
                          "1m|2013-09-13T12:02:00Z|2013-09-13T12:04:00Z|NULL|6.0|NULL|none"));
  EXPECT_THAT(rows("SELECT rollup, published FROM publication ORDER BY rollup", 2),
              ElementsAre("house_load|everything", "plug_load|2013-09-13T13:01:00Z"));
}

TEST_F(CloudSchemaTest, TimesWithFractionsAndBefore1970) {
  directory_ = base::TemporaryDirectory::create("cloud-schema").value();
  const auto store =
      SqliteCloudStore::open(directory_.path().string(), model::make_plan(page_fleet()), {Fsync::kOff, 0}).value();
  CloudCommit commit;
  for (const std::int64_t ns : {-1'500'000'000LL, 1'500'000'001LL, -60'000'000'000LL}) {
    WindowRow row = merge_row(plug(0, 1), model::from_ns(ns), {1});
    row.table = "plug_load";
    commit.windows.push_back(row);
  }
  ASSERT_TRUE(store->commit(commit).ok());
  database_ = Database::open((directory_.path() / kCloudFileName).string(), OpenMode::kReadOnly).value();
  EXPECT_THAT(rows("SELECT start FROM windows ORDER BY start_ns", 1),
              ElementsAre("1969-12-31T23:59:00Z", "1969-12-31T23:59:58.500000000Z", "1970-01-01T00:00:01.500000001Z"));
}

TEST_F(CloudSchemaTest, AQuestionForOneWindowIsOneRangeOfTheFile) {
  const std::vector<std::string> plan =
      rows("EXPLAIN QUERY PLAN SELECT * FROM windows WHERE rollup='plug_load' AND window='1m' AND start_ns >= 5", 4);
  const std::string text = testing::PrintToString(plan);
  EXPECT_THAT(text, testing::HasSubstr("SEARCH w USING PRIMARY KEY (kind=? AND start_ns>?)"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("SCAN")));
}

}  // namespace
}  // namespace orla::store
