// Calls that are made later: accepted into a durable queue, made by this node's functions, tried again, called back.
//
// A call that is acknowledged runs at least once: it leaves the queue when its last attempt has ended and its callback,
// if it wants one, was taken or given up. What it answered is on disk before it is called back, so that only the
// callback is made again after a restart; a call that waits for its receiver takes no other's room. One thread owns the
// queue; whatever comes in while it commits shares the next commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/logger.h"
#include "function/host.h"
#include "node/callbacks.h"
#include "node/gateway_async.h"
#include "store/call_queue.h"

namespace orla::node {

struct AsyncLimits {
  store::CallQueueLimits queue;
  std::size_t running = 128;             // calls that run at a time
  std::size_t running_of_function = 64;  // the same of one function
  std::size_t answer_bytes = 16 << 20;   // of a response that is called back; a longer one is called back as an error
  std::size_t callback_threads = 8;      // callbacks that are sent at a time; to one host half as many
  std::size_t callbacks_in_memory = 64;  // taken from the queue to be sent
  std::uint32_t callback_attempts = 5;   // then it is given up, and logged
  std::chrono::nanoseconds callback_wait{
      std::chrono::seconds(1)};                        // before the second attempt; doubled for each further
  std::chrono::milliseconds callback_timeout{10'000};  // for each step of one
  std::size_t dead_listed = 10'000;
};

struct AsyncSettings {
  std::string path;  // of the queue's file
  store::Fsync fsync = store::Fsync::kOn;
  std::chrono::nanoseconds call_timeout{std::chrono::seconds(60)};  // of one attempt
  CallbackPolicy callbacks;
  AsyncLimits limits;
};

struct AsyncCounts {
  std::uint64_t waiting = 0;   // and running
  std::uint64_t answered = 0;  // and not called back yet
  std::uint64_t dead = 0;
  std::uint64_t accepted = 0;          // since the start
  std::uint64_t attempts = 0;          // ended ones, since the start
  std::uint64_t retries = 0;           // since the start
  std::uint64_t callbacks_failed = 0;  // given up, since the start
};

// In Prometheus' text format.
std::string async_metrics(const AsyncCounts& counts);

// The destructor ends after the calls that run have ended: the host was drained before.
class AsyncDesk : public AsyncCalls {
 public:
  // `host`, `clock` and `log` outlive it.
  static absl::StatusOr<std::unique_ptr<AsyncDesk>> open(AsyncSettings settings, function::Host& host,
                                                         const base::Clock& clock, base::Logger& log);
  // No attempt is begun any more.
  virtual void rest() = 0;
  virtual AsyncCounts counts() const = 0;
};

}  // namespace orla::node
