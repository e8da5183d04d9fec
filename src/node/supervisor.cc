#include "node/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/absl_view.h"
#include "base/environment.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/spawner.h"
#include "base/thread_loop.h"
#include "model/plan.h"
#include "node/fleet_watch.h"
#include "node/latest_forecasts.h"
#include "node/node_functions.h"
#include "node/state_directory.h"
#include "node/up_report.h"
#include "store/cloud_schema.h"

namespace orla::node {

namespace {

constexpr std::chrono::seconds kStartPatience{30};
constexpr std::chrono::milliseconds kLook{500};
constexpr std::chrono::milliseconds kAnswerPatience{1500};
constexpr std::chrono::seconds kLineEvery{5};
constexpr std::chrono::seconds kStopPatience{6};
// A process that was killed holds its lock until the kernel has ended its last thread.
constexpr std::chrono::seconds kLockPatience{5};
constexpr std::size_t kForecastsPerStep = 2;

class Supervisor {
 public:
  explicit Supervisor(UpOptions options)
      : options_(std::move(options)),
        json_(options_.json == Choice::kYes),
        terminal_(!json_ && isatty(STDOUT_FILENO) == 1),
        record_(options_.fleet_path, environment_),
        signals_("signals") {}

  UpEnd run() {
    base::ignore_sigpipe();
    auto watcher = base::SignalWatcher::create(signals_, base::kStopSignals, [this](int) {
      {
        const std::lock_guard lock(mutex_);
        interrupted_ = true;
      }
      wake_.notify_all();
    });
    if (!watcher.ok()) return fail(watcher.status());
    if (absl::Status status = prepare_state(); !status.ok()) return fail(status);
    begin_ = clock_.steady_now();
    watch_ = std::make_unique<FleetWatch>(options_.fleet, state_, clock_);
    UpEnd end = UpEnd::kFailed;
    if (absl::Status status = start_nodes(); !status.ok()) {
      fail(status);
    } else {
      started_ = true;
      end = attend();
    }
    stop_nodes();
    record_.remove(getpid());
    return end;
  }

 private:
  struct Node {
    const model::NodeSpec* spec = nullptr;
    std::unique_ptr<base::ChildProcess> process;
    bool reported = false;  // its end was said
  };

  void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  UpEnd fail(const absl::Status& status) {
    fmt::print(stderr, "orla up: {}\n", base::message(status));
    return UpEnd::kFailed;
  }

  absl::Status prepare_state() {
    if (options_.state.empty()) {
      absl::StatusOr<base::TemporaryDirectory> directory = base::TemporaryDirectory::create("orla-up");
      if (!directory.ok()) return directory.status();
      temporary_.emplace(*std::move(directory));
      state_ = temporary_->path();
    } else {
      state_ = options_.state;
      if (absl::Status status = base::make_directories(state_); !status.ok()) return status;
    }
    // Two runs in one directory would take each other's nodes for their own, and stop them. No node has this name.
    absl::StatusOr<base::FileLock> lock = base::FileLock::acquire_within(state_ / ".lock", kLockPatience, clock_, [] {
      fmt::print(stderr, "orla up: another run still uses this state directory: waits up to {} s for its end\n",
                 kLockPatience.count());
    });
    if (!lock.ok()) return lock.status();
    lock_.emplace(*std::move(lock));
    return record_.write(state_, getpid());
  }

  absl::Status start_nodes() {
    // Parents first: their children need not wait for a second try.
    for (const model::Layer layer : {model::Layer::kCloud, model::Layer::kAggregator, model::Layer::kEdge}) {
      for (const model::NodeSpec& spec : options_.fleet.nodes) {
        if (spec.layer != layer) continue;
        if (absl::Status status = start_node(spec); !status.ok()) return status;
      }
    }
    base::SteadyTime deadline = clock_.steady_now() + kStartPatience;
    while (!interrupted_) {
      watch_->poll(kAnswerPatience);
      // One that was killed with a full outbox gets the time it needs.
      const auto recovers = [](const NodeView& n) { return n.recovered >= 0; };
      if (std::any_of(watch_->nodes().begin(), watch_->nodes().end(), recovers)) {
        deadline = clock_.steady_now() + kStartPatience;
      }
      const bool all = std::all_of(nodes_.begin(), nodes_.end(), [this](const Node& n) {
        const NodeView& view = watch_->node(n.spec->name);
        return view.reachable && view.pid == n.process->pid();
      });
      if (all) break;
      for (Node& n : nodes_) {
        if (const std::optional<base::ExitStatus> ended = n.process->poll()) {
          return absl::UnavailableError(fmt::format("node {} ended at its start ({}); its log says:\n{}", n.spec->name,
                                                    to_string(*ended), end_of_log(n)));
        }
      }
      if (clock_.steady_now() > deadline) {
        return absl::DeadlineExceededError(fmt::format("not every node answers after {} s; see the logs under {}",
                                                       kStartPatience.count(), state_.string()));
      }
      pause(std::chrono::milliseconds(50));
    }
    print(json_ ? started_json(options_.fleet.name, watch_->nodes(), state_) : started_text(watch_->nodes(), state_));
    return absl::OkStatus();
  }

