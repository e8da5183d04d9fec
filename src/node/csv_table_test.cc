#include "node/csv_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace orla::node {
namespace {

std::string table_of(std::initializer_list<std::string_view> pieces) {
  std::string out;
  CsvTable table([&](std::string_view text) { out += text; });
  for (const std::string_view piece : pieces) table.add(piece);
  table.finish();
  return out;
}

TEST(CsvTable, AlignsToTheRight) { EXPECT_EQ(table_of({"a,long\n10,2\n"}), " a  long\n10     2\n"); }

TEST(CsvTable, DoesNotMindWhereThePiecesEnd) {
  EXPECT_EQ(table_of({"a,lo", "ng\n1", "0,2\n"}), table_of({"a,long\n10,2\n"}));
  EXPECT_EQ(table_of({"a\n1"}), "a\n1\n");
}

TEST(CsvTable, UnderstandsQuotes) { EXPECT_EQ(table_of({"x,y\n\"a,\"\"b\",1\n"}), "   x  y\na,\"b  1\n"); }

TEST(CsvTable, CountsCharactersNotBytes) { EXPECT_EQ(table_of({"ä\nbb\n"}), " ä\nbb\n"); }

TEST(CsvTable, GoesOnBeyondItsSample) {
  std::string csv;
  for (std::size_t i = 0; i < CsvTable::kSample + 10; ++i) csv += "1\n";
  csv += "12345\n";
  const std::string out = table_of({csv});
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), static_cast<std::ptrdiff_t>(CsvTable::kSample + 11));
  EXPECT_NE(out.find("12345\n"), std::string::npos);
}

}  // namespace
}  // namespace orla::node
