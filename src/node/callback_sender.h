// Sends callbacks on a few threads of its own; tries again those that are not taken.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "node/callbacks.h"

namespace orla::node {

struct Callback {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::function<void(const absl::Status&)> done;  // once: taken (any 2xx), or why it was given up
};

struct CallbackSettings {
  CallbackPolicy policy;
  std::size_t threads = 8;
  std::uint32_t attempts = 5;
  std::chrono::nanoseconds wait{std::chrono::seconds(1)};  // before the second; doubled for each further
  std::chrono::milliseconds timeout{10'000};               // for each step of one
};

// Thread-safe. The destructor waits for those being sent; the others' `done` does not run.
class CallbackSender {
 public:
  CallbackSender(CallbackSettings settings, const base::Clock& clock);
  ~CallbackSender();
  CallbackSender(const CallbackSender&) = delete;
  CallbackSender& operator=(const CallbackSender&) = delete;

  void send(Callback callback);

 private:
  struct Job {
    Callback callback;
    std::uint32_t attempt = 1;
  };
  void run();
  absl::Status try_once(const Callback& callback) const;

  const CallbackSettings settings_;
  const base::Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<base::SteadyTime, Job> jobs_;  // by when they are due
  std::vector<std::thread> threads_;           // started as they are needed
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace orla::node
