#include "function/host_counts.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace orla::function {

void HostCounts::add(int status, double seconds) {
  const std::lock_guard lock(mutex_);
  auto at = ended_.find(status);
  if (at == ended_.end()) {
    if (ended_.size() >= kStatusesCounted) status = status / 100 * 100;
    at = ended_.try_emplace(status).first;
    at->second.buckets.resize(std::size(kSecondsBuckets));
  }
  FunctionCounts::Ended& ended = at->second;
  ++ended.count;
  ended.seconds += seconds;
  const auto bucket = std::lower_bound(std::begin(kSecondsBuckets), std::end(kSecondsBuckets), seconds);
  if (bucket != std::end(kSecondsBuckets))
    ++ended.buckets[static_cast<std::size_t>(bucket - std::begin(kSecondsBuckets))];
}

std::map<int, FunctionCounts::Ended> HostCounts::ended() const {
  std::map<int, FunctionCounts::Ended> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = ended_;
  }
  for (auto& [status, of] : ended) std::partial_sum(of.buckets.begin(), of.buckets.end(), of.buckets.begin());
  return ended;
}

}  // namespace orla::function
