// Who does the work of an engine's shards: state that is cut into parts, of which each has one owner at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace orla::stream {

inline constexpr std::size_t kMaxShards = 64;

// Used by one thread at a time, the caller.
class ShardWorkers {
 public:
  virtual ~ShardWorkers() = default;

  std::size_t size() const { return size_; }  // of shards: in 1..kMaxShards, and always the same
  // Calls work(0), ..., work(size() - 1), each once, and returns when all have returned. What the caller has done
  // before is seen by each call, and what the calls did by the caller afterwards. `work` throws nothing.
  virtual void run(absl::FunctionRef<void(std::size_t shard)> work) = 0;

 protected:
  explicit ShardWorkers(std::size_t size) : size_(size) {}

 private:
  const std::size_t size_;
};

// All on the caller, one after the other.
class InlineShards final : public ShardWorkers {
 public:
  explicit InlineShards(std::size_t size) : ShardWorkers(size) {}
  void run(absl::FunctionRef<void(std::size_t shard)> work) override {
    for (std::size_t shard = 0; shard < size(); ++shard) work(shard);
  }
};

// Each shard has a thread, always the same, of which the first is the caller. No lock is taken on the way: a round is
// begun and ended by atomic counters, which are watched for kSpin and then slept on.
class ThreadShards final : public ShardWorkers {
 public:
  explicit ThreadShards(std::size_t size);
  ~ThreadShards() override;  // not while run() is running
  ThreadShards(const ThreadShards&) = delete;
  ThreadShards& operator=(const ThreadShards&) = delete;

  void run(absl::FunctionRef<void(std::size_t shard)> work) override;

 private:
  using Work = absl::FunctionRef<void(std::size_t shard)>;

  void serve(std::size_t shard);

  const Work* work_ = nullptr;  // of the round; null: the last round, the threads end
  // Each on a cache line of its own: the one is written by the caller, the other by all.
  alignas(64) std::atomic<std::uint32_t> round_ = 0;
  alignas(64) std::atomic<std::uint32_t> running_ = 0;  // threads that have not finished the round
  std::vector<std::thread> threads_;                    // of shards 1, 2, ...
};

}  // namespace orla::stream
