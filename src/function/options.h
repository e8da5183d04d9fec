// What a spec's environment, labels and limits mean, checked: names and defaults are those of the OpenFaaS watchdog and
// autoscaler (docs/functions.md lists them).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "function/spec.h"

namespace orla::function {

inline constexpr std::chrono::nanoseconds kMaxDuration = std::chrono::hours(24 * 3650);
inline constexpr std::chrono::nanoseconds kMaxDownWindow = std::chrono::minutes(5);
inline constexpr std::uint32_t kMaxReplicas = 1'000;        // that a label may ask for
inline constexpr std::size_t kMaxLogLineBytes = 64 * 1024;  // of a line that is kept; the rest is cut off

// "30" (seconds), "1m30s", "250ms": integer seconds or a Go duration, not negative, at most kMaxDuration.
absl::StatusOr<std::chrono::nanoseconds> parse_duration(std::string_view text);
// "128Mi", "1G", "65536": bytes (a Kubernetes quantity), rounded up, more than 0. The error says what is expected.
absl::StatusOr<std::uint64_t> parse_memory(std::string_view text);
// "500m", "0.5", "2": cores, more than 0. The error says what is expected.
absl::StatusOr<double> parse_cpu(std::string_view text);

// How a watchdog would run the function's process.
enum class WatchdogMode : std::uint8_t { kStreaming, kSerializing, kHttp };

struct ScaleOptions {
  std::uint32_t min = 1;   // com.openfaas.scale.min; 0 counts as 1: going to none is `zero`
  std::uint32_t max = 20;  // com.openfaas.scale.max; min == max: never scaled
  bool zero = false;       // com.openfaas.scale.zero: without calls it goes to none
  std::chrono::nanoseconds zero_duration{std::chrono::minutes(15)};  // com.openfaas.scale.zero-duration
  enum class Type : std::uint8_t { kCapacity, kRps, kQueue } type = Type::kCapacity;  // com.openfaas.scale.type
  double target = 50;              // com.openfaas.scale.target: of one replica
  double target_proportion = 0.9;  // com.openfaas.scale.target-proportion, in (0, 1]
  std::uint32_t factor = 20;       // com.openfaas.scale.factor, percent: steps of /system/alert
  std::chrono::nanoseconds down_window{std::chrono::minutes(1)};  // com.openfaas.scale.down.window, at most 5 min
};

struct FunctionOptions {
  WatchdogMode mode = WatchdogMode::kStreaming;                             // env mode
  std::chrono::nanoseconds exec_timeout{std::chrono::seconds(30)};          // env exec_timeout; 0: none of its own
  std::chrono::nanoseconds read_timeout{std::chrono::seconds(30)};          // env read_timeout; only checked
  std::chrono::nanoseconds write_timeout{std::chrono::seconds(30)};         // env write_timeout; only checked
  std::chrono::nanoseconds healthcheck_interval{std::chrono::seconds(30)};  // env; only checked
  std::uint32_t max_inflight = 0;             // env max_inflight, of one replica; 0: unlimited
  std::string content_type;                   // env content_type; empty: the runtime's default
  std::string upstream_url;                   // env upstream_url (mode http): its port; empty: one is chosen
  std::string ready_path;                     // env ready_path
  bool buffer_request_body = false;           // env http_buffer_req_body
  bool prefix_logs = true;                    // env prefix_logs
  std::int64_t log_buffer_bytes = 65536;      // env log_buffer_size; -1: unlimited (see kMaxLogLineBytes)
  bool log_call_id = false;                   // env log_callid
  std::optional<std::uint64_t> memory_bytes;  // limits.memory
  std::optional<double> cpu_cores;            // limits.cpu
  ScaleOptions scale;
};

// INVALID_ARGUMENT names the variable, label or annotation, what was found and what was expected. Unknown labels
// com.openfaas.scale.* and annotations com.openfaas.retry.* are refused.
absl::StatusOr<FunctionOptions> read_options(const FunctionSpec& spec);

}  // namespace orla::function
