// Speaks HTTP/1.1 to the server that a function's process is (mode http): kept connections, both directions streamed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file_descriptor.h"
#include "function/call.h"

namespace orla::function {

// A connection that was not used for so long is not used again: servers close theirs after some seconds without a
// request, and one that comes at that moment is lost.
inline constexpr std::chrono::seconds kLongestIdle{1};
inline constexpr std::size_t kMaxIdleConnections = 256;
inline constexpr std::uint32_t kMaxAnswerHeadBytes = 64 * 1024;

// Thread-safe.
class ProcessClient {
 public:
  // `make_socket`: a TCP socket, not connected.
  ProcessClient(const base::Clock& clock, std::uint16_t port,
                std::function<absl::StatusOr<base::FileDescriptor>()> make_socket);

  // How long, and what ends it before: a descriptor that becomes readable (-1: none).
  struct Patience {
    base::SteadyTime deadline = base::SteadyTime::max();
    int cancelled = -1;
  };

  // Whether it takes a connection, and with a path whether a GET of that answers 2xx.
  bool ready(const std::string& path, const Patience& patience);

  enum class Body : std::uint8_t { kAsItComes, kWhole };
  // An answer with 101 to a call that offers an upgrade: bytes go both ways until one side ends.
  // Ends in kDone, kFailed, kUnreachable, or kCancelled and kTimedOut as `patience` says (without a message). A request
  // is sent a second time only when the server had closed the kept connection before any byte of it arrived there.
  CallResult proxy(const Call& call, Body body, const Patience& patience);

  void close_idle();

 private:
  struct Exchange;

  absl::StatusOr<base::FileDescriptor> connect(const Patience& patience);
  std::optional<base::FileDescriptor> take_idle();
  void keep(base::FileDescriptor connection);
  void forget_old();  // under mutex_

  const base::Clock& clock_;
  const std::uint16_t port_;
  const std::function<absl::StatusOr<base::FileDescriptor>()> make_socket_;
  std::mutex mutex_;
  struct Idle {
    base::FileDescriptor connection;
    base::SteadyTime since;
  };
  std::vector<Idle> idle_;  // guarded by mutex_; the last one was used last
};

}  // namespace orla::function
