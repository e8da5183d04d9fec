// A replica that is one long-lived process: mode http.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/absl_view.h"
#include "base/files.h"
#include "function/process_client.h"
#include "function/process_instance.h"
#include "function/time_limit.h"

namespace orla::function {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kFirstReadyWait{1};
constexpr std::chrono::milliseconds kLongestReadyWait{50};
constexpr std::chrono::milliseconds kEndWait{5};
// Of a process in a network of its own.
constexpr std::uint16_t kUsualPort = 8082;
// Ports of replicas lie just below those that the system gives out, which usually begin there.
constexpr std::uint16_t kUsualFirstPort = 32768;
constexpr std::uint16_t kPortsOfReplicas = 12'000;
constexpr std::uint16_t kLowestPort = 1'024;
constexpr int kPortTries = 256;

class HttpInstance final : public Instance {
 public:
  HttpInstance(ProcessTools& tools, const ProcessFunction& function, std::string name,
               std::unique_ptr<ProcessSandbox> sandbox, HttpPort port)
      : tools_(tools),
        function_(function),
        name_(std::move(name)),
        sandbox_(std::move(sandbox)),
        port_(std::move(port)),
        gate_(function.spec.options.max_inflight),
        client_(tools.clock, port_.number(), [this] { return sandbox_->socket(); }) {}

  ~HttpInstance() override {
    gate_.close();
    {
      const std::lock_guard lock(mutex_);
      if (child_ != nullptr) child_->kill();
    }
    while (!gate_.wait_empty(std::chrono::seconds(1))) continue;  // their connections have broken
    client_.close_idle();
    child_.reset();
    for (const std::uint64_t log : logs_) tools_.logs.remove(log);
  }

  absl::Status start(base::SteadyTime deadline, Cancellation& cancellation);

  const std::string& name() const override { return name_; }
  std::uint32_t concurrency() const override {
    const std::uint32_t most = function_.spec.options.max_inflight;
    return most > 0 ? most : kHttpConcurrency;
  }
  bool usable() override { return !gate_.closed() && !child_->ended(); }
  InstanceUsage usage() override {
    if (const std::optional<InstanceUsage> counted = sandbox_->usage(); counted.has_value()) return *counted;
    const ProcessUsage used = usage_of(child_->pid());
    return {used.cpu_seconds, used.memory_bytes};
  }
  void stop(nanoseconds grace) override {
    gate_.close();
    // Many servers end at SIGTERM whatever they are doing, so calls in progress come first.
    (void)gate_.wait_empty(grace);
    client_.close_idle();
    const std::lock_guard lock(mutex_);
    child_->end(kKillGrace);
  }
  CallResult call(const Call& call) override;

 private:
  CallResult run(const Call& call);

