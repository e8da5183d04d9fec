#include "ingest/csv_debs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/byte_source.h"
#include "ingest/read_all.h"

namespace orla::ingest {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Input> open(const std::string& text, DebsPath path = DebsPath::kFast, BatchLimits limits = {},
                            const model::Position& from = {}, const Selection& selection = Selection(),
                            std::size_t piece = 1 << 20) {
  auto input = make_csv_input(base::bytes_in_memory(text, piece), "x.csv", make_debs_parser(selection, path), "e/0",
                              limits, from);
  EXPECT_TRUE(input.ok()) << input.status();
  return *std::move(input);
}

// What the fast path gives; the careful one must give the same.
Everything read(const std::string& text, const Selection& selection = Selection()) {
  const Everything fast = read_all(*open(text, DebsPath::kFast, {}, {}, selection));
  const Everything careful = read_all(*open(text, DebsPath::kCareful, {}, {}, selection));
  EXPECT_TRUE(same_but_status(fast, careful)) << text;
  EXPECT_EQ(fast.broken, "");
  EXPECT_TRUE(fast.status.ok()) << fast.status;
  return fast;
}

model::Time unix_s(std::int64_t s) { return model::from_ns(s * 1'000'000'000); }

TEST(CsvDebs, RowsBecomeSamplesOfTheirSeries) {
  const Everything all = read(
      "1,1377986401,68.451,0,11,0,0\n"
      "2,1377986401,19.927,1,11,0,0\n"
      "3,1377986402,-0.5,1,11,0,0\n");
  ASSERT_EQ(all.samples.size(), 2U);
  EXPECT_EQ(all.samples.at("work{house=0,household=0,plug=11}"),
            (std::vector<std::pair<model::Time, double>>{{unix_s(1377986401), 68.451}}));
  EXPECT_EQ(all.samples.at("load{house=0,household=0,plug=11}"),
            (std::vector<std::pair<model::Time, double>>{{unix_s(1377986401), 19.927}, {unix_s(1377986402), -0.5}}));
  EXPECT_EQ(all.received, 3U);
  EXPECT_EQ(all.position.row, 3U);
}

TEST(CsvDebs, EveryFormOfAValueIsTheNearestDouble) {
  for (const char* text : {"0",
                           "0.1",
                           "0.3",
                           "19.927",
                           "666.558",
                           "173.86",
                           "5.",
                           ".5",
                           "-1.25",
                           "123456789012345",
                           "0.123456789012345",
                           "99999999999999.9",
                           "1234567890123456",
                           "0.1234567890123456789",
                           "9007199254740993",
                           "1e3",
                           "-2.5e-3",
                           "+7.5",
                           "0000000000000000001",
                           "00000000000000000000000000.25",
                           "1.7976931348623157e308",
                           "5e-324"}) {
    const Everything all = read(std::string("1,1,") + text + ",1,2,3,4\n");
    ASSERT_EQ(all.sample_count, 1U) << text;
    EXPECT_EQ(all.samples.at("load{house=4,household=3,plug=2}")[0].second, std::strtod(text, nullptr)) << text;
  }
}

TEST(CsvDebs, IdsAreNumbers) {
  const Everything all = read(
      "18446744073709551615,0000001377986401,1,1,007,00,0000000000004294967295\n"
      "99999999999999999999999,1,1,1,7,0,1\n");
  EXPECT_EQ(all.samples.size(), 1U);
  EXPECT_EQ(all.samples.count("load{house=4294967295,household=0,plug=7}"), 1U);
  EXPECT_EQ(all.rejected, (model::ReasonCounts{{"malformed", 1}}));
}

struct Bad {
  const char* row;
  const char* reason;
  std::uint32_t column;
  const char* message;
};

class CsvDebsBad : public ::testing::TestWithParam<Bad> {};

// Between two good rows, each bad one is rejected alone.
TEST_P(CsvDebsBad, IsRejectedByItself) {
  const Bad& bad = GetParam();
  const std::string good = "1,1377986401,1,1,1,1,1\n";
  const Everything all = read(good + bad.row + "\n" + good);
  EXPECT_EQ(all.sample_count, 2U);
  EXPECT_EQ(all.received, 3U);
  EXPECT_EQ(all.rejected, (model::ReasonCounts{{bad.reason, 1}}));
  ASSERT_EQ(all.rejections.size(), 1U);
  EXPECT_EQ(all.rejections[0].row, 2U);
  EXPECT_EQ(all.rejections[0].column, bad.column);
  EXPECT_THAT(all.rejections[0].message, HasSubstr(bad.message));
  EXPECT_THAT(all.rejections[0].message, HasSubstr("expected"));
  model::SetDigest set;
  set.add(model::row_hash("e/0", 2));
  EXPECT_EQ(all.rejected_set, set);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CsvDebsBad,
    ::testing::Values(Bad{"1,1377986401,1,1,1,1", "malformed", 0, "found 6 columns"},
                      Bad{"1,1377986401,1,1,1,1,1,", "malformed", 0, "found 8 columns"},
                      Bad{"half", "malformed", 0, "found 1 column:"}, Bad{" ", "malformed", 0, "found 1 column:"},
                      Bad{"-1,1377986401,1,1,1,1,1", "malformed", 1, "\"-1\""},
                      Bad{",1377986401,1,1,1,1,1", "malformed", 1, "\"\""},
                      Bad{"1.0,1377986401,1,1,1,1,1", "malformed", 1, "\"1.0\""},
                      Bad{"1,1377986401.5,1,1,1,1,1", "bad_time", 2, "1377986401.5"},
                      Bad{"1,-5,1,1,1,1,1", "bad_time", 2, "\"-5\""},
                      Bad{"1,6942585600,1,1,1,1,1", "bad_time", 2, "6942585600"},
                      Bad{"1,99999999999999999999,1,1,1,1,1", "bad_time", 2, "2190"},
                      Bad{"1,1377986401,,1,1,1,1", "malformed", 3, "a number"},
                      Bad{"1,1377986401,12W,1,1,1,1", "malformed", 3, "12W"},
                      Bad{"1,1377986401,\"1\",1,1,1,1", "malformed", 3, "a number"},
                      Bad{"1,1377986401, 1,1,1,1,1", "malformed", 3, "a number"},
                      Bad{"1,1377986401,nan,1,1,1,1", "not_finite", 3, "nan"},
                      Bad{"1,1377986401,-inf,1,1,1,1", "not_finite", 3, "-inf"},
                      Bad{"1,1377986401,1e400,1,1,1,1", "not_finite", 3, "1e400"},
                      Bad{"1,1377986401,1,2,1,1,1", "malformed", 4, "0 (work) or 1 (load)"},
                      Bad{"1,1377986401,1,-1,1,1,1", "malformed", 4, "\"-1\""},
                      Bad{"1,1377986401,1,1,-1,1,1", "malformed", 5, "plug"},
                      Bad{"1,1377986401,1,1,1,1.5,1", "malformed", 6, "household"},
                      Bad{"1,1377986401,1,1,1,1,4294967296", "malformed", 7, "house"},
                      Bad{"1,1377986401,1,1,1,1,1 ", "malformed", 7, "\"1 \""},
                      Bad{"1,1377986401,1,1,1,1,1\r\r", "malformed", 7, "\\x0d"},
                      Bad{"id,timestamp,value,property,plug_id,household_id,house_id", "malformed", 1, "\"id\""}));

TEST(CsvDebs, NulBytesAndOtherBytes) {
  using std::string_literals::operator""s;
  const Everything all = read(
      "1,1377986401,1,1,1,1,1\0\n"s
      "1,\0\0\0\0\0\0\0\0\0\0\0,1,1,1,1,1\n"s
      "\xff\xfe,1377986401,1,1,1,1,1\n"
      "1,1377986401,2,1,1,1,1\n");
  EXPECT_EQ(all.sample_count, 1U);
  EXPECT_EQ(all.rejected, (model::ReasonCounts{{"bad_time", 1}, {"malformed", 2}}));
}

TEST(CsvDebs, LineEndsAndEmptyLines) {
  const Everything all = read(
      "\xef\xbb\xbf"
      "1,1377986401,1,1,1,1,1\r\n"
      "\r\n\n"
      "2,1377986402,2,1,1,1,1\n"
      "3,1377986403,3,1,1,1,1");
  EXPECT_EQ(all.sample_count, 3U);
  EXPECT_EQ(all.received, 3U);
  EXPECT_EQ(all.position.row, 5U);
}

TEST(CsvDebs, TheLastLineCountsWhenItIsWhole) {
  EXPECT_EQ(read("1,1377986401,1,1,1,1,1\n2,1377986401,1,1,1,1,1").sample_count, 2U);
  const Everything half = read("1,1377986401,1,1,1,1,1\n2,13779864");
  EXPECT_EQ(half.sample_count, 1U);
  EXPECT_EQ(half.rejected, (model::ReasonCounts{{"malformed", 1}}));
  EXPECT_EQ(half.rejections[0].row, 2U);
}

TEST(CsvDebs, NoRows) {
  for (const char* text : {"", "\n", "\r\n\n", "\xef\xbb\xbf"}) {
    const Everything all = read(text);
    EXPECT_EQ(all.received, 0U);
    EXPECT_TRUE(all.samples.empty());
  }
}

TEST(CsvDebs, TooLongLinesAreRejectedByThemselves) {
  const std::string good = "1,1377986401,1,1,1,1,1\n";
  for (const std::size_t bytes : {kMaxLineBytes + 1, 9 * kMaxLineBytes}) {
    const Everything all = read(good + std::string(bytes, '7') + "\n" + good + std::string(bytes, '7'));
    EXPECT_EQ(all.sample_count, 2U);
    EXPECT_EQ(all.rejected, (model::ReasonCounts{{"too_long", 2}}));
    EXPECT_EQ(all.rejections[0].row, 2U);
    EXPECT_EQ(all.rejections[1].row, 4U);
  }
  // Zeros before a number do not end at the limit of the fast path, but at that of lines.
  const std::string row = "1,1377986401," + std::string(kMaxLineBytes - 22, '0') + ",1,1,1,1";
  ASSERT_EQ(row.size(), kMaxLineBytes - 1);
  EXPECT_EQ(read(row + "\r\n").sample_count, 1U);
  EXPECT_EQ(read(row + "11\r\n").rejected, (model::ReasonCounts{{"too_long", 1}}));
}

TEST(CsvDebs, SelectTakesItsRowsAndCountsNoOthers) {
  const std::string text =
      "1,1377986401,1,1,1,0,3\n"
      "2,1377986401,2,0,1,0,4\n"
      "3,1377986401,3,1,1,1,3\n"
      "4,1377986401,nan,1,1,0,4\n"  // of another series: not this input's
      "5,1377986401,x,1,1,0,3\n"    // of this one
      "6,1377986401,x,9,1,0,4\n"    // whose row this is cannot be known
      "7,13779\n"
      "8,1377986402,4,1,1,0,3\n";
  const Everything house = read(text, Selection(Selection::Accepted{{"house", {"3"}}}));
  EXPECT_EQ(house.sample_count, 3U);
  EXPECT_EQ(house.rejected, (model::ReasonCounts{{"malformed", 3}}));
  const Everything household = read(text, Selection(Selection::Accepted{{"house", {"3", "7"}}, {"household", {"0"}}}));
  EXPECT_EQ(household.samples.size(), 1U);
  EXPECT_EQ(household.samples.at("load{house=3,household=0,plug=1}").size(), 2U);
  EXPECT_EQ(household.position.row, 8U);
  EXPECT_TRUE(read(text, Selection(Selection::Accepted{{"room", {"1"}}})).samples.empty());
}

TEST(CsvDebs, ManySeriesAndRepeatedTimes) {
  std::string text;
  for (int i = 0; i < 30000; ++i) {
    text += std::to_string(i) + "," + std::to_string(1377986401 + i / 1000) + "," + std::to_string(i) + "," +
            std::to_string(i % 2) + "," + std::to_string(i % 7000) + ",0," + std::to_string(i % 11) + "\n";
  }
  const Everything all = read(text);
  EXPECT_EQ(all.sample_count, 30000U);
  EXPECT_EQ(all.samples.size(), 30000U);  // 2, 7000 and 11 have the least common multiple 77000
  EXPECT_EQ(all.samples.at("load{house=4,household=0,plug=1001}")[0], std::pair(unix_s(1377986401 + 8), 8001.0));
}

TEST(CsvDebs, GoesOnFromAnyPositionHoweverTheBytesCome) {
  std::string text = "\xef\xbb\xbf";
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i) + "," + std::to_string(1377986401 + i / 7) + "," + std::to_string(i % 13) + ".25,1," +
            std::to_string(i % 5) + ",0,0" + (i % 3 == 0 ? "\r\n" : "\n");
    if (i % 50 == 0) text += "junk\n\n";
  }
  text += "300,1377990000,5,1,1,0,0";
  const Everything whole = read(text);
  EXPECT_EQ(whole.sample_count, 301U);
  EXPECT_EQ(whole.rejected, (model::ReasonCounts{{"malformed", 6}}));
  for (const BatchLimits& limits :
       {BatchLimits{.rows = 1}, BatchLimits{.rows = 17}, BatchLimits{.ahead = {}, .behind = {}}}) {
    std::vector<model::Position> positions;
    EXPECT_TRUE(
        same_but_status(read_all(*open(text, DebsPath::kFast, limits, {}, Selection(), 11), &positions), whole));
    ASSERT_GT(positions.size(), 15U);
    for (std::size_t i = 0; i < positions.size(); i += 7) {
      Everything both;
      std::vector<std::string> series;
      auto first = open(text, DebsPath::kFast, limits);
      model::InputBatch batch;
      for (std::size_t k = 0; k <= i; ++k) {
        ASSERT_TRUE(*first->next(batch));
        add_batch(both, series, batch);
      }
      ASSERT_EQ(both.position, positions[i]);
      auto second = open(text, DebsPath::kFast, {}, positions[i]);
      series.clear();
      while (*second->next(batch)) add_batch(both, series, batch);
      EXPECT_TRUE(same_but_status(both, whole)) << i;
      EXPECT_EQ(both.broken, "");
    }
  }
}

TEST(CsvDebs, BatchesAreBounded) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kMaxBatchRows + 5; ++i) text += "1,1377986401,1,1,1,1,1\n";
  auto input = open(text);
  model::InputBatch batch;
  std::size_t rows = 0;
  do {
    ASSERT_TRUE(*input->next(batch));
    EXPECT_LE(batch.samples.size(), kMaxBatchRows);
    EXPECT_LE(input->progress(), 1);
    rows += batch.samples.size();
  } while (!batch.end_of_input);
  EXPECT_EQ(rows, 2 * kMaxBatchRows + 5);
  EXPECT_EQ(input->progress(), 1);
  EXPECT_FALSE(*input->next(batch));

  // As many as there may be, when a block has more.
  auto dense = make_csv_input(base::bytes_in_memory(text), "x", make_debs_parser({}, DebsPath::kFast), "e/0", {}, {},
                              {.block_bytes = text.size()});
  ASSERT_TRUE(*(*dense)->next(batch));
  EXPECT_EQ(batch.samples.size(), kMaxBatchRows);
}

