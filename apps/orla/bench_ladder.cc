// orla bench ladder: measurements a second through four layers, sensors to cloud, all as separate processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/absl_view.h"
#include "base/clock.h"
#include "base/cpu_time.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/spawner.h"
#include "bench.h"
#include "bench_ladder_edge.h"
#include "bench_ladder_load.h"
#include "node/http_client.h"
#include "node/sample_format.h"
#include "node/state_directory.h"
#include "store/cloud_reader.h"
#include "store/cloud_schema.h"
#include "store/sample_reader.h"

namespace orla::apps {

namespace {

constexpr std::chrono::milliseconds kPoll{20};
constexpr std::chrono::minutes kReadyPatience{10};
constexpr std::chrono::minutes kDrainPatience{10};
constexpr std::chrono::seconds kEndPatience{30};
constexpr std::uint64_t kEstimated = 1'000'000;  // measurements from which the size of a frame is estimated
constexpr char kCountedRaw[] =
    "; and every measurement sent to the cloud as well, and committed there in compressed blocks per plug and hour";
constexpr char kCounted[] =
    "measurements (kind a, raw): each decoded from a packed frame in an edge's memory, keyed by plug, accepted by "
    "event "
    "time, folded into count, sum, sum of squares, min, max, first and last by plug and window, sent over gRPC to an "
    "aggregator and to the cloud, and committed there; from the first frame's delivery to the last commit";

struct Options {
  LadderLoad load{1, 2125, 2, 1000, LadderOrder::kSorted, 0};
  std::uint32_t aggregators = 1;
  std::uint64_t frames_mib = 256;  // of each edge
  std::int64_t window_minutes = 60;
  std::string durability = "disk";
  bool raw = false;  // every sample is kept at the cloud
};

// As many seconds as fill the frames of an edge.
absl::Status choose_length(Options& o) {
  LadderLoad sample = o.load;
  const auto plugs = static_cast<std::int64_t>(edge_plugs(o.load, 0).size());
  const std::int64_t run = o.load.run_length();
  sample.seconds = (static_cast<std::int64_t>(kEstimated) / plugs / run + 2) * run;
  const absl::StatusOr<LadderFrames> frames = ladder_frames(sample, 0, kEstimated);
  if (!frames.ok()) return frames.status();
  const double bytes_each = static_cast<double>(frames->bytes.size()) / static_cast<double>(frames->measurements);
  const double seconds = static_cast<double>(o.frames_mib << 20) / bytes_each / static_cast<double>(plugs);
  o.load.seconds = (static_cast<std::int64_t>(seconds) / run + 1) * run;
  return absl::OkStatus();
}

std::string fleet_text(const Options& o) {
  std::string text = fmt::format(R"([fleet]
name = "ladder"
zone = "UTC"
[[site]]
name = "here"
[[metric]]
name = "load"
unit = "W"
decimals = 3
disorder = "0s"
allowed_lateness = "1h"
[[rollup]]
name = "plug_load"
metric = "load"
by = ["plug"]
slice = "{0}m"
windows = ["{0}m"]
keep = "{1}"
[[node]]
name = "cloud"
layer = "cloud"
site = "here"
listen = "127.0.0.1:0"
http = "127.0.0.1:0"
)",
                                 o.window_minutes, o.raw ? "raw" : "partials");
  std::string group;
  for (std::uint32_t a = 0; a < o.aggregators; ++a) {
    text += fmt::format(
        "[[node]]\nname = \"agg-{}\"\nlayer = \"aggregator\"\nsite = \"here\"\nlisten = \"127.0.0.1:0\"\nhttp = "
        "\"127.0.0.1:0\"\nparents = [\"cloud\"]\n",
        a);
    group += fmt::format("{}\"agg-{}\"", a == 0 ? "" : ", ", a);
  }
  for (std::uint32_t e = 0; e < o.load.edges; ++e) {
    text += fmt::format(
        "[[node]]\nname = \"edge-{0}\"\nlayer = \"edge\"\nsite = \"here\"\nhttp = \"127.0.0.1:0\"\ndurability = "
        "\"{1}\"\nparents = [{2}]\n[[input]]\nnode = \"edge-{0}\"\nkind = \"csv\"\npath = \"frames\"\nschema = "
        "\"debs2014\"\n",
        e, o.durability, o.aggregators == 0 ? "\"cloud\"" : "[" + group + "]");
  }
  return text;
}

// CPU time of each layer's processes while they delivered.
struct Used {
  double edges = 0;
  double aggregators = 0;
  double cloud = 0;
};

class Ladder {
 public:
  Ladder(const Options& options, std::filesystem::path directory)
      : o_(options), directory_(std::move(directory)), state_(directory_ / "state") {}

