// The inputs' CSV reader and the oracle's, which share no code, on random text: the same samples, in the same order per
// series, and the same rejected rows.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <map>

#include "absl/time/time.h"
#include "base/files.h"
#include "base/random.h"
#include "ingest/input.h"
#include "verify/csv_rows.h"

namespace orla::node {
namespace {

// What an input gives: samples by series, rejections by reason, the set of rejected rows, lines.
struct Reading {
  std::map<std::string, std::vector<std::pair<std::int64_t, std::uint64_t>>> samples;  // ns, bits of the value
  model::ReasonCounts rejected;
  model::SetDigest rejected_set;
  std::uint64_t received = 0;
  std::uint64_t lines = 0;
  bool failed = false;
  friend bool operator==(const Reading&, const Reading&) = default;
};

Reading failure() {
  Reading reading;
  reading.failed = true;
  return reading;
}

Reading by_ingest(const model::InputSpec& spec) {
  Reading reading;
  auto input = ingest::make_input(spec, {});
  if (!input.ok()) return failure();
  std::vector<std::string> names;
  model::InputBatch batch;
  for (;;) {
    const auto more = (*input)->next(batch);
    if (!more.ok()) return failure();
    if (!*more) return reading;
    for (const model::Series& series : batch.new_series) names.push_back(model::to_string(series));
    batch.samples.make_plain();
    for (const auto& run : batch.samples.runs) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        reading.samples[names[model::index(run.series)]].emplace_back(
            model::to_ns(batch.samples.times[i]), std::bit_cast<std::uint64_t>(batch.samples.values[i]));
      }
    }
    for (const auto& [reason, count] : batch.rejected) reading.rejected[reason] += count;
    reading.rejected_set.add(batch.rejected_set);
    reading.received += batch.received;
    reading.lines = batch.position.row;
  }
}

Reading by_oracle(const model::InputSpec& spec) {
  Reading reading;
  auto rows = verify::open_csv_rows(spec);
  if (!rows.ok()) return failure();
  verify::Row row;
  for (;;) {
    const auto more = (*rows)->next(row);
    if (!more.ok()) return failure();
    if (!*more) return reading;
    reading.lines = row.number;
    reading.received += row.samples.size();
    for (const verify::Row::Sample& sample : row.samples) {
      reading.samples[model::to_string((*rows)->series()[sample.series])].emplace_back(
          model::to_ns(sample.time), std::bit_cast<std::uint64_t>(sample.value));
    }
    if (row.rejected == nullptr) continue;
    ++reading.received;
    ++reading.rejected[row.rejected];
    reading.rejected_set.add(model::row_hash(spec.key, row.number));
  }
}

std::string show(const Reading& reading) {
  std::string text =
      fmt::format("{} lines, {} received{}\n", reading.lines, reading.received, reading.failed ? ", failed" : "");
  for (const auto& [reason, count] : reading.rejected) text += fmt::format("  {} {}\n", count, reason);
  for (const auto& [name, samples] : reading.samples) {
    text += "  " + name;
    for (const auto& [ns, bits] : samples) text += fmt::format(" {}={}", ns, std::bit_cast<double>(bits));
    text += "\n";
  }
  return text;
}

