// What the host itself costs per call, with a function that answers at once: processor time of the whole process,
// threads, hand-overs and all. One thread gives calls, as a gateway's does; so many are under way at a time.
#include <benchmark/benchmark.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cpu_time.h"
#include "function/host_fakes.h"

namespace orla::function {
namespace {

struct Silent final : Response {
  absl::Status begin(int, Headers, std::optional<std::uint64_t>) override { return absl::OkStatus(); }
  absl::Status write(std::string_view) override { return absl::OkStatus(); }
};

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
  }
  while (open.load() > 0) clock.sleep(std::chrono::microseconds(100));
  const double used = std::chrono::duration<double, std::micro>(base::process_cpu_time() - cpu).count();
  state.counters["cpu_us_per_call"] = used / static_cast<double>(done);
}
BENCHMARK(calls)->Arg(1)->Arg(2)->Arg(16)->Arg(128)->UseRealTime();

}  // namespace
}  // namespace orla::function