TEST(CsvDebs, PacedBatchesEndWhereTheTimeGoesOn) {
  const std::string text =
      "1,100,1,1,1,1,1\n2,100,2,1,2,1,1\n3,101,3,1,1,1,1\n4,99,4,1,1,1,1\n5,5000,5,1,1,1,1\n6,101,6,1,1,1,1\n";
  auto input = open(text, DebsPath::kFast, batch_limits(2, std::chrono::minutes(1)));
  std::vector<std::size_t> sizes;
  model::InputBatch batch;
  while (*input->next(batch)) sizes.push_back(batch.samples.times.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 2, 1, 1}));
}

TEST(CsvDebs, DamageEndsTheInputAfterItsGoodRows) {
  class Broken final : public base::ByteSource {
   public:
    absl::StatusOr<std::size_t> read(std::span<char> out) override {
      if (given_) return absl::DataLossError("cut off");
      given_ = true;
      const std::string text = "1,100,1,1,1,1,1\n2,100,2,1,1,1,1\n3,100,3,1,1";
      std::copy(text.begin(), text.end(), out.begin());
      return text.size();
    }
    double progress() const override { return -1; }

   private:
    bool given_ = false;
  };
  auto input = make_csv_input(std::make_unique<Broken>(), "x.csv.gz", make_debs_parser(Selection(), DebsPath::kFast),
                              "e/0", {}, {});
  const Everything all = read_all(**input);
  EXPECT_EQ(all.broken, "");
  EXPECT_EQ(all.sample_count, 2U);
  EXPECT_EQ(all.received, 2U);
  EXPECT_EQ(all.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(all.status.message()), HasSubstr("x.csv.gz, after line 2: cut off"));
}

}  // namespace
}  // namespace orla::ingest
