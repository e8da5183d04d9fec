// orla bench functions: what calls of functions cost behind the gateway of a real node, cold and warm, in each runtime.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/absl_view.h"
#include "base/files.h"
#include "base/sha256.h"
#include "bench.h"
#include "bench_functions_load.h"
#include "bench_functions_node.h"

namespace orla::apps {

namespace {

constexpr std::size_t kImageBytes = 64 << 20;
constexpr std::chrono::milliseconds kWarmUp{300};
constexpr int kDeploys = 9;
constexpr std::uint32_t kInstances = 200;
constexpr std::size_t kDeployers = 4;            // threads that deploy the idle functions
constexpr std::size_t kIdleCalled = 20;          // of these, called at the end
constexpr std::chrono::seconds kModuleIdle{31};  // without replicas; then a module is given back
constexpr char kLeftOut[] =
    "process in mode http: no small HTTP server comes with Orla, and one in Python would be measured instead of Orla";
constexpr char kCounted[] =
    "calls through a node's gateway over loopback, HTTP/1.1 keep-alive, POST, each answer a 200 with the body that was "
    "sent (each body is another one); the client is another process. CPU: user and system time of the node's process "
    "and of the processes it has waited for. cold: the function has no replica, from the request to its answer; its "
    "module is loaded for another function (cold) or has been given back and comes from the disk cache (cold_disk). "
    "warm: closed loop at warm_calls_per_s, half of what was reached at saturation; medians of the runs. bytes: "
    "resident memory of the node's process by replica, each of which was called";

struct Options {
  std::string images;     // folder; empty: beside this program
  std::string runtime;    // only that row; empty: all
  std::string wasm_echo;  // a file in place of echo.wasm
  std::size_t runs = 3;
  std::size_t connections = 64;
  std::size_t body_bytes = 16;
  std::size_t cold = 500;
  std::size_t disk = 300;
  std::size_t idle = 10'000;
  int rest_seconds = 12;  // without calls; warm instances are given back meanwhile
};

// A row of the report.
struct Subject {
  const char* runtime;
  const char* file;  // among the images; null: compiled into Orla
  FunctionImage image;
  bool is_module;  // WebAssembly
};
const Subject kSubjects[] = {{"wasm handler", "echo.wasm", {"echo.wasm", ""}, true},
                             {"wasm command", "echo-command.wasm", {"echo-command.wasm", ""}, true},
                             {"native", nullptr, {"native/echo", ""}, false},
                             {"process serializing", "echo-process", {"echo-process", "serializing"}, false}};

std::string id_of(const Subject& subject) {
  std::string id = subject.runtime;
  std::replace(id.begin(), id.end(), ' ', '-');
  return id;
}

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

class Run {
 public:
  Run(const Options& o, double seconds, std::vector<std::pair<const Subject*, std::string>> subjects)
      : o_(o), seconds_(seconds), subjects_(std::move(subjects)) {}

  absl::StatusOr<BenchReport> all() {
    absl::StatusOr<std::unique_ptr<FunctionsNode>> node = FunctionsNode::start();
    if (!node.ok()) return node.status();
    node_ = *std::move(node);
    for (const auto& [subject, bytes] : subjects_) {
      if (subject->file == nullptr) continue;
      if (absl::Status added = node_->add_image(subject->file, bytes); !added.ok()) return added;
    }
    for (const auto& [subject, bytes] : subjects_) {
      if (absl::Status done = prepare_disk(*subject, bytes); !done.ok()) return done;
    }
    const base::SteadyTime idle_since = clock_.steady_now();
    std::vector<BenchReport> rows;
    for (const auto& [subject, bytes] : subjects_) {
      BenchReport& row = rows.emplace_back();
      if (absl::Status done = measure(*subject, bytes, row); !done.ok()) return done;
    }
    if (o_.disk > 0) {
      const auto waited = clock_.steady_now() - idle_since;
      if (absl::Status lives = node_->pause(kModuleIdle - waited); !lives.ok()) return lives;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& [subject, bytes] = subjects_[i];
      if (absl::Status done = cold_from_disk(*subject, bytes, rows[i]); !done.ok()) return done;
    }
    if (absl::Status stopped = node_->stop(); !stopped.ok()) return stopped;
    return BenchReport(rows);
  }

