#include "link/send_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace orla::link {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A link with a rate and a delay, and a sender that always has something to send.
class Simulated {
 public:
  Simulated(double bytes_per_second, nanoseconds delay) : rate_(bytes_per_second), delay_(delay) {}

  void run(nanoseconds time) {
    for (const base::SteadyTime end = now_ + time; now_ < end; now_ += milliseconds(1)) {
      while (!confirmations_.empty() && confirmations_.front().at <= now_) {
        ASSERT_TRUE(window.confirmed(now_, confirmations_.front().total).ok());
        confirmations_.pop_front();
      }
      while (sending && (window.open() || window.stuck())) {
        if (window.stuck()) {
          window.mark(now_);
          confirmations_.push_back({std::max(now_, free_) + 2 * delay_, total_});
          continue;
        }
        const std::size_t bytes = window.piece_bytes();
        total_ += bytes;
        free_ =
            std::max(free_, now_) + nanoseconds(static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / rate_));
        if (window.sent(now_, bytes, SendWindow::Next::kMore)) confirmations_.push_back({free_ + 2 * delay_, total_});
      }
      longest_ = std::max(longest_, free_ - now_);
    }
  }
  // What a heartbeat would have waited at most since the last call.
  milliseconds longest_wait() { return duration_cast<milliseconds>(std::exchange(longest_, nanoseconds(0))); }
  std::uint64_t total() const { return total_; }
  void set_rate(double bytes_per_second) { rate_ = bytes_per_second; }

  SendWindow window;
  bool sending = true;

 private:
  struct Confirmation {
    base::SteadyTime at;
    std::uint64_t total;
  };
  double rate_;
  nanoseconds delay_;
  base::SteadyTime now_{seconds(1'000)};
  base::SteadyTime free_{};  // when the link has carried what was sent
  nanoseconds longest_{0};
  std::uint64_t total_ = 0;
  std::deque<Confirmation> confirmations_;
};

TEST(SendWindow, ASlowLinkIsNeverFarBehindAndNeverIdle) {
  Simulated link(6'250, milliseconds(30));  // 50 kbit/s
  link.run(seconds(5));
  link.longest_wait();  // the first bytes found out
  link.run(seconds(60));
  EXPECT_LE(link.longest_wait(), milliseconds(900));
  EXPECT_GT(link.total(), 6'250 * 65 * 9 / 10);
  EXPECT_GE(link.window.window_bytes(), kMinWindowBytes);
}

TEST(SendWindow, FindsTheRateOfALink) {
  Simulated link(1e6, milliseconds(20));
  link.run(seconds(3));
  link.longest_wait();
  const std::uint64_t before = link.total();
  link.run(seconds(10));
  EXPECT_LE(link.longest_wait(), milliseconds(500));
  EXPECT_GT(static_cast<double>(link.total() - before), 0.9 * 1e6 * 10);
}

// 100 MB/s over 50 ms: 10 MB could be under way.
TEST(SendWindow, OpensToItsLimitOnALongFastLink) {
  Simulated link(1e8, milliseconds(50));
  link.run(seconds(5));
  EXPECT_EQ(link.window.window_bytes(), kMaxWindowBytes);
  EXPECT_EQ(link.window.piece_bytes(), kMaxPieceBytes);
}

TEST(SendWindow, FollowsALinkThatBecomesSlow) {
  Simulated link(1e6, milliseconds(5));
  link.run(seconds(5));
  link.set_rate(1e5);
  link.run(seconds(15));
  link.longest_wait();
  const std::uint64_t before = link.total();
  link.run(seconds(10));
  EXPECT_LE(link.longest_wait(), milliseconds(500));
  EXPECT_GT(static_cast<double>(link.total() - before), 0.8 * 1e5 * 10);
}

TEST(SendWindow, StartsCarefullyAfterAPause) {
  Simulated link(1e8, milliseconds(1));
  link.run(seconds(2));
  EXPECT_EQ(link.window.window_bytes(), kMaxWindowBytes);
  link.sending = false;
  link.run(kIdle + seconds(1));
  ASSERT_TRUE(link.window.sent(base::SteadyTime(seconds(1'100)), kMaxMarkBytes, SendWindow::Next::kMore));
  EXPECT_EQ(link.window.window_bytes(), kFirstWindowBytes);
}

TEST(SendWindow, MarksAreAskedForWhereTheyAreNeeded) {
  {
    const base::SteadyTime now(seconds(10));
    SendWindow window;
    EXPECT_FALSE(window.sent(now, kMinMarkBytes - 1, SendWindow::Next::kMore));
    EXPECT_TRUE(window.sent(now, 1, SendWindow::Next::kMore));
  }
  Simulated link(1e8, milliseconds(1));
  link.run(seconds(2));
  link.sending = false;
  link.run(milliseconds(100));
  SendWindow& window = link.window;
  const base::SteadyTime now(seconds(1'002) + milliseconds(200));
  window.mark(now);
  // The largest distance apart, or when nothing else waits, some time after the last.
  EXPECT_FALSE(window.sent(now, 1'500, SendWindow::Next::kMore));
  EXPECT_TRUE(window.sent(now, kMaxMarkBytes - 1'500, SendWindow::Next::kMore));
  EXPECT_FALSE(window.sent(now, 1'500, SendWindow::Next::kNothing));
  EXPECT_TRUE(window.sent(now + kMarkPause, 1, SendWindow::Next::kNothing));
  // What lies behind the last mark is never confirmed; who waits for it is stuck.
  EXPECT_TRUE(window.confirmed(now + milliseconds(6), link.total() + kMaxMarkBytes + 1'501).ok());
  EXPECT_FALSE(window.stuck());
}

TEST(SendWindow, AConfirmationOfWhatWasNotMarkedIsRefused) {
  const base::SteadyTime now(seconds(10));
  SendWindow window;
  EXPECT_FALSE(window.confirmed(now, 1).ok());
  EXPECT_TRUE(window.sent(now, 5'000, SendWindow::Next::kMore));
  EXPECT_FALSE(window.sent(now, 100, SendWindow::Next::kMore));
  EXPECT_EQ(window.confirmed(now, 5'100).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(window.confirmed(now, 5'000).ok());
  EXPECT_TRUE(window.confirmed(now, 5'000).ok());
  EXPECT_FALSE(window.confirmed(now, 4'999).ok());
  EXPECT_EQ(window.under_way(), 100U);
}

}  // namespace
}  // namespace orla::link
