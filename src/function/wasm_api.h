// The part of wasmtime's C interface that Orla uses, and the library itself, opened when it is first needed.
//
// Types and signatures are those of the headers of kWasmtimeVersion (wasm.h, wasmtime.h; Apache-2.0 WITH
// LLVM-exception); a library of another version is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

extern "C" {
struct wasm_config_t;
struct wasm_engine_t;
struct wasm_valtype_t;
struct wasm_functype_t;
struct wasm_externtype_t;
struct wasm_importtype_t;
struct wasm_exporttype_t;
struct wasm_memorytype_t;
struct wasm_trap_t;
struct wasm_frame_t;
struct wasmtime_error;
struct wasmtime_store;
struct wasmtime_context;
struct wasmtime_caller;
struct wasmtime_module;
struct wasmtime_linker;
struct wasmtime_instance_pre;
struct wasmtime_pooling_allocation_config_t;

struct wasm_byte_vec_t {
  std::size_t size;
  char* data;
};
struct wasm_valtype_vec_t {
  std::size_t size;
  wasm_valtype_t** data;
};
struct wasm_importtype_vec_t {
  std::size_t size;
  wasm_importtype_t** data;
};
struct wasm_exporttype_vec_t {
  std::size_t size;
  wasm_exporttype_t** data;
};
struct wasmtime_func {
  std::uint64_t store_id;
  void* inner;
};
struct wasmtime_memory {
  struct {
    std::uint64_t store_id;
    std::uint32_t inner1;
  };
  std::uint32_t inner2;
};
struct wasmtime_instance {
  std::uint64_t store_id;
  std::size_t inner;
};
struct wasmtime_extern {
  std::uint8_t kind;  // kWasmtimeExtern...
  union {
    wasmtime_func func;
    wasmtime_memory memory;
    std::uint64_t room[3];  // of the largest one
  } of;
};
union wasmtime_val_raw {
  std::int32_t i32;
  std::int64_t i64;
  float f32;
  double f64;
  std::uint8_t v128[16];
  void* funcref;
};
static_assert(sizeof(wasmtime_extern) == 32 && sizeof(wasmtime_val_raw) == 16);

using wasmtime_func_unchecked_callback_t = wasm_trap_t* (*)(void* environment, wasmtime_caller* caller,
                                                            wasmtime_val_raw* arguments_and_results,
                                                            std::size_t number);
using wasmtime_epoch_callback_t = wasmtime_error* (*)(const wasmtime_context* context, void* data,
                                                      std::uint64_t* epoch_deadline_delta, std::uint8_t* update_kind);
using wasmtime_finalizer_t = void (*)(void*);
}

