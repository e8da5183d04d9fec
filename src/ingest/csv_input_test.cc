// Reading by several threads, in blocks of any size, against reading by one thread in one block.
#include "ingest/csv_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/byte_source.h"
#include "base/random.h"
#include "ingest/csv_debs.h"
#include "ingest/csv_mapping.h"
#include "ingest/read_all.h"

namespace orla::ingest {
namespace {

// What an input gave, with what must not depend on how it was read.
struct Reading {
  Everything all;
  std::vector<std::string> series;                                                // in order of their numbers
  std::vector<model::Position> positions;                                         // after every batch
  std::vector<std::tuple<std::string, std::uint64_t, std::uint32_t>> rejections;  // all of them: small batches

  bool operator==(const Reading& o) const {
    return same_but_status(all, o.all) && series == o.series && all.status == o.all.status;
  }
};

struct File {
  std::string text;
  bool debs = true;
  model::CsvMapping mapping;
  Selection selection;
  BatchLimits limits = {};

  std::unique_ptr<Input> open(const CsvReading& reading, const model::Position& from = {}) const {
    std::unique_ptr<RowParser> parser =
        debs ? make_debs_parser(selection, DebsPath::kFast) : *make_mapping_parser(mapping, selection);
    auto input =
        make_csv_input(base::bytes_in_memory(text, 1000), "x", std::move(parser), "e/0", limits, from, reading);
    EXPECT_TRUE(input.ok()) << input.status();
    return *std::move(input);
  }

  Reading read(const CsvReading& how, const model::Position& from = {}) const {
    const std::unique_ptr<Input> input = open(how, from);
    Reading reading;
    model::InputBatch batch;
    for (bool ended = false;;) {
      const absl::StatusOr<bool> more = input->next(batch);
      if (!more.ok() || !*more) {
        reading.all.status = more.status();
        EXPECT_EQ(ended, more.ok());
        return reading;
      }
      EXPECT_FALSE(ended);
      ended = batch.end_of_input;
      for (const model::Rejection& r : batch.rejections) reading.rejections.emplace_back(r.reason, r.row, r.column);
      add_batch(reading.all, reading.series, batch);
      EXPECT_EQ(reading.all.broken, "");
      reading.positions.push_back(batch.position);
    }
  }
};

class Texts {
 public:
  explicit Texts(std::uint64_t seed) : random_(seed) {}

  File debs(std::size_t rows) {
    File file;
    if (chance(5)) file.text = "\xef\xbb\xbf";
    for (std::size_t i = 0; i < rows; ++i) {
      std::string row = fmt::format("{},{},{},{},{},{},{}", i, 1'377'986'400 + i / 20, number(), random_.below(2),
                                    random_.below(5 + i / 10), 0, random_.below(3));
      damage(row);
      file.text += row + line_end();
    }
    if (chance(3)) file.text.resize(file.text.size() - random_.below(std::min<std::size_t>(10, file.text.size() + 1)));
    if (chance(3)) file.selection = Selection(Selection::Accepted{{"house", {"0", "2"}}});
    return file;
  }

  File table(std::size_t rows, bool quoted = false) {
    File file;
    file.debs = false;
    model::CsvMapping& m = file.mapping;
    m.header = chance(2);
    m.delimiter = chance(2) ? ';' : ',';
    m.decimal_mark = m.delimiter == ';' && chance(2) ? ',' : '.';
    m.time_format = "%Y-%m-%d %H:%M:%S";
    m.time_zone = "Europe/Berlin";
    m.missing = {"", "-200", "n/a"};
    m.time_column = m.header ? "time" : "1";
    m.labels = {{"room", m.header ? "room" : "2"}, {"floor", m.header ? "floor" : "5"}};
    m.values = {{"t", m.header ? "t" : "3"}, {"h", m.header ? "h" : "4"}};
    const std::string d(1, m.delimiter);
    if (chance(4)) file.text = "\r\n";
    if (m.header) file.text += fmt::format("{}\n", fmt::join({"time", "room", "t", "h", "floor"}, d));
    for (std::size_t i = 0; i < rows; ++i) {
      // Berlin's clock goes back at 03:00 summer time on this day.
      const std::size_t s = i * (1 + random_.below(3)) % 86400;
      std::string time = fmt::format("2013-10-27 {:02}:{:02}:{:02}", s / 600 % 24, s / 10 % 60, s % 60);
      if (chance(40)) time = one_of({"2013-10-27 02:59:60", "2013-02-30 00:00:00", "2013-10-27 2:00:00", "now"});
      const std::string room = chance(9) ? "a room with a very long name" : fmt::format("room {}", random_.below(4));
      std::string a = chance(9) ? one_of({"", "-200", "-200.0", "n/a", "NA"}) : number();
      std::string b = number();
      if (m.decimal_mark == ',') {
        for (std::string* v : {&a, &b}) std::replace(v->begin(), v->end(), '.', ',');
      }
      std::string row = fmt::format(
          "{}", fmt::join({time, quoted ? "\"" + room + "\"" : room, a, b, fmt::format("{}", random_.below(3))}, d));
      if (!m.header && chance(9)) row += d + "more";
      if (!quoted) damage(row);
      file.text += row + line_end();
    }
    if (chance(3)) file.selection = Selection(Selection::Accepted{{"floor", {"0", "2"}}});
    return file;
  }

  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }

