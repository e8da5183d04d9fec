// The client of `orla bench functions`: calls one function over keep-alive connections, on the caller's thread, and
// compares every answer with what was sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace orla::apps {

// Sorted here. `share`: 0.5 is the median; nearest rank. 0 when there are none.
double percentile_us(std::vector<std::chrono::nanoseconds>& times, double share);

struct EchoRun {
  std::uint64_t calls = 0;
  double seconds = 0;
  std::vector<std::chrono::nanoseconds> times;  // of each call, from before it is written until its answer is whole
};

// One owner thread.
class EchoLoad {
 public:
  // `gateway`: HOST:PORT of this machine. Bodies are of `body_bytes`, 16 or more, each another one.
  static absl::StatusOr<std::unique_ptr<EchoLoad>> connect(const std::string& gateway, const std::string& function,
                                                           std::size_t connections, std::size_t body_bytes);
  ~EchoLoad();
  EchoLoad(const EchoLoad&) = delete;
  EchoLoad& operator=(const EchoLoad&) = delete;

  // Calls for that long. Each connection has one call at a time. No `rate`: the next one follows the answer at once;
  // else so many calls a second over all, as far as connections are free, in even steps. DATA_LOSS: an answer that is
  // not a 200 with the body that was sent.
  absl::StatusOr<EchoRun> run(std::chrono::nanoseconds time, std::optional<double> rate);
  // One call, on the first connection.
  absl::StatusOr<std::chrono::nanoseconds> call();
  // The same of another function.
  absl::StatusOr<std::chrono::nanoseconds> call(const std::string& function);

 private:
  struct Connection;
  EchoLoad(const std::string& function, std::size_t body_bytes);
  absl::Status open(const std::string& host, std::uint16_t port);
  void address(const std::string& function);
  absl::Status begin(Connection& connection);
  absl::Status push(Connection& connection);
  // True: its answer is whole and right.
  absl::StatusOr<bool> pull(Connection& connection);
  absl::Status check_head(Connection& connection, std::size_t end);
  absl::Status wrong(const Connection& connection, std::string_view what) const;

  const base::SystemClock clock_;
  std::string host_;  // what Host says
  std::string function_;
  std::size_t body_bytes_;
  std::string request_;  // with the place of the body's number at its end
  std::uint64_t number_ = 0;
  int poller_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace orla::apps
