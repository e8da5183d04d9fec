#include "ingest/line_protocol.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace orla::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr model::Time kNow = model::from_ns(1'700'000'000'123'456'789);

// A body as read: "metric{labels} time value" of each sample, in order of series and then of arrival.
struct Reading {
  std::vector<std::string> samples;
  model::InputBatch batch;
  std::string rejections;  // "line:column reason message\n"
};

class Reader {
 public:
  explicit Reader(std::size_t max_series = kMaxPushedSeries) : table_(max_series), parser_("edge/0", table_) {}

  Reading read(std::string_view body, Precision precision = Precision::kNs, std::size_t max_samples = 100'000) {
    Reading reading;
    status = parser_.parse(body, {precision, kNow, max_samples}, reading.batch);
    if (!status.ok()) return reading;
    const model::Batch& samples = reading.batch.samples;
    const std::vector<model::Series> series = table_.since(0);
    for (const model::Batch::Run& run : samples.runs) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        reading.samples.push_back(fmt::format("{} {} {}", model::to_string(series[index(run.series)]),
                                              model::to_ns(samples.times[i]), samples.values[i]));
      }
    }
    for (const model::Rejection& r : reading.batch.rejections) {
      reading.rejections += fmt::format("{}:{} {} {}\n", r.row, r.column, r.reason, r.message);
    }
    return reading;
  }
  absl::Status status;

 private:
  SeriesTable table_;
  LineParser parser_;
};

TEST(LineProtocol, FieldsAreMetricsAndTagsAreLabels) {
  Reader reader;
  const Reading r = reader.read(
      "cpu,region=eu,host=a usage_user=1.5,usage_idle=98.25 1700000000000000000\n"
      "cpu,host=a,region=eu usage_user=2 1700000000000000001\n"
      "mem value=-3e2 0\n");
  EXPECT_THAT(r.samples, ElementsAre("cpu_usage_user{host=a,region=eu} 1700000000000000000 1.5",
                                     "cpu_usage_user{host=a,region=eu} 1700000000000000001 2",
                                     "cpu_usage_idle{host=a,region=eu} 1700000000000000000 98.25", "mem_value 0 -300"));
  EXPECT_EQ(r.batch.received, 4u);
  EXPECT_TRUE(r.batch.rejected.empty());
  EXPECT_EQ(r.batch.position, (model::Position{144, 3}));
  EXPECT_TRUE(r.batch.new_series.empty());
}

TEST(LineProtocol, Values) {
  Reader reader;
  const auto value_of = [&](const std::string& text) {
    const Reading r = reader.read("m f=" + text + " 1");
    return r.samples.empty() ? "rejected: " + r.batch.rejected.begin()->first : r.samples[0].substr(6);
  };
  EXPECT_EQ(value_of("1"), "1");
  EXPECT_EQ(value_of("-0.5"), "-0.5");
  EXPECT_EQ(value_of("1e3"), "1000");
  EXPECT_EQ(value_of("12i"), "12");
  EXPECT_EQ(value_of("-9223372036854775808i"), "-9.223372036854776e+18");
  EXPECT_EQ(value_of("9007199254740993i"), "9007199254740992");  // the nearest double, ties to even
  EXPECT_EQ(value_of("18446744073709551615u"), "1.8446744073709552e+19");
  for (const char* yes : {"t", "T", "true", "True", "TRUE"}) EXPECT_EQ(value_of(yes), "1");
  for (const char* no : {"f", "F", "false", "False", "FALSE"}) EXPECT_EQ(value_of(no), "0");
  for (const char* bad : {"", "x", "1i2", "1.5i", "-1u", "9223372036854775808i", "18446744073709551616u", "i", "tRUE",
                          "truei", "1,", "0x10", "1e", "--1"}) {
    EXPECT_EQ(value_of(bad), "rejected: malformed") << bad;
  }
  for (const char* bad : {"nan", "NaN", "inf", "-Inf", "1e999"})
    EXPECT_EQ(value_of(bad), "rejected: not_finite") << bad;
  for (const char* text : {"\"\"", "\"a b,c=d\"", "\"a\\\"b\"", "\"a\\\\\"", "\"1\""}) {
    EXPECT_EQ(value_of(text), "rejected: not_numeric") << text;
  }
}

