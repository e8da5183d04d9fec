#include "sim/event_queue.h"

#include <algorithm>
#include <utility>

namespace orla::sim {

void EventQueue::at(base::SteadyTime when, std::function<void()> run) {
  events_.push(Event{std::max(when, now_), ++order_, std::move(run)});
}

bool EventQueue::step() {
  if (events_.empty()) return false;
  Event event = events_.top();
  events_.pop();
  now_ = event.at;
  event.run();
  return true;
}

}  // namespace orla::sim