  absl::Status start() {
    if (absl::Status s = base::write_file_atomically(fleet(), fleet_text(o_)); !s.ok()) return s;
    std::error_code error;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    if (error) return absl::InternalError("cannot find this program");
    if (absl::Status s = spawn({program, "node", fleet(), "cloud"}); !s.ok()) return s;
    for (std::uint32_t a = 0; a < o_.aggregators; ++a)
      if (absl::Status s = spawn({program, "node", fleet(), fmt::format("agg-{}", a)}); !s.ok()) return s;
    const std::vector<std::string> load = to_arguments(o_.load);
    for (std::uint32_t e = 0; e < o_.load.edges; ++e) {
      if (mkfifo(go(e).c_str(), 0600) != 0) return base::errno_status(errno, "making " + go(e));
      std::vector<std::string> argv{program, "bench", "ladder-edge", fleet(), edge(e), "--edge", fmt::format("{}", e),
                                    "--go",  go(e)};
      argv.insert(argv.end(), load.begin(), load.end());
      if (absl::Status s = spawn(argv); !s.ok()) return s;
    }
    return wait_ready();
  }

  // From the first delivery to the last commit.
  absl::Status deliver() {
    const std::vector<double> before = cpu_seconds();
    for (const base::FileDescriptor& pipe : pipes_)
      if (write(pipe.get(), "g", 1) != 1) return base::errno_status(errno, "starting an edge");
    const base::SteadyTime deadline = clock_.steady_now() + kDrainPatience;
    for (std::uint32_t e = 0; e < o_.load.edges;) {
      const absl::StatusOr<bool> drained = is_drained(e);
      if (!drained.ok()) return drained.status();
      if (*drained) {
        ++e;
        continue;
      }
      if (clock_.steady_now() > deadline) return absl::DeadlineExceededError(edge(e) + " does not drain");
      if (absl::Status s = check_children(); !s.ok()) return s;
      children_.front()->wait(kPoll);
    }
    const std::vector<double> after = cpu_seconds();
    for (std::size_t c = 0; c < children_.size(); ++c) {
      double& layer = c == 0 ? used_.cloud : c <= o_.aggregators ? used_.aggregators : used_.edges;
      layer += after[c] - before[c];
    }
    return absl::OkStatus();
  }

  absl::Status stop() {
    for (const auto& child : children_) child->terminate();
    for (const auto& child : children_) {
      const std::optional<base::ExitStatus> end = child->wait(kEndPatience);
      if (!end || !end->success())
        return absl::InternalError(
            fmt::format("a node ended with {}: see {}", end ? to_string(*end) : "nothing", log()));
    }
    return absl::OkStatus();
  }

