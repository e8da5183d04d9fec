#include "base/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace orla::base {
namespace {

class FixedClock final : public Clock {
 public:
  WallTime wall_now() const override {
    // 2013-09-01T00:00:00Z is 1377993600 (the first second of the DEBS 2014 month).
    return WallTime(std::chrono::seconds(1377993600) + std::chrono::microseconds(1002999));
  }
  SteadyTime steady_now() const override { return {}; }
};

class LoggerTest : public testing::Test {
 protected:
  LoggerTest() { EXPECT_EQ(pipe(fds_.data()), 0); }
  ~LoggerTest() override { close(fds_[0]); }
  int sink() const { return fds_[1]; }
  std::string written() {
    close(fds_[1]);
    std::string all;
    std::array<char, 4096> block;
    for (ssize_t n = 0; (n = read(fds_[0], block.data(), block.size())) > 0;) all.append(block.data(), n);
    return all;
  }
  const FixedClock clock_;
  std::array<int, 2> fds_{};
};

TEST_F(LoggerTest, TextNamesTimeLevelNodeAndMessage) {
  StreamLogger logger(clock_, "edge-1", LogLevel::kInfo, LogFormat::kText, sink());
  logger.info("listening on {}", "127.0.0.1:7411");
  logger.error("{} of {}", 1, 2);
  logger.debug("not shown");
  EXPECT_EQ(written(),
            "2013-09-01T00:00:01.002Z info  edge-1  listening on 127.0.0.1:7411\n"
            "2013-09-01T00:00:01.002Z error edge-1  1 of 2\n");
}

TEST_F(LoggerTest, AnEntryIsOneLineWhateverItHolds) {
  StreamLogger logger(clock_, "", LogLevel::kDebug, LogFormat::kText, sink());
  logger.debug("{}", std::string_view("a\nb\x1b[2J \xff \"q\"", 13));
  EXPECT_EQ(written(), "2013-09-01T00:00:01.002Z debug a\\nb\\u001b[2J \xEF\xBF\xBD \"q\"\n");
}

TEST_F(LoggerTest, JsonEscapesAsRfc8259Asks) {
  StreamLogger logger(clock_, "n\"1", LogLevel::kWarn, LogFormat::kJson, sink());
  logger.warn("{}", "C:\\x \"y\"\t\n\x01 {}");
  EXPECT_EQ(written(),
            R"({"time":"2013-09-01T00:00:01.002Z","level":"warn","node":"n\"1","message":"C:\\x \"y\"\t\n\u0001 {}"})"
            "\n");
}

TEST_F(LoggerTest, LinesOfSeveralThreadsStayWhole) {
  StreamLogger logger(clock_, "n", LogLevel::kInfo, LogFormat::kText, sink());
  std::string all;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) logger.info("{}", std::string(100, static_cast<char>('a' + t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  all = written();
  std::size_t lines = 0;
  for (std::size_t at = 0; at < all.size(); ++lines) {
    const std::size_t end = all.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    const std::string line = all.substr(at, end - at);
    const char c = line.back();
    EXPECT_EQ(line, "2013-09-01T00:00:01.002Z info  n  " + std::string(100, c));
    at = end + 1;
  }
  EXPECT_EQ(lines, 200u);
}

TEST(LogLevel, NamesGoBothWays) {
  for (const LogLevel level : {LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug}) {
    EXPECT_EQ(parse_log_level(to_string(level)), level);
  }
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

TEST(SilentLogger, IsNeverEnabled) {
  SilentLogger logger;
  EXPECT_FALSE(logger.enabled(LogLevel::kError));
  logger.error("{}", 1);
}

}  // namespace
}  // namespace orla::base
