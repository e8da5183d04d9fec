#include "function/wasm_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/absl_view.h"
#include "base/files.h"
#include "base/sha256.h"
#include "function/wasm_replica.h"

namespace orla::function {

namespace {

constexpr std::uint64_t kPageBytes = 64 * 1024;

absl::Status not_usable(const ModuleSpec& spec, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("image \"{}\" is no function: {}", spec.spec.image, what));
}

// The exports that decide how a module is called.
struct Exports {
  bool start = false;
  bool handle = false;
  std::optional<std::uint64_t> memory_pages;  // at least
  std::string wrong;                          // an export of ours with another type
};

Exports exports_of(const WasmtimeApi& api, const wasmtime_module* module) {
  Exports exports;
  wasm_exporttype_vec_t all{};
  api.wasmtime_module_exports(module, &all);
  for (std::size_t i = 0; i < all.size; ++i) {
    const wasm_byte_vec_t* raw_name = api.wasm_exporttype_name(all.data[i]);
    const std::string_view name(raw_name->data, raw_name->size);
    const wasm_externtype_t* type = api.wasm_exporttype_type(all.data[i]);
    const std::uint8_t kind = api.wasm_externtype_kind(type);
    if (name == "memory" && kind == kWasmExternMemory) {
      exports.memory_pages = api.wasmtime_memorytype_minimum(api.wasm_externtype_as_memorytype_const(type));
    }
    const bool start = name == "_start";
    const bool handle = name == "orla_handle";
    const bool initialize = name == "_initialize";
    if (!start && !handle && !initialize) continue;
    bool right = kind == kWasmExternFunc;
    if (right) {
      const wasm_functype_t* function = api.wasm_externtype_as_functype_const(type);
      const wasm_valtype_vec_t* results = api.wasm_functype_results(function);
      right = api.wasm_functype_params(function)->size == 0 && results->size == (handle ? 1U : 0U) &&
              (!handle || api.wasm_valtype_kind(results->data[0]) == kWasmI32);
    }
    if (!right) {
      exports.wrong =
          fmt::format("its export {} is not a function of nothing that gives {}", name, handle ? "an i32" : "nothing");
    }
    exports.start = exports.start || start;
    exports.handle = exports.handle || handle;
  }
  api.wasm_exporttype_vec_delete(&all);
  return exports;
}

std::vector<std::string> arguments_of(const FunctionSpec& spec) {
  std::vector<std::string> arguments;
  std::string_view rest = spec.env_process;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0) arguments.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (arguments.empty()) arguments.push_back(spec.key.name);
  return arguments;
}

std::vector<std::string> environment_of(const FunctionSpec& spec) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : spec.environment) variables.push_back(name + "=" + value);
  return variables;
}

class WasmModule final : public Module {
 public:
  WasmModule(WasmEngine& engine, ModuleSpec spec, std::shared_ptr<SharedWasm> shared, WasmStyle style,
             std::uint64_t memory_bytes, bool streaming)
      : spec_(std::move(spec)),
        shared_(std::move(shared)),
        facts_{spec_,
               engine.clock(),
               style,
               streaming,
               memory_bytes,
               arguments_of(spec_.spec),
               environment_of(spec_.spec)},
        function_{engine, facts_, *shared_, [this] { return base::read_file(spec_.image, kMaxWasmModuleBytes); }} {}

  absl::StatusOr<std::unique_ptr<Instance>> start(std::string name, base::SteadyTime deadline,
                                                  Cancellation& cancellation) override {
    auto replica = std::make_unique<WasmReplica>(function_, std::move(name));
    if (absl::Status healthy = replica->check(deadline, cancellation); !healthy.ok()) return healthy;
    return replica;
  }

  std::vector<std::string> notes() const override {
    if (!spec_.options.cpu_cores) return {};
    return {"limits.cpu is not applied to WebAssembly functions: exec_timeout bounds each call"};
  }

  void idle() override { shared_->unload(); }

 private:
  const ModuleSpec spec_;
  const std::shared_ptr<SharedWasm> shared_;
  const WasmFacts facts_;
  const WasmFunction function_;
};

class WasmRuntime final : public Runtime {
 public:
  WasmRuntime(std::filesystem::path library, std::filesystem::path cache, const base::Clock& clock)
      : library_(std::move(library)), cache_(std::move(cache)), clock_(clock) {}

  std::string_view name() const override { return "wasm"; }

  absl::StatusOr<std::unique_ptr<Module>> load(const ModuleSpec& spec) override {
    const auto mode = spec.spec.environment.find("mode");
    const bool named = mode != spec.spec.environment.end();
    if (named && spec.options.mode == WatchdogMode::kHttp) {
      return not_usable(spec,
                        "mode=http needs a process that listens; WebAssembly has mode=serializing (the default "
                        "for it) and mode=streaming");
    }
    absl::StatusOr<std::string> bytes = base::read_file(spec.image, kMaxWasmModuleBytes);
    if (!bytes.ok()) return not_usable(spec, base::message(bytes.status()));
    const absl::StatusOr<WasmEngine*> engine = this->engine();
    if (!engine.ok()) return engine.status();
    std::shared_ptr<SharedWasm> shared = (*engine)->share(base::sha256(*bytes));
    const absl::StatusOr<std::shared_ptr<const LoadedWasm>> loaded =
        shared->get([&]() -> absl::StatusOr<std::string> { return std::move(*bytes); });
    if (absl::IsInvalidArgument(loaded.status())) return not_usable(spec, base::message(loaded.status()));
    if (!loaded.ok()) return loaded.status();

    const Exports exports = exports_of((*engine)->api(), (*loaded)->module());
    if (!exports.wrong.empty()) return not_usable(spec, exports.wrong);
    if (!exports.start && !exports.handle) {
      return not_usable(spec, "it exports neither _start (a WASI command) nor orla_handle (a handler)");
    }
    if (!exports.memory_pages) return not_usable(spec, "it exports no memory");
    const std::uint64_t memory_bytes =
        std::min(spec.options.memory_bytes.value_or(kDefaultWasmMemoryBytes), kMaxWasmMemoryBytes);
    if (*exports.memory_pages > memory_bytes / kPageBytes) {
      return not_usable(spec,
                        fmt::format("it begins with {} KiB of memory and its limit is {} KiB; raise limits.memory",
                                    *exports.memory_pages * (kPageBytes >> 10), memory_bytes >> 10));
    }
    return std::make_unique<WasmModule>(**engine, spec, std::move(shared),
                                        exports.handle ? WasmStyle::kHandler : WasmStyle::kCommand, memory_bytes,
                                        named && spec.options.mode == WatchdogMode::kStreaming);
  }

 private:
  absl::StatusOr<WasmEngine*> engine() {
    const std::lock_guard lock(mutex_);
    if (engine_ == nullptr) {
      absl::StatusOr<std::unique_ptr<WasmEngine>> made = WasmEngine::create(library_, cache_, clock_);
      if (!made.ok()) return made.status();
      engine_ = *std::move(made);
    }
    return engine_.get();
  }

  const std::filesystem::path library_;
  const std::filesystem::path cache_;
  const base::Clock& clock_;
  std::mutex mutex_;
  std::unique_ptr<WasmEngine> engine_;
};

}  // namespace

std::unique_ptr<Runtime> make_wasm_runtime(std::filesystem::path library, std::filesystem::path cache,
                                           const base::Clock& clock) {
  return std::make_unique<WasmRuntime>(std::move(library), std::move(cache), clock);
}

}  // namespace orla::function
