#include "function/host_timer.h"

#include <gtest/gtest.h>

#include "function/host_fakes.h"

namespace orla::function {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Noting final : HostTimer::Entry {
  explicit Noting(const base::Clock& clock) : clock(clock) {}
  void expire() override {
    when = clock.steady_now();
    ++times;
  }
  const base::Clock& clock;
  std::atomic<int> times{0};
  base::SteadyTime when{};
};

TEST(HostTimer, ExpiresWhatIsDueOnceNearAndFar) {
  ManualClock clock;
  HostTimer timer(clock, milliseconds(1));
  const base::SteadyTime begin = clock.steady_now();
  std::vector<std::pair<std::chrono::nanoseconds, std::shared_ptr<Noting>>> entries;
  for (const std::chrono::nanoseconds after :
       {std::chrono::nanoseconds(0), std::chrono::nanoseconds(1), std::chrono::nanoseconds(milliseconds(20)),
        std::chrono::nanoseconds(seconds(3)), std::chrono::nanoseconds(seconds(9)),
        std::chrono::nanoseconds(minutes(2))}) {
    entries.emplace_back(after, std::make_shared<Noting>(clock));
    timer.set(*entries.back().second, begin + after);
  }
  const auto never = std::make_shared<Noting>(clock);
  timer.set(*never, base::SteadyTime::max());
  const auto cleared = std::make_shared<Noting>(clock);
  timer.set(*cleared, begin + seconds(1));
  timer.clear(*cleared);
  const auto moved = std::make_shared<Noting>(clock);
  timer.set(*moved, begin + seconds(1));
  timer.set(*moved, begin + seconds(100));
  for (int i = 0; i < 130; ++i) {
    clock.advance(seconds(1));
    const base::SteadyTime now = clock.steady_now();
    for (const auto& [after, entry] : entries) {
      if (begin + after <= now) {
        EXPECT_TRUE(eventually([&, &e = entry] { return e->times == 1; })) << after.count();
      } else {
        EXPECT_EQ(entry->times, 0) << after.count();
      }
    }
    EXPECT_EQ(moved->times == 1, eventually([&] { return moved->times == 1 || now < begin + seconds(100); }) &&
                                     now >= begin + seconds(100));
  }
  EXPECT_EQ(never->times, 0);
  EXPECT_EQ(cleared->times, 0);
  EXPECT_EQ(timer.entries().size(), 1u);
  timer.clear(*never);
  EXPECT_TRUE(timer.entries().empty());
}

TEST(HostTimer, IsNotEarlyAndNotMuchLateByTheRealClock) {
  const base::SystemClock clock;
  HostTimer timer(clock);
  for (const milliseconds after : {milliseconds(1), milliseconds(30), milliseconds(200)}) {
    const auto entry = std::make_shared<Noting>(clock);
    const base::SteadyTime due = clock.steady_now() + after;
    timer.set(*entry, due);
    ASSERT_TRUE(eventually([&] { return entry->times == 1; }));
    EXPECT_GE(entry->when, due);
  }
}

TEST(HostTimer, EntriesThatGoWhileTheyAreDueAreSafe) {
  const base::SystemClock clock;
  HostTimer timer(clock);
  for (int i = 0; i < 2'000; ++i) {
    const auto entry = std::make_shared<Noting>(clock);
    timer.set(*entry, clock.steady_now() + std::chrono::microseconds(i % 50));
    if (i % 3 == 0) clock.sleep(std::chrono::microseconds(20));
    timer.clear(*entry);
  }
  EXPECT_TRUE(timer.entries().empty());
}

}  // namespace
}  // namespace orla::function