namespace orla::function {

inline constexpr std::string_view kWasmtimeVersion = "50.0.1";

inline constexpr std::uint8_t kWasmtimeExternFunc = 0;
inline constexpr std::uint8_t kWasmtimeExternMemory = 3;
inline constexpr std::uint8_t kWasmExternFunc = 0;    // wasm_externtype_kind()
inline constexpr std::uint8_t kWasmExternMemory = 3;  // wasm_externtype_kind()
inline constexpr std::uint8_t kWasmI32 = 0;
inline constexpr std::uint8_t kWasmI64 = 1;
inline constexpr std::uint8_t kWasmtimeStrategyCranelift = 1;
inline constexpr std::uint8_t kWasmtimeOptLevelSpeed = 1;

// clang-format off
#define ORLA_WASMTIME_FUNCTIONS(F) \
  F(wasm_config_t*, wasm_config_new, (void)) \
  F(void, wasm_config_delete, (wasm_config_t*)) \
  F(wasm_engine_t*, wasm_engine_new_with_config, (wasm_config_t*)) \
  F(void, wasm_engine_delete, (wasm_engine_t*)) \
  F(void, wasm_byte_vec_delete, (wasm_byte_vec_t*)) \
  F(wasm_valtype_t*, wasm_valtype_new, (std::uint8_t)) \
  F(std::uint8_t, wasm_valtype_kind, (const wasm_valtype_t*)) \
  F(void, wasm_valtype_vec_new, (wasm_valtype_vec_t*, std::size_t, wasm_valtype_t* const[])) \
  F(wasm_functype_t*, wasm_functype_new, (wasm_valtype_vec_t*, wasm_valtype_vec_t*)) \
  F(void, wasm_functype_delete, (wasm_functype_t*)) \
  F(const wasm_valtype_vec_t*, wasm_functype_params, (const wasm_functype_t*)) \
  F(const wasm_valtype_vec_t*, wasm_functype_results, (const wasm_functype_t*)) \
  F(std::uint8_t, wasm_externtype_kind, (const wasm_externtype_t*)) \
  F(const wasm_functype_t*, wasm_externtype_as_functype_const, (const wasm_externtype_t*)) \
  F(const wasm_memorytype_t*, wasm_externtype_as_memorytype_const, (const wasm_externtype_t*)) \
  F(const wasm_byte_vec_t*, wasm_importtype_module, (const wasm_importtype_t*)) \
  F(const wasm_byte_vec_t*, wasm_importtype_name, (const wasm_importtype_t*)) \
  F(void, wasm_importtype_vec_delete, (wasm_importtype_vec_t*)) \
  F(const wasm_byte_vec_t*, wasm_exporttype_name, (const wasm_exporttype_t*)) \
  F(const wasm_externtype_t*, wasm_exporttype_type, (const wasm_exporttype_t*)) \
  F(void, wasm_exporttype_vec_delete, (wasm_exporttype_vec_t*)) \
  F(void, wasm_trap_delete, (wasm_trap_t*)) \
  F(void, wasm_trap_message, (const wasm_trap_t*, wasm_byte_vec_t*)) \
  F(wasm_frame_t*, wasm_trap_origin, (const wasm_trap_t*)) \
  F(void, wasm_frame_delete, (wasm_frame_t*)) \
  F(void, wasmtime_config_epoch_interruption_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_max_wasm_stack_set, (wasm_config_t*, std::size_t)) \
  F(void, wasmtime_config_wasm_threads_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_shared_memory_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_gc_support_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_wasm_component_model_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_concurrency_support_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_wasm_memory64_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_strategy_set, (wasm_config_t*, std::uint8_t)) \
  F(void, wasmtime_config_parallel_compilation_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_cranelift_opt_level_set, (wasm_config_t*, std::uint8_t)) \
  F(void, wasmtime_config_memory_reservation_set, (wasm_config_t*, std::uint64_t)) \
  F(void, wasmtime_config_memory_init_cow_set, (wasm_config_t*, bool)) \
  F(void, wasmtime_config_native_unwind_info_set, (wasm_config_t*, bool)) \
  F(wasmtime_pooling_allocation_config_t*, wasmtime_pooling_allocation_config_new, ()) \
  F(void, wasmtime_pooling_allocation_config_delete, (wasmtime_pooling_allocation_config_t*)) \
  F(void, wasmtime_pooling_allocation_config_max_unused_warm_slots_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_linear_memory_keep_resident_set, (wasmtime_pooling_allocation_config_t*, std::size_t)) \
  F(void, wasmtime_pooling_allocation_config_table_keep_resident_set, (wasmtime_pooling_allocation_config_t*, std::size_t)) \
  F(void, wasmtime_pooling_allocation_config_total_memories_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_total_tables_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_total_core_instances_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_total_gc_heaps_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_total_stacks_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_total_component_instances_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_config_max_memory_size_set, (wasmtime_pooling_allocation_config_t*, std::size_t)) \
  F(void, wasmtime_pooling_allocation_config_table_elements_set, (wasmtime_pooling_allocation_config_t*, std::size_t)) \
  F(void, wasmtime_pooling_allocation_config_max_tables_per_module_set, (wasmtime_pooling_allocation_config_t*, std::uint32_t)) \
  F(void, wasmtime_pooling_allocation_strategy_set, (wasm_config_t*, const wasmtime_pooling_allocation_config_t*)) \
  F(void, wasmtime_engine_increment_epoch, (const wasm_engine_t*)) \
  F(wasmtime_error*, wasmtime_error_new, (const char*)) \
  F(void, wasmtime_error_delete, (wasmtime_error*)) \
  F(void, wasmtime_error_message, (const wasmtime_error*, wasm_byte_vec_t*)) \
  F(wasm_trap_t*, wasmtime_trap_new, (const char*, std::size_t)) \
  F(bool, wasmtime_trap_code, (const wasm_trap_t*, std::uint8_t*)) \
  F(const wasm_byte_vec_t*, wasmtime_frame_func_name, (const wasm_frame_t*)) \
  F(wasmtime_store*, wasmtime_store_new, (wasm_engine_t*, void*, wasmtime_finalizer_t)) \
  F(wasmtime_context*, wasmtime_store_context, (wasmtime_store*)) \
  F(void, wasmtime_store_limiter, (wasmtime_store*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t)) \
  F(void, wasmtime_store_delete, (wasmtime_store*)) \
  F(void, wasmtime_store_epoch_deadline_callback, (wasmtime_store*, wasmtime_epoch_callback_t, void*, wasmtime_finalizer_t)) \
  F(void*, wasmtime_context_get_data, (const wasmtime_context*)) \
  F(void, wasmtime_context_set_epoch_deadline, (wasmtime_context*, std::uint64_t)) \
  F(wasmtime_error*, wasmtime_module_new, (wasm_engine_t*, const std::uint8_t*, std::size_t, wasmtime_module**)) \
  F(void, wasmtime_module_delete, (wasmtime_module*)) \
  F(void, wasmtime_module_imports, (const wasmtime_module*, wasm_importtype_vec_t*)) \
  F(void, wasmtime_module_exports, (const wasmtime_module*, wasm_exporttype_vec_t*)) \
  F(wasmtime_error*, wasmtime_module_serialize, (const wasmtime_module*, wasm_byte_vec_t*)) \
  F(wasmtime_error*, wasmtime_module_deserialize_file, (wasm_engine_t*, const char*, wasmtime_module**)) \
  F(void, wasmtime_module_image_range, (const wasmtime_module*, void**, void**)) \
  F(wasmtime_linker*, wasmtime_linker_new, (wasm_engine_t*)) \
  F(void, wasmtime_linker_delete, (wasmtime_linker*)) \
  F(wasmtime_error*, wasmtime_linker_define_func_unchecked, (wasmtime_linker*, const char*, std::size_t, const char*, std::size_t, const wasm_functype_t*, wasmtime_func_unchecked_callback_t, void*, wasmtime_finalizer_t)) \
  F(wasmtime_error*, wasmtime_linker_instantiate_pre, (const wasmtime_linker*, const wasmtime_module*, wasmtime_instance_pre**)) \
  F(void, wasmtime_instance_pre_delete, (wasmtime_instance_pre*)) \
  F(wasmtime_error*, wasmtime_instance_pre_instantiate, (const wasmtime_instance_pre*, wasmtime_context*, wasmtime_instance*, wasm_trap_t**)) \
  F(bool, wasmtime_instance_export_get, (wasmtime_context*, const wasmtime_instance*, const char*, std::size_t, wasmtime_extern*)) \
  F(wasmtime_error*, wasmtime_func_call_unchecked, (wasmtime_context*, const wasmtime_func*, wasmtime_val_raw*, std::size_t, wasm_trap_t**)) \
  F(wasmtime_context*, wasmtime_caller_context, (wasmtime_caller*)) \
  F(std::uint8_t*, wasmtime_memory_data, (wasmtime_context*, const wasmtime_memory*)) \
  F(std::size_t, wasmtime_memory_data_size, (const wasmtime_context*, const wasmtime_memory*)) \
  F(std::uint64_t, wasmtime_memorytype_minimum, (const wasm_memorytype_t*)) \
  F(wasmtime_error*, wasmtime_wat2wasm, (const char*, std::size_t, wasm_byte_vec_t*))
// clang-format on

// The opened library's functions, by their names. It is never closed: its signal handlers and threads stay.
struct WasmtimeApi {
#define ORLA_WASMTIME_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
  ORLA_WASMTIME_FUNCTIONS(ORLA_WASMTIME_FUNCTION)
#undef ORLA_WASMTIME_FUNCTION
  std::filesystem::path library;
};

// The file to open: `configured` when it is not empty, else the first that exists of libwasmtime.so beside this
// program, in ../lib and ../lib/orla of that. UNAVAILABLE says where it was looked for and what to do.
absl::StatusOr<std::filesystem::path> find_wasmtime(const std::filesystem::path& configured);
// Opens it. UNAVAILABLE: it cannot be opened or lacks a function.
absl::StatusOr<std::unique_ptr<const WasmtimeApi>> open_wasmtime(const std::filesystem::path& library);

// What an error says; deletes it. "" of none.
std::string take_message(const WasmtimeApi& api, wasmtime_error* error);
// The same of a vector of bytes.
std::string take_bytes(const WasmtimeApi& api, wasm_byte_vec_t& bytes);

// WebAssembly's text form as a module.
absl::StatusOr<std::string> wasm_of_text(const WasmtimeApi& api, std::string_view text);

}  // namespace orla::function
