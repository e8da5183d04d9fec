// A replica whose calls are processes: modes streaming and serializing.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <thread>

#include "base/absl_view.h"
#include "base/files.h"
#include "base/large_text.h"
#include "function/http_environment.h"
#include "function/log_lines.h"
#include "function/process_instance.h"
#include "function/time_limit.h"

namespace orla::function {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr int kLastBlocks = 32;
constexpr std::size_t kMaxErrorText = 4096;  // of standard error, in a 500's message

struct Pipe {
  base::FileDescriptor read;
  base::FileDescriptor write;
};
absl::StatusOr<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return base::errno_status(errno, "cannot make a pipe");
  return Pipe{base::FileDescriptor(fds[0]), base::FileDescriptor(fds[1])};
}
void do_not_block(const base::FileDescriptor& fd) { ::fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

// Moves a body that comes piece by piece to the child's standard input, on a thread of its own: reading it blocks.
class BodyPump {
 public:
  BodyPump(RequestBody& body, base::FileDescriptor to) : body_(body), to_(std::move(to)), thread_([this] { run(); }) {}
  ~BodyPump() {
    body_.discard();
    thread_.join();
  }

 private:
  void run() {
    std::array<char, kBlockBytes> block;
    while (true) {
      const absl::StatusOr<std::size_t> n = body_.read(block.data(), block.size());
      if (!n.ok() || *n == 0) break;
      std::string_view left(block.data(), *n);
      while (!left.empty()) {
        const ssize_t written = ::write(to_.get(), left.data(), left.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return to_.reset();  // the child has closed it, or has ended
        left.remove_prefix(static_cast<std::size_t>(written));
      }
    }
    to_.reset();
  }

  RequestBody& body_;
  base::FileDescriptor to_;
  std::thread thread_;  // last: it uses all above
};

class ForkInstance final : public Instance {
 public:
  ForkInstance(ProcessTools& tools, const ProcessFunction& function, std::string name,
               std::unique_ptr<ProcessSandbox> sandbox)
      : tools_(tools),
        function_(function),
        name_(std::move(name)),
        sandbox_(std::move(sandbox)),
        gate_(function.spec.options.max_inflight) {}

  ~ForkInstance() override {
    gate_.close();
    end_all();
    while (!gate_.wait_empty(std::chrono::seconds(1))) end_all();
  }

  const std::string& name() const override { return name_; }
  std::uint32_t concurrency() const override { return gate_most() > 0 ? gate_most() : kForkConcurrency; }
  bool usable() override { return !gate_.closed(); }

  InstanceUsage usage() override {
    InstanceUsage usage;
    const std::lock_guard lock(mutex_);
    usage.cpu_seconds = finished_cpu_seconds_;
    for (const pid_t pid : running_) {
      const ProcessUsage one = usage_of(pid);
      usage.cpu_seconds += one.cpu_seconds;
      usage.memory_bytes += one.memory_bytes;
    }
    if (const std::optional<InstanceUsage> counted = sandbox_->usage(); counted.has_value()) return *counted;
    return usage;
  }

  void stop(nanoseconds grace) override {
    gate_.close();
    if (!gate_.wait_empty(grace)) end_all();
    (void)gate_.wait_empty(2 * kKillGrace);
  }

  CallResult call(const Call& call) override {
    CallResult result;
    if (const std::optional<CallEnd> refused = gate_.enter(); refused.has_value()) {
      result.end = *refused;
      result.message = *refused == CallEnd::kBusy
                           ? fmt::format("{} is at its max_inflight of {} calls", name_, gate_most())
                           : fmt::format("{} is being stopped", name_);
      result.instance_usable = *refused == CallEnd::kBusy;
      return result;
    }
    const base::SteadyTime began = tools_.clock.steady_now();
    result = run(call, began);
    result.seconds = std::chrono::duration<double>(tools_.clock.steady_now() - began).count();
    gate_.leave();
    return result;
  }

 private:
  struct Run;  // of one call

  std::uint32_t gate_most() const { return function_.spec.options.max_inflight; }
  void end_all() {
    const std::lock_guard lock(mutex_);
    for (const int event : stop_events_) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(event, &one, sizeof one);
    }
  }
  CallResult run(const Call& call, base::SteadyTime began);
  CallResult serve(const Call& call, Run& run);
  // The end of a process that was not ended by us.
  CallResult conclude(const Call& call, Run& run, const base::ExitStatus& status);

  ProcessTools& tools_;
  const ProcessFunction& function_;
  const std::string name_;
  const std::unique_ptr<ProcessSandbox> sandbox_;
  CallGate gate_;
  std::mutex mutex_;
  std::set<int> stop_events_;  // guarded by mutex_, as all below: one for each call
  std::set<pid_t> running_;
  double finished_cpu_seconds_ = 0;
};

struct ForkInstance::Run {
  const FunctionOptions& options;
  bool buffered;  // mode serializing
  base::SteadyTime deadline;
  bool own_deadline;  // it is exec_timeout's, not the call's
  nanoseconds limit;
  std::unique_ptr<Child> child;
  base::FileDescriptor input;  // where the rest of `body` goes; not valid once it is written, or a BodyPump has it
  std::string_view body;
  base::FileDescriptor output;
  base::FileDescriptor errors;
  LogLines log;
  base::LargeText kept;    // buffered: the response
  std::string error_text;  // the beginning of standard error
  bool begun = false;
  absl::Status client;  // of writing the response
  std::uint64_t oom_kills = 0;

  absl::Status emit(Response& response, std::string_view piece) {
    if (buffered) {
      if (kept.size() + piece.size() > kMaxWholeBytes) {
        return absl::ResourceExhaustedError(fmt::format("the function wrote more than {} bytes", kMaxWholeBytes));
      }
      return kept.append(piece);
    }
    if (absl::Status status = begin(response); !status.ok()) return status;
    return response.write(piece);
  }
  absl::Status begin(Response& response) {
    if (begun) return absl::OkStatus();
    begun = true;
    return response.begin(200, headers(), std::nullopt);
  }
  Headers headers() const {
    return {{"Content-Type", options.content_type.empty() ? "application/octet-stream" : options.content_type}};
  }

  // One read of each that has something; false: nothing was there.
  bool read_errors() {
    std::array<char, kBlockBytes> block;
    const ssize_t n = ::read(errors.get(), block.data(), block.size());
    if (n > 0) {
      const std::string_view piece(block.data(), static_cast<std::size_t>(n));
      log.write(piece);
      error_text.append(piece.substr(0, kMaxErrorText - std::min(kMaxErrorText, error_text.size())));
      return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) errors.reset();
    return false;
  }
  bool read_output(Response& response) {
    std::array<char, kBlockBytes> block;
    const ssize_t n = ::read(output.get(), block.data(), block.size());
    if (n > 0) {
      client = emit(response, {block.data(), static_cast<std::size_t>(n)});
      return client.ok();
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) output.reset();
    return false;
  }
  void write_input() {
    const ssize_t n = body.empty() ? 0 : ::write(input.get(), body.data(), body.size());
    if (n > 0) body.remove_prefix(static_cast<std::size_t>(n));
    if (body.empty() || (n < 0 && errno != EAGAIN && errno != EINTR)) input.reset();
  }
};

CallResult failed(std::string message) {
  CallResult result;
  result.end = CallEnd::kFailed;
  result.message = std::move(message);
  return result;
}

CallResult ForkInstance::run(const Call& call, base::SteadyTime began) {
  const FunctionOptions& options = function_.spec.options;
  const nanoseconds limit = time_limit(call.head, options);
  const base::SteadyTime own_end = limit > nanoseconds(0) ? began + limit : base::SteadyTime::max();
  const base::SteadyTime call_end =
      call.head.deadline == base::SteadyTime{} ? base::SteadyTime::max() : call.head.deadline;
  Run run{options,
          options.mode == WatchdogMode::kSerializing,
          std::min(own_end, call_end),
          own_end <= call_end,
          limit,
          nullptr,
          {},
          {},
          {},
          {},
          LogLines(function_.spec.log, name_, call.head.call_id, options, "stderr"),
          {},
          {},
          false,
          absl::OkStatus(),
          sandbox_->oom_kills()};

  std::optional<std::string_view> whole = call.body.whole();
  base::LargeText collected;
  if (run.buffered && !whole.has_value()) {
    std::array<char, kBlockBytes> block;
    while (true) {
      const absl::StatusOr<std::size_t> n = call.body.read(block.data(), block.size());
      if (!n.ok()) return cancelled_result(call.cancellation.reason());
      if (*n == 0) break;
      if (collected.size() + *n > kMaxWholeBytes) {
        return failed(fmt::format("mode serializing takes at most {} bytes of a request", kMaxWholeBytes));
      }
      if (absl::Status kept = collected.append({block.data(), *n}); !kept.ok()) return failed(base::message(kept));
    }
    whole = collected.view();
  }

  absl::StatusOr<Pipe> input = make_pipe();
  absl::StatusOr<Pipe> output = make_pipe();
  absl::StatusOr<Pipe> errors = make_pipe();
  for (const auto* pipe : {&input, &output, &errors}) {
    if (!pipe->ok()) return failed(base::message(pipe->status()));
  }
  SpawnSpec spec{function_.command.program, function_.command.argv, function_.environment, function_.command.directory,
                 input->read.get(),         output->write.get(),    errors->write.get()};
  for (const std::string& entry : sandbox_->environment()) spec.environment.push_back(entry);
  for (const auto& [name, value] : http_environment(call.head)) {
    spec.environment.push_back(fmt::format("{}={}", name, value));
  }
  absl::StatusOr<std::unique_ptr<Child>> child = tools_.spawner.spawn(spec, sandbox_->confinement());
  input->read.reset();
  output->write.reset();
  errors->write.reset();
  if (!child.ok()) return failed(base::message(child.status()));
  run.child = *std::move(child);
  run.output = std::move(output->read);
  run.errors = std::move(errors->read);
  do_not_block(run.output);
  do_not_block(run.errors);
  const pid_t pid = run.child->pid();
  {
    const std::lock_guard lock(mutex_);
    running_.insert(pid);
  }
  std::optional<BodyPump> pump;
  if (whole.has_value()) {
    run.input = std::move(input->write);
    run.body = *whole;
    do_not_block(run.input);
    run.write_input();
  } else {
    pump.emplace(call.body, std::move(input->write));
  }
  CallResult result = serve(call, run);
  {
    const std::lock_guard lock(mutex_);
    running_.erase(pid);
    finished_cpu_seconds_ += run.child->cpu_seconds();
  }
  result.response_begun = run.begun;
  return result;
}

CallResult ForkInstance::serve(const Call& call, Run& run) {
  const CancelSignal cancelled(call.cancellation);
  struct Registered {
    Registered(ForkInstance& owner, int event) : owner(owner), event(event) {
      const std::lock_guard lock(owner.mutex_);
      owner.stop_events_.insert(event);
    }
    ~Registered() {
      const std::lock_guard lock(owner.mutex_);
      owner.stop_events_.erase(event);
    }
    ForkInstance& owner;
    const int event;
  } const registered(*this, cancelled.descriptor());

  std::optional<CallResult> ended;  // from outside
  while (true) {
    const nanoseconds left = run.deadline - tools_.clock.steady_now();
    if (left <= nanoseconds(0)) {
      ended.emplace();
      ended->end = CallEnd::kTimedOut;
      ended->message = run.own_deadline ? fmt::format("the function ran longer than its exec_timeout of {} ms",
                                                      std::chrono::ceil<std::chrono::milliseconds>(run.limit).count())
                                        : "the function ran until the call's deadline";
      break;
    }
    std::array<pollfd, 5> events{{{run.child->descriptor(), POLLIN, 0},
                                  {run.output.get(), POLLIN, 0},
                                  {run.errors.get(), POLLIN, 0},
                                  {run.input.get(), POLLOUT, 0},
                                  {cancelled.descriptor(), POLLIN, 0}}};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min<nanoseconds>(left, std::chrono::minutes(1)));
    (void)::poll(events.data(), events.size(), static_cast<int>(ms.count()));
    if (events[4].revents != 0) {
      ended = cancelled_result(call.cancellation.cancelled() ? call.cancellation.reason() : CancelReason::kDraining);
      break;
    }
    if (events[3].revents != 0) run.write_input();
    if (events[2].revents != 0) run.read_errors();
    if (events[1].revents != 0) run.read_output(call.response);
    if (!run.client.ok()) break;
    // What it wrote before its end is in the pipes by then.
    if (events[0].revents != 0) break;
  }
  run.input.reset();
  const bool by_us = ended.has_value() || !run.client.ok();
  // Nobody reads what it writes any more: SIGTERM is worth a wait only where a program may tidy up.
  const base::ExitStatus status = by_us ? run.child->end(kKillGrace) : run.child->finish();
  // A pipe holds less than this many blocks; one that never ends has a writer that got away.
  for (int i = 0; i < kLastBlocks && run.errors.valid() && run.read_errors(); ++i) continue;
  for (int i = 0; i < kLastBlocks && !by_us && run.output.valid() && run.read_output(call.response); ++i) continue;
  run.log.end();
  if (ended.has_value()) return *std::move(ended);
  if (!run.client.ok()) {
    if (absl::IsResourceExhausted(run.client)) return failed(base::message(run.client));
    return cancelled_result(call.cancellation.reason());
  }
  return conclude(call, run, status);
}

