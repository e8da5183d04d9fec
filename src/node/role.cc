#include "node/role.h"

#include <algorithm>
#include <cassert>

namespace orla::node {

std::int64_t limit(const model::Fleet& fleet, std::string_view name) {
  const auto found = fleet.limits.find(std::string(name));
  assert(found != fleet.limits.end() && "a limit that the table of settings does not declare");
  return found->second;
}

std::chrono::milliseconds limit_ms(const model::Fleet& fleet, std::string_view name) {
  return std::chrono::milliseconds(limit(fleet, name));
}

struct Ticker::Shared {
  bool alive = true;
  std::function<void()> task;
};

Ticker::Ticker(base::Loop& loop, std::chrono::nanoseconds period, std::function<void()> task)
    : shared_(std::make_shared<Shared>()) {
  shared_->task = std::move(task);
  arm(loop, period, shared_);
}

Ticker::~Ticker() { shared_->alive = false; }

void Ticker::arm(base::Loop& loop, std::chrono::nanoseconds period, const std::shared_ptr<Shared>& shared) {
  loop.post_after(period, [&loop, period, shared] {
    if (!shared->alive) return;
    shared->task();
    if (shared->alive) arm(loop, period, shared);
  });
}

void Alarms::raise(const std::string& text) {
  if (std::find(latest_.begin(), latest_.end(), text) != latest_.end()) return;
  log_.error("{}", text);
  if (latest_.size() == kMaxKept) latest_.erase(latest_.begin());
  latest_.push_back(text);
}

}  // namespace orla::node
