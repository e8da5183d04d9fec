#include "stream/shard_workers.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace orla::stream {

namespace {

// Looks before a thread goes to sleep, some 20 us: batches that follow each other closely find it awake, and one that
// waits longer costs the processor nothing.
constexpr int kSpin = 1000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield" ::: "memory");
#endif
}

// Returns the value once it is another than `old`.
std::uint32_t await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < kSpin; ++i) {
    if (const std::uint32_t now = value.load(std::memory_order_acquire); now != old) return now;
    pause();
  }
  for (;;) {
    value.wait(old, std::memory_order_acquire);
    if (const std::uint32_t now = value.load(std::memory_order_acquire); now != old) return now;
  }
}

}  // namespace

ThreadShards::ThreadShards(std::size_t size) : ShardWorkers(size) {
  threads_.reserve(size - 1);
  for (std::size_t shard = 1; shard < size; ++shard) threads_.emplace_back([this, shard] { serve(shard); });
}

ThreadShards::~ThreadShards() {
  work_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadShards::run(Work work) {
  work_ = &work;
  running_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work(0);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left > 0;) left = await_change(running_, left);
}

void ThreadShards::serve(std::size_t shard) {
  for (std::uint32_t seen = 0;;) {
    seen = await_change(round_, seen);
    const Work* const work = work_;
    if (work == nullptr) return;
    (*work)(shard);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace orla::stream
