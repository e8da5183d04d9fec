#include "node/node_process.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/absl_view.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/open_files.h"
#include "base/random.h"
#include "base/signals.h"
#include "base/thread_loop.h"
#include "base/version.h"
#include "link/grpc_downlink.h"
#include "link/grpc_uplink.h"
#include "node/aggregator_role.h"
#include "node/api.h"
#include "node/cloud_role.h"
#include "node/edge_disk.h"
#include "node/edge_role.h"
#include "node/node_functions.h"
#include "node/push_service.h"
#include "node/resolving_uplink.h"
#include "node/sample_format.h"
#include "node/state_directory.h"
#include "node/thread_input_pump.h"
#include "store/segment_edge_store.h"
#include "store/sqlite_cloud_store.h"

namespace orla::node {

namespace {

constexpr std::chrono::seconds kStatusPatience{5};
constexpr std::chrono::milliseconds kMeterPeriod{500};
constexpr std::chrono::milliseconds kDrainPoll{50};
constexpr std::chrono::seconds kTellDrain{2};
// A process that was killed holds its lock until the kernel has ended its last thread.
constexpr std::chrono::seconds kLockPatience{5};

// Rates over the last few seconds.
class Meter {
 public:
  void sample(base::SteadyTime now, std::uint64_t in, std::uint64_t bytes_in, std::uint64_t bytes_out) {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    if (seconds <= 0) return;
    // An exponential mean over about two seconds.
    const double weight = std::min(1.0, seconds / 2.0);
    const auto mix = [&](double& rate, std::uint64_t value, std::uint64_t& before) {
      const double present = value >= before ? static_cast<double>(value - before) / seconds : 0;
      rate += weight * (present - rate);
      before = value;
    };
    mix(in_per_s, in, in_);
    mix(bytes_in_per_s, bytes_in, bytes_in_);
    mix(bytes_out_per_s, bytes_out, bytes_out_);
    last_ = now;
  }
  double in_per_s = 0;
  double bytes_in_per_s = 0;
  double bytes_out_per_s = 0;

 private:
  base::SteadyTime last_{};
  std::uint64_t in_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
};

// The node's parts, built in readable order and taken down in reverse.
class NodeProcess {
 public:
  explicit NodeProcess(NodeOptions options)
      : options_(std::move(options)),
        log_(clock_, options_.node, options_.log_level, options_.log_format),
        plan_(model::make_plan(std::move(options_.fleet))),
        spec_(*plan_.fleet.node(options_.node)),
        directory_(node_directory(options_.state, spec_.name)),
        started_(clock_.steady_now()),
        loop_("node") {}

  NodeEnd run() {
    base::ignore_sigpipe();
    base::raise_open_files();
    const auto stop = std::make_shared<std::promise<void>>();  // with the signal handler's task
    bool asked = false;                                        // on the loop
    auto watcher = base::SignalWatcher::create(loop_, base::kStopSignals, [stop, &asked](int) {
      if (!std::exchange(asked, true)) stop->set_value();
    });
    if (!watcher.ok()) return fail(watcher.status());
    if (absl::Status status = build(); !status.ok()) return fail(status);
    // An edge that was killed with a full outbox reads for seconds, and says so to who asks.
    if (absl::Status status = serve(); !status.ok()) return fail(status);
    if (absl::Status status = on_loop<absl::Status>([this] {
          if (options_.drain_limit) role_->stop_inputs();
          return role_->start();
        });
        !status.ok()) {
      return fail(status);
    }
    if (absl::Status status = host_functions(); !status.ok()) return fail(status);
    if (absl::Status status = announce(); !status.ok()) return fail(status);
    log_.info("{}{} runs{}{}{}", model::to_string(spec_.layer), spec_.site.empty() ? "" : " of site " + spec_.site,
              addresses_.listen.empty() ? "" : fmt::format(", listens on {}", addresses_.listen),
              addresses_.http.empty() ? "" : fmt::format(", status page http://{}/", addresses_.http),
              addresses_.gateway.empty() ? "" : fmt::format(", functions http://{}/", addresses_.gateway));
    std::future<void> asked_to_stop = stop->get_future();
    if (options_.drain_limit) return drain(asked_to_stop);
    asked_to_stop.wait();
    if (functions_) functions_->drain();
    return stop_role();
  }