  // Many functions that nobody calls, of one module or each of its own.
  absl::StatusOr<BenchReport> idle(const std::string& module, bool distinct) {
    absl::StatusOr<std::unique_ptr<FunctionsNode>> node = FunctionsNode::start();
    if (!node.ok()) return node.status();
    node_ = *std::move(node);
    if (absl::Status added = node_->add_image("echo.wasm", module); !added.ok()) return added;
    const absl::StatusOr<std::uint64_t> before = node_->resident_bytes();
    if (!before.ok()) return before.status();
    const base::SteadyTime began = clock_.steady_now();
    if (absl::Status deployed = deploy_idle(module, distinct); !deployed.ok()) return deployed;
    if (absl::Status ready = node_->wait_for_all(o_.idle); !ready.ok()) return ready;
    const double deployed_s = milliseconds(clock_.steady_now() - began) / 1e3;
    if (absl::Status lives = node_->pause(std::chrono::seconds(o_.rest_seconds)); !lives.ok()) return lives;
    const absl::StatusOr<std::uint64_t> after = node_->resident_bytes();
    if (!after.ok()) return after.status();
    const auto load = EchoLoad::connect(node_->gateway(), "idle-0", 1, o_.body_bytes);
    if (!load.ok()) return load.status();
    for (std::size_t i = 0; i < std::min(kIdleCalled, o_.idle); ++i) {
      const auto time = (*load)->call(fmt::format("idle-{}", i * o_.idle / std::min(kIdleCalled, o_.idle)));
      if (!time.ok()) return time.status();
    }
    if (absl::Status stopped = node_->stop(); !stopped.ok()) return stopped;
    BenchReport row;
    row["functions"] = o_.idle;
    row["modules"] = distinct ? o_.idle : 1;
    row["resident_bytes"] = *after;
    row["bytes_per_function"] =
        (static_cast<double>(*after) - static_cast<double>(*before)) / static_cast<double>(o_.idle);
    row["deploy_seconds"] = deployed_s;
    return row;
  }

 private:
  // Functions of a module each, without replicas.
  absl::Status prepare_disk(const Subject& subject, const std::string& bytes) {
    if (!subject.is_module) return absl::OkStatus();
    for (std::size_t i = 0; i < o_.disk; ++i) {
      const std::string name = fmt::format("disk-{}-{}", id_of(subject), i);
      if (absl::Status added = node_->add_image(name, other_module(bytes, i)); !added.ok()) return added;
      if (absl::Status deployed = node_->deploy(name, {name, ""}); !deployed.ok()) return deployed;
      if (absl::Status scaled = node_->scale(name, 0); !scaled.ok()) return scaled;
    }
    return absl::OkStatus();
  }

  absl::Status cold_from_disk(const Subject& subject, const std::string& bytes, BenchReport& row) {
    if (!subject.is_module || o_.disk == 0) return absl::OkStatus();
    const auto load = EchoLoad::connect(node_->gateway(), id_of(subject), 1, o_.body_bytes);
    if (!load.ok()) return load.status();
    std::vector<std::chrono::nanoseconds> times;
    for (std::size_t i = 0; i < o_.disk; ++i) {
      const absl::StatusOr<bool> mapped = node_->has_mapped(base::hex(base::sha256(other_module(bytes, i))));
      if (!mapped.ok()) return mapped.status();
      if (*mapped)
        return absl::InternalError(fmt::format("{}: a module without replicas is not given back", subject.runtime));
      const auto time = (*load)->call(fmt::format("disk-{}-{}", id_of(subject), i));
      if (!time.ok()) return time.status();
      times.push_back(*time);
    }
    row["cold_disk_p50_us"] = percentile_us(times, 0.5);
    row["cold_disk_p99_us"] = percentile_us(times, 0.99);
    return absl::OkStatus();
  }

  absl::Status measure(const Subject& subject, const std::string& bytes, BenchReport& row) {
    row["runtime"] = subject.runtime;
    row["image"] = subject.image.image;
    for (const char* field : {"cold_p50_us", "cold_p99_us", "cold_disk_p50_us", "cold_disk_p99_us"})
      row[field] = nullptr;
    const std::string name = id_of(subject);
    // It stays, so that the module does.
    if (absl::Status deployed = node_->deploy(name, subject.image); !deployed.ok()) return deployed;
    if (absl::Status ready = node_->wait_for(name, 1); !ready.ok()) return ready;
    for (const auto& step : {&Run::warm, &Run::cold, &Run::memory}) {
      if (absl::Status done = (this->*step)(subject, name, row); !done.ok()) return done;
    }
    return deploys(subject, bytes, row);
  }

