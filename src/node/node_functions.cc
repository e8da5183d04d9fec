#include "node/node_functions.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/absl_view.h"
#include "base/files.h"
#include "base/open_files.h"
#include "function/host.h"
#include "function/runtimes.h"
#include "node/async_desk.h"
#include "node/gateway.h"
#include "node/http_server.h"
#include "node/matrix_codec.h"
#include "node/role.h"

namespace orla::node {

namespace {

function::HostSettings host_settings(const model::Fleet& fleet, const model::NodeSpec& node,
                                     const std::filesystem::path& state, base::Logger& log) {
  const auto limit_of = [&](std::string_view name) { return static_cast<std::size_t>(limit(fleet, name)); };
  function::HostSettings settings;
  settings.state = state;
  settings.images = node.gateway.images;
  settings.processes = node.gateway.processes;
  settings.log = &log;
  settings.limits.functions = limit_of("functions");
  settings.limits.replicas = limit_of("function_replicas");
  settings.limits.running_calls = limit_of("running_calls");
  settings.limits.waiting_calls = limit_of("waiting_calls");
  return settings;
}

GatewaySettings gateway_settings(const model::Fleet& fleet, const model::NodeSpec& node) {
  const auto limit_of = [&](std::string_view name) { return static_cast<std::size_t>(limit(fleet, name)); };
  GatewaySettings settings;
  settings.address = node.gateway.address;
  settings.auth = node.gateway.auth;
  settings.namespaces = node.gateway.namespaces;
  settings.upstream_timeout = node.gateway.upstream_timeout;
  settings.drain_notice = node.gateway.drain_notice;
  settings.drain_timeout = node.gateway.drain_timeout;
  // A thread moves the bytes of tens of thousands of calls a second.
  settings.io_threads = std::clamp<std::size_t>(std::thread::hardware_concurrency() / 4, 1, 4);
  GatewayLimits& limits = settings.limits;
  // Functions, files and other parts of the node need descriptors, too.
  limits.connections = std::min<std::size_t>(limit_of("gateway_connections"), base::raise_open_files() / 2);
  limits.request.header_bytes = limit_of("gateway_header_bytes");
  limits.request.line_bytes = std::min(limits.request.line_bytes, limits.request.header_bytes);
  limits.body_bytes = limit_of("gateway_body_bytes");
  limits.async_body_bytes = limit_of("gateway_async_body_bytes");
  limits.header_timeout = limit_ms(fleet, "gateway_header_timeout_ms");
  limits.body_idle = limits.write_idle = limit_ms(fleet, "gateway_idle_ms");
  limits.read_timeout = std::max<std::chrono::nanoseconds>(settings.upstream_timeout, limits.header_timeout);
  return settings;
}

absl::StatusOr<AsyncSettings> async_settings(const model::Fleet& fleet, const model::NodeSpec& node,
                                             const std::filesystem::path& state) {
  absl::StatusOr<CallbackPolicy> callbacks = CallbackPolicy::parse(node.gateway.callbacks_allowed);
  if (!callbacks.ok()) return callbacks.status();
  AsyncSettings settings;
  settings.path = (state / "calls.sqlite").string();
  settings.call_timeout = node.gateway.upstream_timeout;
  settings.callbacks = *std::move(callbacks);
  settings.limits.queue.calls = static_cast<std::uint64_t>(limit(fleet, "async_calls"));
  settings.limits.queue.bytes = static_cast<std::uint64_t>(limit(fleet, "async_bytes"));
  settings.limits.running = static_cast<std::size_t>(limit(fleet, "async_running"));
  settings.limits.running_of_function = std::max<std::size_t>(1, settings.limits.running / 2);
  return settings;
}

// Marks what the fleet file has deployed; who deploys it by other means takes it over.
constexpr const char* kOfFleetFile = "com.orla.fleet-file";

function::FunctionSpec spec_of(const model::FunctionEntry& entry) {
  function::FunctionSpec spec;
  spec.key = {entry.name, entry.space};
  spec.image = entry.image;
  spec.env_process = entry.env_process;
  spec.environment = entry.environment;
  spec.labels = entry.labels;
  spec.annotations = entry.annotations;
  spec.annotations[kOfFleetFile] = "true";
  spec.secrets = entry.secrets;
  spec.limits = {entry.memory, entry.cpu};
  return spec;
}

class Assembly final : public NodeFunctions {
 public:
  absl::Status open(const model::Fleet& fleet, const model::NodeSpec& node, const std::filesystem::path& state,
                    const base::Clock& clock, base::Logger& log) {
    const std::filesystem::path folder = state / "functions";
    if (absl::Status status = base::make_directories(folder); !status.ok()) return status;
    runtimes_ = function::make_runtimes({folder, node.gateway.wasmtime, &matrices_}, clock);
    auto host = function::Host::open(host_settings(fleet, node, folder, log), runtimes_, clock);
    if (!host.ok()) return host.status();
    host_ = *std::move(host);
    std::set<function::FunctionKey> of_file;
    for (const model::FunctionEntry& entry : fleet.functions) {
      if (entry.node == node.name) of_file.insert({entry.name, entry.space});
    }
    remove_others(of_file, log);
    for (const model::FunctionEntry& entry : fleet.functions) {
      if (entry.node == node.name) deploy(spec_of(entry), log);
    }
    absl::StatusOr<AsyncSettings> later = async_settings(fleet, node, folder);
    if (!later.ok()) return later.status();
    auto desk = AsyncDesk::open(*std::move(later), *host_, clock, log);
    if (!desk.ok()) return desk.status();
    async_ = *std::move(desk);
    auto gateway = Gateway::start(gateway_settings(fleet, node), *host_, async_.get(), clock, log);
    if (!gateway.ok()) return gateway.status();
    gateway_ = *std::move(gateway);
    if (node.gateway.metrics.empty()) return absl::OkStatus();
    auto server =
        HttpServer::start(node.gateway.metrics, {}, [this](const HttpRequest& request) { return answer(request); });
    if (!server.ok()) return server.status();
    metrics_ = *std::move(server);
    return absl::OkStatus();
  }

