#include "ingest/csv_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orla::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> split(const std::string& line, char delimiter = ',') {
  Cells cells;
  const std::optional<Fault> fault = cells.split(line, delimiter);
  EXPECT_FALSE(fault) << fault->message;
  return {cells.all().begin(), cells.all().end()};
}

TEST(Cells, SplitsAfterRfc4180) {
  EXPECT_THAT(split("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split(""), ElementsAre(""));
  EXPECT_THAT(split(","), ElementsAre("", ""));
  EXPECT_THAT(split("\"a,b\",c"), ElementsAre("a,b", "c"));
  EXPECT_THAT(split("\"\",\"\""), ElementsAre("", ""));
  EXPECT_THAT(split("\"say \"\"hi\"\"\",x,\"\"\"\""), ElementsAre("say \"hi\"", "x", "\""));
  EXPECT_THAT(split("a,\"b\","), ElementsAre("a", "b", ""));
  EXPECT_THAT(split("x\"y,z"), ElementsAre("x\"y", "z"));
  EXPECT_THAT(split("1;2,5;3", ';'), ElementsAre("1", "2,5", "3"));
  EXPECT_THAT(split("1\t 2 \t3", '\t'), ElementsAre("1", "2", "3"));
  EXPECT_THAT(split("  a , \"b\" ,\" c \""), ElementsAre("a", "\"b\"", " c "));
}

TEST(Cells, QuotesThatDoNotFit) {
  Cells cells;
  std::optional<Fault> fault = cells.split("a,\"b,c", ',');
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->column, 2U);
  EXPECT_THAT(fault->message, HasSubstr("closing quote"));
  fault = cells.split("\"a\"b,c", ',');
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->column, 1U);
  EXPECT_TRUE(cells.split("\"", ','));
  EXPECT_TRUE(cells.split("\"\"\"", ','));
}

model::CsvMapping mapping() {
  model::CsvMapping m;
  m.time_column = "Time";
  m.labels = {{"room", "Room"}};
  m.values = {{"temperature", "Temp"}, {"humidity", "4"}};
  return m;
}

TEST(Columns, ByNameAndByNumber) {
  const auto columns = find_columns(mapping(), {"Room", "Time", "Temp", "Hum", "Other"});
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_THAT(columns->time, ElementsAre(1U));
  EXPECT_THAT(columns->labels, ElementsAre(0U));
  EXPECT_THAT(columns->values, ElementsAre(2U, 3U));
  EXPECT_EQ(columns->count, 5U);

  // A column whose name is a number is found by its name first.
  EXPECT_THAT(find_columns(mapping(), {"Room", "Time", "4", "x", "Temp"})->values, ElementsAre(4U, 2U));
}

TEST(Columns, TimeInSeveralColumns) {
  model::CsvMapping m = mapping();
  m.time_column = "Date+Time";
  EXPECT_THAT(find_columns(m, {"Time", "Room", "Temp", "x", "Date"})->time, ElementsAre(4U, 0U));
  EXPECT_THAT(find_columns(m, {"Date+Time", "Room", "Temp", "x", "Date"})->time, ElementsAre(0U));
}

TEST(Columns, AllThatAreMissingAreNamed) {
  const absl::Status status = find_columns(mapping(), {"room", "time", "Temperature"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("no \"Time\" (did you mean \"time\"?)"));
  EXPECT_THAT(message, HasSubstr("no \"Room\" (did you mean \"room\"?)"));
  EXPECT_THAT(message, HasSubstr("no \"Temp\""));
  EXPECT_THAT(message, HasSubstr("no \"4\""));
  EXPECT_THAT(message, HasSubstr("the header's 3 columns are \"room\", \"time\", \"Temperature\""));
  const absl::Status twice = find_columns(mapping(), {"Room", "Time", "Temp", "Temp", "x"}).status();
  EXPECT_THAT(std::string(twice.message()), HasSubstr("\"Temp\" more than once"));
}

TEST(Columns, WithoutAHeaderByNumberOnly) {
  model::CsvMapping m = mapping();
  EXPECT_THAT(std::string(find_columns_without_header(m).status().message()), HasSubstr("no \"Time\", no \"Room\""));
  m.time_column = "1+2";
  m.labels[0].column = "7";
  m.values[0].column = "3";
  const auto columns = find_columns_without_header(m);
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_THAT(columns->time, ElementsAre(0U, 1U));
  EXPECT_EQ(columns->count, 7U);
  m.values[0].column = "0";
  EXPECT_FALSE(find_columns_without_header(m).ok());
}

}  // namespace
}  // namespace orla::ingest
