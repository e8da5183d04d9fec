#include "base/cpu_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"

namespace orla::base {
namespace {

TEST(CpuTime, CountsTheWorkOfEveryThreadAndNotTheWaiting) {
  const SystemClock clock;
  const auto before = process_cpu_time();
  EXPECT_GE(before.count(), 0);
  std::thread worker([&] {
    const auto begin = process_cpu_time();
    while (process_cpu_time() - begin < std::chrono::milliseconds(20)) {
    }
  });
  worker.join();
  const auto worked = process_cpu_time() - before;
  EXPECT_GE(worked, std::chrono::milliseconds(20));
  const auto rested = process_cpu_time();
  clock.sleep(std::chrono::milliseconds(50));
  EXPECT_LT(process_cpu_time() - rested, std::chrono::milliseconds(25));
}

TEST(CpuTime, OfAProcessByItsNumber) {
  const auto before = process_cpu_time();
  const auto own = process_cpu_time(::getpid());
  ASSERT_TRUE(own.has_value());
  EXPECT_GE(*own, before);
  EXPECT_LE(*own, process_cpu_time());
  for (const std::int64_t none : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 22, std::int64_t{1} << 30})
    EXPECT_FALSE(process_cpu_time(none).has_value()) << none;
}

}  // namespace
}  // namespace orla::base
