#include "node/callback_sender.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/http_client.h"

namespace orla::node {

namespace {

constexpr std::size_t kReplyBytes = 64 * 1024;  // nobody reads it

// Of http://HOST/...
std::string host_of(const std::string& url) {
  const std::size_t slashes = url.find("//");
  const std::size_t begin = slashes == std::string::npos ? 0 : slashes + 2;
  return url.substr(begin, url.find_first_of("/?#", begin) - begin);
}

}  // namespace

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
  waiting_.push_back(std::move(callback));
  if (idle_ == 0 && threads_.size() < settings_.threads) {
    threads_.emplace_back([this] { run(); });
  } else {
    wake_.notify_one();
  }
}

void CallbackSender::run() {
  const std::size_t most_of_host = std::max<std::size_t>(1, settings_.threads / 2);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // One receiver that is slow leaves threads for the others.
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](const Callback& callback) {
      const auto busy = busy_.find(host_of(callback.url));
      return busy == busy_.end() || busy->second < most_of_host;
    });
    if (next == waiting_.end()) {
      ++idle_;
      wake_.wait(lock);
      --idle_;
      continue;
    }
    const Callback callback = std::move(*next);
    waiting_.erase(next);
    const std::string host = host_of(callback.url);
    ++busy_[host];
    lock.unlock();
    callback.done(try_once(callback));
    lock.lock();
    if (--busy_[host] == 0) busy_.erase(host);
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
