// What a WebAssembly call costs inside the runtime, without HTTP: warm handlers, fresh commands, and modules that have
// to be loaded first. Runs the modules of tests/functions.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "function/wasm_api.h"
#include "function/wasm_runtime.h"

namespace orla::function {
namespace {

class Body final : public RequestBody {
 public:
  explicit Body(std::string_view bytes) : bytes_(bytes) {}
  std::optional<std::string_view> whole() const override { return bytes_; }
  absl::StatusOr<std::size_t> read(char*, std::size_t) override { return std::size_t{0}; }

 private:
  std::string_view bytes_;
};

class Sink final : public Response {
 public:
  absl::Status begin(int, Headers, std::optional<std::uint64_t>) override { return absl::OkStatus(); }
  absl::Status write(std::string_view piece) override {
    bytes += piece.size();
    return absl::OkStatus();
  }
  std::size_t bytes = 0;
};

std::filesystem::path built(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "functions" / name;
}

struct Bench {
  Bench() : place(*base::TemporaryDirectory::create("orla-wasm-bench")) {
    runtime = make_wasm_runtime({}, place.path() / "modules", clock);
  }
  std::unique_ptr<Module> load(const std::filesystem::path& image) {
    ModuleSpec spec;
    spec.spec.key.name = "bench";
    spec.image = image;
    return *runtime->load(spec);
  }
  std::unique_ptr<Instance> start(Module& module) {
    Cancellation cancellation;
    return *module.start("bench-1", clock.steady_now() + std::chrono::seconds(10), cancellation);
  }
  static void call(Instance& instance, std::string_view query, std::string_view bytes, benchmark::State& state) {
    CallHead head;
    head.query = query;
    Body body(bytes);
    Sink sink;
    Cancellation cancellation;
    const CallResult result = instance.call(Call{head, body, sink, cancellation});
    if (result.end != CallEnd::kDone || sink.bytes != bytes.size()) state.SkipWithError(result.message.c_str());
  }

  base::SystemClock clock;
  base::TemporaryDirectory place;
  std::unique_ptr<Runtime> runtime;
};

std::size_t resident_bytes() {
  const std::string statm = *base::read_file("/proc/self/statm", 4096);
  return std::stoull(statm.substr(statm.find(' '))) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Times each of many calls and reports percentiles.
class Percentiles {
 public:
  void add(base::SteadyTime before, base::SteadyTime after) { times_.push_back(after - before); }
  void report(benchmark::State& state) {
    if (times_.empty()) return;
    std::sort(times_.begin(), times_.end());
    const auto at = [&](std::size_t percent) {
      return static_cast<double>(times_[std::min(times_.size() - 1, times_.size() * percent / 100)].count()) / 1e3;
    };
    state.counters["p50_us"] = at(50);
    state.counters["p99_us"] = at(99);
  }

 private:
  std::vector<std::chrono::nanoseconds> times_;
};

void warm_handler(benchmark::State& state) {
  Bench bench;
  const auto module = bench.load(built("test_handler.wasm"));
  const auto instance = bench.start(*module);
  const std::string body(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) Bench::call(*instance, "echo", body, state);
}
BENCHMARK(warm_handler)->Arg(16)->Arg(1024)->Arg(65536)->UseRealTime();

void fresh_command(benchmark::State& state) {
  Bench bench;
  const auto module = bench.load(built("test_command.wasm"));
  const auto instance = bench.start(*module);
  Percentiles percentiles;
  for (auto _ : state) {
    const base::SteadyTime before = bench.clock.steady_now();
    Bench::call(*instance, "echo", "0123456789abcdef", state);
    percentiles.add(before, bench.clock.steady_now());
  }
  percentiles.report(state);
}
BENCHMARK(fresh_command)->UseRealTime();

// A replica is started and called. `before`: of each, not timed.
template <typename Before>
void time_starts(benchmark::State& state, Before before) {
  Bench bench;
  const auto module = bench.load(built("test_handler.wasm"));
  Percentiles percentiles;
  for (auto _ : state) {
    state.PauseTiming();
    before(*module);
    state.ResumeTiming();
    const base::SteadyTime began = bench.clock.steady_now();
    auto instance = bench.start(*module);
    Bench::call(*instance, "echo", "0123456789abcdef", state);
    percentiles.add(began, bench.clock.steady_now());
    state.PauseTiming();
    instance = nullptr;
    state.ResumeTiming();
  }
  percentiles.report(state);
}

// The module is loaded, nothing of the handler is.
void cold_handler(benchmark::State& state) {
  time_starts(state, [](Module&) {});
}
BENCHMARK(cold_handler)->UseRealTime();

// The module is not in memory either.
void from_disk(benchmark::State& state) {
  time_starts(state, [](Module& module) { module.idle(); });
}
BENCHMARK(from_disk)->UseRealTime();

void memory_of_warm_instances(benchmark::State& state) {
  constexpr int kInstances = 500;
  for (auto _ : state) {
    Bench bench;
    const auto module = bench.load(built("test_handler.wasm"));
    std::vector<std::unique_ptr<Instance>> instances;
    instances.push_back(bench.start(*module));
    const std::size_t before = resident_bytes();
    for (int i = 0; i < kInstances; ++i) instances.push_back(bench.start(*module));
    for (const auto& instance : instances) Bench::call(*instance, "echo", "0123456789abcdef", state);
    state.counters["bytes_per_instance"] = static_cast<double>(resident_bytes() - before) / kInstances;
  }
}
BENCHMARK(memory_of_warm_instances)->Iterations(1);

// Deployed, with one replica each that was started, and then left alone: functions of one module (0), or each of a
// module of its own (1).
void memory_of_idle_functions(benchmark::State& state) {
  const int functions = static_cast<int>(state.range(0));
  for (auto _ : state) {
    Bench bench;
    const std::string command = *base::read_file(built("test_command.wasm"), 1 << 24);
    const std::size_t before = resident_bytes();
    std::vector<std::unique_ptr<Module>> modules;
    std::vector<std::unique_ptr<Instance>> instances;
    for (int i = 0; i < functions; ++i) {
      std::filesystem::path image = built("test_command.wasm");
      if (state.range(1) == 1) {
        // A custom section makes it another module.
        const std::string number = std::to_string(i);
        std::string bytes = command + std::string("\0", 1) + static_cast<char>(number.size() + 2) + "\1x" + number;
        image = bench.place.path() / "image.wasm";
        if (!base::write_file_atomically(image, bytes).ok()) state.SkipWithError("cannot write");
      }
      modules.push_back(bench.load(image));
      instances.push_back(bench.start(*modules.back()));
    }
    state.counters["bytes_per_function"] = static_cast<double>(resident_bytes() - before) / functions;
    state.counters["resident_MB"] = static_cast<double>(resident_bytes()) / 1e6;
  }
}
BENCHMARK(memory_of_idle_functions)->Args({10'000, 0})->Args({300, 1})->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orla::function