 private:
  std::string one_of(std::initializer_list<const char*> list) { return list.begin()[random_.below(list.size())]; }
  std::string number() {
    if (chance(20)) return one_of({"-1.5", "1e3", "nan", "1e999", "-0", "0.123456789", "99999999999", "x", "+1", ".5"});
    return fmt::format("{}.{}", random_.below(3000), random_.below(100));
  }
  void damage(std::string& row) {
    if (!chance(30)) return;
    switch (random_.below(6)) {
      case 0:
        row.resize(random_.below(row.size()));
        break;
      case 1:
        row[random_.below(row.size())] = static_cast<char>(random_.below(256));
        break;
      case 2:
        row.insert(random_.below(row.size()), one_of({",", ";", "\n", "\"", "\r", " ", "\t"}));
        break;
      case 3:
        row += std::string(random_.below(20) == 0 ? kMaxLineBytes + 9 : 3, 'z');
        break;
      case 4:
        row = "";
        break;
      default:
        row += '\0';
    }
  }
  std::string line_end() { return chance(15) ? "\r\n" : "\n"; }

  base::SeededRandom random_;
};

// For messages.
std::string show(const Reading& reading) {
  std::string text =
      fmt::format("samples {} received {} position {}/{} series {}", reading.all.sample_count, reading.all.received,
                  reading.all.position.offset, reading.all.position.row, reading.series.size());
  for (const auto& [reason, count] : reading.all.rejected) text += fmt::format(" {} {}", reason, count);
  return text;
}

// The rows of `file` however they are read.
void expect_same_however_read(const File& file, std::initializer_list<std::size_t> block_sizes) {
  const Reading whole = file.read({.threads = 1, .block_bytes = 4 << 20});
  ASSERT_TRUE(whole.all.status.ok());
  ASSERT_EQ(whole.all.position.offset, file.text.size());
  for (const std::size_t block_bytes : block_sizes) {
    const Reading alone = file.read({.threads = 1, .block_bytes = block_bytes});
    ASSERT_TRUE(alone == whole) << block_bytes << ": " << show(alone) << "; " << show(whole);
    for (const std::size_t threads : {2, 3}) {
      const Reading shared = file.read({.threads = threads, .block_bytes = block_bytes});
      ASSERT_TRUE(shared == whole) << threads << " " << block_bytes << ": " << show(shared) << "; " << show(whole);
      ASSERT_EQ(shared.positions, alone.positions);
      ASSERT_EQ(shared.rejections, alone.rejections);
    }
  }
}

TEST(CsvInput, EveryCutGivesTheSame) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Texts texts(seed);
    const File debs = texts.debs(25);
    const File table = texts.table(20);
    for (std::size_t block_bytes = 1; block_bytes < 400; block_bytes += 1 + block_bytes / 40) {
      ASSERT_NO_FATAL_FAILURE(expect_same_however_read(debs, {block_bytes})) << seed;
      ASSERT_NO_FATAL_FAILURE(expect_same_however_read(table, {block_bytes})) << seed;
    }
  }
}

