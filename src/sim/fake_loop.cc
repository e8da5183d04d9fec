#include "sim/fake_loop.h"

#include <algorithm>
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

void FakeLoop::run(EventQueue& queue,
                   std::shared_ptr<State> state,  // NOLINT(performance-unnecessary-value-param)
                   std::function<void()> task) {
  if (!state->alive) return;
  if (state->frozen || !state->held.empty() || queue.now() < state->busy_until) {
    state->held.push_back({queue.now(), std::move(task)});
    return go_on(queue, state);
  }
  try {
    task();
  } catch (const Crash&) {
    state->crashed();
  }
}

void FakeLoop::go_on(EventQueue& queue, const std::shared_ptr<State>& state) {
  while (state->alive && !state->frozen && !state->held.empty()) {
    if (queue.now() < state->busy_until) {
      if (std::exchange(state->woken, true)) return;
      queue.at(state->busy_until, [&queue, state] {
        state->woken = false;
        go_on(queue, state);
      });
      return;
    }
    const std::function<void()> task = std::move(state->held.front().run);
    state->held.pop_front();
    try {
      task();
    } catch (const Crash&) {
      state->crashed();
    }
  }
}

void FakeLoop::run(std::function<void()> task) { run(queue_, state_, std::move(task)); }

void FakeLoop::post(std::function<void()> task) { post_after({}, std::move(task)); }

void FakeLoop::post_after(std::chrono::nanoseconds delay, std::function<void()> task) {
  queue_.after(delay, [&queue = queue_, state = state_, task = std::move(task)] { run(queue, state, task); });
}

void FakeLoop::freeze() { state_->frozen = true; }

void FakeLoop::thaw() {
  const std::shared_ptr<State> state = state_;  // a task may crash the node, and the loop goes with it
  state->frozen = false;
  state->thawed = queue_.now();
  go_on(queue_, state);
}

bool FakeLoop::frozen() const { return state_->frozen; }

void FakeLoop::spend(std::chrono::nanoseconds cost) {
  state_->busy_until = std::max(state_->busy_until, queue_.now()) + cost;
  state_->spent += cost;
}

base::SteadyTime FakeLoop::free_since() const {
  if (state_->frozen || queue_.now() < state_->busy_until) return queue_.now();
  return std::max(state_->thawed, state_->busy_until);
}

base::SteadyTime FakeLoop::waiting_since() const {
  return state_->held.empty() ? queue_.now() : state_->held.front().since;
}

std::chrono::nanoseconds FakeLoop::spent() const { return state_->spent; }

}  // namespace orla::sim
