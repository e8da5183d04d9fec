// What WebAssembly functions may call: WASI preview 1 (without a file system but the secrets, without a network), and
// the module "orla" of functions/sdk/orla.h. Nothing that comes from the function's memory is believed: pointers and
// lengths are checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "function/wasm_api.h"

namespace orla::function {

class Sandbox;

inline constexpr std::string_view kSecretsFolder = "/var/openfaas/secrets";

struct HostFunction {
  const char* name;
  const char* signature;  // "iI:i": parameters (i: i32, I: i64), and after a colon the result
  wasmtime_func_unchecked_callback_t run;
};

// `define_wasm_imports` gives each the api as its environment. It outlives the linker.
absl::Status define_wasm_imports(const WasmtimeApi& api, wasmtime_linker* linker);
absl::Status define_host_functions(const WasmtimeApi& api, wasmtime_linker* linker, std::string_view module,
                                   std::initializer_list<HostFunction> functions);
absl::Status define_wasi(const WasmtimeApi& api, wasmtime_linker* linker);
absl::Status define_orla(const WasmtimeApi& api, wasmtime_linker* linker);

// Ends the function when its call has ended meanwhile; null: it goes on.
wasm_trap_t* trap_when_ended(const WasmtimeApi& api, Sandbox& sandbox);

// The function's memory is little-endian and knows no alignment.
template <typename T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void put(char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace orla::function
