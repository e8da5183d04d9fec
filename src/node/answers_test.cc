#include "node/answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "model/fleet_file.h"
#include "model/plan.h"
#include "store/sqlite_cloud_store.h"

namespace orla::node {
namespace {

constexpr char kFleet[] = R"(
[fleet]
name = "answers"
[[node]]
name = "cloud"
layer = "cloud"
listen = "127.0.0.1:0"
[[node]]
name = "edge"
layer = "edge"
parents = "cloud"
[[metric]]
name = "load"
[[input]]
node = "edge"
generator = { houses = 1, for = "1m" }
[[rollup]]
name = "plug_load"
metric = "load"
by = ["plug"]
windows = ["60m"]
)";

class AnswersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = base::TemporaryDirectory::create("answers");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
    auto parsed = model::parse_fleet(kFleet, "fleet.toml", [](std::string_view) { return std::nullopt; });
    ASSERT_TRUE(parsed.fleet.has_value()) << model::to_string(parsed.errors);
    plan_ = model::make_plan(*std::move(parsed.fleet));
    auto store = store::SqliteCloudStore::open(folder_->path(), plan_, {});
    ASSERT_TRUE(store.ok()) << store.status();
    store::CloudCommit commit;
    for (const auto& [plug, value] : {std::pair("1", 1.5), std::pair("2", 1.7e308)}) {
      store::WindowRow row;
      row.table = "plug_load";
      row.window = "1h";
      row.labels = {{"plug", plug}};
      row.end = model::Time(std::chrono::hours(1));
      row.state.add(model::Time(std::chrono::seconds(1)), value, 3);
      row.state.add(model::Time(std::chrono::seconds(2)), value, 3);
      row.shown = model::statistics(row.state, 3);
      commit.windows.push_back(std::move(row));
    }
    ASSERT_TRUE((*store)->commit(commit).ok());
  }

  absl::StatusOr<std::string> ask(AnswerOptions options) {
    auto stream = AnswerStream::open(folder_->path() / store::kCloudFileName, std::move(options));
    if (!stream.ok()) return stream.status();
    std::string all;
    std::string piece;
    for (bool more = true; more;) {
      const absl::StatusOr<bool> next = stream->next(piece);
      if (!next.ok()) return next.status();
      all += piece;
      more = *next;
    }
    return all;
  }

  std::optional<base::TemporaryDirectory> folder_;
  model::Plan plan_;
};

TEST_F(AnswersTest, CsvHasTheColumnsThatArePromised) {
  AnswerOptions options;
  options.format = AnswerFormat::kCsv;
  options.query.where = {{"plug", "1"}};
  const auto answer = ask(options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer,
            "start,end,plug,count,sum,min,max,mean,stddev,first,last,revision,final\n"
            "1970-01-01T00:00:00Z,1970-01-01T01:00:00Z,1,2,3,1.5,1.5,1.5,0,1.5,1.5,0,false\n");
}

// A rollup that asks for them has columns and fields of its sketches; others have none.
TEST_F(AnswersTest, SketchesAreShownWhereTheyAreAskedFor) {
  base::TemporaryDirectory folder = base::TemporaryDirectory::create("answers").value();
  const std::string text = std::string(kFleet) + "quantiles = true\ndistinct = [\"house\"]\n";
  auto parsed = model::parse_fleet(text, "fleet.toml", [](std::string_view) { return std::nullopt; });
  ASSERT_TRUE(parsed.fleet.has_value()) << model::to_string(parsed.errors);
  plan_ = model::make_plan(*std::move(parsed.fleet));
  store::WindowRow row;
  row.table = "plug_load";
  row.window = "1h";
  row.labels = {{"plug", "1"}};
  row.end = model::Time(std::chrono::hours(1));
  row.state.sketches = model::Sketches(plan_.tables[0].sketches);
  row.state.add(model::Time(std::chrono::seconds(1)), 1.5, 3);
  row.state.sketches.distinct()->add(1);
  row.shown = model::statistics(row.state, 3);
  store::CloudCommit commit;
  commit.windows.push_back(std::move(row));
  {
    auto store = store::SqliteCloudStore::open(folder.path(), plan_, {});
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->commit(commit).ok());
  }
  folder_.emplace(std::move(folder));
  AnswerOptions options;
  const nlohmann::json json = nlohmann::json::parse(ask(options).value());
  for (const char* quantile : {"p50", "p90", "p99", "p999"}) EXPECT_EQ(json["windows"][0].at(quantile), 1.5);
  EXPECT_EQ(json["windows"][0].at("distinct"), 1);
  options.format = AnswerFormat::kCsv;
  EXPECT_EQ(ask(options).value(),
            "start,end,plug,count,sum,min,max,mean,stddev,first,last,p50,p90,p99,p999,distinct,revision,final\n"
            "1970-01-01T00:00:00Z,1970-01-01T01:00:00Z,1,1,1.5,1.5,1.5,1.5,0,1.5,1.5,1.5,1.5,1.5,1.5,1,0,false\n");
}

TEST_F(AnswersTest, JsonStaysJsonWhenASumOverflows) {
  const auto answer = ask({});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const nlohmann::json json = nlohmann::json::parse(*answer);
  ASSERT_EQ(json["windows"].size(), 2U);
  EXPECT_EQ(json["windows"][0]["sum"], 3.0);
  EXPECT_TRUE(json["windows"][1]["sum"].is_null());
  EXPECT_EQ(json["windows"][1]["max"], 1.7e308);
  EXPECT_TRUE(json["next"].is_null());
}

TEST_F(AnswersTest, AWindowMayBeNamedAsInTheFleetFile) {
  AnswerOptions options;
  options.query.window = "60m";
  EXPECT_TRUE(ask(options).ok());
  options.query.window = "7m";
  EXPECT_EQ(ask(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(AnswersTest, ALimitedAnswerGoesOnWhereItStopped) {
  AnswerOptions options;
  options.query.limit = 1;
  const nlohmann::json first = nlohmann::json::parse(*ask(options));
  ASSERT_EQ(first["windows"].size(), 1U);
  options.query.after = first["next"].get<std::string>();
  const nlohmann::json second = nlohmann::json::parse(*ask(options));
  ASSERT_EQ(second["windows"].size(), 1U);
  EXPECT_EQ(second["windows"][0]["labels"]["plug"], "2");
}

TEST(Answers, AFileThatIsNotThereIsSaid) {
  EXPECT_EQ(AnswerStream::open("no/such/cloud.sqlite", {}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace orla::node
