#include "function/wasm_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/absl_view.h"
#include "function/wasm_imports.h"

namespace orla::function {

namespace {

// Names what decides whether compiled code fits: beside the version, what create() sets. wasmtime checks the processor.
constexpr std::string_view kConfiguration = "epoch,cow,no-threads,no-gc,no-unwind,no-memory64,speed,4GiB";
// The ticker sleeps after that many ticks without a call.
constexpr int kIdleTicks = 100;
// How often warm instances are looked through.
constexpr std::chrono::seconds kLookInterval{1};

#ifdef ORLA_TSAN
// ThreadSanitizer's own memory leaves less address space.
constexpr std::uint32_t kPooled = 128;
#else
constexpr std::uint32_t kPooled = kWasmInstances;
#endif

wasm_config_t* make_config(const WasmtimeApi& api) {
  wasm_config_t* config = api.wasm_config_new();
  api.wasmtime_config_strategy_set(config, kWasmtimeStrategyCranelift);
  api.wasmtime_config_cranelift_opt_level_set(config, kWasmtimeOptLevelSpeed);
  api.wasmtime_config_parallel_compilation_set(config, true);
  api.wasmtime_config_epoch_interruption_set(config, true);
  api.wasmtime_config_max_wasm_stack_set(config, kWasmStackBytes);
  api.wasmtime_config_memory_init_cow_set(config, true);
  api.wasmtime_config_memory_reservation_set(config, kMaxWasmMemoryBytes);
  api.wasmtime_config_native_unwind_info_set(config, false);
  api.wasmtime_config_wasm_threads_set(config, false);
  api.wasmtime_config_shared_memory_set(config, false);
  api.wasmtime_config_gc_support_set(config, false);
  api.wasmtime_config_wasm_component_model_set(config, false);
  api.wasmtime_config_concurrency_support_set(config, false);
  api.wasmtime_config_wasm_memory64_set(config, false);

  wasmtime_pooling_allocation_config_t* pool = api.wasmtime_pooling_allocation_config_new();
  api.wasmtime_pooling_allocation_config_total_core_instances_set(pool, kPooled);
  api.wasmtime_pooling_allocation_config_total_memories_set(pool, kPooled);
  api.wasmtime_pooling_allocation_config_total_tables_set(pool, kPooled);
  api.wasmtime_pooling_allocation_config_max_tables_per_module_set(pool, 1);
  api.wasmtime_pooling_allocation_config_total_gc_heaps_set(pool, 0);
  api.wasmtime_pooling_allocation_config_total_stacks_set(pool, 0);
  api.wasmtime_pooling_allocation_config_total_component_instances_set(pool, 0);
  api.wasmtime_pooling_allocation_config_table_elements_set(pool, kMaxWasmTableElements);
  api.wasmtime_pooling_allocation_config_max_memory_size_set(pool, kMaxWasmMemoryBytes);
  // Used slots keep a little: the next instance of the same module finds its first pages there. What is kept is written
  // at each end of an instance whether it was used or not, so that much more of it costs time and memory.
  api.wasmtime_pooling_allocation_config_max_unused_warm_slots_set(pool, 64);
  api.wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, 16 * 1024);
  api.wasmtime_pooling_allocation_config_table_keep_resident_set(pool, 4 * 1024);
  api.wasmtime_pooling_allocation_strategy_set(config, pool);
  api.wasmtime_pooling_allocation_config_delete(pool);
  return config;
}

}  // namespace

LoadedWasm::~LoadedWasm() {
  api_.wasmtime_instance_pre_delete(pre_);
  api_.wasmtime_module_delete(module_);
}

absl::StatusOr<std::shared_ptr<const LoadedWasm>> SharedWasm::get(
    const std::function<absl::StatusOr<std::string>()>& bytes) {
  used_.store(engine_.clock_.steady_now().time_since_epoch().count(), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    if (loaded_ != nullptr) return loaded_;
  }
  engine_.make_room_for_modules();
  const std::lock_guard lock(mutex_);
  if (loaded_ != nullptr) return loaded_;  // another call was faster
  absl::StatusOr<std::shared_ptr<const LoadedWasm>> loaded = engine_.load(hash_, bytes);
  if (!loaded.ok()) return loaded;
  loaded_ = *loaded;
  engine_.loaded_modules_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard all(engine_.shared_mutex_);
  engine_.in_memory_.insert(this);
  return loaded;
}

void SharedWasm::drop() {
  std::shared_ptr<const LoadedWasm> last;  // ends outside of the lock
  const std::lock_guard lock(mutex_);
  if (loaded_ == nullptr) return;
  last = std::move(loaded_);
  loaded_ = nullptr;
  engine_.loaded_modules_.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard all(engine_.shared_mutex_);
  engine_.in_memory_.erase(this);
}