  // What differs from the truth, in words; empty when nothing does.
  absl::StatusOr<std::string> difference() const {
    const auto reader = store::CloudReader::open(cloud_file());
    if (!reader.ok()) return reader.status();
    std::vector<std::vector<LadderCell>> found(o_.load.plugs);
    const std::int64_t window_s = o_.window_minutes * 60;
    for (std::uint32_t plug = 0; plug < o_.load.plugs; ++plug) found[plug] = ladder_truth(o_.load, plug, window_s);
    std::string problem;
    std::uint64_t windows = 0;
    store::Query query;
    query.rollup = "plug_load";
    const absl::Status read = (*reader)->windows(query, [&](const store::WindowAnswer& answer) {
      const auto plug = static_cast<std::size_t>(std::stoul(answer.labels.at(0).second));
      const std::int64_t second = model::to_ns(answer.start) / 1'000'000'000 - kLadderStart;
      if (second < 0 || second >= o_.load.seconds || second % window_s != 0) {
        problem = fmt::format("a window at second {} of plug {} that nobody measured", second, plug);
        return store::Continue::kNo;
      }
      const LadderCell& right = found[plug][static_cast<std::size_t>(second / window_s)];
      const auto sum = static_cast<double>(right.sum) / 1000;
      if (answer.shown.count != right.count || answer.shown.sum != sum || answer.shown.min != right.min / 1000.0 ||
          answer.shown.max != right.max / 1000.0) {
        problem = fmt::format("plug {} at second {}: count {}, sum {}, min {}, max {}; expected {}, {}, {}, {}", plug,
                              second, answer.shown.count, answer.shown.sum, answer.shown.min, answer.shown.max,
                              right.count, sum, right.min / 1000.0, right.max / 1000.0);
        return store::Continue::kNo;
      }
      ++windows;
      return store::Continue::kYes;
    });
    if (!read.ok()) return read;
    const std::uint64_t expected = o_.load.plugs * found[0].size();
    if (problem.empty() && windows != expected)
      problem = fmt::format("the cloud shows {} windows; expected {}", windows, expected);
    windows_ = windows;
    return problem;
  }