CallResult ForkInstance::conclude(const Call& call, Run& run, const base::ExitStatus& status) {
  CallResult result;
  if (sandbox_->oom_kills() > run.oom_kills && status.signal != 0) {
    result.end = CallEnd::kOutOfMemory;
    result.message = "the function was killed at its memory limit";
    return result;
  }
  if (status.signal != 0 || (run.buffered && status.code != 0)) {
    std::string said = run.error_text;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    return failed(
        fmt::format("the function ended with {}{}{}", base::to_string(status), said.empty() ? "" : ": ", said));
  }
  if (status.code != 0 && function_.spec.log != nullptr) {
    function_.spec.log->line(name_, fmt::format("the function ended with {}", base::to_string(status)));
  }
  absl::Status sent;
  if (run.buffered) {
    run.begun = true;
    sent = call.response.respond(200, run.headers(), run.kept.view());
  } else {
    sent = run.begin(call.response);
  }
  if (!sent.ok()) return cancelled_result(call.cancellation.reason());
  return result;
}

}  // namespace

std::unique_ptr<Instance> make_fork_instance(ProcessTools& tools, const ProcessFunction& function, std::string name,
                                             std::unique_ptr<ProcessSandbox> sandbox) {
  return std::make_unique<ForkInstance>(tools, function, std::move(name), std::move(sandbox));
}

}  // namespace orla::function
