#include "base/thread_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace orla::base {
namespace {

using std::chrono::milliseconds;

void finish(ThreadLoop& loop) {
  std::promise<void> done;
  loop.post([&] { done.set_value(); });
  done.get_future().wait();
}

TEST(ThreadLoop, RunsTasksInTheOrderOfEachPoster) {
  ThreadLoop loop;
  constexpr int kPosters = 4, kTasks = 2000;
  std::vector<std::vector<int>> seen(kPosters);
  std::vector<std::thread> posters;
  for (int p = 0; p < kPosters; ++p) {
    posters.emplace_back([&, p] {
      for (int i = 0; i < kTasks; ++i) loop.post([&, p, i] { seen[p].push_back(i); });
    });
  }
  for (std::thread& poster : posters) poster.join();
  finish(loop);
  std::vector<int> expected(kTasks);
  std::iota(expected.begin(), expected.end(), 0);
  for (const std::vector<int>& one : seen) EXPECT_EQ(one, expected);
}

TEST(ThreadLoop, RunsEverythingOnOneThreadThatItKnows) {
  ThreadLoop loop("named");
  EXPECT_FALSE(loop.on_loop_thread());
  std::promise<std::pair<bool, bool>> done;
  loop.post([&] {
    const bool in_task = loop.on_loop_thread();
    loop.post_after(milliseconds(1), [&, in_task] { done.set_value({in_task, loop.on_loop_thread()}); });
  });
  EXPECT_EQ(done.get_future().get(), std::make_pair(true, true));
}

TEST(ThreadLoop, TimersRunInOrderOfTheirTimeAndNeverEarly) {
  ThreadLoop loop;
  const SystemClock clock;
  std::vector<int> order;
  std::promise<void> done;
  const SteadyTime start = clock.steady_now();
  std::vector<std::chrono::nanoseconds> after(3);
  loop.post_after(milliseconds(30), [&] {
    after[2] = clock.steady_now() - start;
    order.push_back(30);
    done.set_value();
  });
  loop.post_after(milliseconds(10), [&] {
    after[0] = clock.steady_now() - start;
    order.push_back(10);
  });
  loop.post_after(milliseconds(20), [&] {
    after[1] = clock.steady_now() - start;
    order.push_back(20);
  });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{10, 20, 30}));
  EXPECT_GE(after[0], milliseconds(10));
  EXPECT_GE(after[1], milliseconds(20));
  EXPECT_GE(after[2], milliseconds(30));
}

TEST(ThreadLoop, TimersDueTogetherKeepTheirOrder) {
  ThreadLoop loop;
  std::vector<int> order;
  std::promise<void> done;
  loop.post([&] {
    for (int i = 0; i < 50; ++i) loop.post_after(std::chrono::nanoseconds(0), [&, i] { order.push_back(i); });
    loop.post_after(milliseconds(5), [&] { done.set_value(); });
  });
  done.get_future().wait();
  std::vector<int> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(ThreadLoop, BusyTasksDoNotStarveTimers) {
  ThreadLoop loop;
  std::atomic<bool> fired = false;
  std::promise<void> done;
  std::function<void()> again = [&] {
    if (fired) {
      done.set_value();
    } else {
      loop.post(again);
    }
  };
  loop.post_after(milliseconds(5), [&] { fired = true; });
  loop.post(again);
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(ThreadLoop, ALongestDelayNeverFires) {
  ThreadLoop loop;
  std::atomic<bool> fired = false;
  loop.post_after(std::chrono::nanoseconds::max(), [&] { fired = true; });
  finish(loop);
  EXPECT_FALSE(fired);
}

TEST(ThreadLoop, StopDropsWhatWaitsAndWhatComesLater) {
  auto held = std::make_shared<int>(1);
  ThreadLoop loop;
  std::promise<void> running, release;
  std::atomic<int> ran = 0;
  loop.post([&] {
    running.set_value();
    release.get_future().wait();
  });
  running.get_future().wait();
  loop.post([&, held] { ++ran; });
  loop.post_after(milliseconds(0), [&, held] { ++ran; });
  std::thread stopper([&] { loop.stop(); });
  while (held.use_count() > 1) std::this_thread::yield();  // dropped before the running task has ended
  release.set_value();
  stopper.join();
  loop.post([&, held] { ++ran; });
  loop.post_after(milliseconds(0), [&, held] { ++ran; });
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(held.use_count(), 1);
  loop.stop();
}

TEST(ThreadLoop, StopOnItsOwnThreadReturnsAtOnce) {
  std::atomic<int> ran = 0;
  {
    ThreadLoop loop;
    std::promise<void> stopped;
    loop.post([&] {
      loop.post([&] { ++ran; });
      loop.stop();
      stopped.set_value();
    });
    stopped.get_future().wait();
  }
  EXPECT_EQ(ran, 0);
}

TEST(ThreadLoop, ADroppedTaskMayPostWhenItIsDestroyed) {
  struct PostsWhenGone {
    ThreadLoop& loop;
    explicit PostsWhenGone(ThreadLoop& l) : loop(l) {}
    ~PostsWhenGone() {
      loop.post([] {});
    }
  };
  ThreadLoop loop;
  loop.post_after(std::chrono::hours(1), [last = std::make_shared<PostsWhenGone>(loop)] {});
  loop.stop();
}

}  // namespace
}  // namespace orla::base
