#include "function/native_runtime.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/absl_view.h"
#include "base/cpu_time.h"
#include "function/call_gate.h"
#include "function/time_limit.h"

namespace orla::function {

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

class NativeInstance final : public Instance {
 public:
  NativeInstance(const base::Clock& clock, const NativeFunction& function, const ModuleSpec& spec, const Blas* blas,
                 const MatrixCodec* codec, std::string name)
      : clock_(clock),
        function_(function),
        spec_(spec),
        blas_(blas),
        codec_(codec),
        name_(std::move(name)),
        gate_(spec.options.max_inflight) {}
  ~NativeInstance() override {
    gate_.close();
    while (!gate_.wait_empty(std::chrono::seconds(1))) continue;
  }

  const std::string& name() const override { return name_; }
  std::uint32_t concurrency() const override {
    return spec_.options.max_inflight > 0 ? spec_.options.max_inflight : kNativeConcurrency;
  }
  bool usable() override { return !gate_.closed(); }
  InstanceUsage usage() override { return {seconds_.load(), 0}; }
  void stop(std::chrono::nanoseconds grace) override {
    gate_.close();
    (void)gate_.wait_empty(grace);
  }
  CallResult call(const Call& call) override;

 private:
  CallResult run(const Call& call, const NativeContext& context);
  CallResult echo(const Call& call);
  static CallResult refuse(const Call& call, std::string_view why);
  static CallResult ended(const absl::Status& status, const Call& call);

  const base::Clock& clock_;
  const NativeFunction& function_;
  const ModuleSpec& spec_;
  const Blas* const blas_;
  const MatrixCodec* const codec_;
  const std::string name_;
  CallGate gate_;
  std::atomic<double> seconds_{0};
};

CallResult NativeInstance::call(const Call& call) {
  CallResult result;
  if (const std::optional<CallEnd> refused = gate_.enter(); refused.has_value()) {
    result.end = *refused;
    result.message = *refused == CallEnd::kBusy
                         ? fmt::format("{} is at its max_inflight of {} calls", name_, spec_.options.max_inflight)
                         : fmt::format("{} is being stopped", name_);
    result.instance_usable = *refused == CallEnd::kBusy;
    return result;
  }
  const base::SteadyTime began = clock_.steady_now();
  const std::chrono::nanoseconds limit = time_limit(call.head, spec_.options);
  base::SteadyTime deadline = limit > std::chrono::nanoseconds(0) ? began + limit : base::SteadyTime::max();
  if (call.head.deadline != base::SteadyTime{}) deadline = std::min(deadline, call.head.deadline);
  result = run(call, NativeContext{clock_, blas_, codec_, deadline});
  result.seconds = std::chrono::duration<double>(clock_.steady_now() - began).count();
  seconds_.fetch_add(result.seconds);
  gate_.leave();
  return result;
}

CallResult NativeInstance::run(const Call& call, const NativeContext& context) {
  if (function_.run == nullptr) return echo(call);
  std::optional<std::string_view> whole = call.body.whole();
  std::string collected;
  if (!whole.has_value()) {
    std::array<char, kBlockBytes> block;
    while (true) {
      const absl::StatusOr<std::size_t> n = call.body.read(block.data(), block.size());
      if (!n.ok()) return ended(n.status(), call);
      if (*n == 0) break;
      if (collected.size() + *n > kMaxNativeBodyBytes) break;
      collected.append(block.data(), *n);
      if (absl::Status fine = context.go_on(call); !fine.ok()) return ended(fine, call);
    }
    whole = collected;
  }
  if (whole->size() > kMaxNativeBodyBytes ||
      (whole->data() == collected.data() && collected.size() + kBlockBytes > kMaxNativeBodyBytes)) {
    return refuse(call, fmt::format("the body is larger than {} bytes", kMaxNativeBodyBytes));
  }
  absl::StatusOr<NativeAnswer> answer = function_.run(context, call, *whole);
  if (absl::IsInvalidArgument(answer.status())) return refuse(call, base::message(answer.status()));
  if (!answer.ok()) return ended(answer.status(), call);
  CallResult result;
  result.response_begun = true;
  if (!call.response.respond(200, {{"Content-Type", answer->content_type}}, answer->body).ok()) {
    result.end = CallEnd::kCancelled;
    result.message = "the client has gone";
  }
  return result;
}

CallResult NativeInstance::echo(const Call& call) {
  CallResult result;
  Headers headers{{"Content-Type",
                   std::string(find_header(call.head.headers, "Content-Type").value_or("application/octet-stream"))}};
  absl::Status sent;
  if (const std::optional<std::string_view> whole = call.body.whole(); whole.has_value()) {
    result.response_begun = true;
    sent = call.response.respond(200, std::move(headers), *whole);
  } else {
    std::array<char, kBlockBytes> block;
    absl::StatusOr<std::size_t> n = call.body.read(block.data(), block.size());
    if (!n.ok()) return ended(n.status(), call);
    result.response_begun = true;
    sent = call.response.begin(200, std::move(headers), call.head.content_length);
    while (sent.ok() && *n > 0) {
      sent = call.response.write({block.data(), *n});
      if (!sent.ok()) break;
      n = call.body.read(block.data(), block.size());
      if (!n.ok()) sent = n.status();
      if (!n.ok()) break;
    }
  }
  if (sent.ok()) return result;
  result = ended(absl::CancelledError("the client has gone"), call);
  result.response_begun = true;
  return result;
}

CallResult NativeInstance::refuse(const Call& call, std::string_view why) {
  CallResult result;
  result.response_begun = true;
  if (!call.response.respond(400, {{"Content-Type", "text/plain; charset=utf-8"}}, fmt::format("{}\n", why)).ok()) {
    result.end = CallEnd::kCancelled;
    result.message = "the client has gone";
  }
  return result;
}

CallResult NativeInstance::ended(const absl::Status& status, const Call& call) {
  CallResult result;
  if (absl::IsDeadlineExceeded(status) || call.cancellation.reason() == CancelReason::kTimeout) {
    result.end = CallEnd::kTimedOut;
    result.message = "the function ran longer than its exec_timeout or the call's deadline";
  } else if (absl::IsCancelled(status) || call.cancellation.cancelled()) {
    result.end = CallEnd::kCancelled;
    result.message = "the call was cancelled";
  } else {
    result.end = CallEnd::kFailed;
    result.message = base::message(status);
  }
  return result;
}

class NativeModule final : public Module {
 public:
  NativeModule(const base::Clock& clock, const NativeFunction& function, ModuleSpec spec, const Blas* blas,
               const MatrixCodec* codec)
      : clock_(clock), function_(function), spec_(std::move(spec)), blas_(blas), codec_(codec) {}

