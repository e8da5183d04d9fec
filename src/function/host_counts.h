// What is counted of the answers of one function.
#pragma once

#include <mutex>

#include "function/host.h"

namespace orla::function {

// So many different statuses are told apart per function; further ones count as the first of their hundred.
inline constexpr std::size_t kStatusesCounted = 64;

// Thread-safe.
class HostCounts {
 public:
  void add(int status, double seconds);
  // `ended` of FunctionCounts.
  std::map<int, FunctionCounts::Ended> ended() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, FunctionCounts::Ended> ended_;  // buckets not cumulative
};

}  // namespace orla::function
