#include "function/call.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "base/absl_view.h"

namespace orla::function {

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& header) {
    return absl::EqualsIgnoreCase(base::absl_view(header.first), base::absl_view(name));
  });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

void Cancellation::cancel(CancelReason reason) {
  const std::lock_guard lock(mutex_);
  CancelReason none = CancelReason::kNone;
  if (!reason_.compare_exchange_strong(none, reason, std::memory_order_acq_rel)) return;
  for (const auto& [number, what] : subscribers_) what();
  subscribers_.clear();
}

Cancellation::Subscription::Subscription(Cancellation& cancellation, std::function<void()> what)
    : cancellation_(&cancellation) {
  const std::lock_guard lock(cancellation.mutex_);
  if (cancellation.cancelled()) {
    what();
    return;
  }
  number_ = cancellation.next_++;
  cancellation.subscribers_.emplace(number_, std::move(what));
}

Cancellation::Subscription::~Subscription() {
  if (cancellation_ == nullptr || number_ == 0) return;
  const std::lock_guard lock(cancellation_->mutex_);
  cancellation_->subscribers_.erase(number_);
}

}  // namespace orla::function