  ProcessTools& tools_;
  const ProcessFunction& function_;
  const std::string name_;
  const std::unique_ptr<ProcessSandbox> sandbox_;
  const HttpPort port_;
  CallGate gate_;
  ProcessClient client_;
  std::uint64_t oom_kills_before_ = 0;
  std::mutex mutex_;              // of what ends child_
  std::unique_ptr<Child> child_;  // set by start()
  std::vector<std::uint64_t> logs_;
};

absl::Status HttpInstance::start(base::SteadyTime deadline, Cancellation& cancellation) {
  struct Output {
    base::FileDescriptor read, write;
  };
  std::array<Output, 2> outputs;
  for (Output& output : outputs) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return base::errno_status(errno, "cannot make a pipe");
    output = {base::FileDescriptor(fds[0]), base::FileDescriptor(fds[1])};
    ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  }
  const base::FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return base::errno_status(errno, "cannot open /dev/null");
  SpawnSpec spec{function_.command.program, function_.command.argv, {}, function_.command.directory, null.get(),
                 outputs[0].write.get(),    outputs[1].write.get()};
  for (const std::string& entry : function_.environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name != "PORT" && name != "port" && name != "upstream_url") spec.environment.push_back(entry);
  }
  spec.environment.push_back(fmt::format("PORT={}", port_.number()));
  spec.environment.push_back(fmt::format("port={}", port_.number()));
  spec.environment.push_back(fmt::format("upstream_url=http://127.0.0.1:{}", port_.number()));
  for (const std::string& entry : sandbox_->environment()) spec.environment.push_back(entry);

  absl::StatusOr<std::unique_ptr<Child>> child = tools_.spawner.spawn(spec, sandbox_->confinement());
  if (!child.ok()) return child.status();
  child_ = *std::move(child);
  const char* names[] = {"stdout", "stderr"};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].write.reset();
    logs_.push_back(tools_.logs.add(std::move(outputs[i].read),
                                    LogLines(function_.spec.log, name_, "", function_.spec.options, names[i])));
  }

  const CancelSignal cancelled(cancellation);
  const ProcessClient::Patience patience{deadline, cancelled.descriptor()};
  std::chrono::milliseconds pause = kFirstReadyWait;
  while (!client_.ready(function_.spec.options.ready_path, patience)) {
    const nanoseconds left = deadline - tools_.clock.steady_now();
    if (cancellation.cancelled()) return absl::CancelledError(fmt::format("the start of {} was cancelled", name_));
    if (left <= nanoseconds(0)) {
      return absl::DeadlineExceededError(fmt::format(
          "{} did not become ready in time: \"{}\" has to listen on 127.0.0.1:{} (environment variable PORT){}", name_,
          function_.command.program, port_.number(),
          function_.spec.options.ready_path.empty()
              ? ""
              : fmt::format(" and to answer GET {} with 2xx", function_.spec.options.ready_path)));
    }
    const auto wait = std::min<nanoseconds>(left, pause);
    std::array<pollfd, 2> events{{{child_->descriptor(), POLLIN, 0}, {cancelled.descriptor(), POLLIN, 0}}};
    (void)::poll(events.data(), events.size(),
                 static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
    if (events[0].revents != 0) break;
    pause = std::min(2 * pause, kLongestReadyWait);
  }
  if (child_->ended()) {
    const base::ExitStatus status = child_->finish();
    return absl::UnavailableError(
        fmt::format("{}: \"{}\" ended with {} before it listened on 127.0.0.1:{} (environment "
                    "variable PORT); its log says more",
                    name_, function_.command.program, base::to_string(status), port_.number()));
  }
  oom_kills_before_ = sandbox_->oom_kills();
  return absl::OkStatus();
}

CallResult HttpInstance::call(const Call& call) {
  CallResult result;
  if (const std::optional<CallEnd> refused = gate_.enter(); refused.has_value()) {
    result.end = *refused;
    result.message = *refused == CallEnd::kBusy ? fmt::format("{} is at its max_inflight of {} calls", name_,
                                                              function_.spec.options.max_inflight)
                                                : fmt::format("{} is being stopped", name_);
    result.instance_usable = *refused == CallEnd::kBusy;
    return result;
  }
  const base::SteadyTime began = tools_.clock.steady_now();
  result = run(call);
  result.seconds = std::chrono::duration<double>(tools_.clock.steady_now() - began).count();
  gate_.leave();
  return result;
}

CallResult HttpInstance::run(const Call& call) {
  const FunctionOptions& options = function_.spec.options;
  const nanoseconds limit = time_limit(call.head, options);
  const base::SteadyTime own_end = limit > nanoseconds(0) ? tools_.clock.steady_now() + limit : base::SteadyTime::max();
  const base::SteadyTime call_end =
      call.head.deadline == base::SteadyTime{} ? base::SteadyTime::max() : call.head.deadline;
  const CancelSignal cancelled(call.cancellation);
  CallResult result =
      client_.proxy(call, options.buffer_request_body ? ProcessClient::Body::kWhole : ProcessClient::Body::kAsItComes,
                    {std::min(own_end, call_end), cancelled.descriptor()});
  switch (result.end) {
    case CallEnd::kCancelled: {
      const bool begun = result.response_begun;
      result = cancelled_result(call.cancellation.reason());
      result.response_begun = begun;
      break;
    }
    case CallEnd::kTimedOut:
      result.message = own_end <= call_end ? fmt::format("the function ran longer than its exec_timeout of {} ms",
                                                         std::chrono::ceil<std::chrono::milliseconds>(limit).count())
                                           : "the function ran until the call's deadline";
      break;
    case CallEnd::kFailed:
      // A server that ends closes its connections a moment before it can be seen to have ended.
      if (child_->wait(kEndWait)) {
        result.message += "; its process has ended";
        if (sandbox_->oom_kills() > oom_kills_before_) {
          result.end = CallEnd::kOutOfMemory;
          result.message = "the function was killed at its memory limit";
        }
      }
      break;
    default:
      break;
  }
  if (result.end != CallEnd::kDone) result.instance_usable = !child_->ended() && result.end != CallEnd::kUnreachable;
  return result;
}