class CsvReaders : public ::testing::Test {
 protected:
  const std::string& one_of(const std::vector<std::string>& choices) { return choices[random_.below(choices.size())]; }
  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }

  std::string number() {
    if (chance(3)) {
      return one_of({"0",
                     "-0",
                     "1.5",
                     ".5",
                     "5.",
                     "+2",
                     "-.25e2",
                     "1e5",
                     "1E-3",
                     "1e400",
                     "-1e999",
                     "1e-400",
                     "nan",
                     "NaN",
                     "-inf",
                     "Infinity",
                     "0x1",
                     "1_0",
                     "1,5",
                     "--1",
                     "+-1",
                     "e1",
                     ".",
                     "",
                     "-",
                     "1e",
                     "9007199254740993",
                     "123456789012345678901234567890",
                     "0.1000000000000000055511151231257827",
                     "2.2250738585072011e-308",
                     "00012.500",
                     "1 ",
                     " 1",
                     "\t1",
                     "-200"});
    }
    return fmt::format("{}.{:03}", random_.below(2000), random_.below(1000));
  }

  // Times around a change of the clock, mostly in the format, and odd ones.
  std::string time(const std::string& format) {
    if (chance(6)) {
      return one_of({"",
                     "now",
                     "2013-03-31 02:30:00",
                     "2013-03-31T02:30:00",
                     "2013-10-27T02:30:00.123456789123Z",
                     "2013-02-29T00:00:00Z",
                     "2013-10-27t02:30:60z",
                     "2013-10-27 02:30:00+01:00",
                     "1e9",
                     "-5",
                     "5.",
                     "5.5",
                     "-1.0000000019",
                     "99999999999999999999",
                     "infinite-past",
                     "2190-01-01T00:00:00Z",
                     "1899-12-31 23:59:59",
                     "2013-10-27T24:00:00Z",
                     "0000-00-00 00:00:00",
                     "27/10/2013 02:30:00.5"});
    }
    const auto second = static_cast<std::int64_t>(1'382'830'000 + random_.below(12'000));
    if (format == "unix") return fmt::format("{}.{}", second, random_.below(100'000));
    if (format == "unix_ms") return fmt::format("{}{:03}", second, random_.below(1000));
    if (format == "unix_us") return fmt::format("{}{:06}", second, random_.below(1000));
    if (format == "unix_ns") return fmt::format("{}{:09}", second, random_.below(1000));
    const std::string civil =
        format == "rfc3339" ? one_of({absl::RFC3339_full, "%Y-%m-%d %H:%M:%E3S", "%Y-%m-%dT%H:%M:%SZ"}) : format;
    return absl::FormatTime(civil, absl::FromUnixSeconds(second), absl::FixedTimeZone(3600));
  }

  std::string line_end() { return chance(10) ? one_of({"\r\n", "\n\n", "\r\r\n", "\n \n"}) : "\n"; }

  void compare(const model::InputSpec& spec, const std::string& text, std::uint64_t seed) {
    std::ofstream(spec.path, std::ios::binary) << text;
    const Reading ingest = by_ingest(spec);
    const Reading oracle = by_oracle(spec);
    ASSERT_EQ(ingest, oracle) << "seed " << seed << "\n"
                              << text << "\ningest: " << show(ingest) << "oracle: " << show(oracle);
    samples_ += ingest.received;
    for (const auto& [reason, count] : ingest.rejected) rejected_[reason] += count;
  }

  model::InputSpec spec() const {
    model::InputSpec spec;
    spec.key = "edge-1/0";
    spec.path = (directory_.path() / "rows.csv").string();
    return spec;
  }

  base::SeededRandom random_{1};
  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("orla-csv").value();
  std::uint64_t samples_ = 0;
  model::ReasonCounts rejected_;
};

TEST_F(CsvReaders, AgreeOnTheDebs2014Schema) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    random_ = base::SeededRandom(seed);
    std::string text = chance(10) ? "\xef\xbb\xbf" : "";
    const std::uint64_t rows = random_.below(60);
    for (std::uint64_t i = 0; i < rows; ++i) {
      std::vector<std::string> cells = {std::to_string(i),
                                        std::to_string(1'377'986'400 + random_.below(1000)),
                                        number(),
                                        std::to_string(random_.below(2)),
                                        std::to_string(random_.below(3)),
                                        "0",
                                        std::to_string(random_.below(3))};
      if (chance(4)) {
        cells[random_.below(7)] = one_of({"", "-1", "+1", " 1", "1 ", "007", "4294967295", "4294967296",
                                          "18446744073709551615", "18446744073709551616", "6942585599", "6942585600",
                                          "1.0", "x", "\"1\"", std::string("1\0", 2), "2"});
      }
      if (chance(20)) cells.resize(random_.below(7));
      if (chance(30)) cells.push_back("");
      text += fmt::format("{}{}", fmt::join(cells, ","), line_end());
    }
    if (chance(4) && !text.empty()) text.resize(text.size() - random_.below(std::min<std::size_t>(9, text.size())));
    model::InputSpec debs = spec();
    if (chance(2)) debs.select = {{"house", {"0", "2"}}};
    ASSERT_NO_FATAL_FAILURE(compare(debs, text, seed));
  }
  EXPECT_GT(samples_, 5000u);
  for (const char* reason : {"malformed", "bad_time", "not_finite"}) EXPECT_GT(rejected_[reason], 50u) << reason;
}

