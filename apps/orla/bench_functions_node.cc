#include "bench_functions_node.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/absl_view.h"
#include "base/cpu_time.h"
#include "node/state_directory.h"

namespace orla::apps {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kPoll{1};
constexpr std::chrono::seconds kStartPatience{20};
constexpr std::chrono::seconds kReadyPatience{60};
constexpr std::chrono::seconds kEndPatience{30};
constexpr char kFleet[] = R"([fleet]
name = "bench-functions"
zone = "UTC"
[[node]]
name = "host"
layer = "cloud"
listen = "127.0.0.1:0"
http = "127.0.0.1:0"
gateway = "127.0.0.1:0"
images = "images"
processes = true
drain_notice = "0s"
[limits]
functions = 30000
function_replicas = 30000
)";

}  // namespace

std::string other_module(std::string_view module, std::uint64_t number) {
  const std::string text = fmt::format("{}", number);  // under 100 characters, so that each length is one byte
  std::string bytes(module);
  bytes += '\0';
  bytes += static_cast<char>(text.size() + 2);
  bytes += "\1x";
  return bytes += text;
}

absl::StatusOr<std::unique_ptr<FunctionsNode>> FunctionsNode::start() {
  absl::StatusOr<base::TemporaryDirectory> directory = base::TemporaryDirectory::create("orla-functions-");
  if (!directory.ok()) return directory.status();
  auto node = std::unique_ptr<FunctionsNode>(new FunctionsNode(*std::move(directory)));
  if (absl::Status spawned = node->spawn(); !spawned.ok()) return spawned;
  return node;
}

absl::Status FunctionsNode::spawn() {
  const std::filesystem::path fleet = directory_.path() / "fleet.toml";
  const std::filesystem::path state = directory_.path() / "state";
  if (absl::Status made = base::make_directories(images()); !made.ok()) return made;
  if (absl::Status written = base::write_file_atomically(fleet, kFleet); !written.ok()) return written;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError("cannot find this program");
  base::ProcessSpec spec;
  spec.argv = {program.string(), "node", fleet.string(), "host", "--state", state.string()};
  spec.output = base::Output::discarded();
  spec.errors = base::Output::file((directory_.path() / "log").string());
  absl::StatusOr<std::unique_ptr<base::ChildProcess>> child = spawner_.start(spec);
  if (!child.ok()) return child.status();
  child_ = *std::move(child);
  const base::SteadyTime deadline = clock_.steady_now() + kStartPatience;
  while (true) {
    if (absl::Status lives = check(); !lives.ok()) return lives;
    const std::optional<node::NodeAddresses> addresses = node::read_addresses(state, "host");
    if (addresses && addresses->pid == child_->pid() && !addresses->gateway.empty()) {
      gateway_ = addresses->gateway;
      break;
    }
    if (clock_.steady_now() > deadline) return absl::DeadlineExceededError("the node does not start");
    child_->wait(kPoll);
  }
  absl::StatusOr<node::GatewayClient> client = node::GatewayClient::create("http://" + gateway_, std::nullopt);
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  return absl::OkStatus();
}

absl::Status FunctionsNode::check() const {
  const std::optional<base::ExitStatus> end = child_->poll();
  if (!end) return absl::OkStatus();
  return absl::InternalError(fmt::format("the node ended early with {}: {}", to_string(*end),
                                         base::read_file(directory_.path() / "log", 1 << 20).value_or("")));
}

absl::Status FunctionsNode::stop() {
  child_->terminate();
  const std::optional<base::ExitStatus> end = child_->wait(kEndPatience);
  if (end && end->success()) return absl::OkStatus();
  return absl::InternalError(fmt::format("the node ended with {}: {}", end ? to_string(*end) : "nothing",
                                         base::read_file(directory_.path() / "log", 1 << 20).value_or("")));
}

absl::Status FunctionsNode::add_image(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path path = images() / name;
  if (absl::Status written = base::write_file_atomically(path, bytes); !written.ok()) return written;
  if (::chmod(path.c_str(), 0755) != 0) return base::errno_status(errno, path.native());
  return absl::OkStatus();
}

absl::StatusOr<std::string> FunctionsNode::ask(const std::string& method, const std::string& target, std::string body,
                                               int expected) const {
  node::GatewayAsk ask;
  ask.method = method;
  ask.target = target;
  ask.body = std::move(body);
  absl::StatusOr<node::GatewayReply> reply = client_->send(ask);
  if (!reply.ok()) return reply.status();
  if (reply->status != expected) {
    return absl::InternalError(fmt::format("{} {} was answered {}: {}", method, target, reply->status, reply->body));
  }
  return std::move(reply->body);
}

