#include "node/backtest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"

namespace orla::node {
namespace {

class BacktestFile : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return (directory_.path() / "loads.csv").string(); }

  absl::Status run(BacktestRequest::Format format) {
    out_.str("");
    notes_.str("");
    return run_backtest({path(), "UTC", format}, out_, notes_);
  }

  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("orla-backtest").value();
  std::ostringstream out_, notes_;
};

// One plug and one target of 1 min: t = 1442 min, with 10 W; now (1440 min) 3 W; a day earlier (2 min) 1 W.
// Formula (3 + 1) / 2 = 2. The work rows do not count.
constexpr char kOneTarget[] =
    "1,120,1,1,5,0,0\n"
    "2,120,77,0,5,0,0\n"
    "3,86400,3,1,5,0,0\n"
    "4,86520,10,1,5,0,0\n";

TEST_F(BacktestFile, Json) {
  write(kOneTarget);
  ASSERT_TRUE(run(BacktestRequest::Format::kJson).ok());
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json.size(), 5u);
  const nlohmann::json score = {{"n", 1},
                                {"formula", {{"mae", 8.0}, {"rmse", 8.0}}},
                                {"persistence", {{"mae", 7.0}, {"rmse", 7.0}}},
                                {"day_median", {{"mae", 9.0}, {"rmse", 9.0}}}};
  EXPECT_EQ(json["1m"]["plug"], score);
  EXPECT_EQ(json["1m"]["house"], score);
  for (const char* step : {"5m", "15m", "60m", "120m"}) {
    EXPECT_EQ(json[step]["plug"]["n"], 0) << step;
    EXPECT_TRUE(json[step]["house"]["formula"]["mae"].is_null()) << step;
  }
  EXPECT_EQ(notes_.str(), "");
}

TEST_F(BacktestFile, Table) {
  write(kOneTarget);
  ASSERT_TRUE(run(BacktestRequest::Format::kTable).ok());
  EXPECT_NE(
      out_.str().find("1m    plug           1      8.000      8.000      7.000      7.000      9.000      9.000\n"),
      std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("120m  house          0          -"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("3 loads read, 0 rows rejected"), std::string::npos) << out_.str();
}

TEST_F(BacktestFile, RowsThatCannotBeReadAreTold) {
  write(std::string("id,timestamp,value,property,plug_id,household_id,house_id\n") + kOneTarget +
        "5,86580,nan,1,5,0,0\n");
  ASSERT_TRUE(run(BacktestRequest::Format::kJson).ok());
  EXPECT_NE(notes_.str().find("line 1: malformed"), std::string::npos) << notes_.str();
  EXPECT_NE(notes_.str().find("line 6: not_finite"), std::string::npos) << notes_.str();
  EXPECT_NE(notes_.str().find("2 rows rejected"), std::string::npos) << notes_.str();
}

TEST_F(BacktestFile, NothingToRead) {
  EXPECT_TRUE(absl::IsNotFound(run(BacktestRequest::Format::kJson)));
  write("");
  EXPECT_TRUE(absl::IsInvalidArgument(run(BacktestRequest::Format::kJson)));
  write("1,120,1,0,5,0,0\n");
  EXPECT_TRUE(absl::IsInvalidArgument(run(BacktestRequest::Format::kJson)));
  write(kOneTarget);
  EXPECT_TRUE(absl::IsInvalidArgument(run_backtest({path(), "Nowhere/Land", {}}, out_, notes_)));
}

}  // namespace
}  // namespace orla::node