  absl::Status start_node(const model::NodeSpec& spec) {
    const std::filesystem::path directory = node_directory(state_, spec.name);
    if (absl::Status status = base::make_directories(directory); !status.ok()) return status;
    base::ProcessSpec process;
    process.argv = {options_.program, "node",          options_.fleet_path, spec.name,
                    "--state",        state_.string(), "--log-level",       options_.log_level};
    if (options_.log_json == Choice::kYes) process.argv.emplace_back("--log-json");
    process.output = base::Output::discarded();
    process.errors = base::Output::file(log_file(spec.name));
    process.group = base::ProcessGroup::kOwn;
    absl::StatusOr<std::unique_ptr<base::ChildProcess>> child = spawner_.start(process);
    if (!child.ok()) return child.status();
    nodes_.push_back({&spec, *std::move(child), false});
    return absl::OkStatus();
  }

  std::string log_file(const std::string& node) const { return node_directory(state_, node) / "node.log"; }

  std::string end_of_log(const Node& n) const {
    absl::StatusOr<std::string> text = base::read_file(log_file(n.spec->name), 64 << 20);
    if (!text.ok()) return base::message(text.status());
    constexpr std::size_t kShown = 2000;
    return text->size() > kShown ? text->substr(text->size() - kShown) : *text;
  }

  // Waits, but not longer than until a signal comes.
  void pause(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, time, [this] { return interrupted_.load(); });
  }

  void look() {
    watch_->poll(kAnswerPatience);
    for (Node& n : nodes_) {
      const std::optional<base::ExitStatus> ended = n.process->poll();
      if (!ended || std::exchange(n.reported, true)) continue;
      notice(fmt::format("node {} ended ({}); it stays stopped until `orla node {} {}` starts it again", n.spec->name,
                         to_string(*ended), options_.fleet_path, n.spec->name));
    }
    const base::SteadyTime now = clock_.steady_now();
    if (terminal_) {
      redraw(live_table(watch_->nodes(), watch_->progress()));
    } else if (now - last_line_ >= kLineEvery) {
      last_line_ = now;
      const std::string text = live_line(watch_->nodes(), watch_->progress());
      if (json_) {
        fmt::print(stderr, "{}", text);
      } else {
        print(text);
      }
    }
  }

  void notice(const std::string& text) {
    drawn_lines_ = 0;  // the table goes on below
    fmt::print(stderr, "{}\n", text);
  }

  void redraw(const std::string& table) {
    std::string out;
    if (drawn_lines_ > 0) out += fmt::format("\x1b[{}A\x1b[J", drawn_lines_);
    // Without wrapping: on a narrow terminal a line stays one line, and the next drawing finds the table's top.
    print(out + "\x1b[?7l" + table + "\x1b[?7h");
    drawn_lines_ = std::count(table.begin(), table.end(), '\n');
  }

  UpEnd attend() {
    const base::SteadyTime begin = clock_.steady_now();
    last_line_ = begin;
    std::optional<base::SteadyTime> drain_until;
    bool stopping = false;
    while (!interrupted_) {
      look();
      const bool done = std::all_of(watch_->nodes().begin(), watch_->nodes().end(),
                                    [](const NodeView& n) { return n.layer != model::Layer::kEdge || n.inputs_done; });
      if (options_.run_for && clock_.steady_now() - begin >= *options_.run_for) stopping = true;
      if (stopping) watch_->stop_inputs(kAnswerPatience);
      if ((stopping || done) && !drain_until) drain_until = clock_.steady_now() + options_.drain_timeout;
      if (watch_->drained()) break;
      if (drain_until && clock_.steady_now() >= *drain_until) break;
      const std::chrono::nanoseconds until_stop = options_.run_for && !stopping
                                                      ? begin + *options_.run_for - clock_.steady_now()
                                                      : std::chrono::nanoseconds(kLook);
      pause(std::clamp<std::chrono::nanoseconds>(until_stop, std::chrono::milliseconds(10), kLook));
    }
    UpSummary summary;
    summary.seconds = std::chrono::duration<double>(clock_.steady_now() - begin_).count();
    const UpEnd end = conclude(summary);
    print(json_ ? summary_json(summary) : summary_text(summary));
    if (!options_.run_for && !interrupted_) {
      notice(fmt::format("the fleet stays up: {} (Ctrl-C ends it)", summary.status_page));
      while (!interrupted_) pause(std::chrono::hours(1));
    }
    return end;
  }

