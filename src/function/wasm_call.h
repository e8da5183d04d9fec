// One call inside WebAssembly: where its input is read, its output goes, and why it has to end.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "function/log_lines.h"
#include "function/runtime.h"

namespace orla::function {

// A response up to this size is kept until the function has ended, so that its end decides the status; a larger one is
// begun with 200 and sent on as it comes.
inline constexpr std::size_t kWasmBufferedBytes = 8 << 20;
inline constexpr std::size_t kWasmResponseHeaders = 100;
inline constexpr std::size_t kWasmResponseHeaderBytes = 64 * 1024;  // of all names and values

enum class WasmStyle : std::uint8_t { kCommand, kHandler };

// What a replica's calls wait on when the function sleeps; told when one of them is to end.
struct WasmInterrupts {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> ended{false};  // the replica is being ended, and all its calls
};

// What all calls of a function have in common.
struct WasmFacts {
  const ModuleSpec& spec;
  const base::Clock& clock;
  WasmStyle style;
  bool streaming;              // mode=streaming: written is sent
  std::uint64_t memory_bytes;  // at most
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value"
};

// Used by one thread.
class WasmCall {
 public:
  WasmCall(const WasmFacts& facts, const Call& call, WasmInterrupts& interrupts, std::string_view instance);

  const WasmFacts& facts() const { return facts_; }
  const Call& call() const { return call_; }
  base::SteadyTime started() const { return started_; }

  // Whether the call has to end now; says why in end().
  bool must_end();
  // To be called when the function's next instruction shall not run: no further reason counts.
  void end_with(CallEnd end, std::string message);
  std::optional<CallEnd> end() const { return end_; }

  // 0: the end. An error: the call has to end.
  absl::StatusOr<std::size_t> read_body(char* to, std::size_t room);
  // False: the call has to end.
  bool write_output(std::string_view piece);
  bool flush_output();
  LogLines& log() { return log_; }

  // The response's head, for handlers; false: too late, or not such a status or header.
  bool set_status(std::int32_t status);
  bool add_header(std::string_view name, std::string_view value);

  // Waits until then; false: the call has to end.
  bool wait_until(base::SteadyTime time);

  // The environment of this call: the function's and, for commands, the HTTP facts.
  const std::vector<std::string>& environment();

  std::optional<std::int32_t> exit_code;  // proc_exit was called

  // The function has ended by itself: sends what is to be sent.
  CallResult finish_well();
  // It has not: `end()` or what is given here says why.
  CallResult finish_badly(CallEnd end, std::string message);
  // Time that it waited for others.
  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  CallResult result(CallEnd end, std::string message);
  Headers take_headers();
  bool begin();
  bool check(const absl::Status& written);

  const WasmFacts& facts_;
  const Call& call_;
  WasmInterrupts& interrupts_;
  const base::SteadyTime started_;
  base::SteadyTime deadline_;
  LogLines log_;
  std::optional<std::string_view> whole_;
  std::size_t read_ = 0;

  int status_ = 200;
  Headers headers_;
  std::size_t header_bytes_ = 0;
  std::string buffered_;
  bool begun_ = false;

  std::optional<CallEnd> end_;
  std::string message_;
  std::vector<std::string> environment_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace orla::function
