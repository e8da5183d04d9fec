#include "node/callback_sender.h"

#include <fmt/format.h>

#include "node/http_client.h"

namespace orla::node {

namespace {
constexpr std::size_t kReplyBytes = 64 * 1024;  // nobody reads it
}  // namespace

CallbackSender::CallbackSender(CallbackSettings settings, const base::Clock& clock)
    : settings_(std::move(settings)), clock_(clock) {}

CallbackSender::~CallbackSender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CallbackSender::send(Callback callback) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  jobs_.emplace(clock_.steady_now(), Job{std::move(callback)});
  if (idle_ == 0 && threads_.size() < settings_.threads) {
    threads_.emplace_back([this] { run(); });
  } else {
    wake_.notify_one();
  }
}

void CallbackSender::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const base::SteadyTime now = clock_.steady_now();
    if (jobs_.empty() || jobs_.begin()->first > now) {
      ++idle_;
      if (jobs_.empty()) {
        wake_.wait(lock);
      } else {
        wake_.wait_for(lock, jobs_.begin()->first - now);
      }
      --idle_;
      continue;
    }
    Job job = std::move(jobs_.extract(jobs_.begin()).mapped());
    lock.unlock();
    const absl::Status status = try_once(job.callback);
    const bool again = !status.ok() && !absl::IsInvalidArgument(status) && !absl::IsPermissionDenied(status) &&
                       job.attempt < settings_.attempts;
    if (!again) job.callback.done(status);
    lock.lock();
    if (!again) continue;
    const std::chrono::nanoseconds wait =
        settings_.wait * (std::int64_t{1} << std::min<std::uint32_t>(job.attempt - 1, 16));
    ++job.attempt;
    jobs_.emplace(clock_.steady_now() + wait, std::move(job));
    wake_.notify_one();
  }
}

absl::Status CallbackSender::try_once(const Callback& callback) const {
  HttpAsk ask;
  ask.method = "POST";
  ask.url = callback.url;
  ask.headers = callback.headers;
  ask.body = callback.body;
  ask.timeout = settings_.timeout;
  ask.max_body = kReplyBytes;
  ask.allow = [this](std::string_view address) { return settings_.policy.check_address(address); };
  const absl::StatusOr<HttpReply> reply = http_send(ask);
  if (!reply.ok()) return reply.status();
  if (reply->status >= 200 && reply->status < 300) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("{} answered {}", callback.url, reply->status));
}

}  // namespace orla::node
