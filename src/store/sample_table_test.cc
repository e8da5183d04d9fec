// Raw samples into the cloud's file and out of it again, through both ways in.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/files.h"
#include "store/cloud_for_tests.h"
#include "store/sample_reader.h"
#include "store/sqlite_cloud_store.h"

namespace orla::store {
namespace {

using model::Batch;
using model::SeriesId;
using model::Time;
using std::chrono::hours;
using std::chrono::seconds;

// Runs, then times, then values, as they lie in memory: this room does not know codecs.
SampleFormat plain_format() {
  return {[](const Batch& batch, std::string& out) {
            Batch plain = batch;
            plain.make_plain();
            const std::uint64_t sizes[2] = {plain.runs.size(), plain.times.size()};
            out.assign(reinterpret_cast<const char*>(sizes), sizeof sizes);
            const auto put = [&](const auto& column) {
              out.append(reinterpret_cast<const char*>(column.data()), column.size() * sizeof column[0]);
            };
            put(plain.runs);
            put(plain.times);
            put(plain.values);
            return absl::OkStatus();
          },
          [](std::string_view bytes, Batch& out) {
            out.clear();
            std::uint64_t sizes[2] = {0, 0};
            if (bytes.size() < sizeof sizes) return absl::DataLossError("cut off");
            std::memcpy(sizes, bytes.data(), sizeof sizes);
            bytes.remove_prefix(sizeof sizes);
            const auto get = [&](auto& column, std::uint64_t n) {
              column.resize(n);
              std::memcpy(static_cast<void*>(column.data()), bytes.data(), n * sizeof column[0]);
              bytes.remove_prefix(n * sizeof column[0]);
            };
            get(out.runs, sizes[0]);
            get(out.times, sizes[1]);
            get(out.values, sizes[1]);
            return absl::OkStatus();
          }};
}

using Told = std::vector<std::pair<std::int64_t, double>>;  // ns since noon, value

class SampleTableTest : public ::testing::Test {
 protected:
  void SetUp() override { open({}); }

  void open(TailBounds bounds) {
    store_.reset();
    model::Fleet fleet = small_fleet();
    fleet.metrics.push_back({"work", "kWh", 3, {}, {}});
    fleet.rollups[0].keep_raw = true;
    CloudStoreOptions options{Fsync::kOff, 0, plain_format(), bounds};
    store_ = SqliteCloudStore::open(directory_.path().string(), model::make_plan(fleet), options).value();
  }

  // One commit of (series, ns since noon, value) in this order.
  static CloudCommit commit_of(const std::vector<std::tuple<int, std::int64_t, double>>& samples) {
    CloudCommit commit;
    std::map<int, std::uint32_t> numbers;
    Batch& batch = commit.samples.emplace_back();
    for (const auto& [number, ns, value] : samples) {
      const auto [known, added] = numbers.try_emplace(number, static_cast<std::uint32_t>(numbers.size()));
      if (added) commit.sample_series.push_back({"load", plug(0, number)});
      const auto i = static_cast<std::uint32_t>(batch.values.size());
      batch.runs.push_back({SeriesId{known->second}, i, i + 1});
      batch.times.push_back(kNoon + model::Duration(ns));
      batch.values.push_back(value);
    }
    return commit;
  }

  // An evenly spaced run of one series.
  static CloudCommit run_of(int number, seconds from, std::uint32_t count, std::int32_t value) {
    CloudCommit commit;
    commit.sample_series = {{"load", plug(0, number)}};
    Batch& batch = commit.samples.emplace_back();
    batch.decimals = 3;
    batch.runs = {{SeriesId{0}, 0, count}};
    batch.paces = {{kNoon + from, seconds(1)}};
    for (std::uint32_t i = 0; i < count; ++i) batch.scaled.push_back(value + static_cast<std::int32_t>(i));
    return commit;
  }

  std::unique_ptr<SampleReader> reader() const {
    return SampleReader::open((directory_.path() / kCloudFileName).string(), plain_format()).value();
  }

  static SampleQuery of(int number) { return {"load", {{"plug", std::to_string(number)}}, {}, {}, UINT64_MAX, ""}; }

