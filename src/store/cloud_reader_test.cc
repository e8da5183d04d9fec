#include "store/cloud_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/random.h"
#include "store/cloud_for_tests.h"
#include "store/sqlite_cloud_store.h"

namespace orla::store {
namespace {

using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CloudReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ =
        SqliteCloudStore::open(directory_.path().string(), model::make_plan(small_fleet()), {Fsync::kOff, 0}).value();
  }
  void write(std::vector<WindowRow> rows) {
    CloudCommit commit;
    commit.windows = std::move(rows);
    const absl::Status status = store_->commit(commit);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string file() const { return (directory_.path() / kCloudFileName).string(); }
  std::unique_ptr<CloudReader> open() const { return CloudReader::open(file()).value(); }

  // "plug 1m +0 0/1": rollup, window, minutes after noon, labels.
  std::vector<std::string> ask(const Query& query, std::string* last = nullptr) const {
    std::vector<std::string> out;
    const absl::Status status = open()->windows(query, [&](const WindowAnswer& a) {
      std::string line = std::string(a.rollup) + " " + std::string(a.window) + " +" +
                         std::to_string((a.start - kNoon) / minutes(1)) + " ";
      for (const model::Label& label : a.labels) line += (line.back() == ' ' ? "" : "/") + label.second;
      out.push_back(line);
      if (last != nullptr) *last = position(a);
      return Continue::kYes;
    });
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("cloud-reader").value();
  std::unique_ptr<SqliteCloudStore> store_;
};

TEST_F(CloudReaderTest, AnswersInOrderWithLabelsByTheirNumber) {
  write({merge_row(plug(10, 1), kNoon, {1}), merge_row(plug(2, 11), kNoon, {1}), merge_row(plug(2, 9), kNoon, {1}),
         merge_row({{"house", "attic"}, {"plug", "1"}}, kNoon, {1}), merge_row(plug(10, 1), kNoon - minutes(1), {1}),
         across_row(2, kNoon, {1, 2})});
  EXPECT_THAT(ask({}), ElementsAre("house 1m +0 2", "plug 1m +-1 10/1", "plug 1m +0 2/9", "plug 1m +0 2/11",
                                   "plug 1m +0 10/1", "plug 1m +0 attic/1"));
}

TEST_F(CloudReaderTest, AnAnswerHoldsWhatWasWritten) {
  write({merge_row(plug(0, 1), kNoon, {0.1, -7.25, 1e300}, 3), across_row(0, kNoon, {0.1, 0.2})});
  CloudCommit commit;
  commit.publication = {{"plug", kNoon + minutes(60)}, {"house", kNoon + minutes(61)}};
  ASSERT_TRUE(store_->commit(commit).ok());
  int rows = 0;
  ASSERT_TRUE(open()
                  ->windows({},
                            [&](const WindowAnswer& a) {
                              ++rows;
                              const bool merged = a.rollup == "plug";
                              const WindowRow expected = merged ? merge_row(plug(0, 1), kNoon, {0.1, -7.25, 1e300}, 3)
                                                                : across_row(0, kNoon, {0.1, 0.2});
                              EXPECT_EQ(a.labels, expected.labels);
                              EXPECT_EQ(a.end, expected.end);
                              EXPECT_EQ(a.shown.count, expected.shown.count);
                              EXPECT_EQ(a.shown.sum, expected.shown.sum);
                              EXPECT_EQ(a.shown.mean, expected.shown.mean);
                              EXPECT_EQ(a.shown.stddev, expected.shown.stddev);
                              EXPECT_EQ(a.has_order, merged);
                              if (merged) {
                                EXPECT_EQ(a.shown.last, 1e300);
                              }
                              EXPECT_EQ(a.revision, expected.revision);
                              // An hour may be late: 12:01 is final when 13:01 is published.
                              EXPECT_EQ(a.final, !merged);
                              return Continue::kYes;
                            })
                  .ok());
  EXPECT_EQ(rows, 2);
}

TEST_F(CloudReaderTest, ChoosesByNameLabelAndTime) {
  std::vector<WindowRow> rows;
  for (int m = 0; m < 4; ++m) {
    for (int h = 0; h < 2; ++h) {
      for (int p = 0; p < 2; ++p) rows.push_back(merge_row(plug(h, p), kNoon + minutes(m), {1}));
    }
  }
  rows.push_back(across_row(1, kNoon + minutes(1), {1}));
  write(rows);
  Query query;
  query.where = {{"house", "1"}};
  query.from = kNoon + minutes(1);
  query.to = kNoon + minutes(3);
  EXPECT_THAT(ask(query),
              ElementsAre("house 1m +1 1", "plug 1m +1 1/0", "plug 1m +1 1/1", "plug 1m +2 1/0", "plug 1m +2 1/1"));
  query.rollup = "plug";
  query.where.push_back({"plug", "0"});
  EXPECT_THAT(ask(query), ElementsAre("plug 1m +1 1/0", "plug 1m +2 1/0"));
  query.window = "1d";
  EXPECT_THAT(ask(query), IsEmpty());
  query.window = "1m";
  query.where = {{"house", "9"}};
  EXPECT_THAT(ask(query), IsEmpty());
  query.where.clear();
  query.to = query.from;
  EXPECT_THAT(ask(query), IsEmpty());
  query.to = model::kMinTime;
  EXPECT_THAT(ask(query), IsEmpty());
}

TEST_F(CloudReaderTest, NamesThatDoNotExistAreErrorsThatListThoseThatDo) {
  const auto reader = open();
  const auto error = [&](Query query) {
    const absl::Status status = reader->windows(query, [](const WindowAnswer&) { return Continue::kYes; });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  Query query;
  query.rollup = "plugs";
  EXPECT_EQ(error(query), "no rollup \"plugs\"; there are: house, plug");
  query.rollup = "plug";
  query.window = "7m";
  EXPECT_THAT(error(query), HasSubstr("no window or step \"7m\"; there are: 1m, 1d"));
  query.window.clear();
  query.where = {{"room", "1"}};
  EXPECT_EQ(error(query), "rollup \"plug\" has no label \"room\"; it has: house, plug");
  query.where.clear();
  query.after = "nonsense";
  EXPECT_THAT(error(query), HasSubstr("no position"));
}

TEST_F(CloudReaderTest, NoTextForAfterDoesHarm) {
  write({merge_row(plug(0, 1), kNoon, {1})});
  const auto reader = open();
  base::SeededRandom random(3);
  for (int i = 0; i < 500; ++i) {
    Query query;
    for (std::uint64_t n = random.below(60); n > 0; --n) query.after += "0123456789abcdef"[random.below(16)];
    const absl::Status status = reader->windows(query, [](const WindowAnswer&) { return Continue::kYes; });
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST_F(CloudReaderTest, PagesJoinWithoutGapOrRepetition) {
  base::SeededRandom random(5);
  std::vector<WindowRow> rows;
  for (int m = 0; m < 5; ++m) {
    for (int p = 0; p < 40; ++p) {
      if (random.below(3) > 0) rows.push_back(merge_row(plug(p % 3, p), kNoon + minutes(m), {1}));
    }
    rows.push_back(across_row(m % 2, kNoon + minutes(m), {1}));
  }
  write(rows);
  // All groups are read past each other; one of many is looked up.
  for (const std::vector<model::Label>& where : {std::vector<model::Label>{}, {{"house", "1"}}, {{"plug", "7"}}}) {
    Query query;
    query.where = where;
    const std::vector<std::string> whole = ask(query);
    EXPECT_FALSE(whole.empty());
    for (const std::uint64_t limit : {1, 7, 1000}) {
      std::vector<std::string> joined;
      query.limit = limit;
      query.after.clear();
      while (true) {
        const std::vector<std::string> page = ask(query, &query.after);
        EXPECT_LE(page.size(), limit);
        joined.insert(joined.end(), page.begin(), page.end());
        if (page.size() < limit) break;
      }
      EXPECT_EQ(joined, whole);
    }
  }
}

TEST_F(CloudReaderTest, ReadsWhileTheCloudWrites) {
  write({merge_row(plug(0, 1), kNoon, {1})});
  const auto reader = open();
  int rows = 0;
  // A commit in the middle of an answer does not change it.
  ASSERT_TRUE(reader
                  ->windows({},
                            [&](const WindowAnswer&) {
                              if (++rows == 1) write({merge_row(plug(0, 2), kNoon, {1})});
                              return Continue::kYes;
                            })
                  .ok());
  EXPECT_EQ(rows, 1);
  EXPECT_EQ(ask({}).size(), 2u);
  // And the file can be read when no cloud runs.
  store_.reset();
  EXPECT_EQ(ask({}).size(), 2u);
}

TEST_F(CloudReaderTest, RollupsTellTheirLabelsWindowsAndTimes) {
  write({merge_row(plug(0, 1), kNoon, {1}), merge_row(plug(0, 2), kNoon + minutes(5), {1})});
  CloudCommit commit;
  commit.publication = {{"plug", kNoon}};
  ASSERT_TRUE(store_->commit(commit).ok());
  const std::vector<RollupInfo> rollups = open()->rollups().value();
  ASSERT_EQ(rollups.size(), 2u);
  EXPECT_EQ(rollups[0].name, "house");
  EXPECT_EQ(rollups[0].across, "sum");
  const RollupInfo& plugs = rollups[1];
  EXPECT_EQ(plugs.metric, "load");
  EXPECT_EQ(plugs.unit, "W");
  EXPECT_EQ(plugs.decimals, 3);
  EXPECT_EQ(plugs.across, "");
  EXPECT_THAT(plugs.labels, ElementsAre("house", "plug"));
  EXPECT_EQ(plugs.published, kNoon);
  EXPECT_EQ(plugs.groups, 2u);
  ASSERT_EQ(plugs.windows.size(), 2u);
  EXPECT_EQ(plugs.windows[0].name, "1m");
  EXPECT_EQ(plugs.windows[0].first, kNoon);
  EXPECT_EQ(plugs.windows[0].last, kNoon + minutes(5));
  EXPECT_EQ(plugs.windows[1].first, std::nullopt);
  ASSERT_EQ(plugs.steps.size(), 1u);
  EXPECT_EQ(plugs.steps[0].name, "1m");
}

TEST_F(CloudReaderTest, TheCallbackCanStop) {
  write({merge_row(plug(0, 1), kNoon, {1}), merge_row(plug(0, 2), kNoon, {1}), across_row(0, kNoon, {1})});
  int rows = 0;
  ASSERT_TRUE(open()
                  ->windows({},
                            [&](const WindowAnswer&) {
                              ++rows;
                              return Continue::kNo;
                            })
                  .ok());
  EXPECT_EQ(rows, 1);
}

TEST(CloudReader, AFileThatIsNotThereOrNotOurs) {
  const auto directory = base::TemporaryDirectory::create("cloud-reader").value();
  const std::string path = (directory.path() / "cloud.sqlite").string();
  EXPECT_EQ(CloudReader::open(path).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(base::write_file_atomically(path, std::string(9000, 'x')).ok());
  EXPECT_EQ(CloudReader::open(path).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(base::write_file_atomically(path, "").ok());
  EXPECT_EQ(CloudReader::open(path).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CloudReader, LabelsCompareByNumberWhereTheyAreOne) {
  const auto compare = [](std::string a, std::string b) {
    return compare_labels({{"x", std::move(a)}}, {{"x", std::move(b)}});
  };
  EXPECT_LT(compare("9", "10"), 0);
  EXPECT_LT(compare("10", "a"), 0);
  EXPECT_LT(compare("a", "b"), 0);
  EXPECT_GT(compare("20", "3"), 0);
  EXPECT_EQ(compare("7", "7"), 0);
  EXPECT_NE(compare("07", "7"), 0);  // different groups never tie
  EXPECT_LT(compare("99999999999999999999998", "99999999999999999999999"), 0);
}

}  // namespace
}  // namespace orla::store
