// For tests of carriers: one end of connections, with a loop of its own, that keeps everything the carrier says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/thread_loop.h"
#include "link/carrier.h"

namespace orla::link {

// Carrier is UplinkCarrier or DownlinkCarrier, In what it receives. Heartbeats, of which a carrier may add some of its
// own, are kept apart. Fails the test when a callback is run elsewhere
// than on the loop, a message comes after the end, or an end comes twice.
template <typename Carrier, typename In>
class End {
 public:
  template <typename Make>
  explicit End(Make make) {
    on_loop([&] {
      carrier_ = make(loop_);
      typename Carrier::Events events;
      const auto opened = [this](ConnectionId id) { note([&] { opened_.push_back(id); }); };
      if constexpr (requires { events.connected; }) {
        events.connected = opened;
      } else {
        events.opened = opened;
      }
      events.message = [this](ConnectionId id, In message) {
        note([&] {
          EXPECT_FALSE(closed_.contains(id)) << "a message after the end";
          if (std::holds_alternative<Heartbeat>(message)) {
            heartbeats_[id].push_back({clock_.steady_now(), messages_[id].size()});
          } else {
            messages_[id].push_back(std::move(message));
          }
        });
      };
      events.closed = [this](ConnectionId id, const absl::Status& why) {
        note([&] { EXPECT_TRUE(closed_.emplace(id, why).second) << "closed twice"; });
      };
      carrier_->set_events(std::move(events));
    });
  }
  ~End() { destroy(); }

  void destroy() {
    on_loop([&] { carrier_.reset(); });
  }
  // Runs `task` with the carrier, on the loop, and waits for it.
  template <typename Task>
  auto with(Task task) {
    using Result = decltype(task(*carrier_));
    std::packaged_task<Result()> packaged([&] { return task(*carrier_); });
    on_loop([&] { packaged(); });
    return packaged.get_future().get();
  }
  // The loop does nothing until the returned promise is set.
  std::promise<void> block() {
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    loop_.post([released] { released.wait(); });
    return release;
  }

  ConnectionId wait_opened(std::size_t index = 0) {
    wait([&] { return opened_.size() > index; });
    const std::lock_guard lock(mutex_);
    return opened_.at(index);
  }
  void wait_open(ConnectionId id) {
    wait([&] { return std::find(opened_.begin(), opened_.end(), id) != opened_.end(); });
  }
  void wait_end(ConnectionId id) {
    wait([&] { return closed_.contains(id); });
  }
  absl::Status wait_closed(ConnectionId id) {
    wait_end(id);
    const std::lock_guard lock(mutex_);
    return closed_.at(id);
  }
  std::vector<In> wait_messages(ConnectionId id, std::size_t count) {
    wait([&] { return messages_[id].size() >= count; });
    const std::lock_guard lock(mutex_);
    return messages_[id];
  }
  struct SignOfLife {
    base::SteadyTime at;
    std::size_t messages_before;
  };
  std::vector<SignOfLife> wait_heartbeats(ConnectionId id, std::size_t count) {
    wait([&] { return heartbeats_[id].size() >= count; });
    const std::lock_guard lock(mutex_);
    return heartbeats_[id];
  }
  std::size_t count_closed() {
    const std::lock_guard lock(mutex_);
    return closed_.size();
  }
  std::set<ConnectionId> opened() {
    const std::lock_guard lock(mutex_);
    return {opened_.begin(), opened_.end()};
  }
  template <typename Condition>
  void wait(Condition condition) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), condition)) << "waited in vain";
  }

  base::ThreadLoop& loop() { return loop_; }

 private:
  template <typename Task>
  void note(Task task) {
    EXPECT_TRUE(loop_.on_loop_thread());
    {
      const std::lock_guard lock(mutex_);
      task();
    }
    changed_.notify_all();
  }
  template <typename Task>
  void on_loop(Task task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  const base::SystemClock clock_;
  base::ThreadLoop loop_;
  std::unique_ptr<Carrier> carrier_;  // on the loop
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ConnectionId> opened_;  // guarded by mutex_, as all below
  std::map<ConnectionId, std::vector<In>> messages_;
  std::map<ConnectionId, std::vector<SignOfLife>> heartbeats_;
  std::map<ConnectionId, absl::Status> closed_;
};

using Child = End<UplinkCarrier, DownMessage>;
using Parent = End<DownlinkCarrier, UpMessage>;

}  // namespace orla::link