void SharedWasm::unload() {
  if (replicas.load(std::memory_order_acquire) == 0) drop();
}

bool SharedWasm::loaded() const {
  const std::lock_guard lock(mutex_);
  return loaded_ != nullptr;
}

absl::StatusOr<std::unique_ptr<WasmEngine>> WasmEngine::create(const std::filesystem::path& library,
                                                               const std::filesystem::path& cache_folder,
                                                               const base::Clock& clock) {
  absl::StatusOr<std::filesystem::path> found = find_wasmtime(library);
  if (!found.ok()) return found.status();
  absl::StatusOr<std::unique_ptr<const WasmtimeApi>> api = open_wasmtime(*found);
  if (!api.ok()) return api.status();
  absl::StatusOr<WasmCache> cache =
      WasmCache::open(cache_folder, fmt::format("wasmtime {} {}", kWasmtimeVersion, kConfiguration));
  if (!cache.ok()) return cache.status();
  wasm_engine_t* engine = (*api)->wasm_engine_new_with_config(make_config(**api));
  if (engine == nullptr) {
    return absl::UnavailableError(fmt::format(
        "WebAssembly functions cannot run here: this machine does not reserve the address space of {} instances of {} "
        "GiB (nothing of it is used yet); look at ulimit -v and vm.overcommit_memory",
        kPooled, kMaxWasmMemoryBytes >> 30));
  }
  wasmtime_linker* linker = (*api)->wasmtime_linker_new(engine);
  if (absl::Status defined = define_wasm_imports(**api, linker); !defined.ok()) {
    (*api)->wasmtime_linker_delete(linker);
    (*api)->wasm_engine_delete(engine);
    return defined;
  }
  return std::unique_ptr<WasmEngine>(new WasmEngine(*std::move(api), engine, linker, *std::move(cache), clock));
}

WasmEngine::WasmEngine(std::unique_ptr<const WasmtimeApi> api, wasm_engine_t* engine, wasmtime_linker* linker,
                       WasmCache cache, const base::Clock& clock)
    : api_(std::move(api)), engine_(engine), linker_(linker), cache_(std::move(cache)), clock_(clock) {
  ticker_ = std::thread([this] { run(); });
}

WasmEngine::~WasmEngine() {
  {
    const std::lock_guard lock(tick_mutex_);
    ending_ = true;
  }
  tick_.notify_all();
  ticker_.join();
  api_->wasmtime_linker_delete(linker_);
  api_->wasm_engine_delete(engine_);
}

std::shared_ptr<SharedWasm> WasmEngine::share(const base::Sha256& hash) {
  const std::lock_guard lock(shared_mutex_);
  std::weak_ptr<SharedWasm>& known = shared_[hash];
  std::shared_ptr<SharedWasm> shared = known.lock();
  if (shared != nullptr) return shared;
  shared = std::shared_ptr<SharedWasm>(new SharedWasm(*this, hash), [this](SharedWasm* last) {
    last->drop();
    {
      const std::lock_guard lock(shared_mutex_);
      const auto entry = shared_.find(last->hash());
      if (entry != shared_.end() && entry->second.expired()) shared_.erase(entry);
    }
    delete last;
  });
  known = shared;
  return shared;
}

void WasmEngine::make_room_for_modules() {
  while (loaded_modules() >= kLoadedWasmModules) {
    std::shared_ptr<SharedWasm> oldest;  // ends outside of the lock: the last owner of one takes it too
    {
      const std::lock_guard lock(shared_mutex_);
      SharedWasm* first = nullptr;
      for (SharedWasm* one : in_memory_) {
        if (first == nullptr ||
            one->used_.load(std::memory_order_relaxed) < first->used_.load(std::memory_order_relaxed)) {
          first = one;
        }
      }
      if (first == nullptr) return;
      const auto known = shared_.find(first->hash());
      if (known != shared_.end()) oldest = known->second.lock();
    }
    if (oldest == nullptr) return;  // it goes just now
    oldest->drop();
  }
}

absl::StatusOr<std::shared_ptr<const LoadedWasm>> WasmEngine::link(wasmtime_module* module) {
  wasmtime_instance_pre* pre = nullptr;
  if (wasmtime_error* error = api_->wasmtime_linker_instantiate_pre(linker_, module, &pre); error != nullptr) {
    api_->wasmtime_module_delete(module);
    return absl::InvalidArgumentError(
        fmt::format("it asks for something that no function is given (wasi_snapshot_preview1 and orla are): {}",
                    take_message(*api_, error)));
  }
  return std::make_shared<const LoadedWasm>(*api_, module, pre);
}