// The port that upstream_url names; none: one is to be chosen.
absl::StatusOr<std::optional<std::uint16_t>> upstream_port(const std::string& url) {
  if (url.empty() || url.find("$PORT") != std::string::npos) return std::nullopt;
  std::string_view rest = url;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  rest = rest.substr(0, rest.find('/'));
  const std::size_t colon = rest.rfind(':');
  unsigned long port = 80;
  if (colon != std::string_view::npos) port = std::strtoul(std::string(rest.substr(colon + 1)).c_str(), nullptr, 10);
  if (!url.starts_with("http://") || port == 0 || port > 65535) {
    return absl::InvalidArgumentError(
        fmt::format("upstream_url is \"{}\"; \"http://127.0.0.1:5000\", or \"http://127.0.0.1:$PORT\" for a port that "
                    "is chosen, was "
                    "expected",
                    url));
  }
  return static_cast<std::uint16_t>(port);
}

// The system gives ports from here on to whoever asks for any: between the choice of one for a replica and its
// listening there, another program could come to have it, and get the replica's calls.
std::uint16_t first_port_of_others() {
  const std::string range = base::read_file("/proc/sys/net/ipv4/ip_local_port_range", 256).value_or("");
  const long first = std::strtol(range.c_str(), nullptr, 10);
  return first > kLowestPort + kPortsOfReplicas && first < 65536 ? static_cast<std::uint16_t>(first) : kUsualFirstPort;
}

}  // namespace

absl::Status check_upstream(const FunctionOptions& options) { return upstream_port(options.upstream_url).status(); }

absl::StatusOr<HttpPort> Ports::take(std::optional<std::uint16_t> wanted) {
  const std::lock_guard lock(mutex_);
  if (wanted.has_value()) {
    if (taken_.insert(*wanted).second) return HttpPort(this, *wanted);
    return absl::ResourceExhaustedError(
        fmt::format("port {} of upstream_url is that of another replica; leave upstream_url out, or write "
                    "\"http://127.0.0.1:$PORT\", "
                    "for more than one",
                    *wanted));
  }
  const std::uint16_t end = first_port_of_others();
  for (int tries = 0; tries < kPortTries; ++tries) {
    const base::FileDescriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!probe.valid()) return base::errno_status(errno, "cannot find a free port");
    const auto port = static_cast<std::uint16_t>(end - 1 - random_.below(kPortsOfReplicas));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
    // Another replica that has not come to listening may have been given the same one.
    if (taken_.insert(port).second) return HttpPort(this, port);
  }
  return absl::ResourceExhaustedError("no free port was found for the function");
}

void Ports::give_back(std::uint16_t port) {
  const std::lock_guard lock(mutex_);
  taken_.erase(port);
}

absl::StatusOr<std::unique_ptr<Instance>> make_http_instance(ProcessTools& tools, const ProcessFunction& function,
                                                             std::string name, std::unique_ptr<ProcessSandbox> sandbox,
                                                             base::SteadyTime deadline, Cancellation& cancellation) {
  absl::StatusOr<std::optional<std::uint16_t>> wanted = upstream_port(function.spec.options.upstream_url);
  if (!wanted.ok()) return wanted.status();
  absl::StatusOr<HttpPort> port = sandbox->own_network()
                                      ? absl::StatusOr<HttpPort>(HttpPort(nullptr, wanted->value_or(kUsualPort)))
                                      : tools.ports.take(*wanted);
  if (!port.ok()) return port.status();
  auto instance =
      std::make_unique<HttpInstance>(tools, function, std::move(name), std::move(sandbox), *std::move(port));
  if (absl::Status started = instance->start(deadline, cancellation); !started.ok()) return started;
  return instance;
}

}  // namespace orla::function
