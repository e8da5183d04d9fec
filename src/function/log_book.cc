#include "function/log_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace orla::function {
namespace {

std::size_t size_of(const LogLine& line) { return sizeof(LogLine) + line.instance.size() + line.text.size(); }

}  // namespace

// Its queue is filled by whoever writes a line and emptied by one posted task at a time.
class LogBook::Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(std::function<void(const LogLine&)> line, std::function<void()> end, const Post& post,
           std::atomic<std::size_t>& count)
      : line_(std::move(line)), end_(std::move(end)), post_(post), count_(count) {}
  ~Follower() { count_.fetch_sub(1); }

  void add(const LogLine& line) {
    {
      const std::lock_guard lock(mutex_);
      if (gone_) return;
      if (waiting_.size() >= kFollowerLines || bytes_ + size_of(line) > kFollowerBytes) {
        ++dropped_;
        return;
      }
      tell_of_dropped(line);
      bytes_ += size_of(line);
      waiting_.push_back(line);
      if (std::exchange(posted_, true)) return;
    }
    post_([self = shared_from_this()] { self->deliver(); });
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      if (gone_ || std::exchange(posted_, true)) return;
    }
    post_([self = shared_from_this()] { self->deliver(); });
  }

  // Waits for a run in progress, unless that is what calls.
  void leave() {
    std::unique_lock lock(mutex_);
    gone_ = true;
    waiting_.clear();
    left_.wait(lock, [this] { return !running_ || runs_on_ == std::this_thread::get_id(); });
  }

 private:
  void tell_of_dropped(const LogLine& next) {
    if (dropped_ == 0) return;
    LogLine told{.number = 0, .time = next.time, .instance = next.instance, .text = {}};
    told.text = fmt::format("orla: {} lines were dropped here: this reader was too slow", std::exchange(dropped_, 0));
    bytes_ += size_of(told);
    waiting_.push_back(std::move(told));
  }

  void deliver() {
    std::unique_lock lock(mutex_);
    runs_on_ = std::this_thread::get_id();
    running_ = true;
    while (!gone_ && !waiting_.empty()) {
      const LogLine next = std::move(waiting_.front());
      waiting_.pop_front();
      bytes_ -= size_of(next);
      lock.unlock();
      line_(next);
      lock.lock();
    }
    if (!gone_ && ends_) {
      gone_ = true;
      lock.unlock();
      end_();
      lock.lock();
    }
    running_ = false;
    runs_on_ = {};
    posted_ = false;
    left_.notify_all();
  }

  const std::function<void(const LogLine&)> line_;
  const std::function<void()> end_;
  const Post& post_;
  std::atomic<std::size_t>& count_;
  std::mutex mutex_;  // guards all below
  std::condition_variable left_;
  std::deque<LogLine> waiting_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool posted_ = false;
  bool running_ = false;
  std::thread::id runs_on_;
  bool ends_ = false;
  bool gone_ = false;
};

LogBook::Kept& LogBook::kept() {
  if (kept_ == nullptr) kept_ = std::make_unique<Kept>();
  return *kept_;
}

void LogBook::line(std::string_view instance, std::string_view text) {
  LogLine line{.number = 0, .time = clock_.wall_now(), .instance = std::string(instance), .text = {}};
  if (text.size() <= kMaxLogLineBytes) {
    line.text = text;
  } else {
    line.text = fmt::format("{} [orla: cut, the line had {} bytes]", text.substr(0, kMaxLogLineBytes), text.size());
  }
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  Kept& kept = this->kept();
  line.number = ++kept.last;
  std::erase_if(kept.followers, [&](const std::weak_ptr<Follower>& weak) {
    const std::shared_ptr<Follower> follower = weak.lock();
    if (follower != nullptr) follower->add(line);
    return follower == nullptr;
  });
  kept.bytes += size_of(line);
  kept.lines.push_back(std::move(line));
  while (kept.lines.size() > limits_.lines || (kept.bytes > limits_.bytes && kept.lines.size() > 1)) {
    kept.bytes -= size_of(kept.lines.front());
    kept.lines.pop_front();
  }
}

std::vector<LogLine> LogBook::read(const LogQuery& query) const {
  std::vector<LogLine> found;
  const std::lock_guard lock(mutex_);
  if (kept_ == nullptr) return found;
  const std::size_t most = query.tail.value_or(kept_->lines.size());
  for (auto line = kept_->lines.rbegin(); line != kept_->lines.rend() && found.size() < most; ++line) {
    if (!query.instance.empty() && line->instance != query.instance) continue;
    if (query.since && line->time < *query.since) continue;
    found.push_back(*line);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

absl::StatusOr<std::shared_ptr<void>> LogBook::follow(std::function<void(const LogLine&)> line,
                                                      std::function<void()> end) {
  if (followers_.fetch_add(1) >= limits_.followers) {
    followers_.fetch_sub(1);
    return absl::ResourceExhaustedError(
        fmt::format("{} readers follow logs on this node already (limit log_followers); try again when one has left",
                    limits_.followers));
  }
  auto follower = std::make_shared<Follower>(std::move(line), std::move(end), post_, followers_);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return absl::NotFoundError("the function is removed");
    kept().followers.push_back(follower);
  }
  // The handle's end is the reader's; tasks that were posted may still hold the follower for a moment.
  return std::shared_ptr<void>(static_cast<void*>(follower.get()), [follower](void*) { follower->leave(); });
}

void LogBook::close() {
  std::vector<std::weak_ptr<Follower>> followers;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true) || kept_ == nullptr) return;
    followers.swap(kept_->followers);
  }
  for (const auto& weak : followers) {
    if (const std::shared_ptr<Follower> follower = weak.lock()) follower->close();
  }
}

}  // namespace orla::function
