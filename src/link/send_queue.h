// The order in which the messages of one connection go out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "link/messages.h"

namespace orla::link {

// What a carrier may hold for a peer that does not take it; beyond, the connection is ended.
inline constexpr std::size_t kMaxQueuedBytes = 128 << 20;

enum class Precedence : std::uint8_t {
  kGreeting,   // Hello, Welcome, Rejected: nothing overtakes them
  kHeartbeat,  // overtakes data
  kData,
};

inline Precedence precedence(const UpMessage& message) {
  if (std::holds_alternative<Hello>(message)) return Precedence::kGreeting;
  return std::holds_alternative<Heartbeat>(message) ? Precedence::kHeartbeat : Precedence::kData;
}
inline Precedence precedence(const DownMessage& message) {
  if (std::holds_alternative<Welcome>(message) || std::holds_alternative<Rejected>(message)) {
    return Precedence::kGreeting;
  }
  return std::holds_alternative<Heartbeat>(message) ? Precedence::kHeartbeat : Precedence::kData;
}

// First in, first out, but for heartbeats: a new one goes in front of the data, and one that still waits there is
// enough. Not thread-safe.
template <typename T>
class SendQueue {
 public:
  // False: dropped, since a heartbeat waits already.
  bool push(T item, std::size_t bytes, Precedence precedence) {
    auto at = items_.end();
    if (precedence == Precedence::kHeartbeat) {
      at = items_.begin();
      while (at != items_.end() && at->precedence == Precedence::kGreeting) ++at;
      if (at != items_.end() && at->precedence == Precedence::kHeartbeat) return false;
    }
    bytes_ += bytes;
    items_.insert(at, Item{std::move(item), bytes, precedence});
    return true;
  }
  // Not empty.
  T pop() {
    T item = std::move(items_.front().item);
    bytes_ -= items_.front().bytes;
    items_.pop_front();
    return item;
  }
  bool empty() const { return items_.empty(); }
  // Of what pop() would give. Not empty.
  Precedence next() const { return items_.front().precedence; }
  std::size_t next_bytes() const { return items_.front().bytes; }
  std::size_t bytes() const { return bytes_; }
  void clear() {
    items_.clear();
    bytes_ = 0;
  }

 private:
  struct Item {
    T item;
    std::size_t bytes;
    Precedence precedence;
  };
  std::deque<Item> items_;
  std::size_t bytes_ = 0;
};

}  // namespace orla::link