  Told told(const SampleQuery& query) const {
    Told out;
    const absl::Status status = reader()->samples(query, [&](const SampleAnswer& some) {
      EXPECT_FALSE(some.times.empty());
      for (std::size_t i = 0; i < some.times.size(); ++i)
        out.emplace_back((some.times[i] - kNoon).count(), some.values[i]);
      return Continue::kYes;
    });
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  SampleFacts facts() const { return reader()->facts().value(); }

  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("samples").value();
  std::unique_ptr<SqliteCloudStore> store_;
};

TEST_F(SampleTableTest, SmallOnesGoToTheTailAndComeOutByTimeThenAcceptance) {
  ASSERT_TRUE(store_->commit(commit_of({{1, 30, 1}, {2, 10, 2}, {1, 10, 3}, {1, 30, 4}})).ok());
  ASSERT_TRUE(store_->commit(commit_of({{1, 30, 5}, {1, 20, 6}, {1, 30, 1}})).ok());
  EXPECT_EQ(facts().tail_samples, 7u);
  EXPECT_EQ(facts().blocks, 0u);
  EXPECT_EQ(told(of(1)), (Told{{10, 3}, {20, 6}, {30, 1}, {30, 4}, {30, 5}, {30, 1}}));
  EXPECT_EQ(told(of(2)), (Told{{10, 2}}));
  SampleQuery all = of(1);
  all.where.clear();
  EXPECT_EQ(told(all).size(), 7u);
}

TEST_F(SampleTableTest, LargeRunsBecomeBlocksPerHour) {
  // From 11:50 on: 600 samples of one hour, and 3,000 of the next.
  ASSERT_TRUE(store_->commit(run_of(1, seconds(-600), 3600, 0)).ok());
  EXPECT_EQ(facts().blocks, 2u);
  EXPECT_EQ(facts().block_samples, 3600u);
  EXPECT_EQ(facts().tail_samples, 0u);
  const Told all = told(of(1));
  ASSERT_EQ(all.size(), 3600u);
  for (std::int64_t i = 0; i < 3600; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)], (std::pair{(i - 600) * 1'000'000'000, static_cast<double>(i) / 1000}));
  }
  // Only a few at the end of the first hour make no block.
  ASSERT_TRUE(store_->commit(run_of(2, seconds(-511), 511 + 512, 0)).ok());
  EXPECT_EQ(facts().blocks, 3u);
  EXPECT_EQ(facts().tail_samples, 511u);
  EXPECT_EQ(told(of(2)).size(), 1023u);
}

TEST_F(SampleTableTest, WhatFollowsTheTailGoesThereSoThatTheOrderStays) {
  ASSERT_TRUE(store_->commit(commit_of({{1, 0, -1}})).ok());
  ASSERT_TRUE(store_->commit(run_of(1, seconds(0), 1000, 0)).ok());
  EXPECT_EQ(facts().blocks, 0u);
  const Told all = told(of(1));
  ASSERT_EQ(all.size(), 1001u);
  EXPECT_EQ(all[0], (std::pair<std::int64_t, double>{0, -1}));
  EXPECT_EQ(all[1], (std::pair<std::int64_t, double>{0, 0}));
}

TEST_F(SampleTableTest, ATailBeyondItsBoundsIsSortedIntoBlocks) {
  open({.samples = 10, .rows = 100});
  // Three series in turn, two samples of one time each commit; the same numbers in a plain list.
  std::map<int, Told> expected;
  for (int c = 0; c < 40; ++c) {
    const int series = c % 3;
    const std::int64_t ns = (c / 6) * 5;  // times come again
    ASSERT_TRUE(store_->commit(commit_of({{series, ns, c}, {series, ns, c + 0.5}})).ok());
    expected[series].emplace_back(ns, c);
    expected[series].emplace_back(ns, c + 0.5);
    EXPECT_LE(facts().tail_samples, 10u) << c;
  }
  EXPECT_GT(facts().block_samples, 60u);
  EXPECT_EQ(facts().blocks, 3u);  // small ones are written anew with what follows
  for (const auto& [series, samples] : expected) EXPECT_EQ(told(of(series)), samples) << series;
  // Another process goes on.
  open({.samples = 10, .rows = 3});
  ASSERT_TRUE(store_->commit(commit_of({{0, 0, 99}})).ok());
  expected[0].insert(expected[0].begin() + 4, {0, 99});
  EXPECT_EQ(told(of(0)), expected[0]);
  for (int c = 0; c < 4; ++c) ASSERT_TRUE(store_->commit(commit_of({{7, c, c}})).ok());
  EXPECT_EQ(facts().tail_samples, 0u);  // more rows than there may be
  EXPECT_EQ(told(of(7)), (Told{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
}

TEST_F(SampleTableTest, QuestionsHaveBoundsAndPages) {
  ASSERT_TRUE(store_->commit(commit_of({{1, 5, 1}, {1, 5, 2}, {1, 5, 3}, {1, 6, 4}, {2, 5, 5}, {2, 9, 6}})).ok());
  ASSERT_TRUE(store_->commit(run_of(1, seconds(1), 600, 100)).ok());
  SampleQuery some = of(1);
  some.from = kNoon + model::Duration(6);
  some.to = kNoon + seconds(2);
  EXPECT_EQ(told(some), (Told{{6, 4}, {1'000'000'000, 0.1}}));
  some.to = some.from;
  EXPECT_EQ(told(some), Told{});
  SampleQuery all{"load", {}, {}, {}, UINT64_MAX, ""};
  const Told whole = told(all);
  ASSERT_EQ(whole.size(), 606u);
  // Page by page, also in the middle of samples of one time.
  for (const std::uint64_t limit : {1, 2, 7}) {
    SampleQuery page = all;
    page.limit = limit;
    Told paged;
    while (paged.size() <= whole.size()) {
      const std::size_t before = paged.size();
      std::string next;
      ASSERT_TRUE(reader()
                      ->samples(page,
                                [&](const SampleAnswer& answer) {
                                  for (std::size_t i = 0; i < answer.times.size(); ++i)
                                    paged.emplace_back((answer.times[i] - kNoon).count(), answer.values[i]);
                                  next = position(answer, answer.times.size() - 1);
                                  return Continue::kYes;
                                })
                      .ok());
      if (paged.size() == before) break;
      EXPECT_LE(paged.size() - before, limit);
      page.after = next;
    }
    EXPECT_EQ(paged, whole) << limit;
  }
}

TEST_F(SampleTableTest, QuestionsThatCannotBeAnsweredSayWhy) {
  const auto ask = [&](SampleQuery query) {
    return reader()->samples(query, [](const SampleAnswer&) { return Continue::kYes; });
  };
  EXPECT_TRUE(ask({"load", {}, {}, {}, 5, ""}).ok());  // nothing yet
  absl::Status status = ask({"work", {}, {}, {}, 5, ""});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "no samples of \"work\" are kept; those of load are");
  ASSERT_TRUE(store_->commit(commit_of({{1, 5, 1}})).ok());
  status = ask({"load", {{"floor", "1"}}, {}, {}, 5, ""});
  EXPECT_EQ(status.message(), "no series of \"load\" has a label \"floor\"; there are: house, plug");
  for (const char* after : {"x", "0", "zz", "00"})
    EXPECT_EQ(ask({"load", {}, {}, {}, 5, after}).code(), absl::StatusCode::kInvalidArgument) << after;
}

TEST_F(SampleTableTest, ACommitThatFailsLeavesNothingOfItsSamples) {
  ASSERT_TRUE(store_->commit(commit_of({{1, 5, 1}})).ok());
  CloudCommit bad = commit_of({{2, 6, 2}, {1, 6, 3}});
  bad.windows.push_back(merge_row(plug(0, 1), kNoon, {1}));
  bad.windows.back().table = "no such";
  ASSERT_FALSE(store_->commit(bad).ok());
  bad.windows.clear();
  ASSERT_TRUE(store_->commit(bad).ok());
  EXPECT_EQ(told(of(1)), (Told{{5, 1}, {6, 3}}));
  EXPECT_EQ(told(of(2)), (Told{{6, 2}}));
  EXPECT_EQ(facts().series, 2u);
}

}  // namespace
}  // namespace orla::store
