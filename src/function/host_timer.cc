#include "function/host_timer.h"

#include <pthread.h>

#include <algorithm>

namespace orla::function {
namespace {

constexpr std::chrono::nanoseconds kHalfTurn = HostTimer::kSlot * (HostTimer::kSlots / 2);

}  // namespace

HostTimer::HostTimer(const base::Clock& clock, std::chrono::nanoseconds longest_wait)
    : clock_(clock),
      longest_wait_(longest_wait),
      at_(slot_of(clock.steady_now())),
      sorted_(clock.steady_now()),
      thread_([this] { run(); }) {}

HostTimer::~HostTimer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

std::int64_t HostTimer::slot_of(base::SteadyTime time) const {
  return time.time_since_epoch() / std::chrono::nanoseconds(kSlot);
}

void HostTimer::link(Entry*& list, Entry& entry) {
  entry.before_ = nullptr;
  entry.after_ = list;
  if (list != nullptr) list->before_ = &entry;
  list = &entry;
  entry.list_ = &list;
}

void HostTimer::unlink(Entry& entry) {
  if (entry.list_ == nullptr) return;
  (entry.before_ != nullptr ? entry.before_->after_ : *entry.list_) = entry.after_;
  if (entry.after_ != nullptr) entry.after_->before_ = entry.before_;
  entry.list_ = nullptr;
}

void HostTimer::place(Entry& entry, base::SteadyTime now) {
  if (entry.due_ - now > kHalfTurn) return link(far_, entry);
  // What is due already is found at the next look.
  const std::int64_t slot = std::max(slot_of(entry.due_), at_);
  link(slots_[static_cast<std::size_t>(slot) % kSlots], entry);
}

void HostTimer::set(Entry& entry, base::SteadyTime due) {
  const base::SteadyTime now = clock_.steady_now();
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    unlink(entry);
    entry.due_ = due;
    place(entry, now);
    wake = due < waits_until_;
    if (wake) waits_until_ = due;
  }
  if (wake) wake_.notify_one();
}

void HostTimer::clear(Entry& entry) {
  const std::lock_guard lock(mutex_);
  unlink(entry);
}

std::vector<std::shared_ptr<HostTimer::Entry>> HostTimer::entries() const {
  std::vector<std::shared_ptr<Entry>> all;
  const std::lock_guard lock(mutex_);
  const auto take = [&](Entry* list) {
    for (; list != nullptr; list = list->after_) {
      if (std::shared_ptr<Entry> entry = list->weak_from_this().lock()) all.push_back(std::move(entry));
    }
  };
  take(far_);
  for (Entry* list : slots_) take(list);
  return all;
}

void HostTimer::collect(base::SteadyTime now, std::vector<std::shared_ptr<Entry>>& due) {
  if (now - sorted_ >= kHalfTurn / 2) {
    sorted_ = now;
    for (Entry* entry = far_; entry != nullptr;) {
      Entry* const after = entry->after_;
      if (entry->due_ - now <= kHalfTurn) {
        unlink(*entry);
        place(*entry, now);
      }
      entry = after;
    }
  }
  const std::int64_t last = slot_of(now);
  // A clock may have jumped by more than a turn; each slot is looked at once then.
  for (std::int64_t slot = std::max(at_, last - static_cast<std::int64_t>(kSlots) + 1); slot <= last; ++slot) {
    for (Entry* entry = slots_[static_cast<std::size_t>(slot) % kSlots]; entry != nullptr;) {
      Entry* const after = entry->after_;
      if (entry->due_ <= now) {
        unlink(*entry);
        // One that is being destroyed just now is not due any more.
        if (std::shared_ptr<Entry> alive = entry->weak_from_this().lock()) due.push_back(std::move(alive));
      }
      entry = after;
    }
  }
  at_ = last;
}

base::SteadyTime HostTimer::next(base::SteadyTime now) const {
  base::SteadyTime next = now + longest_wait_;
  if (far_ != nullptr) next = std::min(next, sorted_ + kHalfTurn / 2);
  const auto slots = static_cast<std::int64_t>(kSlots);
  for (std::int64_t slot = at_; slot < at_ + slots; ++slot) {
    if (std::chrono::nanoseconds(kSlot) * slot > next.time_since_epoch()) break;
    const Entry* entry = slots_[static_cast<std::size_t>(slot) % kSlots];
    if (entry == nullptr) continue;
    // All of a slot expire together, at its end.
    next = std::min(next, base::SteadyTime(std::chrono::nanoseconds(kSlot) * (slot + 1)));
    break;
  }
  return next;
}

void HostTimer::run() {
  ::pthread_setname_np(::pthread_self(), "fn-timer");
  std::vector<std::shared_ptr<Entry>> due;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const base::SteadyTime now = clock_.steady_now();
    collect(now, due);
    if (!due.empty()) {
      lock.unlock();
      for (const auto& entry : due) entry->expire();
      due.clear();
      lock.lock();
      continue;
    }
    waits_until_ = next(now);
    wake_.wait_for(lock, std::max<std::chrono::nanoseconds>(waits_until_ - now, std::chrono::microseconds(100)));
    waits_until_ = base::SteadyTime{};
  }
}

}  // namespace orla::function
