#include "function/replica_set.h"

#include <algorithm>
#include <utility>

namespace orla::function {

absl::StatusOr<Module*> Generation::load() {
  if (!problem.ok()) return problem;
  const std::lock_guard lock(mutex_);
  if (module_ == nullptr) {
    auto module = runtime->load(wanted);
    if (!module.ok()) return module.status();
    module_ = *std::move(module);
    loaded_.store(module_.get(), std::memory_order_release);
  }
  return module_.get();
}

std::size_t ReplicaSet::count_of(const Generation* generation) const {
  return static_cast<std::size_t>(std::count_if(replicas_.begin(), replicas_.end(), [&](const auto& replica) {
    return replica->generation.get() == generation;
  }));
}

std::uint32_t ReplicaSet::least_concurrency() const {
  const auto least = std::min_element(loads_.begin(), loads_.end(), [](const ReplicaLoad& a, const ReplicaLoad& b) {
    return a.concurrency < b.concurrency;
  });
  return least == loads_.end() ? 0 : least->concurrency;
}

void ReplicaSet::add(std::shared_ptr<Replica> replica) {
  replica->place = replicas_.size();
  loads_.push_back({.in_flight = replica->in_flight, .concurrency = replica->instance->concurrency()});
  replicas_.push_back(std::move(replica));
}

void ReplicaSet::remove(Replica& replica) {
  if (replica.place == Replica::kNone) return;
  const std::size_t place = std::exchange(replica.place, Replica::kNone);
  if (place + 1 < replicas_.size()) {
    std::swap(replicas_[place], replicas_.back());
    loads_[place] = loads_.back();
    replicas_[place]->place = place;
  }
  replicas_.pop_back();  // may be the last to hold `replica`
  loads_.pop_back();
}

std::shared_ptr<Replica> ReplicaSet::take() {
  // Successive multiples of the golden ratio's fraction are as good as chance here (Knuth 6.4).
  turn_ += 0x9e3779b97f4a7c15ull;
  const auto chosen = choose_replica(loads_, turn_ ^ (turn_ >> 31));
  if (!chosen) return nullptr;
  ++loads_[*chosen].in_flight;
  ++replicas_[*chosen]->in_flight;
  return replicas_[*chosen];
}

void ReplicaSet::give(Replica& replica) {
  --replica.in_flight;
  if (replica.place != Replica::kNone) --loads_[replica.place].in_flight;
}

std::shared_ptr<Replica> ReplicaSet::first_to_go(const Generation* current) const {
  const auto rank = [&](const std::shared_ptr<Replica>& replica) {
    return std::pair(replica->generation.get() == current, replica->in_flight);
  };
  const auto first = std::min_element(replicas_.begin(), replicas_.end(),
                                      [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return first == replicas_.end() ? nullptr : *first;
}

std::chrono::nanoseconds backoff_after(std::uint32_t failures) {
  if (failures == 0) return std::chrono::nanoseconds(0);
  std::chrono::nanoseconds wait = kFirstBackoff;
  for (std::uint32_t i = 1; i < failures && wait < kLongestBackoff; ++i) wait *= 2;
  return std::min<std::chrono::nanoseconds>(wait, kLongestBackoff);
}

}  // namespace orla::function