  absl::Status warm(const Subject&, const std::string& name, BenchReport& row) {
    const auto load = EchoLoad::connect(node_->gateway(), name, o_.connections, o_.body_bytes);
    if (!load.ok()) return load.status();
    const std::chrono::nanoseconds each(static_cast<std::int64_t>(seconds_ / static_cast<double>(o_.runs) * 1e9));
    if (const auto warmed = (*load)->run(kWarmUp, std::nullopt); !warmed.ok()) return warmed.status();
    std::vector<double> rates;
    std::vector<double> by_cpu;
    std::vector<double> p50;
    std::vector<double> p99;
    std::vector<double> half;
    for (std::size_t i = 0; i < o_.runs; ++i) {
      const absl::StatusOr<double> before = node_->cpu_seconds();
      const auto full = (*load)->run(each, std::nullopt);
      const absl::StatusOr<double> after = node_->cpu_seconds();
      for (const absl::Status& status : {before.status(), full.status(), after.status()}) {
        if (!status.ok()) return status;
      }
      rates.push_back(static_cast<double>(full->calls) / full->seconds);
      by_cpu.push_back(static_cast<double>(full->calls) / std::max(*after - *before, 1e-9));
      auto slow = (*load)->run(each, rates.back() / 2);
      if (!slow.ok()) return slow.status();
      half.push_back(static_cast<double>(slow->calls) / slow->seconds);
      p50.push_back(percentile_us(slow->times, 0.5));
      p99.push_back(percentile_us(slow->times, 0.99));
    }
    row["warm_p50_us"] = median(p50);
    row["warm_p99_us"] = median(p99);
    row["warm_calls_per_s"] = median(half);
    row["rps"] = median(rates);
    row["rps_per_cpu_s"] = median(by_cpu);
    return absl::OkStatus();
  }

  absl::Status cold(const Subject& subject, const std::string& name, BenchReport& row) {
    const std::string cold = "cold-" + name;
    if (absl::Status deployed = node_->deploy(cold, subject.image); !deployed.ok()) return deployed;
    const auto load = EchoLoad::connect(node_->gateway(), cold, 1, o_.body_bytes);
    if (!load.ok()) return load.status();
    std::vector<std::chrono::nanoseconds> times;
    for (std::size_t i = 0; i < o_.cold; ++i) {
      if (absl::Status scaled = node_->scale(cold, 0); !scaled.ok()) return scaled;
      const auto time = (*load)->call();
      if (!time.ok()) return time.status();
      times.push_back(*time);
    }
    row["cold_p50_us"] = percentile_us(times, 0.5);
    row["cold_p99_us"] = percentile_us(times, 0.99);
    return node_->remove(cold);
  }

  absl::Status memory(const Subject&, const std::string& name, BenchReport& row) {
    const auto load = EchoLoad::connect(node_->gateway(), name, o_.connections, o_.body_bytes);
    if (!load.ok()) return load.status();
    if (const auto called = (*load)->run(kWarmUp, std::nullopt); !called.ok()) return called.status();
    const absl::StatusOr<std::uint64_t> before = node_->resident_bytes();
    if (absl::Status scaled = node_->scale(name, 1 + kInstances); !scaled.ok()) return scaled;
    if (const auto called = (*load)->run(kWarmUp, std::nullopt); !called.ok()) return called.status();
    const absl::StatusOr<std::uint64_t> after = node_->resident_bytes();
    if (!before.ok() || !after.ok()) return before.ok() ? after.status() : before.status();
    row["bytes_per_instance"] = (static_cast<double>(*after) - static_cast<double>(*before)) / kInstances;
    return node_->scale(name, 1);
  }

  // From the request to deploy to the first replica that is ready; of a module that was never seen.
  absl::Status deploys(const Subject& subject, const std::string& bytes, BenchReport& row) {
    std::vector<double> times;
    for (int i = 0; i < kDeploys; ++i) {
      const std::string name = fmt::format("deploy-{}-{}", id_of(subject), i);
      FunctionImage image = subject.image;
      if (subject.is_module) {
        image.image = name;
        const absl::Status added = node_->add_image(name, other_module(bytes, o_.disk + static_cast<std::size_t>(i)));
        if (!added.ok()) return added;
      }
      const base::SteadyTime began = clock_.steady_now();
      if (absl::Status deployed = node_->deploy(name, image); !deployed.ok()) return deployed;
      if (absl::Status ready = node_->wait_for(name, 1); !ready.ok()) return ready;
      times.push_back(milliseconds(clock_.steady_now() - began));
      if (absl::Status removed = node_->remove(name); !removed.ok()) return removed;
    }
    row["deploy_ms"] = median(times);
    return absl::OkStatus();
  }

  absl::Status deploy_idle(const std::string& module, bool distinct) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    absl::Status failed;
    const auto work = [&] {
      for (std::size_t i = next++; i < o_.idle; i = next++) {
        const std::string name = fmt::format("idle-{}", i);
        absl::Status done;
        if (distinct) done = node_->add_image(name, other_module(module, i));
        if (done.ok()) done = node_->deploy(name, {distinct ? name : "echo.wasm", ""});
        if (done.ok()) continue;
        const std::lock_guard lock(mutex);
        failed.Update(done);
        next = o_.idle;
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kDeployers; ++i) threads.emplace_back(work);
    }
    return failed;
  }

