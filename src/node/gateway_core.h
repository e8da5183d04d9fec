// What all parts of one gateway share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node/gateway.h"
#include "node/gateway_auth.h"

namespace orla::node {

// An answer that is the gateway's own, in memory.
struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";  // empty: none
  function::Headers headers;
  std::string body;
  bool close = false;  // the connection ends with it
};

enum class Phase : std::uint8_t {
  kServing,
  kNotice,   // serves, and tells balancers that it goes
  kRefusing  // running calls finish
};

// Thread-safe, as all in here.
class HttpDate {
 public:
  // Appends "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n".
  void append(base::WallTime now, std::string& out);

 private:
  std::mutex mutex_;
  std::chrono::sys_seconds second_{std::chrono::seconds(-1)};
  std::string line_;
};

// How many are in progress, and a wait for none.
class Running {
 public:
  void begin() { ++count_; }
  void end() {
    if (--count_ != 0) return;
    const std::lock_guard lock(mutex_);
    none_.notify_all();
  }
  bool wait_for_none(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    return none_.wait_for(lock, patience, [this] { return count_ == 0; });
  }
  std::size_t count() const { return count_; }

 private:
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::condition_variable none_;
};

// Threads of requests that last, each until its task has run.
class Threads {
 public:
  void start(std::function<void()> task);
  // Waits for all; none is started any more.
  void join();

 private:
  struct One {
    std::atomic<bool> ended{false};
    std::jthread thread;
  };
  std::mutex mutex_;
  std::list<One> all_;
};

struct GatewayCore {
  GatewayCore(GatewaySettings settings, function::Host& host, AsyncCalls* async, const base::Clock& clock,
              base::Logger& log);

  bool has_namespace(std::string_view space) const;

  const GatewaySettings settings;
  function::Host& host;
  AsyncCalls* const async;
  const base::Clock& clock;
  base::Logger& log;
  const std::string served_by;                      // "orla/0.1.0"
  std::unique_ptr<GatewayAuth> auth;                // null: no authentication
  std::function<void(std::function<void()>)> work;  // runs something that may block
  HttpDate date;
  Running running;
  std::atomic<Phase> phase{Phase::kServing};
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> followers{0};  // of logs
  Threads follower_threads;
};

// "HTTP/1.1 404 Not Found\r\n"; a status that is not known has no reason: "HTTP/1.1 299 \r\n".
void append_status_line(int status, std::string& out);
void append_header(std::string_view name, std::string_view value, std::string& out);
// Whether they may stand in a message: a token; no control characters.
bool valid_header(std::string_view name, std::string_view value);

}  // namespace orla::node