  absl::StatusOr<std::unique_ptr<Instance>> start(std::string name, base::SteadyTime,
                                                  Cancellation& cancellation) override {
    if (cancellation.cancelled()) return absl::CancelledError(fmt::format("the start of {} was cancelled", name));
    return std::make_unique<NativeInstance>(clock_, function_, spec_, blas_, codec_, std::move(name));
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    const FunctionOptions& options = spec_.options;
    if (options.memory_bytes.has_value() || options.cpu_cores.has_value()) {
      notes.push_back("limits are not applied: native functions run inside the node");
    }
    if (!spec_.secrets.empty()) notes.push_back("secrets are not given: no native function reads any");
    return notes;
  }

 private:
  const base::Clock& clock_;
  const NativeFunction& function_;
  const ModuleSpec spec_;
  const Blas* const blas_;
  const MatrixCodec* const codec_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> NativeRuntime::load(const ModuleSpec& spec) {
  const std::string name = spec.image.string();
  const NativeFunction* function = find_native_function(name);
  if (function == nullptr) {
    std::string names;
    for (const NativeFunction& one : native_functions())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    return absl::InvalidArgumentError(fmt::format("image \"native/{}\": one of {} was expected", name, names));
  }
  const std::lock_guard lock(mutex_);
  if (function->wants == NativeFunction::Wants::kBlas && blas_ == nullptr) {
    absl::StatusOr<std::unique_ptr<Blas>> blas = Blas::load();
    if (!blas.ok()) return blas.status();
    blas_ = *std::move(blas);
  }
  return std::make_unique<NativeModule>(clock_, *function, spec, blas_.get(), codec_);
}

}  // namespace orla::function