  ~NodeProcess() {
    http_.reset();  // it asks the functions for metrics
    functions_.reset();
    // What lives on the loop ends there, so that nothing of it is running meanwhile.
    on_loop<int>([this] {
      meter_ticker_.reset();
      role_.reset();
      pump_.reset();
      downlink_.reset();
      uplink_.reset();
      return 0;
    });
    loop_.stop();
  }

 private:
  template <typename T>
  T on_loop(std::function<T()> task) {
    std::promise<T> result;
    loop_.post([&] { result.set_value(task()); });
    return result.get_future().get();
  }

  NodeEnd fail(const absl::Status& status) {
    log_.error("cannot run: {}", base::message(status));
    return NodeEnd::kFailed;
  }

  NodeEnd drain(const std::future<void>& asked_to_stop) {
    const base::SteadyTime deadline = started_ + *options_.drain_limit;
    base::SteadyTime told{};
    while (true) {
      const NodeStatus now = on_loop<NodeStatus>([this] {
        NodeStatus status;
        role_->fill(status);
        return status;
      });
      const bool drained = now.outbox && now.outbox->chunks == 0;
      const bool late = clock_.steady_now() >= deadline;
      if (drained || late || clock_.steady_now() - told >= kTellDrain) {
        told = clock_.steady_now();
        log_.info("drains: {} chunks of {} MiB left", now.outbox ? now.outbox->chunks : 0,
                  (now.outbox ? now.outbox->bytes : 0) >> 20);
      }
      const bool stopped = asked_to_stop.wait_for(kDrainPoll) == std::future_status::ready;
      if (!drained && !late && !stopped) continue;
      const NodeEnd end = stop_role();
      return drained || end != NodeEnd::kClean ? end : NodeEnd::kNotDrained;
    }
  }

  absl::Status build() {
    if (absl::Status status = base::make_directories(directory_); !status.ok()) return status;
    // A node runs once. A node without a store would take the other's address.
    absl::StatusOr<base::FileLock> lock =
        base::FileLock::acquire_within(directory_ / "lock", kLockPatience, clock_, [this] {
          log_.info("another process still holds {}: waits up to {} s for its end", (directory_ / "lock").string(),
                    kLockPatience.count());
        });
    if (!lock.ok()) return lock.status();
    if (spec_.layer == model::Layer::kAggregator || spec_.durability == model::Durability::kMemory) {
      lock_.emplace(*std::move(lock));
    } else {
      lock = absl::CancelledError("the store locks the directory itself");
    }
    const World world{loop_, clock_, random_, log_};
    link::GrpcOptions carrier;
    carrier.heartbeat = limit_ms(plan_.fleet, "heartbeat_ms");
    if (spec_.layer != model::Layer::kEdge) downlink_ = link::make_grpc_downlink(loop_, log_, carrier);
    if (spec_.layer != model::Layer::kCloud) {
      uplink_ = std::make_unique<ResolvingUplink>(link::make_grpc_uplink(loop_, log_, carrier), options_.state);
    }
    switch (spec_.layer) {
      case model::Layer::kEdge: {
        if (spec_.durability == model::Durability::kDisk) {
          auto store = store::SegmentEdgeStore::open(directory_, clock_, edge_format(), edge_options(plan_, spec_));
          if (!store.ok()) return store.status();
          edge_store_ = *std::move(store);
        }
        pump_ = std::make_unique<ThreadInputPump>(loop_, clock_, options_.make_input);
        if (spec_.shards > 1) shards_ = std::make_unique<stream::ThreadShards>(spec_.shards);
        role_ = on_loop<std::unique_ptr<Role>>([&] {
          auto edge =
              std::make_unique<EdgeRole>(plan_, spec_, world, edge_store_.get(), *uplink_, *pump_, shards_.get());
          edge->watch_recovery([this](std::uint64_t done, std::uint64_t all) {
            recovery_read_ = done;
            recovery_all_ = all;
          });
          push_ = make_push_service(*edge);
          return edge;
        });
        break;
      }
      case model::Layer::kAggregator:
        role_ = on_loop<std::unique_ptr<Role>>(
            [&] { return std::make_unique<AggregatorRole>(plan_, spec_, world, *downlink_, *uplink_); });
        break;
      case model::Layer::kCloud: {
        auto store = store::SqliteCloudStore::open(directory_, plan_, {store::Fsync::kOn, 0, sample_format(), {}});
        if (!store.ok()) return store.status();
        cloud_store_ = *std::move(store);
        role_ = on_loop<std::unique_ptr<Role>>(
            [&] { return std::make_unique<CloudRole>(plan_, spec_, world, *cloud_store_, *downlink_); });
        break;
      }
    }
    return absl::OkStatus();
  }

