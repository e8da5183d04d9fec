// wasmtime's engine, configured once for all functions: pooled instances with copy-on-write memories, a clock tick that
// running code looks at, and compiled modules that are shared, cached on disk, and given back when nobody calls them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "function/wasm_api.h"
#include "function/wasm_cache.h"

namespace orla::function {

// Instances in memory at a time, of all functions: running ones and warm ones. More than HostLimits::running_calls, so
// that warm ones never keep a call waiting.
inline constexpr std::uint32_t kWasmInstances = 2048;
inline constexpr std::uint32_t kWarmWasmInstances = 768;          // of these, kept without a call at most
inline constexpr std::uint64_t kMaxWasmMemoryBytes = 4ULL << 30;  // of one instance, whatever its limit says
inline constexpr std::size_t kMaxWasmTableElements = 20'000;
inline constexpr std::size_t kWasmStackBytes = 512 * 1024;  // of the calling thread's stack
inline constexpr std::size_t kMaxWasmModuleBytes = 256 << 20;
inline constexpr std::size_t kLoadedWasmModules = 256;  // in memory at a time; more are loaded again when called
inline constexpr std::chrono::milliseconds kWasmTick{1};
inline constexpr std::chrono::seconds kWarmWasmTime{10};  // a warm instance without a call is let go

// A module that code can be started from.
class LoadedWasm {
 public:
  LoadedWasm(const WasmtimeApi& api, wasmtime_module* module, wasmtime_instance_pre* pre)
      : api_(api), module_(module), pre_(pre) {}
  ~LoadedWasm();
  LoadedWasm(const LoadedWasm&) = delete;
  LoadedWasm& operator=(const LoadedWasm&) = delete;

  const wasmtime_module* module() const { return module_; }
  const wasmtime_instance_pre* pre() const { return pre_; }

 private:
  const WasmtimeApi& api_;
  wasmtime_module* module_;
  wasmtime_instance_pre* pre_;
};

// What keeps warm instances: asked now and then to let old ones go.
class WarmKeeper {
 public:
  virtual ~WarmKeeper() = default;
  virtual void let_go_before(base::SteadyTime time) = 0;
};

class WasmEngine;

// One module's bytes, by their hash; functions with equal images share it. Thread-safe.
class SharedWasm {
 public:
  SharedWasm(WasmEngine& engine, const base::Sha256& hash) : engine_(engine), hash_(hash) {}

  // Loaded; from the disk when it is not in memory, else compiled out of `bytes()`.
  absl::StatusOr<std::shared_ptr<const LoadedWasm>> get(const std::function<absl::StatusOr<std::string>()>& bytes);
  // Gives the memory back, unless replicas of it are there.
  void unload();
  bool loaded() const;
  const base::Sha256& hash() const { return hash_; }

  std::atomic<std::int64_t> replicas{0};

 private:
  friend class WasmEngine;
  void drop();

  WasmEngine& engine_;
  const base::Sha256 hash_;
  mutable std::mutex mutex_;
  std::shared_ptr<const LoadedWasm> loaded_;
  std::atomic<std::int64_t> used_{0};  // steady nanoseconds
};

// Thread-safe. Outlives everything made of it.
class WasmEngine {
 public:
  // UNAVAILABLE: no library, or the machine does not give the address space.
  static absl::StatusOr<std::unique_ptr<WasmEngine>> create(const std::filesystem::path& library,
                                                            const std::filesystem::path& cache_folder,
                                                            const base::Clock& clock);
  ~WasmEngine();
  WasmEngine(const WasmEngine&) = delete;
  WasmEngine& operator=(const WasmEngine&) = delete;

  const WasmtimeApi& api() const { return *api_; }
  wasm_engine_t* raw() const { return engine_; }
  const base::Clock& clock() const { return clock_; }
  const WasmCache& cache() const { return cache_; }

  std::shared_ptr<SharedWasm> share(const base::Sha256& hash);
  std::size_t loaded_modules() const { return loaded_modules_.load(std::memory_order_relaxed); }
  // Modules that were compiled since the start, not taken from the disk.
  std::uint64_t compiled_modules() const { return compiled_.load(std::memory_order_relaxed); }

  // The clock ticks while one of these lives.
  class Running {
   public:
    explicit Running(WasmEngine& engine) : engine_(engine) { engine.enter(); }
    ~Running() { engine_.running_.fetch_sub(1, std::memory_order_acq_rel); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    WasmEngine& engine_;
  };

  // Room for one more instance; warm ones are let go for it. False: kWasmInstances are there.
  bool take_room();
  void give_room() { instances_.fetch_sub(1, std::memory_order_acq_rel); }
  std::uint32_t instances() const { return instances_.load(std::memory_order_relaxed); }
  // Whether one more may be kept warm; says so for it.
  bool keep_warm();
  void not_warm() { warm_.fetch_sub(1, std::memory_order_acq_rel); }

  void add(WarmKeeper* keeper);
  // Afterwards it is asked nothing any more.
  void remove(WarmKeeper* keeper);

 private:
  friend class SharedWasm;
  WasmEngine(std::unique_ptr<const WasmtimeApi> api, wasm_engine_t* engine, wasmtime_linker* linker, WasmCache cache,
             const base::Clock& clock);
  void enter();
  void run();
  void let_go_before(base::SteadyTime time);
  void make_room_for_modules();
  absl::StatusOr<std::shared_ptr<const LoadedWasm>> load(const base::Sha256& hash,
                                                         const std::function<absl::StatusOr<std::string>()>& bytes);
  absl::StatusOr<std::shared_ptr<const LoadedWasm>> link(wasmtime_module* module);

  const std::unique_ptr<const WasmtimeApi> api_;
  wasm_engine_t* const engine_;
  wasmtime_linker* const linker_;
  const WasmCache cache_;
  const base::Clock& clock_;

  std::atomic<std::uint32_t> instances_{0};
  std::atomic<std::uint32_t> warm_{0};
  std::atomic<std::size_t> loaded_modules_{0};
  std::atomic<std::uint64_t> compiled_{0};

  std::mutex shared_mutex_;
  std::map<base::Sha256, std::weak_ptr<SharedWasm>> shared_;
  std::set<SharedWasm*> in_memory_;  // those that are loaded; a pointer is taken out before its object goes

  std::mutex keepers_mutex_;
  std::set<WarmKeeper*> keepers_;

  std::atomic<std::uint32_t> running_{0};
  std::atomic<bool> asleep_{false};
  std::mutex tick_mutex_;
  std::condition_variable tick_;
  bool ending_ = false;
  std::thread ticker_;
};

}  // namespace orla::function
