#include "sim/fake_loop.h"

#include <utility>

namespace orla::sim {

FakeLoop::FakeLoop(EventQueue& queue, std::function<void()> crashed)
    : queue_(queue), state_(std::make_shared<State>()) {
  state_->crashed = std::move(crashed);
}

FakeLoop::~FakeLoop() {
  state_->alive = false;
  state_->held.clear();
}

void FakeLoop::run(std::shared_ptr<State> state,  // NOLINT(performance-unnecessary-value-param)
                   const std::function<void()>& task) {
  if (!state->alive) return;
  if (state->frozen) {
    state->held.push_back(task);
    return;
  }
  try {
    task();
  } catch (const Crash&) {
    state->crashed();
  }
}

void FakeLoop::run(const std::function<void()>& task) { run(state_, task); }

void FakeLoop::post(std::function<void()> task) { post_after({}, std::move(task)); }

void FakeLoop::post_after(std::chrono::nanoseconds delay, std::function<void()> task) {
  queue_.after(delay, [state = state_, task = std::move(task)] { run(state, task); });
}

void FakeLoop::freeze() { state_->frozen = true; }

void FakeLoop::thaw() {
  const std::shared_ptr<State> state = state_;  // a task may crash the node, and the loop goes with it
  state->frozen = false;
  for (const std::function<void()>& task : std::exchange(state->held, {})) run(state, task);
}

bool FakeLoop::frozen() const { return state_->frozen; }

}  // namespace orla::sim