  // Null for an edge without a push input. The service is asked by the HTTP server only, which ends before the role.
  std::shared_ptr<PushService> make_push_service(EdgeRole& edge) {
    const auto input = std::find_if(plan_.fleet.inputs.begin(), plan_.fleet.inputs.end(), [&](const auto& i) {
      return i.node == spec_.name && i.kind == model::InputSpec::Kind::kPush;
    });
    if (input == plan_.fleet.inputs.end()) return nullptr;
    PushService::Limits limits;
    limits.unpacked_bytes = static_cast<std::size_t>(limit(plan_.fleet, "push_unpacked_bytes"));
    limits.samples = static_cast<std::size_t>(limit(plan_.fleet, "push_samples"));
    limits.waiting_bytes = static_cast<std::size_t>(limit(plan_.fleet, "push_waiting_bytes"));
    return std::make_shared<PushService>(input->key, clock_, limits, [this, &edge](Push push, PushDone done) {
      if (!started_role_) return done({PushOutcome::Kind::kBusy, "this node still reads its state", 0, 0, 0, 0});
      auto held = std::make_shared<Push>(std::move(push));  // with copies of the std::function
      loop_.post([&edge, held, done = std::move(done)]() mutable { edge.push(std::move(*held), std::move(done)); });
    });
  }

  absl::Status serve() {
    addresses_.pid = getpid();
    // Every node can be asked how it is; without an address of its own it takes any free port.
    const std::string http = spec_.http.empty() ? "127.0.0.1:0" : spec_.http;
    ApiParts parts;
    parts.status = [this] { return status(); };
    parts.more_metrics = [this] { return started_role_ && functions_ ? functions_->metrics() : std::string(); };
    if (spec_.layer == model::Layer::kEdge) {
      if (push_) parts.push = [push = push_](const HttpRequest& request) { return push->handle(request); };
      parts.stop_inputs = [this] { loop_.post([this] { role_->stop_inputs(); }); };
    }
    if (spec_.layer == model::Layer::kCloud) parts.store_path = directory_ / store::kCloudFileName;
    HttpLimits limits;
    limits.body_bytes = static_cast<std::size_t>(limit(plan_.fleet, "push_body_bytes"));
    limits.all_bodies_bytes = std::max(limits.all_bodies_bytes, 2 * limits.body_bytes);
    limits.connections = static_cast<std::size_t>(limit(plan_.fleet, "http_connections"));
    limits.read_timeout = limits.write_timeout =
        std::chrono::ceil<std::chrono::seconds>(limit_ms(plan_.fleet, "http_timeout_ms"));
    auto server = HttpServer::start(http, limits, make_api(std::move(parts)));
    if (!server.ok()) return server.status();
    http_ = *std::move(server);
    addresses_.http = http_->address();
    // Children look for the address of their parent here: a node that has some is not written down before it listens.
    return spec_.layer == model::Layer::kEdge ? write_addresses(options_.state, spec_.name, addresses_)
                                              : absl::OkStatus();
  }

  // Nothing of this exists at a node without a gateway.
  absl::Status host_functions() {
    if (spec_.gateway.address.empty() || options_.drain_limit) return absl::OkStatus();
    auto functions = NodeFunctions::start(plan_.fleet, spec_, directory_, clock_, log_);
    if (!functions.ok()) return functions.status();
    functions_ = *std::move(functions);
    addresses_.gateway = functions_->address();
    return absl::OkStatus();
  }

