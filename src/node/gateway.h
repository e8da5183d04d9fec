// The HTTP side of a node's functions: an OpenFaaS-compatible gateway in front of a function::Host, on an address of
// its own (docs/functions.md). It translates: requests into calls, ends of calls into statuses, the system API into
// words of the host; it never looks into a runtime.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/logger.h"
#include "function/host.h"
#include "node/gateway_async.h"
#include "node/gateway_request.h"

namespace orla::node {

struct GatewayLimits {
  std::size_t connections = 4096;  // more are answered 503 and closed
  RequestLimits request;
  std::uint64_t body_bytes = 100ull << 20;                            // of one call; beyond it 413
  std::size_t async_body_bytes = 1 << 20;                             // of one call that is queued
  std::size_t system_body_bytes = 4 << 20;                            // of one request of the system API
  std::size_t log_followers = 64;                                     // more are answered 503
  std::chrono::nanoseconds header_timeout{std::chrono::seconds(10)};  // from a request's first byte to its head: 408
  std::chrono::nanoseconds read_timeout{std::chrono::seconds(60)};    // the same to its end, when it is read whole: 408
  std::chrono::nanoseconds body_idle{std::chrono::seconds(30)};       // between two pieces of a streamed body: 408
  std::chrono::nanoseconds write_idle{std::chrono::seconds(60)};      // a client that takes nothing of its response
  std::chrono::nanoseconds keep_alive{std::chrono::seconds(75)};      // a connection between two requests
};

// What fits is read whole before the function is called, what does not is read by the function.
inline constexpr std::size_t kWholeBodyBytes = 64 * 1024;

struct GatewaySettings {
  std::string address;                  // HOST:PORT, loopback; port 0 takes a free one
  std::filesystem::path auth;           // folder with basic-auth-user and basic-auth-password; empty: no authentication
  std::vector<std::string> namespaces;  // beside the default one
  std::chrono::nanoseconds upstream_timeout{std::chrono::seconds(60)};
  // How long calls are still taken after drain() began, while /healthz says 503 to balancers.
  std::chrono::nanoseconds drain_notice{std::chrono::milliseconds(500)};
  std::chrono::nanoseconds drain_timeout{std::chrono::seconds(30)};  // for calls that run then
  std::size_t io_threads = 1;
  GatewayLimits limits;
};

// Starts on construction by start(). The destructor breaks connections off that are left; before it, drain() was called
// or the host was drained, so that no call runs any more.
class Gateway {
 public:
  virtual ~Gateway() = default;
  virtual std::string address() const = 0;  // with the real port
  // Blocks: the notice, then calls are refused and the running ones get `drain_timeout`, then the host is drained.
  virtual void drain() = 0;

  // `async` may be null: its calls are answered 501. Everything else outlives the gateway.
  static absl::StatusOr<std::unique_ptr<Gateway>> start(GatewaySettings settings, function::Host& host,
                                                        AsyncCalls* async, const base::Clock& clock, base::Logger& log);
};

// The gateway_* metrics of the OpenFaaS contract, in Prometheus' text format.
std::string gateway_metrics(const function::Host& host);

}  // namespace orla::node
