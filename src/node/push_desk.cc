#include "node/push_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::node {

PushDesk::PushDesk(base::Loop& loop, const base::Clock& clock, Limits limits, std::function<void()> commit)
    : loop_(loop), clock_(clock), limits_(limits), commit_(std::move(commit)) {}

PushDesk::~PushDesk() {
  *alive_ = false;
  give_up("this node has stopped");
}

void PushDesk::add(const Push& push, PushOutcome outcome, PushDone done) {
  const base::SteadyTime now = clock_.steady_now();
  Entry& entry = entries_.emplace_back();
  entry.bytes = push.bytes;
  entry.producer = push.batch.producer;
  entry.sequence = push.batch.producer_sequence;
  entry.since = now;
  entry.waiters.push_back({std::move(outcome), std::move(done), now + limits_.timeout});
  next_deadline_ = std::min(next_deadline_, entry.waiters.back().deadline);
  waiting_bytes_ += push.bytes;
  arm();
}

void PushDesk::add_duplicate(const Push& push, PushDone done) {
  ++duplicates_;
  PushOutcome outcome;
  outcome.kind = PushOutcome::Kind::kDuplicate;
  const auto original = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.sequence >= push.batch.producer_sequence && entry.producer == push.batch.producer;
  });
  if (original == entries_.end()) return done(outcome);
  original->waiters.push_back({outcome, std::move(done), clock_.steady_now() + limits_.timeout});
  next_deadline_ = std::min(next_deadline_, original->waiters.back().deadline);
}

void PushDesk::arm() {
  if (std::exchange(armed_, true)) return;
  loop_.post_after(limits_.commit_delay, [this, alive = alive_] {
    if (!*alive || !std::exchange(armed_, false)) return;
    if (untaken()) commit_();
  });
}

bool PushDesk::untaken() const { return !entries_.empty() && !entries_.back().chunk; }

void PushDesk::taken(model::Sequence chunk) {
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && !entry->chunk; ++entry) entry->chunk = chunk;
}

void PushDesk::acknowledged(model::Sequence through) {
  const base::SteadyTime now = clock_.steady_now();
  while (!entries_.empty() && entries_.front().chunk && *entries_.front().chunk <= through) {
    // Out of the list first: whoever is told may push at once.
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    waiting_bytes_ -= entry.bytes;
    if (!entry.lost) {
      ++kept_;
      const std::chrono::nanoseconds waited = now - entry.since;
      wait_sum_ += waited;
      wait_longest_ = std::max(wait_longest_, waited);
    }
    for (Waiter& waiter : entry.waiters) tell(waiter, waiter.outcome);
  }
}

void PushDesk::tell(Waiter& waiter, const PushOutcome& outcome) {
  if (!waiter.done) return;
  std::exchange(waiter.done, nullptr)(outcome);
}

void PushDesk::lost(model::Sequence chunk, const std::string& why) {
  std::deque<Entry> entries;
  for (Entry& entry : entries_) {
    if (entry.chunk != chunk || entry.lost) continue;
    waiting_bytes_ -= entry.bytes;
    entry.bytes = 0;
    entry.lost = true;
    entries.emplace_back().waiters = std::exchange(entry.waiters, {});
  }
  tell_unknown(std::move(entries), why);
}

void PushDesk::give_up(const std::string& why) {
  waiting_bytes_ = 0;
  next_deadline_ = base::SteadyTime::max();
  tell_unknown(std::exchange(entries_, {}), why);
}

void PushDesk::tell_unknown(std::deque<Entry> entries, const std::string& why) {
  PushOutcome outcome;
  outcome.kind = PushOutcome::Kind::kUnknown;
  outcome.message = why;
  for (Entry& entry : entries) {
    for (Waiter& waiter : entry.waiters) {
      if (waiter.done) ++unknown_;
      tell(waiter, outcome);
    }
  }
}

void PushDesk::tick() {
  const base::SteadyTime now = clock_.steady_now();
  if (now < next_deadline_) return;
  next_deadline_ = base::SteadyTime::max();
  PushOutcome outcome;
  outcome.kind = PushOutcome::Kind::kUnknown;
  outcome.message = fmt::format("not durable within {} ms ([limits] push_timeout_ms)", limits_.timeout.count());
  std::vector<Waiter> late;
  for (Entry& entry : entries_) {
    for (Waiter& waiter : entry.waiters) {
      if (!waiter.done) continue;
      if (now >= waiter.deadline) {
        late.push_back({outcome, std::exchange(waiter.done, nullptr), {}});
      } else {
        next_deadline_ = std::min(next_deadline_, waiter.deadline);
      }
    }
  }
  unknown_ += late.size();
  for (Waiter& waiter : late) tell(waiter, outcome);
}

void PushDesk::fill(PushStatus& status) const {
  status.kept = kept_;
  status.duplicates = duplicates_;
  status.refused = refused_;
  status.unknown = unknown_;
  status.waiting = entries_.size();
  status.waiting_bytes = waiting_bytes_;
  status.wait_s = std::chrono::duration<double>(wait_sum_).count();
  status.longest_wait_s = std::chrono::duration<double>(wait_longest_).count();
}

}  // namespace orla::node