absl::StatusOr<std::shared_ptr<const LoadedWasm>> WasmEngine::load(
    const base::Sha256& hash, const std::function<absl::StatusOr<std::string>()>& bytes) {
  wasmtime_module* module = nullptr;
  if (const absl::StatusOr<std::filesystem::path> cached = cache_.find(hash); cached.ok()) {
    wasmtime_error* error = api_->wasmtime_module_deserialize_file(engine_, cached->c_str(), &module);
    if (error == nullptr) return link(module);
    take_message(*api_, error);  // of another processor: compiled anew, which replaces it
  }
  const absl::StatusOr<std::string> wasm = bytes();
  if (!wasm.ok()) return wasm.status();
  if (base::sha256(*wasm) != hash) {
    return absl::FailedPreconditionError("the image is another file than at deployment; deploy the function again");
  }
  if (wasmtime_error* error = api_->wasmtime_module_new(engine_, reinterpret_cast<const std::uint8_t*>(wasm->data()),
                                                        wasm->size(), &module);
      error != nullptr) {
    return absl::InvalidArgumentError(fmt::format("not a WebAssembly module: {}", take_message(*api_, error)));
  }
  compiled_.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<std::shared_ptr<const LoadedWasm>> linked = link(module);
  if (!linked.ok()) return linked;
  wasm_byte_vec_t serialized{};
  if (wasmtime_error* error = api_->wasmtime_module_serialize(module, &serialized); error != nullptr) {
    return absl::InternalError(fmt::format("the compiled module cannot be kept: {}", take_message(*api_, error)));
  }
  const absl::Status kept = cache_.keep(hash, std::string_view(serialized.data, serialized.size));
  api_->wasm_byte_vec_delete(&serialized);
  if (!kept.ok()) return kept;
  // Out of the file its pages are shared with the page cache, and given back under pressure.
  wasmtime_module* mapped = nullptr;
  if (wasmtime_error* error = api_->wasmtime_module_deserialize_file(engine_, cache_.path_of(hash).c_str(), &mapped);
      error != nullptr) {
    return absl::InternalError(fmt::format("the compiled module cannot be loaded: {}", take_message(*api_, error)));
  }
  return link(mapped);
}

bool WasmEngine::take_room() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::uint32_t there = instances_.load(std::memory_order_relaxed);
    while (there < kPooled) {
      if (instances_.compare_exchange_weak(there, there + 1, std::memory_order_acq_rel)) return true;
    }
    if (attempt == 0) let_go_before(base::SteadyTime::max());
  }
  return false;
}

bool WasmEngine::keep_warm() {
  constexpr std::uint32_t kMost = std::min(kWarmWasmInstances, kPooled / 2);
  std::uint32_t there = warm_.load(std::memory_order_relaxed);
  while (there < kMost) {
    if (warm_.compare_exchange_weak(there, there + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void WasmEngine::add(WarmKeeper* keeper) {
  const std::lock_guard lock(keepers_mutex_);
  keepers_.insert(keeper);
}

void WasmEngine::remove(WarmKeeper* keeper) {
  const std::lock_guard lock(keepers_mutex_);
  keepers_.erase(keeper);
}

void WasmEngine::let_go_before(base::SteadyTime time) {
  const std::lock_guard lock(keepers_mutex_);
  for (WarmKeeper* keeper : keepers_) keeper->let_go_before(time);
}

void WasmEngine::enter() {
  running_.fetch_add(1, std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  {
    const std::lock_guard lock(tick_mutex_);
    asleep_.store(false, std::memory_order_seq_cst);
  }
  tick_.notify_all();
}

void WasmEngine::run() {
  int idle_ticks = 0;
  base::SteadyTime looked = clock_.steady_now();
  std::unique_lock lock(tick_mutex_);
  while (!ending_) {
    if (running_.load(std::memory_order_acquire) > 0) idle_ticks = 0;
    if (++idle_ticks < kIdleTicks) {
      tick_.wait_for(lock, kWasmTick);
      api_->wasmtime_engine_increment_epoch(engine_);
    } else {
      asleep_.store(true, std::memory_order_seq_cst);
      const auto woken = [&] {
        return ending_ || !asleep_.load(std::memory_order_seq_cst) || running_.load(std::memory_order_seq_cst) > 0;
      };
      if (warm_.load(std::memory_order_relaxed) > 0) {
        tick_.wait_for(lock, kLookInterval, woken);
      } else {
        tick_.wait(lock, woken);
      }
      if (asleep_.exchange(false))
        idle_ticks = running_.load() > 0 ? 0 : kIdleTicks;
      else
        idle_ticks = 0;
    }
    const base::SteadyTime now = clock_.steady_now();
    if (now - looked >= kLookInterval && warm_.load(std::memory_order_relaxed) > 0) {
      looked = now;
      lock.unlock();
      let_go_before(now - kWarmWasmTime);
      lock.lock();
    }
  }
}

}  // namespace orla::function