  UpEnd conclude(UpSummary& summary) {
    summary.fleet = options_.fleet.name;
    summary.interrupted = interrupted_;
    summary.drained = watch_->drained();
    summary.state = state_;
    const std::map<std::string, InputReport> inputs = watch_->inputs();
    summary.totals = total_of(inputs);
    summary.rejections = watch_->rejections();
    std::string cloud_file;
    for (const NodeView& n : watch_->nodes()) {
      for (const std::string& error : n.errors) summary.errors.push_back(n.node + ": " + error);
      if (n.layer != model::Layer::kCloud) continue;
      cloud_file = node_directory(state_, n.node) / store::kCloudFileName;
      summary.status_page = fmt::format("http://{}/", n.http);
    }
    UpEnd end = UpEnd::kClean;
    if (summary.drained) {
      summary.forecasts = latest_forecasts(cloud_file, kForecastsPerStep);
      if (options_.verify == Choice::kYes) end = verify(inputs, cloud_file, summary);
    } else if (!interrupted_) {
      end = UpEnd::kDrainTimeout;
    }
    // An input that could not be read to its end is no success, however exact the rest is; and where it left nothing to
    // compare, that is what went wrong.
    const bool nothing_compared = summary.verified && summary.verified->differences() == 0;
    if ((end == UpEnd::kClean || (end == UpEnd::kDifferent && nothing_compared)) && !summary.errors.empty()) {
      end = UpEnd::kFailed;
    }
    summary.exit_code = exit_code(end);
    return end;
  }

  UpEnd verify(const std::map<std::string, InputReport>& inputs, const std::string& cloud_file, UpSummary& summary) {
    const model::Plan plan = model::make_plan(options_.fleet);
    absl::StatusOr<verify::Report> report = verify_fleet(plan, inputs, cloud_file, [this](const std::string& key) {
      if (terminal_) print(fmt::format("\rverify: reads input {} again\x1b[K", key));
    });
    if (terminal_) print("\r\x1b[K");
    if (!report.ok()) {
      summary.verify_error = base::message(report.status());
      return UpEnd::kFailed;
    }
    summary.verified = *std::move(report);
    return summary.verified->passed() ? UpEnd::kClean : UpEnd::kDifferent;
  }

  static int exit_code(UpEnd end) {
    switch (end) {
      case UpEnd::kClean:
        return 0;
      case UpEnd::kDifferent:
        return 1;
      case UpEnd::kDrainTimeout:
        return 3;
      case UpEnd::kFailed:
        return 4;
    }
    return 4;
  }

  // Children first, so that what they seal at their end still finds a parent.
  void stop_nodes() {
    if (watch_ != nullptr) watch_->poll(std::chrono::milliseconds(200));
    for (const model::Layer layer : {model::Layer::kEdge, model::Layer::kAggregator, model::Layer::kCloud}) {
      std::vector<Node*> stopping;
      for (Node& n : nodes_) {
        if (n.spec->layer != layer) continue;
        n.process->terminate();
        stopping.push_back(&n);
        stop_restarted(n);
      }
      std::chrono::nanoseconds patience = kStopPatience;
      for (const Node* n : stopping) patience = std::max(patience, kStopPatience + drain_patience(*n->spec));
      const base::SteadyTime deadline = clock_.steady_now() + patience;
      for (Node* n : stopping) {
        if (!n->process->wait(
                std::max<std::chrono::nanoseconds>(deadline - clock_.steady_now(), std::chrono::milliseconds(1)))) {
          fmt::print(stderr, "node {} does not stop and is killed\n", n->spec->name);
          n->process->kill();
        }
      }
    }
  }

  // A node that a person started again with `orla node` belongs to this fleet's run.
  void stop_restarted(const Node& n) {
    if (!started_) return;  // one that kept ours from starting is somebody else's
    const NodeView& view = watch_->node(n.spec->name);
    if (view.reachable && view.pid != n.process->pid()) base::terminate_process(view.pid);
  }

  UpOptions options_;
  const bool json_;
  const bool terminal_;
  const base::SystemClock clock_;
  const base::SystemEnvironment environment_;
  RunRecord record_;
  base::SystemSpawner spawner_;
  base::ThreadLoop signals_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> interrupted_{false};
  std::optional<base::TemporaryDirectory> temporary_;
  std::filesystem::path state_;
  std::optional<base::FileLock> lock_;
  std::unique_ptr<FleetWatch> watch_;
  std::vector<Node> nodes_;
  bool started_ = false;  // all nodes
  std::ptrdiff_t drawn_lines_ = 0;
  base::SteadyTime begin_{};  // before the first node was started
  base::SteadyTime last_line_{};
};

}  // namespace

UpEnd run_up(UpOptions options) { return Supervisor(std::move(options)).run(); }

}  // namespace orla::node