  const Options& o_;
  const double seconds_;
  const std::vector<std::pair<const Subject*, std::string>> subjects_;
  const base::SystemClock clock_;
  std::unique_ptr<FunctionsNode> node_;
};

// Where the build puts modules: beside the folder of this program.
absl::StatusOr<std::filesystem::path> images_of(const Options& o) {
  if (!o.images.empty()) return std::filesystem::path(o.images);
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError("cannot find this program");
  return program.parent_path().parent_path() / "functions";
}

absl::StatusOr<BenchReport> run(const Options& o, const BenchOptions& options) {
  const absl::StatusOr<std::filesystem::path> images = images_of(o);
  if (!images.ok()) return images.status();
  std::vector<std::pair<const Subject*, std::string>> subjects;
  for (const Subject& subject : kSubjects) {
    if (!o.runtime.empty() && o.runtime != subject.runtime) continue;
    std::string bytes;
    if (subject.file != nullptr) {
      const bool replaced = !o.wasm_echo.empty() && std::string_view(subject.file) == "echo.wasm";
      absl::StatusOr<std::string> read =
          base::read_file(replaced ? std::filesystem::path(o.wasm_echo) : *images / subject.file, kImageBytes);
      if (!read.ok()) {
        return absl::InvalidArgumentError(
            fmt::format("{}; expected the functions that the build makes (--images)", base::message(read.status())));
      }
      bytes = *std::move(read);
    }
    subjects.emplace_back(&subject, std::move(bytes));
  }
  BenchReport report;
  report["runs"] = o.runs;
  report["connections"] = o.connections;
  report["body_bytes"] = o.body_bytes;
  report["cold_calls"] = o.cold;
  report["cold_disk_calls"] = o.disk;
  report["cores"] = std::thread::hardware_concurrency();
  std::string problem;
  // A wrong answer is a result; everything else is an error.
  const auto take = [&](const char* field, absl::StatusOr<BenchReport> found) {
    if (absl::IsDataLoss(found.status())) {
      problem = base::message(found.status());
    } else if (!found.ok()) {
      return found.status();
    } else {
      report[field] = *std::move(found);
    }
    return absl::OkStatus();
  };
  Run run(o, options.seconds, subjects);
  if (absl::Status taken = take("runtimes", run.all()); !taken.ok()) return taken;
  if (o.idle > 0 && problem.empty()) {
    const absl::StatusOr<std::string> module = base::read_file(*images / "echo.wasm", kImageBytes);
    if (!module.ok()) return module.status();
    BenchReport idle = BenchReport::array();
    for (const bool distinct : {false, true}) {
      absl::StatusOr<BenchReport> row = run.idle(*module, distinct);
      if (absl::Status taken = take("idle", row); !taken.ok()) return taken;
      if (row.ok()) idle.push_back(*row);
    }
    report["idle"] = std::move(idle);
  }
  report["left_out"] = kLeftOut;
  conclude(report, problem, kCounted);
  return report;
}

}  // namespace

RunBench add_functions_bench(CLI::App& command) {
  auto own = std::make_shared<Options>();  // with the runner
  command.add_option("--runs", own->runs, "At saturation, and at half of it; each takes that part of --seconds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--connections", own->connections, "Kept alive, a call at a time each")
      ->check(CLI::Range(1, 4000))
      ->capture_default_str();
  command.add_option("--body", own->body_bytes, "Bytes of each call")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str();
  command.add_option("--cold", own->cold, "Calls without a replica, of each runtime")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command.add_option("--disk", own->disk, "Calls whose module is on disk only; 0 leaves them out, and half a minute")
      ->check(CLI::Range(0, 9'000))
      ->capture_default_str();
  command.add_option("--idle", own->idle, "Functions that nobody calls; 0 leaves them out")
      ->check(CLI::Range(0, 29'000))
      ->capture_default_str();
  command.add_option("--rest", own->rest_seconds, "Seconds that they rest before their memory is read")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  command.add_option("--runtime", own->runtime, "Only this one")
      ->check(CLI::IsMember({"wasm handler", "wasm command", "native", "process serializing"}));
  command.add_option("--images", own->images, "Folder with the functions that the build makes");
  command.add_option("--echo", own->wasm_echo, "A WebAssembly handler of your own in place of echo.wasm")
      ->check(CLI::ExistingFile);
  return [own](const BenchOptions& options) { return run(*own, options); };
}

}  // namespace orla::apps
