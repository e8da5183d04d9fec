#include "function/wasm_imports.h"

#include <fmt/format.h>

#include <vector>

#include "function/wasm_sandbox.h"

namespace orla::function {

namespace {

wasm_valtype_vec_t types_of(const WasmtimeApi& api, std::string_view letters) {
  std::vector<wasm_valtype_t*> types;
  for (const char letter : letters) types.push_back(api.wasm_valtype_new(letter == 'I' ? kWasmI64 : kWasmI32));
  wasm_valtype_vec_t vector{};
  api.wasm_valtype_vec_new(&vector, types.size(), types.data());
  return vector;
}

}  // namespace

absl::Status define_host_functions(const WasmtimeApi& api, wasmtime_linker* linker, std::string_view module,
                                   std::initializer_list<HostFunction> functions) {
  for (const HostFunction& function : functions) {
    const std::string_view signature = function.signature;
    const std::size_t colon = signature.find(':');
    wasm_valtype_vec_t parameters = types_of(api, signature.substr(0, colon));
    wasm_valtype_vec_t results =
        types_of(api, colon == std::string_view::npos ? std::string_view() : signature.substr(colon + 1));
    wasm_functype_t* type = api.wasm_functype_new(&parameters, &results);
    wasmtime_error* error = api.wasmtime_linker_define_func_unchecked(
        linker, module.data(), module.size(), function.name, std::strlen(function.name), type, function.run,
        const_cast<WasmtimeApi*>(&api), nullptr);
    api.wasm_functype_delete(type);
    if (error != nullptr) {
      return absl::InternalError(fmt::format("{}.{}: {}", module, function.name, take_message(api, error)));
    }
  }
  return absl::OkStatus();
}

absl::Status define_wasm_imports(const WasmtimeApi& api, wasmtime_linker* linker) {
  if (absl::Status wasi = define_wasi(api, linker); !wasi.ok()) return wasi;
  return define_orla(api, linker);
}

wasm_trap_t* trap_when_ended(const WasmtimeApi& api, Sandbox& sandbox) {
  const WasmCall& call = *sandbox.call();
  if (!call.end() && !call.exit_code) return nullptr;
  static constexpr std::string_view kWhy = "the call has ended";
  return api.wasmtime_trap_new(kWhy.data(), kWhy.size());
}

}  // namespace orla::function