  absl::Status announce() {
    on_loop<int>([this] {
      NodeStatus now;
      role_->fill(now);
      addresses_.listen = now.listen;
      meter_ticker_ = std::make_unique<Ticker>(loop_, kMeterPeriod, [this] {
        NodeStatus status;
        role_->fill(status);
        meter_.sample(clock_.steady_now(), spec_.layer == model::Layer::kEdge ? status.samples_in : status.frames_in,
                      status.bytes_in, status.uplink ? status.uplink->bytes_sent : 0);
      });
      return 0;
    });
    started_role_ = true;
    return write_addresses(options_.state, spec_.name, addresses_);
  }

  void fill_identity(NodeStatus& status) const {
    status.node = spec_.name;
    status.layer = spec_.layer;
    status.site = spec_.site;
    status.fleet = plan_.fleet.name;
    status.version = base::Version();
    status.pid = addresses_.pid;
    status.uptime_s = std::chrono::duration<double>(clock_.steady_now() - started_).count();
  }

  // Before the role has started, when the loop may be busy with that for long.
  NodeStatus recovering() const {
    NodeStatus status;
    fill_identity(status);
    status.recovering = {recovery_read_, recovery_all_};
    status.ready = fmt::format("reads its state: {} of {} MiB", status.recovering->read_bytes >> 20,
                               status.recovering->all_bytes >> 20);
    return status;
  }

  // On an HTTP worker.
  absl::StatusOr<NodeStatus> status() {
    if (!started_role_) return recovering();
    auto result = std::make_shared<std::promise<NodeStatus>>();  // with the task, which may run after we gave up
    std::future<NodeStatus> future = result->get_future();
    loop_.post([this, result] {
      NodeStatus status;
      fill_identity(status);
      role_->fill(status);
      if (status.push && push_) push_->fill(*status.push);
      status.http = addresses_.http;
      status.gateway = addresses_.gateway;
      status.in_per_s = meter_.in_per_s;
      status.bytes_in_per_s = meter_.bytes_in_per_s;
      status.bytes_out_per_s = meter_.bytes_out_per_s;
      result->set_value(std::move(status));
    });
    if (future.wait_for(kStatusPatience) != std::future_status::ready) {
      return absl::DeadlineExceededError("the node is too busy to say how it is; try again");
    }
    return future.get();
  }

  NodeEnd stop_role() {
    auto report = std::make_shared<std::promise<StopReport>>();  // with the role's last task
    loop_.post([this, report] {
      log_.info("stops");
      role_->shutdown([report](StopReport r) { report->set_value(r); });
    });
    const StopReport end = report->get_future().get();
    if (end.unacknowledged_samples == 0) return NodeEnd::kClean;
    log_.error("stopped with {} samples that the cloud has not acknowledged (durability is memory)",
               end.unacknowledged_samples);
    return NodeEnd::kLeftBehind;
  }

  NodeOptions options_;
  base::SystemClock clock_;
  base::SystemRandom random_;
  base::StreamLogger log_;
  const model::Plan plan_;
  const model::NodeSpec& spec_;
  const std::filesystem::path directory_;
  const base::SteadyTime started_;
  std::optional<base::FileLock> lock_;
  NodeAddresses addresses_;  // as of announce() not changed any more
  std::atomic<bool> started_role_{false};
  std::atomic<std::uint64_t> recovery_read_{0};  // of the state on disk, while the role starts
  std::atomic<std::uint64_t> recovery_all_{0};
  Meter meter_;  // on the loop
  std::unique_ptr<store::SegmentEdgeStore> edge_store_;
  std::unique_ptr<store::SqliteCloudStore> cloud_store_;
  base::ThreadLoop loop_;
  std::unique_ptr<link::UplinkCarrier> uplink_;
  std::unique_ptr<link::DownlinkCarrier> downlink_;
  std::unique_ptr<ThreadInputPump> pump_;
  std::unique_ptr<stream::ThreadShards> shards_;  // null: one, on the loop
  std::unique_ptr<Role> role_;
  std::shared_ptr<PushService> push_;  // with the answers that come later
  std::unique_ptr<Ticker> meter_ticker_;
  std::unique_ptr<NodeFunctions> functions_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

NodeEnd run_node(NodeOptions options) {
  // gRPC has many threads that allocate little. An arena for each keeps megabytes that are not in use.
  mallopt(M_ARENA_MAX, 2);
  return NodeProcess(std::move(options)).run();
}

}  // namespace orla::node