absl::Status FunctionsNode::deploy(const std::string& name, const FunctionImage& image) const {
  json body = {{"service", name}, {"image", image.image}, {"labels", {{"com.openfaas.scale.max", "1000"}}}};
  if (!image.mode.empty()) body["envVars"] = {{"mode", image.mode}};
  return ask("POST", "/system/functions", body.dump(), 202).status();
}

absl::Status FunctionsNode::remove(const std::string& name) const {
  return ask("DELETE", "/system/functions", json({{"functionName", name}}).dump(), 202).status();
}

absl::Status FunctionsNode::scale(const std::string& name, std::uint32_t replicas) {
  const json body = {{"serviceName", name}, {"replicas", replicas}};
  if (absl::Status done = ask("POST", "/system/scale-function/" + name, body.dump(), 202).status(); !done.ok()) {
    return done;
  }
  return wait_for(name, replicas);
}

absl::Status FunctionsNode::wait_for(const std::string& name, std::uint32_t replicas) {
  const base::SteadyTime deadline = clock_.steady_now() + kReadyPatience;
  while (true) {
    const absl::StatusOr<std::string> found = ask("GET", "/system/function/" + name, "", 200);
    if (!found.ok()) return found.status();
    const json status = json::parse(*found, nullptr, false);
    if (!status.is_object() || !status.contains("availableReplicas")) return absl::InternalError(*found);
    if (status["availableReplicas"] == replicas) return absl::OkStatus();
    if (absl::Status lives = check(); !lives.ok()) return lives;
    if (clock_.steady_now() > deadline) {
      return absl::DeadlineExceededError(fmt::format("{} does not get to {} replicas: {}", name, replicas, *found));
    }
    child_->wait(kPoll);
  }
}

absl::Status FunctionsNode::wait_for_all(std::size_t functions) {
  const base::SteadyTime deadline = clock_.steady_now() + kReadyPatience;
  while (true) {
    const absl::StatusOr<std::string> found = ask("GET", "/system/functions", "", 200);
    if (!found.ok()) return found.status();
    const json all = json::parse(*found, nullptr, false);
    if (!all.is_array()) return absl::InternalError("the list of functions is none");
    std::size_t ready = 0;
    for (const json& one : all) ready += one.at("availableReplicas") == 1 ? 1U : 0U;
    if (ready == functions && all.size() == functions) return absl::OkStatus();
    if (absl::Status lives = check(); !lives.ok()) return lives;
    if (clock_.steady_now() > deadline) {
      return absl::DeadlineExceededError(fmt::format("{} of {} functions are ready", ready, functions));
    }
    child_->wait(std::chrono::milliseconds(100));
  }
}

absl::Status FunctionsNode::pause(std::chrono::nanoseconds time) {
  if (time.count() > 0) child_->wait(time);
  return check();
}

absl::StatusOr<double> FunctionsNode::cpu_seconds() const {
  const std::optional<std::chrono::nanoseconds> own = base::process_cpu_time(child_->pid());
  const absl::StatusOr<std::string> stat = base::read_file(fmt::format("/proc/{}/stat", child_->pid()), 4096);
  if (!own || !stat.ok()) return absl::InternalError("the node's processor time cannot be read");
  // proc(5): after the name in parentheses come the fields from the third on; 16 and 17 are of children.
  std::istringstream fields(stat->substr(stat->rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 16; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  if (!(fields >> user >> system)) return absl::InternalError("/proc/PID/stat has another form");
  return std::chrono::duration<double>(*own).count() + (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

absl::StatusOr<std::uint64_t> FunctionsNode::resident_bytes() const {
  const absl::StatusOr<std::string> statm = base::read_file(fmt::format("/proc/{}/statm", child_->pid()), 4096);
  if (!statm.ok()) return statm.status();
  std::istringstream fields(*statm);
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  if (!(fields >> all >> resident)) return absl::InternalError("/proc/PID/statm has another form");
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

absl::StatusOr<bool> FunctionsNode::has_mapped(std::string_view part) const {
  const absl::StatusOr<std::string> maps = base::read_file(fmt::format("/proc/{}/maps", child_->pid()), 64 << 20);
  if (!maps.ok()) return maps.status();
  return maps->find(part) != std::string::npos;
}

}  // namespace orla::apps
