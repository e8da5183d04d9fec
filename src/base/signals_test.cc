#include "base/signals.h"

#include <gtest/gtest.h>

#include <future>

#include "base/thread_loop.h"

namespace orla::base {
namespace {

TEST(SignalWatcher, RunsTheHandlerOnTheLoopForEachSignal) {
  ThreadLoop loop;
  std::vector<int> seen;
  bool on_loop = true;
  std::promise<void> done;
  const auto watcher = SignalWatcher::create(loop, {SIGUSR1, SIGUSR2}, [&](int signal) {
    on_loop = on_loop && loop.on_loop_thread();
    seen.push_back(signal);
    if (seen.size() == 3) done.set_value();
  });
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  raise(SIGUSR1);
  raise(SIGUSR2);
  raise(SIGUSR1);
  done.get_future().wait();
  EXPECT_TRUE(on_loop);
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR2, SIGUSR1}));
}

TEST(SignalWatcher, IsOneAtATimeAndPutsBackWhatWasThere) {
  ThreadLoop loop;
  signal(SIGUSR1, SIG_IGN);
  for (int round = 0; round < 2; ++round) {
    const auto watcher = SignalWatcher::create(loop, {SIGUSR1}, [](int) {});
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    EXPECT_EQ(SignalWatcher::create(loop, {SIGUSR1}, [](int) {}).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(signal(SIGUSR1, SIG_DFL), SIG_IGN);
}

TEST(SignalWatcher, RefusesASignalNobodyCanCatch) {
  ThreadLoop loop;
  EXPECT_FALSE(SignalWatcher::create(loop, {SIGKILL}, [](int) {}).ok());
  EXPECT_TRUE(SignalWatcher::create(loop, {SIGUSR1}, [](int) {}).ok());
}

}  // namespace
}  // namespace orla::base
