// A file of the cache of compiled modules, with any bytes: it is taken only when it is exactly what was sealed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "function/wasm_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const base::Sha256 module = base::sha256("module");
  if (function::check_compiled(bytes, module, "engine").ok()) {
    const std::string_view compiled = bytes.substr(0, size - function::kCompiledTrailerBytes);
    if (function::seal_compiled(compiled, module, "engine") != bytes) std::abort();
  }
  const std::string sealed = function::seal_compiled(bytes, module, "engine");
  if (!function::check_compiled(sealed, module, "engine").ok()) std::abort();
  if (function::check_compiled(sealed, module, "other engine").ok()) std::abort();
  return 0;
}
