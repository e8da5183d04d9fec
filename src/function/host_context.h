// What all functions of a host share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/logger.h"
#include "function/executor.h"
#include "function/host.h"
#include "function/host_timer.h"
#include "function/log_book.h"
#include "function/runtimes.h"
#include "function/secret_files.h"

namespace orla::function {

class HostedFunction;

// The parts of the world that tests replace.
struct HostParts {
  std::function<absl::StatusOr<Image>(const std::filesystem::path& images, std::string_view image,
                                      std::string_view env_process)>
      find_image;
  std::chrono::nanoseconds longest_timer_wait = HostTimer::kLongestWait;
};
absl::StatusOr<std::unique_ptr<Host>> open_host(HostSettings settings,
                                                const std::vector<std::unique_ptr<Runtime>>& runtimes,
                                                const base::Clock& clock, HostParts parts);

// One function may hold at most this part of the running and of the waiting calls, so that others have room too.
inline constexpr std::size_t share_of_one_function(std::size_t all) { return all - all / 4; }

// Threads for what may block and is no call: starts and ends of replicas, readers of logs.
inline constexpr std::size_t kJobThreads = 512;

struct HostContext {
  HostContext(HostSettings settings, const std::vector<std::unique_ptr<Runtime>>& runtimes, const base::Clock& clock,
              HostParts parts);

  // Takes one of the places for running calls.
  bool take_running_place();
  void give_running_place();
  // The function has calls that wait for such a place.
  void starve(std::weak_ptr<HostedFunction> function);
  std::shared_ptr<HostedFunction> next_starved();

  // Calls and replicas that drain() waits for.
  void count_up(std::atomic<std::size_t>& what) { what.fetch_add(1); }
  void count_down(std::atomic<std::size_t>& what);
  bool wait_for_none(std::atomic<std::size_t>& what, std::chrono::nanoseconds timeout);

  const HostSettings settings;
  const HostLimits& limits = settings.limits;
  const base::Clock& clock;
  base::Logger& log;
  const std::vector<std::unique_ptr<Runtime>>& runtimes;
  const HostParts parts;
  const LogBook::Limits log_limits;
  const LogBook::Post post = [this](std::function<void()> what) { job_threads.submit(std::move(what)); };
  std::unique_ptr<SecretFiles> secrets;

  std::atomic<bool> draining{false};
  std::atomic<std::size_t> calls{0};     // taken, not ended
  std::atomic<std::size_t> running{0};   // of these, those with a thread
  std::atomic<std::size_t> waiting{0};   // and those that are held
  std::atomic<std::size_t> replicas{0};  // starting, ready or ending
  std::atomic<std::size_t> followers{0};
  std::atomic<std::uint64_t> next_replica{1};

 private:
  base::SilentLogger silent_;
  std::mutex mutex_;
  std::condition_variable none_;
  std::deque<std::weak_ptr<HostedFunction>> starved_;
  std::atomic<std::size_t> starved_count_{0};

 public:
  // Last: their threads use all above.
  HostTimer timer;
  Executor job_threads;
  Executor call_threads;
};

}  // namespace orla::function
