#include "ingest/csv_debs_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/byte_source.h"
#include "base/random.h"
#include "ingest/csv_debs.h"
#include "ingest/read_all.h"

namespace orla::ingest {
namespace {

// Reads `text` with the labels known, into a column of so many decimals.
struct Reading {
  DebsRowsRead read;
  std::vector<std::uint32_t> series = std::vector<std::uint32_t>(100);
  std::vector<model::Time> times = std::vector<model::Time>(100);
  std::vector<std::int32_t> scaled = std::vector<std::int32_t>(100);

  Reading(const std::string& text, int decimals = 3, std::uint32_t unwanted = 99) {
    DebsLabels labels;
    labels.insert("1,11,0,3", 5);
    labels.insert("0,11,0,3", 6);
    labels.insert("1,1234,567,8", 7);  // twelve bytes
    labels.insert("1,2,0,3\r", 8);
    labels.insert("1,9,9,9", 99);
    DebsLast last;
    const std::string padded = text + std::string(64, 'x');
    DebsRows in;
    in.begin = padded.data();
    in.end = padded.data() + text.size();
    in.max_samples = 90;
    in.unwanted = unwanted;
    in.decimals = decimals;
    in.to = {series.data(), times.data(), scaled.data()};
    read = read_debs_rows(in, labels, last);
  }
};

TEST(DebsRows, ReadsTheCommonForm) {
  const Reading r(
      "1,1377986401,68.451,1,11,0,3\n"
      "2,1377986401,0,0,11,0,3\n"
      "9999999999999999999,1377986402,5.,1,1234,567,8\n"
      "4,1377986402,.5,1,2,0,3\r\n"
      "5,1377986402,7,1,9,9,9\n"
      "6,6942585599,12345.678,1,11,0,3\n");
  EXPECT_EQ(r.read.rows, 6U);
  ASSERT_EQ(r.read.samples, 5U);  // one is of no interest
  const std::vector<std::uint32_t> series(r.series.begin(), r.series.begin() + 5);
  EXPECT_EQ(series, (std::vector<std::uint32_t>{5, 6, 7, 8, 5}));
  const std::vector<std::int32_t> scaled(r.scaled.begin(), r.scaled.begin() + 5);
  EXPECT_EQ(scaled, (std::vector<std::int32_t>{68451, 0, 5000, 500, 12345678}));
  EXPECT_EQ(r.times[0], model::from_ns(1'377'986'401'000'000'000));
  EXPECT_EQ(r.times[2], model::from_ns(1'377'986'402'000'000'000));
  EXPECT_EQ(r.times[4], model::from_ns(6'942'585'599'000'000'000));
}

TEST(DebsRows, LeavesEverythingElseAlone) {
  const std::string good = "1,1377986401,68.451,1,11,0,3\n";
  for (const std::string bad : {"",
                                "\r",
                                "x,1377986401,1,1,11,0,3",
                                ",1377986401,1,1,11,0,3",
                                "-1,1377986401,1,1,11,0,3",
                                "10000000000000000000,1377986401,1,1,11,0,3",
                                "1,137798640,1,1,11,0,3",
                                "1,13779864011,1,1,11,0,3",
                                "1,13779x6401,1,1,11,0,3",
                                "1,6942585600,1,1,11,0,3",
                                "1,1377986401.,1,1,11,0,3",
                                "1,1377986401,,1,11,0,3",
                                "1,1377986401,.,1,11,0,3",
                                "1,1377986401,-1,1,11,0,3",
                                "1,1377986401,+1,1,11,0,3",
                                "1,1377986401,1e3,1,11,0,3",
                                "1,1377986401,1.2.3,1,11,0,3",
                                "1,1377986401,123456789,1,11,0,3",
                                "1,1377986401,12345.6789,1,11,0,3",
                                "1,1377986401,3000000,1,11,0,3",
                                "1,1377986401,1.5 ,1,11,0,3",
                                "1,1377986401,1,1,11,0,4",
                                "1,1377986401,1,1,11,0,3,",
                                "1,1377986401,1,1,11,0",
                                "1,1377986401,1,1,11,0,3 ",
                                "1,1377986401,1",
                                "1,1377986401",
                                "1,1377986401,1.5",
                                "1,1377986401,\"1\",1,11,0,3",
                                "000000000000000001,1377986401,00012.50,1,11,0,3,000000000000000000000000000"}) {
    const Reading r(good + bad + "\n" + good);
    EXPECT_EQ(r.read.rows, 1U) << bad;
    EXPECT_EQ(r.read.samples, 1U) << bad;
  }
  EXPECT_EQ(Reading(good + "1,1377986401,1,1,11,0,3" + std::string(1, '\0') + "\n").read.rows, 1U);
  EXPECT_EQ(Reading(good, 2).read.rows, 0U);  // the column has too few decimals
  EXPECT_EQ(Reading("1,1377986401,2,1,11,0,3\n", 9).scaled[0], 2'000'000'000);
  EXPECT_EQ(Reading("1,1377986401,3,1,11,0,3\n", 9).read.rows, 0U);
}

TEST(DebsRows, LabelsAreFoundAmongMany) {
  DebsLabels labels;
  const auto text_of = [](std::uint32_t i) {
    return fmt::format("{},{},{},{}", i % 2, i / 2 % 100, i / 200 % 20, i / 4000);
  };
  for (std::uint32_t i = 0; i < 100'000; ++i) labels.insert(text_of(i), i);
  labels.insert(text_of(7), 1234);    // known already
  labels.insert("1,1234,1234,5", 1);  // too long
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    char bytes[12] = {};
    const std::string text = text_of(i);
    std::copy(text.begin(), text.end(), bytes);
    std::uint64_t head = 0;
    std::uint32_t tail = 0;
    std::memcpy(&head, bytes, 8);
    std::memcpy(&tail, bytes + 8, 4);
    std::uint32_t entry = i < 50'000 ? i : 7 * i % 100'000;  // the row before, or any
    ASSERT_EQ(labels.find(head, tail, entry), i);
    ASSERT_EQ(labels.find(head, tail, entry), i);
    ASSERT_EQ(labels.find(head, tail ^ 0x80000000, entry), UINT32_MAX);
  }
}

// Good rows of every form and damaged ones, through the quick way and without it.
TEST(DebsRows, GiveTheSameAsTheCarefulWay) {
  base::SeededRandom random(5);
  const auto one_of = [&](std::initializer_list<const char*> list) { return list.begin()[random.below(list.size())]; };
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;
  for (int round = 0; round < 150; ++round) {
    const std::uint64_t oddness = 1 + random.below(60);
    std::string text;
    for (int i = 0; i < 400; ++i) {
      std::string value = random.below(4) == 0 ? "0" : fmt::format("{}.{:03}", random.below(3000), random.below(1000));
      if (random.below(oddness) == 0) {
        value = one_of({"-1.5", "0.1234", "123456789.5", "5.", ".5", "-0", "1e3", "nan", "", "x", "00001.25",
                        "2147483.648", "12345678.123456", "3000000"});
      }
      std::string row = fmt::format("{},{},{},{},{},{},{}", i, 1'377'986'400 + i / 50, value, random.below(2),
                                    random.below(12), random.below(3), random.below(4));
      if (random.below(4 * oddness) == 0) {
        switch (random.below(4)) {
          case 0:
            row.erase(random.below(row.size()), 1);
            break;
          case 1:
            row[random.below(row.size())] = static_cast<char>(random.below(256));
            break;
          case 2:
            row.insert(random.below(row.size()), one_of({",", "\n", "\r", ".", "-", "0", "00000000000000000000", " "}));
            break;
          default:
            row += one_of({"\r", "\n", ",", "0000000000000000000000000000000000000000000000000", "\r\r"});
        }
      }
      text += row + "\n";
    }
    const Selection selection =
        random.below(2) == 0 ? Selection() : Selection(Selection::Accepted{{"house", {"0", "2", "13"}}});
    const auto read = [&](DebsPath path, std::size_t piece) {
      auto input =
          make_csv_input(base::bytes_in_memory(text, piece), "x", make_debs_parser(selection, path), "e/0", {}, {});
      return read_all(**input);
    };
    const Everything fast = read(DebsPath::kFast, 1 + random.below(5000));
    const Everything careful = read(DebsPath::kCareful, text.size());
    ASSERT_EQ(fast.broken, "");
    ASSERT_TRUE(same_but_status(fast, careful)) << text;
    ASSERT_EQ(fast.rejections.size(), careful.rejections.size());
    samples += fast.sample_count;
    rejected += fast.received - fast.sample_count;
  }
  EXPECT_GT(samples, 30'000U);
  EXPECT_GT(rejected, 500U);
}

}  // namespace
}  // namespace orla::ingest
