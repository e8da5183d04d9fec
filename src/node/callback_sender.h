// Sends callbacks on a few threads of its own, each once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "node/callbacks.h"

namespace orla::node {

struct Callback {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::function<void(const absl::Status&)> done;  // once: taken (any 2xx), or why not
};

struct CallbackSettings {
  CallbackPolicy policy;
  std::size_t threads = 8;                    // half of them, at least one, for callbacks to one host
  std::chrono::milliseconds timeout{10'000};  // for each step of one
};

// Thread-safe. The destructor waits for those being sent; the others' `done` does not run.
class CallbackSender {
 public:
  explicit CallbackSender(CallbackSettings settings) : settings_(std::move(settings)) {}
  ~CallbackSender();
  CallbackSender(const CallbackSender&) = delete;
  CallbackSender& operator=(const CallbackSender&) = delete;

  void send(Callback callback);

 private:
  void run();
  absl::Status try_once(const Callback& callback) const;

  const CallbackSettings settings_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Callback> waiting_;              // in order
  std::map<std::string, std::size_t> busy_;  // how many are being sent, by host
  std::vector<std::thread> threads_;         // started as they are needed
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace orla::node
