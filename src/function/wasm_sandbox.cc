#include "function/wasm_sandbox.h"

#include <fmt/format.h>

#include <algorithm>

namespace orla::function {

namespace {

constexpr const char* kTraps[] = {"stack overflow",
                                  "memory access out of bounds",
                                  "misaligned atomic access",
                                  "table access out of bounds",
                                  "call of a null function pointer",
                                  "call of a function pointer of another type",
                                  "integer overflow",
                                  "integer division by zero",
                                  "conversion of a number that is no integer",
                                  "unreachable code (abort, a failed assertion, or an exception)",
                                  "interrupted"};

// Runs on each tick of the engine's clock while wasm runs.
wasmtime_error* look_at_clock(const wasmtime_context*, void* data, std::uint64_t* delta, std::uint8_t* kind) {
  const Sandbox& sandbox = *static_cast<Sandbox*>(data);
  *delta = 1;
  *kind = 0;
  if (sandbox.call() == nullptr || !sandbox.call()->must_end()) return nullptr;
  return sandbox.engine().api().wasmtime_error_new("the call has to end");
}

}  // namespace

Sandbox& sandbox_of(const WasmtimeApi& api, wasmtime_caller* caller) {
  return *static_cast<Sandbox*>(api.wasmtime_context_get_data(api.wasmtime_caller_context(caller)));
}

Sandbox::Sandbox(WasmEngine& engine, std::shared_ptr<const LoadedWasm> loaded, const WasmFacts& facts)
    : engine_(engine), api_(engine.api()), loaded_(std::move(loaded)), facts_(facts) {
  store_ = api_.wasmtime_store_new(engine.raw(), this, nullptr);
  context_ = api_.wasmtime_store_context(store_);
  api_.wasmtime_store_limiter(store_, static_cast<std::int64_t>(facts.memory_bytes), kMaxWasmTableElements, 1, 1, 1);
  api_.wasmtime_store_epoch_deadline_callback(store_, &look_at_clock, this, nullptr);
}

Sandbox::~Sandbox() {
  api_.wasmtime_store_delete(store_);
  engine_.give_room();
}

absl::StatusOr<std::unique_ptr<Sandbox>> Sandbox::create(WasmEngine& engine, std::shared_ptr<const LoadedWasm> loaded,
                                                         const WasmFacts& facts, WasmCall* call) {
  const wasmtime_instance_pre* pre = loaded->pre();
  auto sandbox = std::unique_ptr<Sandbox>(new Sandbox(engine, std::move(loaded), facts));
  const WasmtimeApi& api = engine.api();
  wasm_trap_t* trap = nullptr;
  sandbox->call_ = call;
  api.wasmtime_context_set_epoch_deadline(sandbox->context_, 1);
  wasmtime_error* error = api.wasmtime_instance_pre_instantiate(pre, sandbox->context_, &sandbox->instance_, &trap);
  sandbox->call_ = nullptr;
  if (error != nullptr || trap != nullptr) return sandbox->explain(error, trap);
  wasmtime_extern found{};
  if (api.wasmtime_instance_export_get(sandbox->context_, &sandbox->instance_, "memory", 6, &found) &&
      found.kind == kWasmtimeExternMemory) {
    sandbox->memory_ = found.of.memory;
    sandbox->has_memory_ = true;
  }
  return sandbox;
}

std::optional<wasmtime_func> Sandbox::find_function(std::string_view name) {
  wasmtime_extern found{};
  if (!api_.wasmtime_instance_export_get(context_, &instance_, name.data(), name.size(), &found)) return std::nullopt;
  if (found.kind != kWasmtimeExternFunc) return std::nullopt;
  return found.of.func;
}

absl::StatusOr<std::int32_t> Sandbox::run(const wasmtime_func& function, WasmCall* call) {
  wasm_trap_t* trap = nullptr;
  wasmtime_val_raw result{};
  call_ = call;
  api_.wasmtime_context_set_epoch_deadline(context_, 1);
  wasmtime_error* error = api_.wasmtime_func_call_unchecked(context_, &function, &result, 1, &trap);
  call_ = nullptr;
  if (error != nullptr || trap != nullptr) return explain(error, trap);
  return result.i32;
}

char* Sandbox::memory(std::uint64_t at, std::uint64_t size) {
  if (!has_memory_) return nullptr;
  const std::uint64_t there = api_.wasmtime_memory_data_size(context_, &memory_);
  if (at > there || size > there - at) return nullptr;
  return reinterpret_cast<char*>(api_.wasmtime_memory_data(context_, &memory_)) + at;
}

std::uint64_t Sandbox::memory_bytes() const {
  return has_memory_ ? api_.wasmtime_memory_data_size(context_, &memory_) : 0;
}

CallEnd Sandbox::end_of_failure() const {
  // A function that was refused more memory notices by itself and gives up. What it asked for in vain is not known, but
  // an allocation that doubles what it holds fails at half of the limit or later.
  return memory_bytes() >= facts_.memory_bytes / 2 ? CallEnd::kOutOfMemory : CallEnd::kFailed;
}

absl::Status Sandbox::explain(wasmtime_error* error, wasm_trap_t* trap) {
  if (trap == nullptr) return absl::AbortedError(take_message(api_, error));
  if (error != nullptr) api_.wasmtime_error_delete(error);
  std::string text;
  std::uint8_t code = 0;
  if (api_.wasmtime_trap_code(trap, &code) && code < std::size(kTraps)) {
    text = kTraps[code];
  } else {
    wasm_byte_vec_t message{};
    api_.wasm_trap_message(trap, &message);
    text = take_bytes(api_, message);
    text.resize(std::min(text.find('\n'), text.size()));
    while (!text.empty() && text.back() == '\0') text.pop_back();
  }
  if (wasm_frame_t* frame = api_.wasm_trap_origin(trap); frame != nullptr) {
    if (const wasm_byte_vec_t* name = api_.wasmtime_frame_func_name(frame); name != nullptr && name->size > 0) {
      text += fmt::format(" in {}", std::string_view(name->data, name->size));
    }
    api_.wasm_frame_delete(frame);
  }
  api_.wasm_trap_delete(trap);
  return absl::AbortedError(text);
}

}  // namespace orla::function
