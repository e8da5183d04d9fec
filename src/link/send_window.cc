#include "link/send_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace orla::link {

std::size_t SendWindow::piece_bytes() const { return std::clamp(window_ / 4, kMinPieceBytes, kMaxPieceBytes); }

bool SendWindow::sent(base::SteadyTime now, std::size_t bytes, Next next) {
  const Alone alone = under_way() < kMinMarkBytes ? Alone::kYes : Alone::kNo;
  total_ += bytes;
  const std::uint64_t unmarked = total_ - last_mark_;
  const bool enough = unmarked >= std::clamp(window_ / 8, kMinMarkBytes, kMaxMarkBytes);
  const bool last = next == Next::kNothing && unmarked >= kMinMarkBytes && now - marked_ >= kMarkPause;
  if (!enough && !last) return false;
  if (now - marked_ >= kIdle) window_ = std::min(window_, kFirstWindowBytes);
  add_mark(now, alone);
  return true;
}

void SendWindow::mark(base::SteadyTime now) { add_mark(now, Alone::kNo); }

void SendWindow::add_mark(base::SteadyTime now, Alone alone) {
  last_mark_ = total_;
  marked_ = now;
  unconfirmed_.push_back({total_, now, confirmed_, alone});
}

absl::Status SendWindow::confirmed(base::SteadyTime now, std::uint64_t total) {
  if (total < confirmed_ || total > last_mark_) {
    return absl::InvalidArgumentError(
        fmt::format("received.bytes: found {}, expected {} to {}, what has been sent", total, confirmed_, last_mark_));
  }
  const std::size_t before = under_way();
  const auto fresh = static_cast<std::size_t>(total - confirmed_);
  confirmed_ = total;
  std::optional<Mark> last;
  while (!unconfirmed_.empty() && unconfirmed_.front().end <= total) {
    last = unconfirmed_.front();
    unconfirmed_.pop_front();
    if (last->alone == Alone::kNo) continue;
    delay_ = now - last->at;
    delay_known_ = now;
  }
  if (last.has_value()) adapt(now, *last, before, fresh);
  if (under_way() < kMinMarkBytes) {
    draining_ = false;
  } else if (now - delay_known_ >= kDelayHolds) {
    draining_ = true;
  }
  return absl::OkStatus();
}

void SendWindow::adapt(base::SteadyTime now, const Mark& mark, std::size_t before, std::size_t fresh) {
  const std::chrono::nanoseconds took = std::max(now - mark.at, std::chrono::nanoseconds(1));
  const std::chrono::nanoseconds waited = took - delay_;
  if (waited > kMostWaiting) {
    if (mark.end <= closed_at_) return;  // sent before the window was closed last
    const double per_ns = static_cast<double>(confirmed_ - mark.confirmed_before) / static_cast<double>(took.count());
    const double wanted = per_ns * static_cast<double>((delay_ + std::chrono::nanoseconds(kWantedWaiting)).count());
    window_ = std::clamp(static_cast<std::size_t>(wanted), kMinWindowBytes, window_);
    closed_at_ = total_;
  } else if (waited < kLittleWaiting && before >= window_ / 2) {
    window_ = std::min(window_ + fresh, kMaxWindowBytes);
  }
}

}  // namespace orla::link
