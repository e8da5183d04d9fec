// The replicas of one function that take calls, and the memory of its failed starts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "function/balance.h"
#include "function/runtime.h"
#include "function/secret_files.h"

namespace orla::function {

// A spec with what it was loaded into. Replicas hold the one they were started of.
struct Generation {
  ModuleSpec wanted;
  std::string_view runtime_name;
  Runtime* runtime = nullptr;
  absl::Status problem;  // why it cannot be loaded at all
  std::unique_ptr<SecretFiles::Lease> secrets;
  // Loads it at the first call of this; thread-safe.
  absl::StatusOr<Module*> load();
  // Null before that.
  Module* loaded() const { return loaded_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::unique_ptr<Module> module_;
  std::atomic<Module*> loaded_{nullptr};
};

// All but what call() touches is guarded by its function's mutex.
struct Replica {
  std::shared_ptr<Generation> generation;
  std::unique_ptr<Instance> instance;
  std::uint32_t in_flight = 0;
  bool served = false;  // a call has reached it
  bool dead = false;
  bool retired = false;       // its end is under way
  std::size_t place = kNone;  // in its set; kNone: it takes no more calls
  static constexpr std::size_t kNone = ~std::size_t{0};
};

// Not thread-safe.
class ReplicaSet {
 public:
  std::size_t size() const { return replicas_.size(); }
  bool empty() const { return replicas_.empty(); }
  const std::vector<std::shared_ptr<Replica>>& all() const { return replicas_; }
  std::size_t count_of(const Generation* generation) const;
  std::uint32_t least_concurrency() const;  // 0: there are none

  void add(std::shared_ptr<Replica> replica);
  void remove(Replica& replica);
  // One with room; it has one more call then. Null: all are full.
  std::shared_ptr<Replica> take();
  // A call of it has ended, whether it is in the set or not.
  void give(Replica& replica);
  // The one to go first when there are too many: not of `current`, then the one with the fewest calls.
  std::shared_ptr<Replica> first_to_go(const Generation* current) const;

 private:
  std::vector<std::shared_ptr<Replica>> replicas_;
  std::vector<ReplicaLoad> loads_;  // beside replicas_
  std::uint64_t turn_ = 0;
};

// How long to wait after failed starts, one after the other: kFirstBackoff, then twice as long each time, up to
// kLongestBackoff.
inline constexpr std::chrono::milliseconds kFirstBackoff{250};
inline constexpr std::chrono::seconds kLongestBackoff{60};
std::chrono::nanoseconds backoff_after(std::uint32_t failures);

}  // namespace orla::function
