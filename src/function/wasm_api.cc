#include "function/wasm_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <system_error>
#include <vector>

#include "base/files.h"

namespace orla::function {

namespace {

constexpr const char* kLibraryName = "libwasmtime.so";

absl::Status unavailable(std::string_view what) {
  return absl::UnavailableError(
      fmt::format("WebAssembly functions cannot run here: {}; ./up --build fetches wasmtime {} ({})", what,
                  kWasmtimeVersion, kLibraryName));
}

}  // namespace

absl::StatusOr<std::filesystem::path> find_wasmtime(const std::filesystem::path& configured) {
  if (!configured.empty()) {
    if (base::exists(configured)) return configured;
    return unavailable(fmt::format("there is no file \"{}\"", configured.native()));
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return unavailable(fmt::format("where this program lies is not known: {}", error.message()));
  const std::filesystem::path folder = program.parent_path();
  std::string looked;
  for (const std::filesystem::path& place :
       {folder, folder.parent_path() / "lib", folder.parent_path() / "lib" / "orla"}) {
    if (base::exists(place / kLibraryName)) return place / kLibraryName;
    looked += fmt::format("{}\"{}\"", looked.empty() ? "" : ", ", (place / kLibraryName).native());
  }
  return unavailable(fmt::format("none of {} exists", looked));
}

absl::StatusOr<std::unique_ptr<const WasmtimeApi>> open_wasmtime(const std::filesystem::path& library) {
  void* opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = ::dlerror();
    return unavailable(fmt::format("\"{}\" cannot be opened ({})", library.native(), why == nullptr ? "?" : why));
  }
  auto api = std::make_unique<WasmtimeApi>();
  api->library = library;
  std::string missing;
#define ORLA_WASMTIME_FUNCTION(result, name, parameters)                      \
  api->name = reinterpret_cast<result(*) parameters>(::dlsym(opened, #name)); \
  if (api->name == nullptr) missing = #name;
  ORLA_WASMTIME_FUNCTIONS(ORLA_WASMTIME_FUNCTION)
#undef ORLA_WASMTIME_FUNCTION
  if (!missing.empty()) {
    ::dlclose(opened);
    return unavailable(fmt::format("\"{}\" has no {}: it is another version", library.native(), missing));
  }
  return api;
}

std::string take_bytes(const WasmtimeApi& api, wasm_byte_vec_t& bytes) {
  std::string text(bytes.data == nullptr ? "" : std::string(bytes.data, bytes.size));
  api.wasm_byte_vec_delete(&bytes);
  return text;
}

std::string take_message(const WasmtimeApi& api, wasmtime_error* error) {
  if (error == nullptr) return "";
  wasm_byte_vec_t bytes{};
  api.wasmtime_error_message(error, &bytes);
  api.wasmtime_error_delete(error);
  return take_bytes(api, bytes);
}

absl::StatusOr<std::string> wasm_of_text(const WasmtimeApi& api, std::string_view text) {
  wasm_byte_vec_t bytes{};
  if (wasmtime_error* error = api.wasmtime_wat2wasm(text.data(), text.size(), &bytes); error != nullptr) {
    return absl::InvalidArgumentError(fmt::format("not WebAssembly text: {}", take_message(api, error)));
  }
  return take_bytes(api, bytes);
}

}  // namespace orla::function