  std::string address() const override { return gateway_->address(); }
  std::string metrics() const override { return gateway_metrics(*host_) + async_metrics(async_->counts()); }
  void drain() override {
    async_->rest();
    gateway_->drain();
  }

 private:
  // What an earlier fleet file has deployed and this one does not name.
  void remove_others(const std::set<function::FunctionKey>& of_file, base::Logger& log) {
    for (const function::FunctionStatus& there : host_->list("")) {
      const function::FunctionKey& key = there.spec.key;
      if (there.spec.annotations.count(kOfFleetFile) == 0 || of_file.count(key) > 0) continue;
      const absl::Status done = host_->remove(key);
      if (done.ok()) {
        log.info("function {} removed: the fleet file does not name it any more", key.text());
      } else {
        log.error("function {} cannot be removed: {}", key.text(), base::message(done));
      }
    }
  }

  void deploy(const function::FunctionSpec& spec, base::Logger& log) {
    const std::optional<function::FunctionStatus> there = host_->find(spec.key, false);
    if (there && there->spec == spec) return;
    const absl::Status done = host_->deploy(spec, there ? function::Deploy::kUpdate : function::Deploy::kCreate);
    if (done.ok()) {
      log.info("function {} deployed", spec.key.text());
    } else {
      log.error("function {} of the fleet file cannot be deployed: {}", spec.key.text(), base::message(done));
    }
  }

  // /metrics and /healthz.
  HttpResponse answer(const HttpRequest& request) const {
    HttpResponse response;
    if (request.path != "/metrics" && request.path != "/healthz") {
      response.status = 404;
      response.body = "there are /metrics and /healthz\n";
    } else if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
    } else if (request.path == "/metrics") {
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      response.body = metrics();
    } else {
      response.body = "OK";
    }
    return response;
  }

  const EncodingsMatrixCodec matrices_{};
  std::vector<std::unique_ptr<function::Runtime>> runtimes_;
  std::unique_ptr<function::Host> host_;
  std::unique_ptr<AsyncDesk> async_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<HttpServer> metrics_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NodeFunctions>> NodeFunctions::start(const model::Fleet& fleet,
                                                                    const model::NodeSpec& node,
                                                                    const std::filesystem::path& state,
                                                                    const base::Clock& clock, base::Logger& log) {
  auto assembly = std::make_unique<Assembly>();
  if (absl::Status status = assembly->open(fleet, node, state, clock, log); !status.ok()) return status;
  return assembly;
}

std::chrono::nanoseconds drain_patience(const model::NodeSpec& node) {
  if (node.gateway.address.empty()) return {};
  return node.gateway.drain_notice + node.gateway.drain_timeout + std::chrono::seconds(2);
}

}  // namespace orla::node