  // The same of the raw samples at the cloud: each one's time and value.
  absl::StatusOr<std::string> raw_difference() {
    const auto reader = store::SampleReader::open(cloud_file(), node::sample_format());
    if (!reader.ok()) return reader.status();
    const absl::StatusOr<store::SampleFacts> facts = (*reader)->facts();
    if (!facts.ok()) return facts.status();
    facts_ = *facts;
    std::vector<std::int64_t> next(o_.load.plugs);  // second to come, by plug
    std::string problem;
    store::SampleQuery query;
    query.metric = "load";
    const absl::Status read = (*reader)->samples(query, [&](const store::SampleAnswer& some) {
      const auto plug = static_cast<std::uint32_t>(std::stoul(some.labels.at(0).second));
      std::int64_t& second = next.at(plug);
      for (std::size_t i = 0; i < some.times.size(); ++i, ++second) {
        const model::Time time = model::from_ns((kLadderStart + second) * 1'000'000'000);
        const double value = ladder_value(o_.load, plug, second) / 1000.0;
        if (some.times[i] == time && some.values[i] == value) continue;
        problem = fmt::format("plug {}: a sample of {} at {} ns; expected {} at {} ns", plug, some.values[i],
                              model::to_ns(some.times[i]), value, model::to_ns(time));
        return store::Continue::kNo;
      }
      return store::Continue::kYes;
    });
    if (!read.ok()) return read;
    for (std::uint32_t plug = 0; plug < o_.load.plugs && problem.empty(); ++plug) {
      if (next[plug] != o_.load.seconds)
        problem = fmt::format("plug {}: {} samples; expected {}", plug, next[plug], o_.load.seconds);
    }
    return problem;
  }

  std::uint64_t windows() const { return windows_; }
  const store::SampleFacts& facts() const { return facts_; }
  const Used& used() const { return used_; }

 private:
  std::string cloud_file() const { return (node::node_directory(state_, "cloud") / store::kCloudFileName).string(); }
  std::string fleet() const { return (directory_ / "fleet.toml").string(); }
  std::string log() const { return (directory_ / "log").string(); }
  std::string go(std::uint32_t e) const { return (directory_ / fmt::format("go-{}", e)).string(); }
  static std::string edge(std::uint32_t e) { return fmt::format("edge-{}", e); }

  absl::Status spawn(std::vector<std::string> argv) {
    argv.insert(argv.end(), {"--state", state_.string()});
    base::ProcessSpec spec;
    spec.argv = std::move(argv);
    spec.output = base::Output::discarded();
    spec.errors = base::Output::file(log());
    absl::StatusOr<std::unique_ptr<base::ChildProcess>> child = spawner_.start(spec);
    if (!child.ok()) return child.status();
    children_.push_back(*std::move(child));
    return absl::OkStatus();
  }

  absl::Status check_children() {
    for (const auto& child : children_) {
      if (const std::optional<base::ExitStatus> end = child->poll()) {
        const absl::StatusOr<std::string> said = base::read_file(log(), 1 << 20);
        return absl::InternalError(
            fmt::format("a node ended early with {}: {}", to_string(*end), said.ok() ? *said : ""));
      }
    }
    return absl::OkStatus();
  }

  std::vector<double> cpu_seconds() const {
    std::vector<double> all;
    for (const auto& child : children_)
      all.push_back(
          std::chrono::duration<double>(base::process_cpu_time(child->pid()).value_or(std::chrono::nanoseconds(0)))
              .count());
    return all;
  }

  // An edge that has its frames reads from its pipe, which can be opened then.
  absl::Status wait_ready() {
    const base::SteadyTime deadline = clock_.steady_now() + kReadyPatience;
    while (pipes_.size() < o_.load.edges) {
      base::FileDescriptor pipe(
          open(go(static_cast<std::uint32_t>(pipes_.size())).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      if (pipe.valid()) {
        pipes_.push_back(std::move(pipe));
        continue;
      }
      if (errno != ENXIO) return base::errno_status(errno, "waiting for an edge");
      if (clock_.steady_now() > deadline) return absl::DeadlineExceededError("the edges do not get ready");
      if (absl::Status s = check_children(); !s.ok()) return s;
      children_.front()->wait(kPoll);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> is_drained(std::uint32_t e) {
    const std::optional<node::NodeAddresses> addresses = node::read_addresses(state_, edge(e));
    if (!addresses) return absl::UnavailableError(edge(e) + " has no address");
    const absl::StatusOr<node::HttpReply> reply =
        node::http_request("GET", addresses->http + "/api/v1/status", "", std::chrono::seconds(30));
    if (!reply.ok()) return reply.status();
    const auto status = nlohmann::json::parse(reply->body, nullptr, false);
    if (reply->status != 200 || status.is_discarded() || !status.contains("drained"))
      return absl::InternalError(fmt::format("{} answers {}: {}", edge(e), reply->status, reply->body));
    return status["drained"].get<bool>();
  }

  const Options& o_;
  const std::filesystem::path directory_;
  const std::filesystem::path state_;
  const base::SystemClock clock_;
  base::SystemSpawner spawner_;
  std::vector<std::unique_ptr<base::ChildProcess>> children_;
  std::vector<base::FileDescriptor> pipes_;
  Used used_;
  mutable std::uint64_t windows_ = 0;
  store::SampleFacts facts_;
};

absl::StatusOr<BenchReport> run(Options o, const BenchOptions& options) {
  if (absl::Status status = choose_length(o); !status.ok()) return status;
  std::string problem;
  std::uint64_t windows = 0;
  store::SampleFacts facts;
  std::vector<Used> used;
  const absl::StatusOr<std::vector<BenchRun>> runs = measure(options, [&](const Timed& timed) {
    absl::StatusOr<base::TemporaryDirectory> directory = base::TemporaryDirectory::create("orla-ladder-");
    if (!directory.ok()) return directory.status();
    Ladder ladder(o, directory->path());
    if (absl::Status status = ladder.start(); !status.ok()) return status;
    if (absl::Status status = timed([&] { return ladder.deliver(); }); !status.ok()) return status;
    if (absl::Status status = ladder.stop(); !status.ok()) return status;
    const absl::StatusOr<std::string> different = ladder.difference();
    if (!different.ok()) return different.status();
    if (problem.empty()) problem = *different;
    if (o.raw && problem.empty()) {
      const absl::StatusOr<std::string> raw = ladder.raw_difference();
      if (!raw.ok()) return raw.status();
      problem = *raw;
    }
    facts = ladder.facts();
    windows = ladder.windows();
    used.push_back(ladder.used());
    return absl::OkStatus();
  });
  if (!runs.ok()) return runs.status();
  std::vector<double> seconds;
  for (const BenchRun& r : *runs) seconds.push_back(r.seconds);
  const double middle = median(seconds);
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t measurements = 0;
  for (std::uint32_t e = 0; e < o.load.edges; ++e) {
    const absl::StatusOr<LadderFrames> frames = ladder_frames(o.load, e, UINT64_MAX);
    if (!frames.ok()) return frames.status();
    messages += frames->begins.size() - 1;
    bytes += frames->bytes.size();
    measurements += frames->measurements;
  }
  BenchReport report;
  report["measurements"] = measurements;
  report["seconds"] = middle;
  report["rate_per_s"] = static_cast<double>(measurements) / middle;
  report["messages"] = messages;
  report["bytes"] = bytes;
  report["bits_per_value"] = 8 * static_cast<double>(bytes) / static_cast<double>(measurements);
  report["windows"] = windows;
  report["raw"] = o.raw;
  if (o.raw) {
    const std::uint64_t stored = facts.block_bytes + facts.tail_bytes;
    report["raw_samples"] = facts.block_samples + facts.tail_samples;
    report["raw_bytes"] = stored;
    report["raw_bytes_per_sample"] = static_cast<double>(stored) / static_cast<double>(measurements);
    report["raw_blocks"] = facts.blocks;
    report["raw_tail_samples"] = facts.tail_samples;
  }
  report["runs"] = seconds;
  const auto middle_of = [&](double Used::*layer) {
    std::vector<double> values;
    for (const Used& u : used) values.push_back(u.*layer);
    return median(values);
  };
  report["edges_cpu_seconds"] = middle_of(&Used::edges);
  report["aggregators_cpu_seconds"] = middle_of(&Used::aggregators);
  report["cloud_cpu_seconds"] = middle_of(&Used::cloud);
  report["edges"] = o.load.edges;
  report["aggregators"] = o.aggregators;
  report["plugs"] = o.load.plugs;
  report["batch"] = o.load.batch;
  report["order"] = o.load.order == LadderOrder::kSorted ? "sorted" : "random";
  report["window_minutes"] = o.window_minutes;
  report["seed"] = o.load.seed;
  report["cores"] = std::thread::hardware_concurrency();
  report["durability"] = o.durability;
  report["verified"] = problem.empty();
  if (!problem.empty()) report["problem"] = problem;
  report["counted"] = std::string(kCounted) + (o.raw ? kCountedRaw : "");
  return report;
}

}  // namespace

RunBench add_ladder_bench(CLI::App& command) {
  auto own = std::make_shared<Options>();  // with the runner
  command.add_option("--edges", own->load.edges, "Edges, a process each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--aggregators", own->aggregators, "Aggregators, a process each; 0: edges send to the cloud")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  add_load_options(command, own->load);
  command.add_option("--window", own->window_minutes, "Minutes of a window")
      ->check(CLI::IsMember({1, 5, 15, 60}))
      ->capture_default_str();
  command.add_option("--frames", own->frames_mib, "MiB of frames that each edge holds, all distinct")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  command.add_option("--durability", own->durability, "Of the edges")
      ->check(CLI::IsMember({"disk", "memory"}))
      ->capture_default_str();
  command.add_flag("--raw", own->raw, "Keep every measurement at the cloud, and read each back");
  return [own](const BenchOptions& options) -> absl::StatusOr<BenchReport> {
    if (own->load.edges > own->load.plugs) return absl::InvalidArgumentError("there are more edges than plugs");
    return run(*own, options);
  };
}

}  // namespace orla::apps
