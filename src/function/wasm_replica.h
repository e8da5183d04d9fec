// One replica of a WebAssembly function.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "function/runtime.h"
#include "function/wasm_call.h"
#include "function/wasm_engine.h"
#include "function/wasm_sandbox.h"

namespace orla::function {

// What a module gives its replicas.
struct WasmFunction {
  WasmEngine& engine;
  const WasmFacts& facts;
  SharedWasm& shared;
  std::function<absl::StatusOr<std::string>()> bytes;  // the image, when it has to be compiled again
};

class WasmReplica final : public Instance, private WarmKeeper {
 public:
  WasmReplica(const WasmFunction& function, std::string name);
  ~WasmReplica() override;

  // The health check: an instance starts.
  absl::Status check(base::SteadyTime deadline, Cancellation& cancellation);

  const std::string& name() const override { return name_; }
  std::uint32_t concurrency() const override { return concurrency_; }
  CallResult call(const Call& call) override;
  bool usable() override { return true; }
  InstanceUsage usage() override;
  void stop(std::chrono::nanoseconds grace) override;

 private:
  struct Start {
    std::unique_ptr<Sandbox> sandbox;  // null: `end` and `message` say why
    CallEnd end = CallEnd::kFailed;
    std::string message;
  };
  Start start_sandbox(WasmCall& call);
  CallResult run(WasmCall& call, std::unique_ptr<Sandbox>& sandbox);
  CallResult broke(WasmCall& call, const Sandbox& sandbox, const absl::Status& why);
  std::unique_ptr<Sandbox> enter();
  void leave(std::unique_ptr<Sandbox> kept, std::chrono::nanoseconds used);
  void let_go_before(base::SteadyTime time) override;

  const WasmFunction& function_;
  WasmEngine& engine_;
  const std::string name_;
  const std::uint32_t concurrency_;
  WasmInterrupts interrupts_;
  std::atomic<std::int64_t> used_ns_{0};
  std::atomic<std::uint64_t> last_memory_{0};  // of the instance that ended last

  std::mutex mutex_;
  std::condition_variable left_;
  std::uint32_t running_ = 0;
  std::vector<std::unique_ptr<Sandbox>> warm_;  // the last one was used last
};

}  // namespace orla::function
