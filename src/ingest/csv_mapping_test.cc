#include "ingest/csv_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "ingest/read_all.h"

namespace orla::ingest {
namespace {

using ::testing::HasSubstr;
using Samples = std::vector<std::pair<model::Time, double>>;

model::Time unix_s(std::int64_t s) { return model::from_ns(s * 1'000'000'000); }

model::CsvMapping weather() {
  model::CsvMapping m;
  m.time_column = "time";
  m.time_format = "unix";
  m.labels = {{"room", "room"}};
  m.constant_labels = {{"building", "A"}};
  m.values = {{"temperature", "temp"}, {"humidity", "hum"}};
  m.missing = {"", "NA"};
  return m;
}

absl::StatusOr<Everything> try_read(const model::CsvMapping& mapping, const std::string& text,
                                    const Selection& selection = Selection(), BatchLimits limits = {},
                                    const model::Position& from = {},
                                    std::vector<model::Position>* positions = nullptr) {
  auto parser = make_mapping_parser(mapping, selection);
  if (!parser.ok()) return parser.status();
  auto input = make_csv_input(base::bytes_in_memory(text, 13), "x.csv", *std::move(parser), "e/0", limits, from);
  if (!input.ok()) return input.status();
  Everything all = read_all(**input, positions);
  EXPECT_EQ(all.broken, "");
  EXPECT_TRUE(all.status.ok()) << all.status;
  return all;
}

Everything read(const model::CsvMapping& mapping, const std::string& text, const Selection& selection = Selection()) {
  absl::StatusOr<Everything> all = try_read(mapping, text, selection);
  EXPECT_TRUE(all.ok()) << all.status();
  return all.ok() ? *std::move(all) : Everything{};
}

TEST(CsvMapping, OneSamplePerValueColumn) {
  const Everything all = read(weather(),
                              "room,time,temp,hum,note\n"
                              "kitchen,100,21.5,40,\"a, b\"\n"
                              "kitchen,101.5,NA,41,\n"
                              "attic,100,,NA,x\n"
                              "bath,102,22,,x\n");
  EXPECT_EQ(all.samples.size(), 3U);
  EXPECT_EQ(all.samples.at("temperature{building=A,room=kitchen}"), (Samples{{unix_s(100), 21.5}}));
  EXPECT_EQ(all.samples.at("humidity{building=A,room=kitchen}"),
            (Samples{{unix_s(100), 40}, {model::from_ns(101'500'000'000), 41}}));
  EXPECT_EQ(all.samples.at("temperature{building=A,room=bath}"), (Samples{{unix_s(102), 22}}));
  EXPECT_EQ(all.received, 4U);  // the attic's row has no value: counted nowhere
  EXPECT_EQ(all.position.row, 5U);
}

TEST(CsvMapping, DecimalCommaDelimiterAndZone) {
  model::CsvMapping m;
  m.delimiter = ';';
  m.decimal_mark = ',';
  m.time_column = "Datum+Zeit";
  m.time_format = "%d.%m.%Y %H:%M";
  m.time_zone = "Europe/Berlin";
  m.values = {{"load", "Leistung"}};
  const Everything all = read(m,
                              "\xef\xbb\xbf"
                              "Datum;Zeit;Leistung\r\n"
                              "01.09.2013;00:30;1234,5\r\n"
                              "01.09.2013;00:45;1.234,5\r\n"
                              "01.09.2013;01:00;-2\r\n");
  EXPECT_EQ(all.samples.at("load"), (Samples{{unix_s(1377988200), 1234.5}, {unix_s(1377990000), -2}}));
  EXPECT_EQ(all.rejected, (model::ReasonCounts{{"malformed", 1}}));
  EXPECT_EQ(all.rejections[0].row, 3U);
  EXPECT_EQ(all.rejections[0].column, 3U);
  EXPECT_THAT(all.rejections[0].message, HasSubstr("decimal comma"));
}

TEST(CsvMapping, WithoutAHeader) {
  model::CsvMapping m;
  m.header = false;
  m.delimiter = '\t';
  m.time_column = "1";
  m.time_format = "rfc3339";
  m.values = {{"power", "3"}};
  const Everything all = read(m,
                              "2012-02-22T16:46:28.9670320+00:00\t2556001\t13056\t14406\n"
                              "2012-02-22T16:46:28.9770284+00:00\t2556002\n"
                              "2012-02-22T16:46:28.9870216+00:00\t2556003\t13049");
  EXPECT_EQ(all.samples.at("power"),
            (Samples{{model::from_ns(1329929188967032000), 13056}, {model::from_ns(1329929188987021600), 13049}}));
  ASSERT_EQ(all.rejections.size(), 1U);
  EXPECT_THAT(all.rejections[0].message, HasSubstr("found 2 columns"));
  EXPECT_THAT(all.rejections[0].message, HasSubstr("expected at least 3"));
}

TEST(CsvMapping, ARowIsWholeOrRejected) {
  using std::string_literals::operator""s;
  const Everything all = read(weather(),
                              "room,time,temp,hum\n"
                              "a,100,1,2\n"
                              "a,100,1,x\n"          // 3
                              "a,100,nan,2\n"        // 4
                              "a,100,1,inf\n"        // 5
                              "a,yesterday,1,2\n"    // 6
                              "a,99999999999,1,2\n"  // 7
                              "a\xff,100,1,2\n"      // 8
                              "a,100,1\n"            // 9
                              "a,100,1,2,3\n"        // 10
                              "\"a,100,1,2\n"        // 11
                              "a,100,1\0,2\n"s +     // 12
                                  std::string(kMaxLabelBytes + 1, 'a') +
                                  ",100,1,2\n"  // 13
                                  "a,101,3,4\n" +
                                  std::string(kMaxLineBytes, 'a') +
                                  ",100,1,2\n"  // 15
                                  "a,102,5");   // 16
  EXPECT_EQ(all.samples.at("temperature{building=A,room=a}"), (Samples{{unix_s(100), 1}, {unix_s(101), 3}}));
  EXPECT_EQ(all.sample_count, 4U);
  EXPECT_EQ(
      all.rejected,
      (model::ReasonCounts{{"bad_label", 2}, {"bad_time", 2}, {"malformed", 6}, {"not_finite", 2}, {"too_long", 1}}));
  std::vector<std::pair<std::uint64_t, std::uint32_t>> places;
  for (const model::Rejection& r : all.rejections) places.emplace_back(r.row, r.column);
  EXPECT_EQ(places, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{{3, 4},
                                                                          {4, 3},
                                                                          {5, 4},
                                                                          {6, 2},
                                                                          {7, 2},
                                                                          {8, 1},
                                                                          {9, 0},
                                                                          {10, 0},
                                                                          {11, 1},
                                                                          {12, 0},
                                                                          {13, 1},
                                                                          {15, 0},
                                                                          {16, 0}}));
}

TEST(CsvMapping, LabelsAreTakenAsTheyAre) {
  const Everything all = read(weather(),
                              "room,time,temp,hum\n"
                              "Küche,100,1,\n"
                              "\" x \"\"y\"\",z\",100,2,\n"
                              ",100,3,\n");
  EXPECT_EQ(all.samples.count("temperature{building=A,room=Küche}"), 1U);
  EXPECT_EQ(all.samples.count("temperature{building=A,room= x \"y\",z}"), 1U);
  EXPECT_EQ(all.samples.count("temperature{building=A,room=}"), 1U);
}

TEST(CsvMapping, Select) {
  const std::string text =
      "room,time,temp,hum\n"
      "a,100,1,2\n"
      "b,100,3,4\n"
      "b,never,3,4\n"
      "a,never,3,4\n"
      "c,101,5,6\n"
      "b,102,3\n";
  const Everything all =
      read(weather(), text, Selection(Selection::Accepted{{"room", {"a", "c"}}, {"building", {"A"}}}));
  EXPECT_EQ(all.samples.size(), 4U);
  EXPECT_EQ(all.rejected, (model::ReasonCounts{{"bad_time", 1}, {"malformed", 1}}));
  EXPECT_EQ(all.received, 6U);
  EXPECT_EQ(read(weather(), text, Selection(Selection::Accepted{{"building", {"B"}}})).sample_count, 0U);
}

TEST(CsvMapping, TwoColumnsOfOneMetricAreOneSeries) {
  model::CsvMapping m = weather();
  m.values = {{"temperature", "temp"}, {"temperature", "hum"}};
  const Everything all = read(m, "room,time,temp,hum\na,100,1,2\n");
  EXPECT_EQ(all.samples.at("temperature{building=A,room=a}"), (Samples{{unix_s(100), 1}, {unix_s(100), 2}}));
}

TEST(CsvMapping, AMissingNumberHoweverItIsWritten) {
  model::CsvMapping m = weather();
  m.missing = {"-200", "n/a"};
  const Everything all = read(m, "room,time,temp,hum\na,100,-200.0,-2e2\na,101,-200,-200.5\na,102,n/a,+200\n");
  EXPECT_EQ(all.samples.at("humidity{building=A,room=a}"), (Samples{{unix_s(101), -200.5}, {unix_s(102), 200}}));
  EXPECT_EQ(all.received, 2U);
}

TEST(CsvMapping, NoRows) {
  EXPECT_EQ(read(weather(), "").received, 0U);
  EXPECT_EQ(read(weather(), "\n\r\n").received, 0U);
  EXPECT_EQ(read(weather(), "room,time,temp,hum").received, 0U);
  EXPECT_EQ(read(weather(), "\n\nroom,time,temp,hum\n\n").received, 0U);
}

TEST(CsvMapping, AHeaderThatDoesNotFitStopsTheInput) {
  const absl::Status status = try_read(weather(), "\nroom,Time,temp\n1,2,3\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("x.csv, line 2: found no \"time\" (did you mean \"Time\"?), no \"hum\""));
  EXPECT_EQ(try_read(weather(), "\"room,time\n").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(try_read(weather(), std::string(9 * kMaxLineBytes, 'x')).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CsvMapping, SettingsThatDoNotFit) {
  const auto refused = [](auto change) {
    model::CsvMapping m = weather();
    change(m);
    return make_mapping_parser(m, Selection()).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& m) { m.delimiter = '"'; }));
  EXPECT_TRUE(refused([](auto& m) { m.delimiter = '\0'; }));
  EXPECT_TRUE(refused([](auto& m) { m.decimal_mark = '\''; }));
  EXPECT_TRUE(refused([](auto& m) { m.time_column = ""; }));
  EXPECT_TRUE(refused([](auto& m) { m.time_format = "iso"; }));
  EXPECT_TRUE(refused([](auto& m) { m.time_zone = "Mars/Olympus"; }));
  EXPECT_TRUE(refused([](auto& m) { m.values.clear(); }));
  EXPECT_TRUE(refused([](auto& m) { m.constant_labels.emplace_back("room", "x"); }));
  EXPECT_TRUE(refused([](auto& m) { m.header = false; }));
}

TEST(CsvMapping, GoesOnFromAnyPosition) {
  std::string text = "\nroom,time,temp,hum\n";
  for (int i = 0; i < 120; ++i) {
    text += "r" + std::to_string(i % 4) + "," + std::to_string(i / 3) + "," + (i % 5 == 0 ? "NA" : "1.5") + "," +
            std::to_string(i) + "\n";
    if (i % 20 == 0) text += "junk\n\n";
  }
  const Everything whole = read(weather(), text);
  EXPECT_EQ(whole.sample_count, 120U + 96U);
  std::vector<model::Position> positions;
  const BatchLimits one{.rows = 1};
  EXPECT_TRUE(same_but_status(*try_read(weather(), text, Selection(), one, {}, &positions), whole));
  ASSERT_GT(positions.size(), 120U);
  for (std::size_t i = 0; i < positions.size(); i += 11) {
    Everything rest = *try_read(weather(), text, Selection(), {}, positions[i]);
    // The last samples of the whole are the rest.
    std::uint64_t samples = 0;
    for (const auto& [series, list] : rest.samples) {
      const Samples& all = whole.samples.at(series);
      ASSERT_LE(list.size(), all.size());
      EXPECT_TRUE(std::equal(list.rbegin(), list.rend(), all.rbegin())) << series;
      samples += list.size();
    }
    EXPECT_EQ(rest.position, whole.position);
    EXPECT_EQ(rest.sample_count, samples);
  }
  EXPECT_EQ(try_read(weather(), text, Selection(), {}, {text.size() + 9, 500}).status().code(),
            absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace orla::ingest
