#include "node/gateway_logs.h"

#include <fmt/format.h>

#include <deque>
#include <thread>

#include "absl/strings/numbers.h"
#include "base/absl_view.h"
#include "base/url.h"
#include "node/gateway_json.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

// Lines that wait for a slow client; when there are more, the oldest are left out, and the client is told.
constexpr std::size_t kMaxWaiting = 1000;
// How often a follower looks whether the node goes down.
constexpr std::chrono::milliseconds kLook{200};

Answer refusal(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", {}, std::move(text) + "\n", false};
}

std::optional<bool> read_bool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"", "0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

function::Headers stream_headers() { return {{"Content-Type", "application/x-ndjson"}}; }

// Between the host's threads and the follower's.
class Follower {
 public:
  void line(const function::LogLine& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    if (lines_.size() > kMaxWaiting) {
      lines_.pop_front();
      ++left_out_;
    }
    changed_.notify_one();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  struct News {
    std::deque<function::LogLine> lines;
    std::uint64_t left_out = 0;
    bool ended = false;
  };
  News wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook, [this] { return !lines_.empty() || ended_; });
    return {std::exchange(lines_, {}), std::exchange(left_out_, 0), ended_};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<function::LogLine> lines_;
  std::uint64_t left_out_ = 0;
  bool ended_ = false;
};

void follow(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange,
            const LogRequest& wanted) {
  const auto follower = std::make_shared<Follower>();  // with the host's calls
  // First the new lines, then the kept ones, so that none is missed between; those seen twice are told by number.
  absl::StatusOr<std::shared_ptr<void>> handle = core->host.follow(
      wanted.key, [follower](const function::LogLine& line) { follower->line(line); }, [follower] { follower->end(); });
  if (!handle.ok()) return exchange->finish(refusal(503, base::message(handle.status())));
  const absl::StatusOr<std::vector<function::LogLine>> kept = core->host.logs(wanted.key, wanted.query);
  if (!kept.ok()) return exchange->finish(refusal(404, base::message(kept.status())));
  std::uint64_t last = 0;
  bool going = exchange->begin(200, stream_headers(), std::nullopt).ok();
  const auto write = [&](const auto& lines) {
    std::string text;
    for (const function::LogLine& line : lines) {
      if (line.number <= last) continue;
      last = line.number;
      if (!wanted.query.instance.empty() && line.instance != wanted.query.instance) continue;
      text += log_line_json(wanted.key, line);
    }
    return exchange->write(text).ok();
  };
  going = going && write(*kept);
  while (going && !exchange->invocation.cancellation.cancelled() && core->phase != Phase::kRefusing) {
    const Follower::News news = follower->wait();
    if (news.left_out > 0) {
      function::LogLine told;
      told.time = core->clock.wall_now();
      told.text = fmt::format("{} lines were left out: they came faster than they were read", news.left_out);
      going = exchange->write(log_line_json(wanted.key, told)).ok();
    }
    going = going && write(news.lines) && !news.ended;
  }
  handle->reset();
  exchange->finish();
}

}  // namespace

absl::StatusOr<LogRequest> read_log_request(std::string_view query) {
  LogRequest request;
  const auto wrong = [](std::string_view name, std::string_view expected) {
    return absl::InvalidArgumentError(fmt::format("{}: expected {}", name, expected));
  };
  for (const auto& [name, value] : base::parse_query(query)) {
    if (name == "name") {
      const function::FunctionKey key = function::key_of(value);
      request.key.name = key.name;
      if (key.space != function::kDefaultNamespace) request.key.space = key.space;
    } else if (name == "namespace") {
      if (!value.empty()) request.key.space = value;
    } else if (name == "instance") {
      request.query.instance = value;
    } else if (name == "tail") {
      std::int64_t tail = 0;
      if (!absl::SimpleAtoi(value, &tail)) return wrong(name, "a whole number; negative: all");
      if (tail >= 0) request.query.tail = static_cast<std::size_t>(tail);
    } else if (name == "follow") {
      const std::optional<bool> yes = read_bool(value);
      if (!yes) return wrong(name, "1 or 0");
      request.follow = *yes;
    } else if (name == "since") {
      if (value.empty()) continue;
      const absl::StatusOr<model::Time> since = parse_time(value);
      if (!since.ok()) return wrong(name, "a time as in RFC 3339");
      request.query.since = base::WallTime(since->time_since_epoch());
    }
  }
  if (request.key.name.empty()) return wrong("name", "a function's name");
  return request;
}

void serve_logs(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange) {
  absl::StatusOr<LogRequest> wanted = read_log_request(exchange->request.query);
  if (!wanted.ok()) return exchange->finish(refusal(422, base::message(wanted.status())));
  if (!core->host.exists(wanted->key)) {
    return exchange->finish(refusal(404, fmt::format("no such function: {}", wanted->key.text())));
  }
  if (!wanted->follow) {
    const absl::StatusOr<std::vector<function::LogLine>> kept = core->host.logs(wanted->key, wanted->query);
    if (!kept.ok()) return exchange->finish(refusal(404, base::message(kept.status())));
    std::string text;
    for (const function::LogLine& line : *kept) text += log_line_json(wanted->key, line);
    if (exchange->begin(200, stream_headers(), std::nullopt).ok()) exchange->write(text).IgnoreError();
    return exchange->finish();
  }
  if (core->followers.fetch_add(1) >= core->settings.limits.log_followers) {
    --core->followers;
    return exchange->finish(refusal(
        503, fmt::format("{} logs are followed already, which is the limit", core->settings.limits.log_followers)));
  }
  // The exchange counts as running until it ends, which drain() waits for.
  core->follower_threads.start(
      [core, exchange = std::shared_ptr<Exchange>(exchange), wanted = *std::move(wanted)]() mutable {
        follow(core, exchange, wanted);
        --core->followers;
        exchange.reset();
      });
}

}  // namespace orla::node