TEST(LineProtocol, Escapes) {
  Reader reader;
  const Reading r = reader.read(
      "my\\ m\\,x\\=y,t\\ 1\\,\\==v\\ 1\\,\\= f\\ \\,\\==1 1\n"
      "a\\b,c\\d=e\\\\f g\\h=1 1\n");
  EXPECT_THAT(r.samples, ElementsAre("my m,x\\=y_f ,={t 1,==v 1,=} 1 1", "a\\b_g\\h{c\\d=e\\\\f} 1 1"));
}

TEST(LineProtocol, CommentsBlanksAndLineEnds) {
  Reader reader;
  const Reading r = reader.read("# c a=1\r\n\n  \t\n\r\n \tm  a=1  5 \t\r\nm a=2 6\r\n   # b=2\nm a=3");
  EXPECT_THAT(r.samples, ElementsAre("m_a 5 1", "m_a 6 2", fmt::format("m_a {} 3", model::to_ns(kNow))));
  EXPECT_EQ(r.batch.position.row, 8u);
  EXPECT_EQ(r.batch.received, 3u);
  EXPECT_THAT(reader.read("").samples, IsEmpty());
  EXPECT_EQ(reader.read("\n\n").batch.received, 0u);
}

TEST(LineProtocol, TextsMayHoldLineEnds) {
  Reader reader;
  const Reading r = reader.read("m s=\"one\ntwo\\\"\r\n\",a=1 1\nm a=2 x\n");
  EXPECT_THAT(r.samples, ElementsAre("m_a 1 1"));
  EXPECT_EQ(r.rejections,
            "1:5 not_numeric field \"s\" is a text, expected a number or true or false\n"
            "4:7 bad_time found \"x\", expected a timestamp: a whole number\n");
  EXPECT_EQ(r.batch.received, 3u);
  EXPECT_EQ(r.batch.position.row, 4u);
  // One that is not closed takes no neighbour with it.
  const Reading open = reader.read("m s=\"one 1\nm a=1 1\nm s=\"x\",a=2 2\n");
  EXPECT_THAT(open.samples, ElementsAre("m_a 1 1", "m_a 2 2"));
  EXPECT_THAT(open.rejections, HasSubstr("1:5 malformed found a text without its closing double quote"));
  EXPECT_THAT(reader.read("m s=\"one\"two 1\nm a=1 1").rejections,
              HasSubstr("1:10 malformed found \"two 1\", expected a comma, a blank or the end of the line after"));
}

