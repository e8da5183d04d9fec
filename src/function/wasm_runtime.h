// The `wasm` runtime. A replica is light: it holds an instance in memory while calls run and for a short time after
// (handlers), and none while nobody calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "function/runtime.h"

namespace orla::function {

inline constexpr std::uint64_t kDefaultWasmMemoryBytes = 256ULL << 20;  // of an instance, without limits.memory
inline constexpr std::uint32_t kDefaultWasmConcurrency = 100;           // of a replica, without max_inflight

// Compiled modules are kept in `cache`; the library is opened with the first module (see find_wasmtime).
std::unique_ptr<Runtime> make_wasm_runtime(std::filesystem::path library, std::filesystem::path cache,
                                           const base::Clock& clock);

}  // namespace orla::function
