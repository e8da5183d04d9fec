// What the host itself costs per call, with a function that answers at once: processor time of the whole process,
// threads, hand-overs and all. One thread gives calls, as a gateway's does; so many are under way at a time.
#include <benchmark/benchmark.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cpu_time.h"
#include "base/files.h"
#include "function/host_fakes.h"

namespace orla::function {
namespace {

struct Silent final : Response {
  absl::Status begin(int, Headers, std::optional<std::uint64_t>) override { return absl::OkStatus(); }
  absl::Status write(std::string_view) override { return absl::OkStatus(); }
};

// Of this process.
double resident_bytes() {
  const auto pages = base::read_file("/proc/self/statm", 256);
  if (!pages.ok()) return 0;
  const std::string text = pages->substr(pages->find(' ') + 1);
  return 4096.0 * std::strtod(text.c_str(), nullptr);
}

void calls(benchmark::State& state) {
  const auto under_way = static_cast<std::size_t>(state.range(0));
  TestHost host;
  host.script("echo")->concurrency = 10'000;
  if (!host.deploy("echo").ok() || !host.ready("echo", 1)) return state.SkipWithError("not deployed");
  const base::SystemClock clock;
  const FunctionKey key = key_of("echo");
  NoBody body;
  Silent response;
  std::atomic<std::size_t> open{0};
  std::mutex mutex;
  std::condition_variable room;
  const auto cpu = base::process_cpu_time();
  std::uint64_t done = 0;
  double early = 0;
  for (auto _ : state) {
    if (open.load() >= under_way) {
      std::unique_lock lock(mutex);
      room.wait(lock, [&] { return open.load() <= under_way / 2; });
    }
    open.fetch_add(1);
    CallHead head;
    head.deadline = clock.steady_now() + std::chrono::seconds(60);
    host->invoke(key, std::make_shared<Invocation>(std::move(head), body, response), [&](const InvokeResult&) {
      if (open.fetch_sub(1) == under_way / 2 + 1) {
        const std::lock_guard lock(mutex);
        room.notify_one();
      }
    });
    ++done;
    if (done == 20'000) early = resident_bytes();
  }
  while (open.load() > 0) clock.sleep(std::chrono::microseconds(100));
  const double used = std::chrono::duration<double, std::micro>(base::process_cpu_time() - cpu).count();
  if (early > 0) state.counters["bytes_that_stay"] = resident_bytes() - early;
  state.counters["cpu_us_per_call"] = used / static_cast<double>(done);
}
BENCHMARK(calls)->Arg(1)->Arg(2)->Arg(16)->Arg(128)->UseRealTime();

// A function comes and goes, on disk too. What stays is seen from the tenth part of the pairs on.
void deploy_and_remove(benchmark::State& state) {
  TestHost host;
  std::int64_t done = 0;
  double early = 0;
  for (auto _ : state) {
    if (!host.deploy("echo").ok() || !host->remove(key_of("echo")).ok()) return state.SkipWithError("refused");
    if (++done == state.max_iterations / 10) early = resident_bytes();
  }
  state.counters["bytes_that_stay_per_pair"] =
      (resident_bytes() - early) / (0.9 * static_cast<double>(state.max_iterations));
}
BENCHMARK(deploy_and_remove)->Iterations(5'000)->UseRealTime()->Unit(benchmark::kMicrosecond);

// What a deployed function costs that has one replica and was never called, without its runtime.
void idle_functions(benchmark::State& state) {
  TestHost host;
  const double before = resident_bytes();
  for (auto _ : state) {
    for (int i = 0; i < state.range(0); ++i) {
      if (!host.deploy(fmt::format("echo-{}", i), {}, Deploy::kCreate, "echo").ok()) {
        return state.SkipWithError("refused");
      }
    }
  }
  state.counters["bytes_per_function"] = (resident_bytes() - before) / static_cast<double>(state.range(0));
}
BENCHMARK(idle_functions)->Arg(10'000)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

// From none: `calls` at once, one start that takes 400 ms.
void calls_at_zero(benchmark::State& state) {
  TestHost host;
  const auto script = host.script("echo");
  script->start_takes = std::chrono::milliseconds(400);
  script->concurrency = 1'000;
  if (!host.deploy("echo").ok() || !host.ready("echo", 1)) return state.SkipWithError("not deployed");
  int answered = 0;
  int starts = 0;
  for (auto _ : state) {
    if (!host->scale(key_of("echo"), 0).ok() || !eventually([&] { return script->living == 0; })) {
      return state.SkipWithError("not at zero");
    }
    script->starts = 0;
    std::vector<std::unique_ptr<Caller>> callers;
    for (int i = 0; i < 200; ++i) {
      callers.push_back(std::make_unique<Caller>());
      callers.back()->begin(*host, "echo");
    }
    for (auto& caller : callers) answered += caller->result().end == InvokeEnd::kAnswered;
    starts += script->starts;
  }
  state.counters["answered"] = answered;
  state.counters["starts"] = starts;
}
BENCHMARK(calls_at_zero)->Iterations(20)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orla::function
