// The loop of one life of a simulated node. It can be frozen (what happens meanwhile waits), and it can die: at once
// with kill(), or in the middle of anything when a Crash is thrown.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/loop.h"
#include "sim/event_queue.h"

namespace orla::sim {

// Thrown by fakes inside a node's code: the process dies here and now.
struct Crash {};

class FakeLoop final : public base::Loop {
 public:
  // `crashed` is called, outside of the node's code, when a Crash came out of it. The queue outlives all loops.
  FakeLoop(EventQueue& queue, std::function<void()> crashed);
  ~FakeLoop() override;

  void post(std::function<void()> task) override;
  void post_after(std::chrono::nanoseconds delay, std::function<void()> task) override;

  // Runs `task` as the node's code, now.
  void run(const std::function<void()>& task);
  void freeze();
  void thaw();
  bool frozen() const;

 private:
  struct State {
    bool alive = true;
    bool frozen = false;
    std::vector<std::function<void()>> held;  // while frozen, in order
    std::function<void()> crashed;
  };
  // By value: the loop, and its reference, may be gone before the task has returned.
  static void run(std::shared_ptr<State> state, const std::function<void()>& task);

  EventQueue& queue_;
  std::shared_ptr<State> state_;  // with the events in the queue, which outlive the loop
};

}  // namespace orla::sim
