// How many bytes of one connection may be under way, so that what is sent next waits a fraction of the heartbeat's
// interval and not minutes: what the link carries in that time, measured by the peer's confirmations.
//
// Some messages are marked, and the peer confirms those. The time from a mark's being sent to its confirmation is the
// link's own delay, seen when nothing else was under way, and the time waited behind what was. More waiting than
// kMostWaiting closes the window to what the link carries in the wanted time; less than kLittleWaiting opens it, as
// long as it is used. Pure; not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "base/clock.h"

namespace orla::link {

inline constexpr std::size_t kMinWindowBytes = 4 << 10;
// Of a link that nothing is known about. At 50 kbit/s 16 KiB would be 2.6 s, in which the peer's TCP hears no
// confirmation of what it sends, its heartbeats among that, and holds them back.
inline constexpr std::size_t kFirstWindowBytes = 4 << 10;
inline constexpr std::size_t kMaxWindowBytes = 8 << 20;
inline constexpr std::size_t kMinPieceBytes = 1 << 10;
// A frame of a MiB is not cut where the window is open. Of a link that suddenly becomes slow, the peer hears nothing
// for the time of one piece.
inline constexpr std::size_t kMaxPieceBytes = (1 << 20) + (64 << 10);
// Marks are an eighth of the window apart, within these bounds,
inline constexpr std::size_t kMinMarkBytes = 1 << 10;
inline constexpr std::size_t kMaxMarkBytes = 256 << 10;
// or so long, when nothing else waits.
inline constexpr std::chrono::milliseconds kMarkPause{5};
inline constexpr std::chrono::milliseconds kLittleWaiting{100};
inline constexpr std::chrono::milliseconds kWantedWaiting{150};
inline constexpr std::chrono::milliseconds kMostWaiting{250};
// How long a measured delay holds; then what is under way is let run dry and it is measured anew.
inline constexpr std::chrono::seconds kDelayHolds{10};
// A link that was idle for so long may have become another one.
inline constexpr std::chrono::seconds kIdle{2};

class SendWindow {
 public:
  enum class Next : std::uint8_t { kMore, kNothing };

  // Whether a piece may be sent now.
  bool open() const { return !draining_ && under_way() + piece_bytes() <= window_; }
  // No, and no confirmation will come to change that: mark() first.
  bool stuck() const { return !open() && unconfirmed_.empty(); }
  // How much of a message to send at once.
  std::size_t piece_bytes() const;
  // So many bytes are sent; `next` is what waits behind them. True: they have to be marked.
  [[nodiscard]] bool sent(base::SteadyTime now, std::size_t bytes, Next next);
  // A mark by itself is sent.
  void mark(base::SteadyTime now);
  // The peer has received so many bytes altogether. InvalidArgument: it cannot have.
  absl::Status confirmed(base::SteadyTime now, std::uint64_t total);

  std::size_t window_bytes() const { return window_; }
  std::size_t under_way() const { return static_cast<std::size_t>(total_ - confirmed_); }

 private:
  enum class Alone : std::uint8_t { kNo, kYes };
  struct Mark {
    std::uint64_t end = 0;
    base::SteadyTime at{};
    std::uint64_t confirmed_before = 0;
    Alone alone = Alone::kNo;  // nothing else was under way
  };
  void add_mark(base::SteadyTime now, Alone alone);
  // `fresh` bytes have been confirmed, `before` were under way until then.
  void adapt(base::SteadyTime now, const Mark& mark, std::size_t before, std::size_t fresh);

  std::uint64_t total_ = 0;      // sent
  std::uint64_t last_mark_ = 0;  // where it was
  std::uint64_t confirmed_ = 0;
  std::deque<Mark> unconfirmed_;
  base::SteadyTime marked_{};  // the last time
  std::size_t window_ = kFirstWindowBytes;
  std::chrono::nanoseconds delay_{};  // of the link itself, with one piece on it
  base::SteadyTime delay_known_{};
  std::uint64_t closed_at_ = 0;  // sent when the window was closed last: what was under way then says nothing new
  bool draining_ = false;
};

}  // namespace orla::link