TEST(LineProtocol, Precision) {
  EXPECT_EQ(parse_precision(""), Precision::kNs);
  const std::map<std::string, std::int64_t> names = {{"ns", 1},
                                                     {"n", 1},
                                                     {"us", 1'000},
                                                     {"u", 1'000},
                                                     {"\xc2\xb5", 1'000},
                                                     {"ms", 1'000'000},
                                                     {"s", 1'000'000'000},
                                                     {"m", 60'000'000'000},
                                                     {"h", 3'600'000'000'000}};
  for (const auto& [name, ns] : names) {
    const std::optional<Precision> precision = parse_precision(name);
    ASSERT_TRUE(precision) << name;
    EXPECT_THAT(Reader().read("m a=1 -7", *precision).samples, ElementsAre(fmt::format("m_a {} 1", -7 * ns)));
  }
  for (const char* bad : {"S", "sec", "d", "w", " s"}) EXPECT_FALSE(parse_precision(bad)) << bad;
}

TEST(LineProtocol, TimesOutOfRange) {
  Reader reader;
  for (const char* time : {"-2208988801", "6942585600", "99999999999999999999", "9223372036854775807"}) {
    const Reading r = reader.read(fmt::format("m a=1,b=2 {}\nm a=1 1", time), Precision::kS);
    EXPECT_EQ(r.samples.size(), 1u);
    EXPECT_EQ(r.batch.rejected, (model::ReasonCounts{{"bad_time", 1}})) << time;
    EXPECT_THAT(r.rejections, HasSubstr("is the precision right?"));
  }
  EXPECT_EQ(reader.read("m a=1 -2208988800\nm a=1 6942585599", Precision::kS).samples.size(), 2u);
  for (const char* time : {"1.5", "1e3", "x", "-", "1 2"}) {
    EXPECT_THAT(reader.read(fmt::format("m a=1 {}", time)).samples, IsEmpty()) << time;
  }
}

TEST(LineProtocol, SaysWhatIsWrongWhereAndKeepsTheOthers) {
  Reader reader;
  const Reading r = reader.read(
      "cpu\n"
      "m a=1 1\n"
      ",h=a a=1\n"
      "cpu,host a=1\n"
      "cpu,host= a=1\n"
      "cpu,=x a=1\n"
      "cpu,a=b=c a=1\n"
      "cpu,a=1,b=2,a=3 a=1\n"
      "cpu a\n"
      "cpu a= 1\n"
      "cpu =1 1\n"
      "cpu a=1,\n"
      "cpu a=1,b=zwei 1\n"
      "m a=2 2\n");
  EXPECT_THAT(r.samples, ElementsAre("m_a 1 1", "m_a 2 2"));
  EXPECT_EQ(r.batch.received, 14u);
  EXPECT_EQ(r.batch.rejected, (model::ReasonCounts{{"bad_label", 1}, {"malformed", 11}}));
  EXPECT_EQ(r.batch.rejected_set.count, 12u);
  EXPECT_EQ(r.rejections,
            "1:4 malformed found the end of the line, expected a blank and a field after the measurement and its tags\n"
            "3:1 malformed found \",h=a\", expected a measurement\n"
            "4:9 malformed found the end of the line, expected = and the value of the tag\n"
            "5:10 malformed found the end of the line, expected the value of a tag\n"
            "6:5 malformed found \"=x\", expected the name of a tag\n"
            "7:8 malformed found \"=c\", expected a comma or a blank after the value of a tag\n"
            "8:1 bad_label found the tag \"a\" twice, expected each tag once\n"
            "9:6 malformed found the end of the line, expected = and the value of the field\n"
            "10:7 malformed found the end of the line, expected a number (1, 1.5e3, 1i, 1u), true, false or a text in "
            "double quotes\n"
            "11:5 malformed found \"=1 1\", expected the name of a field\n"
            "12:9 malformed found the end of the line, expected the name of a field\n"
            "13:11 malformed found \"zwei\", expected a number (1, 1.5e3, 1i, 1u), true, false or a text in double "
            "quotes\n");
}

TEST(LineProtocol, Bounds) {
  Reader reader;
  const auto reason = [&](const std::string& line) {
    const Reading r = reader.read(line + "\nm a=1 1");
    EXPECT_EQ(r.samples.empty() ? "" : r.samples.back(), "m_a 1 1") << line.substr(0, 50);
    return r.batch.rejected.empty() ? "" : r.batch.rejected.begin()->first;
  };
  const std::string long_name(kMaxLabelBytes, 'x');
  EXPECT_EQ(reason("m,t=" + long_name + " a=1 1"), "");
  EXPECT_EQ(reason("m,t=" + long_name + "x a=1 1"), "bad_label");
  EXPECT_EQ(reason("m,t" + long_name + "=1 a=1 1"), "bad_label");
  EXPECT_EQ(reason("m " + long_name + "=1 1"), "bad_label");
  EXPECT_EQ(reason("m,t=\xff a=1 1"), "bad_label");
  EXPECT_EQ(reason("m \xff=1 1"), "bad_label");
  std::string tags = "m";
  for (std::size_t i = 0; i < kMaxTags; ++i) tags += fmt::format(",t{}=1", i);
  EXPECT_EQ(reason(tags + " a=1 1"), "");
  EXPECT_EQ(reason(tags + ",u=1 a=1 1"), "bad_label");
  std::string fields = "m f=1";
  for (std::size_t i = 1; i < kMaxFields; ++i) fields += fmt::format(",f{}=1", i);
  EXPECT_EQ(reason(fields + " 1"), "");
  EXPECT_EQ(reason(fields + ",g=1 1"), "malformed");
  EXPECT_EQ(reason("m a=1" + std::string(kMaxLineBytes - 5, ' ')), "");
  EXPECT_EQ(reason("m a=1" + std::string(kMaxLineBytes - 4, ' ')), "too_long");

  EXPECT_EQ(reader.read("m a=1,b=2\nm a=1", Precision::kNs, 3).batch.received, 3u);
  reader.read("m a=1,b=2\nm a=1", Precision::kNs, 2);
  EXPECT_EQ(reader.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(reader.status.message()), HasSubstr("line 2: found more than 2 field values"));

  std::string many;
  for (int i = 0; i < 100; ++i) many += "bad\n";
  const Reading shown = reader.read(many);
  EXPECT_EQ(shown.batch.rejections.size(), model::kMaxShownRejections);
  EXPECT_EQ(shown.batch.rejected, (model::ReasonCounts{{"malformed", 100}}));
}

TEST(LineProtocol, SeriesAreBounded) {
  Reader reader(2);
  const Reading r = reader.read("m a=1,b=2,c=3 1\nm,t=1 a=1 1\nm b=4 1\n");
  EXPECT_THAT(r.samples, ElementsAre("m_a 1 1", "m_b 1 2", "m_b 1 4"));
  EXPECT_EQ(r.batch.rejected, (model::ReasonCounts{{"too_many_series", 2}}));
  EXPECT_EQ(r.batch.received, 5u);
  SeriesTable small(100, 1000);
  std::size_t taken = 0;
  for (int i = 0; i < 100; ++i) taken += small.number({fmt::format("m{}", i), {}}) ? 1 : 0;
  EXPECT_GT(taken, 2u);
  EXPECT_LT(taken, 10u);
  EXPECT_EQ(small.since(1).size(), taken - 1);
  EXPECT_EQ(small.since(1)[0].metric, "m1");
  EXPECT_THAT(small.since(taken), IsEmpty());
}

// Random lines, written by a writer of our own, are read back whatever their order, with one parser or a fresh one.
TEST(LineProtocol, RandomLinesComeBack) {
  base::SeededRandom random(4);
  const std::string alphabet = "ab ,=\\\"1#\xc3\xa9.";
  const auto text = [&](bool measurement) {
    std::string out;
    for (std::uint64_t n = 1 + random.below(6); n > 0; --n) {
      const char c = alphabet[random.below(alphabet.size())];
      if (c == '\xc3' || c == '\xa9') {
        out += "\xc3\xa9";
      } else if (c == '\\' && measurement) {
        out += "\\x";  // before a special character it could not be told from an escape
      } else if (c == '\\') {
        out += "\\y";
      } else {
        out += c;
      }
    }
    return out;
  };
  const auto written = [](const std::string& plain, const char* specials) {
    std::string out;
    for (const char c : plain) {
      if (std::strchr(specials, c) != nullptr) out += '\\';
      out += c;
    }
    return out;
  };
  Reader old_one;
  for (int round = 0; round < 300; ++round) {
    std::string body;
    std::vector<std::string> expected;
    std::size_t samples = 0;
    for (std::uint64_t lines = random.below(20); lines > 0; --lines) {
      std::string measurement = text(true);
      if (measurement[0] == '#' || measurement[0] == ' ') measurement = "m" + measurement;
      std::map<std::string, std::string> tags;
      for (std::uint64_t n = random.below(4); n > 0; --n) tags[text(false)] = text(false);
      std::vector<std::pair<std::string, std::string>> shuffled(tags.begin(), tags.end());
      for (std::size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[random.below(i)]);
      body += written(measurement, ", ");
      for (const auto& [name, value] : shuffled) body += "," + written(name, ",= ") + "=" + written(value, ",= ");
      const auto time = static_cast<std::int64_t>(random.below(4'000'000'000'000'000'000)) - 2'000'000'000'000'000'000;
      const std::uint64_t fields = 1 + random.below(4);
      for (std::uint64_t f = 0; f < fields; ++f) {
        const std::string name = text(false);
        const double value = (random.unit() - 0.5) * 1e6;
        body += (f == 0 ? " " : ",") + written(name, ",= ") + fmt::format("={}", value);
        expected.push_back(fmt::format(
            "{} {} {}",
            model::to_string({measurement + "_" + name, std::vector<model::Label>(tags.begin(), tags.end())}), time,
            value));
        ++samples;
      }
      body += fmt::format(" {}{}", time, random.below(2) == 0 ? "\n" : "\r\n");
    }
    std::sort(expected.begin(), expected.end());
    Reader fresh;
    for (Reader* reader : {&fresh, &old_one}) {
      Reading r = reader->read(body);
      EXPECT_EQ(r.rejections, "") << body;
      EXPECT_EQ(r.batch.received, samples);
      std::sort(r.samples.begin(), r.samples.end());
      EXPECT_EQ(r.samples, expected) << body;
    }
  }
}

}  // namespace
}  // namespace orla::ingest