TEST_F(CsvReaders, AgreeOnMappings) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    random_ = base::SeededRandom(seed);
    model::InputSpec mapped = spec();
    mapped.schema = model::InputSpec::Schema::kMapping;
    model::CsvMapping& mapping = mapped.mapping;
    mapping.header = chance(2);
    mapping.delimiter = one_of({",", ";", "\t", "|"})[0];
    mapping.decimal_mark = chance(3) ? ',' : '.';
    mapping.time_format = one_of({"unix", "unix_ms", "unix_us", "unix_ns", "rfc3339", "%Y-%m-%d %H:%M:%S",
                                  "%Y-%m-%dT%H:%M:%S", "%d/%m/%Y %H:%M:%E*S", "%Y-%m-%d %H:%M:%S%Ez"});
    mapping.time_zone = one_of({"", "UTC", "Europe/Berlin", "America/St_Johns"});
    if (chance(2)) mapping.missing = {"", "-200", "n/a"};
    if (chance(2)) mapping.constant_labels = {{"site", "roof"}, {"a", "b"}};
    mapping.time_column = mapping.header ? "when" : "1";
    if (chance(5)) mapping.time_column = mapping.header ? "when+extra" : "1+5";
    mapping.labels = {{"room", mapping.header ? "room" : "2"}};
    mapping.values = {{"t", mapping.header ? "t" : "3"}, {"h", mapping.header ? "h" : "4"}};
    if (chance(4)) mapping.values.push_back({"t", "4"});  // twice the same metric; a column by its number
    if (chance(3)) mapped.select = {{"room", {"hall", "\"x\"", ""}}};

    std::string text = chance(10) ? "\xef\xbb\xbf" : "";
    if (chance(5)) text += "\n\r\n";
    std::vector<std::string> names = {"when", "room", "t", "h", "extra"};
    if (chance(15)) names[random_.below(5)] = one_of({"t", "other", "\"t\"", " t ", "\"t"});
    if (mapping.header) text += fmt::format("{}{}", fmt::join(names, std::string(1, mapping.delimiter)), line_end());
    const std::uint64_t rows = random_.below(40);
    for (std::uint64_t i = 0; i < rows; ++i) {
      std::vector<std::string> cells = {time(mapping.time_format),
                                        one_of({"hall", "attic", " hall ", "\"hall\"", "\"\"\"x\"\"\"", "",
                                                "k\xc3\xbc"
                                                "che",
                                                "\xff", "\"a,b;c|d\"", "\"open", "\"a\"b"}),
                                        number(), number(), "00:00:01"};
      if (chance(10)) cells[2] = one_of({"n/a", "-200", "\"1.5\"", "1,25", "1.2,3"});
      if (chance(40)) cells[random_.below(5)] += std::string(1, '\0');
      if (chance(15)) cells.resize(random_.below(5));
      if (chance(20)) cells.push_back("more");
      text += fmt::format("{}{}", fmt::join(cells, std::string(1, mapping.delimiter)), line_end());
    }
    if (chance(4) && !text.empty()) text.resize(text.size() - random_.below(std::min<std::size_t>(9, text.size())));
    ASSERT_NO_FATAL_FAILURE(compare(mapped, text, seed));
  }
  EXPECT_GT(samples_, 4000u);
  for (const char* reason : {"malformed", "bad_time", "not_finite", "bad_label"}) {
    EXPECT_GT(rejected_[reason], 50u) << reason;
  }
}

}  // namespace
}  // namespace orla::node