TEST(CsvInput, RandomFilesReadBySeveralThreads) {
  std::uint64_t samples = 0;
  model::ReasonCounts rejected;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Texts texts(seed);
    for (const File& file : {texts.debs(1500), texts.table(1000)}) {
      ASSERT_NO_FATAL_FAILURE(expect_same_however_read(file, {500, 4096, 30'000})) << seed;
      const Reading whole = file.read({});
      samples += whole.all.sample_count;
      for (const auto& [reason, count] : whole.all.rejected) rejected[reason] += count;
    }
  }
  EXPECT_GT(samples, 50'000U);
  for (const char* reason : {kMalformed, kBadTime, kNotFinite, kTooLong}) EXPECT_GT(rejected[reason], 5U) << reason;
}

// A quote sends the lines around it the careful way.
TEST(CsvInput, QuotedLabelsAreTheSameLabels) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    File plain = Texts(seed).table(600, true);
    const File quoted = plain;
    std::erase(plain.text, '"');
    const Reading a = plain.read({});
    const Reading b = quoted.read({});
    ASSERT_EQ(a.all.samples, b.all.samples) << seed << plain.text.substr(0, 2000);
    ASSERT_EQ(a.all.rejected, b.all.rejected);
    ASSERT_EQ(a.all.rejected_set, b.all.rejected_set);
    ASSERT_EQ(a.series, b.series);
    ASSERT_GT(a.all.sample_count, 100U);
  }
}

TEST(CsvInput, GoesOnFromEveryPositionOfEveryReading) {
  Texts texts(9);
  for (const File& file : {texts.debs(300), texts.table(200)}) {
    const Reading whole = file.read({});
    const Reading cut = file.read({.threads = 3, .block_bytes = 700});
    ASSERT_GT(cut.positions.size(), 5U);
    for (std::size_t i = 0; i < cut.positions.size(); i += 3) {
      const Reading rest = file.read({.threads = 2, .block_bytes = 300}, cut.positions[i]);
      std::uint64_t before = 0;
      Everything front;
      std::vector<std::string> names;
      const auto input = file.open({.threads = 3, .block_bytes = 700});
      model::InputBatch batch;
      for (std::size_t k = 0; k <= i; ++k) {
        ASSERT_TRUE(*input->next(batch));
        add_batch(front, names, batch);
        before += batch.received;
      }
      EXPECT_EQ(before + rest.all.received, whole.all.received);
      model::SetDigest rejected = front.rejected_set;
      rejected.add(rest.all.rejected_set);
      EXPECT_EQ(rejected, whole.all.rejected_set);
      EXPECT_EQ(rest.all.position, whole.all.position);
    }
  }
}

TEST(CsvInput, TooManySeriesAreRejectedTheSameByAnyNumberOfThreads) {
  Texts texts(4);
  for (File file : {texts.debs(3000), texts.table(1500)}) {
    const Reading all = file.read({});
    ASSERT_GT(all.series.size(), 8U);
    for (std::size_t limit = 0; limit < all.series.size(); limit += 1 + all.series.size() / 9) {
      file.limits.series = limit;
      const Reading whole = file.read({.threads = 1, .block_bytes = 4 << 20});
      EXPECT_LE(whole.series.size(), limit);
      EXPECT_GT(whole.all.rejected.at(kTooManySeries), 0U);
      if (file.debs) {  // one sample a row
        const auto end = all.series.begin() + static_cast<std::ptrdiff_t>(limit);
        EXPECT_EQ(whole.series, std::vector<std::string>(all.series.begin(), end));
        EXPECT_EQ(whole.all.received, all.all.received);
      }
      ASSERT_NO_FATAL_FAILURE(expect_same_however_read(file, {300, 5000})) << limit;
    }
  }
}

TEST(CsvInput, EndsItsThreadsWhereverItIsLeft) {
  const File file = Texts(6).debs(2000);
  for (int batches = 0; batches < 12; ++batches) {
    const auto input = file.open({.threads = 4, .block_bytes = 1000});
    model::InputBatch batch;
    for (int i = 0; i < batches; ++i) ASSERT_TRUE(*input->next(batch));
    EXPECT_LE(input->progress(), 1);
  }
}

TEST(CsvInput, DamageComesAfterAllGoodRowsByAnyNumberOfThreads) {
  class Broken final : public base::ByteSource {
   public:
    Broken() {
      for (int row = 1; row <= 1000; ++row) text_ += fmt::format("{0},{0},1,1,1,1,1\n", row);
      text_ += "1001,5,1";
    }
    absl::StatusOr<std::size_t> read(std::span<char> out) override {
      const std::size_t n = std::min(out.size(), text_.size() - at_);
      if (n == 0) return absl::DataLossError("cut off");
      std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(at_), n, out.begin());
      at_ += n;
      return n;
    }
    double progress() const override { return -1; }

   private:
    std::string text_;
    std::size_t at_ = 0;
  };
  for (const std::size_t threads : {1, 2, 4}) {
    auto input = make_csv_input(std::make_unique<Broken>(), "x.gz", make_debs_parser({}, DebsPath::kFast), "e/0", {},
                                {}, {.threads = threads, .block_bytes = 100});
    const Everything all = read_all(**input);
    EXPECT_EQ(all.broken, "");
    EXPECT_EQ(all.sample_count, 1000U);
    EXPECT_EQ(all.received, 1000U);
    EXPECT_THAT(std::string(all.status.message()), ::testing::HasSubstr("x.gz, after line 1000: cut off"));
  }
}

}  // namespace
}  // namespace orla::ingest
