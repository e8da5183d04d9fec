// One WebAssembly instance with its memory: what runs inside of it reaches nothing but the imports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "function/wasm_call.h"
#include "function/wasm_engine.h"

namespace orla::function {

// A secret that the function has opened.
struct OpenSecret {
  std::string bytes;
  std::size_t at = 0;
};

// Used by one thread at a time, which may be another one for each call.
class Sandbox {
 public:
  // Instantiated, without having run anything of it but its start section. The engine has room for it (take_room());
  // its end gives the room back.
  static absl::StatusOr<std::unique_ptr<Sandbox>> create(WasmEngine& engine, std::shared_ptr<const LoadedWasm> loaded,
                                                         const WasmFacts& facts, WasmCall* call);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Whether an exported function is there that takes nothing.
  std::optional<wasmtime_func> find_function(std::string_view name);
  // Runs one that takes nothing and gives nothing or an i32. The error says what broke.
  absl::StatusOr<std::int32_t> run(const wasmtime_func& function, WasmCall* call);

  // Bytes [at, at + size) of its memory; nothing when they are not all inside. Until it runs again.
  char* memory(std::uint64_t at, std::uint64_t size);
  // Of its memory as it is now.
  std::uint64_t memory_bytes() const;
  // How a run that broke ends: kOutOfMemory when the memory is at its limit, as good as it can be told.
  CallEnd end_of_failure() const;

  // What the imports are for; null while nothing runs.
  WasmCall* call() const { return call_; }
  const WasmFacts& facts() const { return facts_; }
  WasmEngine& engine() const { return engine_; }

  // File descriptors beside 0, 1 and 2.
  std::map<std::uint32_t, OpenSecret> open_secrets;
  bool closed[3] = {};

  base::SteadyTime last_used{};
  std::uint64_t first_memory_bytes = 0;
  std::optional<wasmtime_func> entry;

 private:
  Sandbox(WasmEngine& engine, std::shared_ptr<const LoadedWasm> loaded, const WasmFacts& facts);
  absl::Status explain(wasmtime_error* error, wasm_trap_t* trap);

  WasmEngine& engine_;
  const WasmtimeApi& api_;
  const std::shared_ptr<const LoadedWasm> loaded_;
  const WasmFacts& facts_;
  wasmtime_store* store_ = nullptr;
  wasmtime_context* context_ = nullptr;
  wasmtime_instance instance_{};
  wasmtime_memory memory_{};
  bool has_memory_ = false;
  WasmCall* call_ = nullptr;
};

// The sandbox that a host function was called from.
Sandbox& sandbox_of(const WasmtimeApi& api, wasmtime_caller* caller);

}  // namespace orla::function
