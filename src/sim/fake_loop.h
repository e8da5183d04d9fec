// The loop of one life of a simulated node. It can be frozen or busy (what happens meanwhile waits, in order), and it
// can die: at once when it is destroyed, or in the middle of anything when a Crash is thrown.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

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

  // Runs `task` as the node's code: now, or when the loop is neither frozen nor busy.
  void run(std::function<void()> task);
  void freeze();
  void thaw();
  bool frozen() const;
  // What runs now takes that long: what comes next waits.
  void spend(std::chrono::nanoseconds cost);
  // Neither frozen nor busy since then; now() when it is one of them.
  base::SteadyTime free_since() const;
  // Since when what waits has waited; now() when nothing does.
  base::SteadyTime waiting_since() const;
  // All that was spent.
  std::chrono::nanoseconds spent() const;

 private:
  struct Task {
    base::SteadyTime since;
    std::function<void()> run;
  };
  struct State {
    bool alive = true;
    bool frozen = false;
    bool woken = false;  // an event will go on when it is not busy any more
    base::SteadyTime busy_until{};
    base::SteadyTime thawed{};
    std::chrono::nanoseconds spent{};
    std::deque<Task> held;
    std::function<void()> crashed;
  };
  // By value: the loop, and its reference, may be gone before the task has returned.
  static void run(EventQueue& queue, std::shared_ptr<State> state, std::function<void()> task);
  static void go_on(EventQueue& queue, const std::shared_ptr<State>& state);

  EventQueue& queue_;
  std::shared_ptr<State> state_;  // with the events in the queue, which outlive the loop
};

}  // namespace orla::sim
