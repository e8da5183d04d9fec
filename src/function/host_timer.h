// Things that are due at a time: ends of calls, the next look at a function. One thread for all of them.
//
// A wheel of kSlots slots of kSlot each holds what is due soon; what is due later lies in one list, which is gone
// through every half turn. Setting and clearing cost a list operation under a lock; entries run up to kSlot late.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace orla::function {

// Thread-safe.
class HostTimer {
 public:
  class Entry : public std::enable_shared_from_this<Entry> {
   public:
    virtual ~Entry() = default;
    // On the timer's thread, with no lock of the timer held; short.
    virtual void expire() = 0;

   private:
    friend class HostTimer;
    Entry* before_ = nullptr;
    Entry* after_ = nullptr;
    Entry** list_ = nullptr;  // the head of the list that it is in; null: not set
    base::SteadyTime due_{};
  };

  static constexpr std::chrono::milliseconds kSlot{8};
  static constexpr std::size_t kSlots = 1024;
  static constexpr std::chrono::seconds kLongestWait{1};

  // The thread looks at the clock at least every `longest_wait`: a clock that is moved by hand needs a short one.
  HostTimer(const base::Clock& clock, std::chrono::nanoseconds longest_wait = kLongestWait);
  // Nothing expires any more.
  ~HostTimer();
  HostTimer(const HostTimer&) = delete;
  HostTimer& operator=(const HostTimer&) = delete;

  // `entry`, owned by a shared_ptr, expires once at `due`; set again: then instead. It is cleared before it is
  // destroyed.
  void set(Entry& entry, base::SteadyTime due);
  void clear(Entry& entry);
  // Those that are set.
  std::vector<std::shared_ptr<Entry>> entries() const;

 private:
  void link(Entry*& list, Entry& entry);
  void unlink(Entry& entry);
  std::int64_t slot_of(base::SteadyTime time) const;
  void place(Entry& entry, base::SteadyTime now);
  void collect(base::SteadyTime now, std::vector<std::shared_ptr<Entry>>& due);
  base::SteadyTime next(base::SteadyTime now) const;
  void run();

  const base::Clock& clock_;
  const std::chrono::nanoseconds longest_wait_;
  mutable std::mutex mutex_;  // guards all below
  std::array<Entry*, kSlots> slots_{};
  Entry* far_ = nullptr;
  std::int64_t at_;          // the slot up to which all has expired
  base::SteadyTime sorted_;  // when `far_` was gone through
  base::SteadyTime waits_until_{};
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;  // last: it uses all above
};

}  // namespace orla::function
