#include "function/log_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/host_fakes.h"

namespace orla::function {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

class LogBookTest : public ::testing::Test {
 protected:
  std::vector<std::string> texts(const LogQuery& query = {}) {
    std::vector<std::string> texts;
    for (const LogLine& line : book_.read(query)) texts.push_back(line.text);
    return texts;
  }
  void run_posted() {
    for (std::size_t i = 0; i < posted_.size(); ++i) posted_[i]();
    posted_.clear();
  }

  ManualClock clock_;
  std::vector<std::function<void()>> posted_;
  const LogBook::Post post_ = [this](std::function<void()> what) { posted_.push_back(std::move(what)); };
  std::atomic<std::size_t> followers_{0};
  LogBook::Limits limits_{.lines = 4, .bytes = 100'000, .followers = 2};
  LogBook book_{clock_, limits_, post_, followers_};
};

TEST_F(LogBookTest, KeepsTheNewestLinesAndFindsThem) {
  EXPECT_TRUE(texts().empty());
  for (int i = 1; i <= 6; ++i) {
    clock_.advance(seconds(1));
    book_.line(i % 2 == 0 ? "a" : "b", std::to_string(i));
  }
  EXPECT_THAT(texts(), ElementsAre("3", "4", "5", "6"));
  EXPECT_EQ(book_.read({}).front().number, 3u);
  LogQuery of_a;
  of_a.instance = "a";
  EXPECT_THAT(texts(of_a), ElementsAre("4", "6"));
  LogQuery tail;
  tail.tail = 1;
  EXPECT_THAT(texts(tail), ElementsAre("6"));
  tail.tail = 0;
  EXPECT_THAT(texts(tail), ElementsAre());
  LogQuery since;
  since.since = clock_.wall_now() - seconds(1);
  EXPECT_THAT(texts(since), ElementsAre("5", "6"));
}

TEST_F(LogBookTest, IsBoundedInBytesAndCutsLongLines) {
  book_.line("a", std::string(1 << 20, 'x'));
  const LogLine cut = book_.read({}).front();
  EXPECT_EQ(cut.text, std::string(kMaxLogLineBytes, 'x') + " [orla: cut, the line had 1048576 bytes]");
  book_.line("a", std::string(kMaxLogLineBytes, 'y'));
  EXPECT_THAT(texts(), ElementsAre(std::string(kMaxLogLineBytes, 'y')));
}

TEST_F(LogBookTest, FollowersGetNewLinesInOrderAndTheEnd) {
  book_.line("a", "before");
  std::vector<std::string> got;
  int ends = 0;
  auto handle = book_.follow([&](const LogLine& line) { got.push_back(line.text); }, [&] { ++ends; });
  ASSERT_TRUE(handle.ok());
  book_.line("a", "1");
  book_.line("b", "2");
  EXPECT_EQ(posted_.size(), 1u);  // one task for both
  run_posted();
  EXPECT_THAT(got, ElementsAre("1", "2"));
  book_.line("a", "3");
  book_.close();
  book_.line("a", "4");
  run_posted();
  EXPECT_THAT(got, ElementsAre("1", "2", "3"));
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(book_.follow([](const LogLine&) {}, [] {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LogBookTest, ASlowFollowerLosesLinesAndIsToldHowMany) {
  std::vector<std::string> got;
  auto handle = book_.follow([&](const LogLine& line) { got.push_back(line.text); }, [] {});
  for (std::size_t i = 0; i < kFollowerLines + 7; ++i) book_.line("a", "x");
  run_posted();
  EXPECT_EQ(got.size(), kFollowerLines);
  book_.line("a", "next");
  run_posted();
  ASSERT_EQ(got.size(), kFollowerLines + 2);
  EXPECT_EQ(got[kFollowerLines], "orla: 7 lines were dropped here: this reader was too slow");
  EXPECT_EQ(got.back(), "next");
}

TEST_F(LogBookTest, FollowersAreLimitedAndLeave) {
  int lines = 0;
  auto one = book_.follow([&](const LogLine&) { ++lines; }, [] {});
  auto two = book_.follow([&](const LogLine&) { ++lines; }, [] {});
  const auto three = book_.follow([](const LogLine&) {}, [] {});
  EXPECT_EQ(three.status().code(), absl::StatusCode::kResourceExhausted);
  book_.line("a", "1");
  one->reset();
  run_posted();
  EXPECT_EQ(lines, 1);
  book_.line("a", "2");
  run_posted();
  EXPECT_EQ(lines, 2);
  EXPECT_EQ(followers_, 1u);
  EXPECT_TRUE(book_.follow([](const LogLine&) {}, [] {}).ok());
}

}  // namespace
}  // namespace orla::function
