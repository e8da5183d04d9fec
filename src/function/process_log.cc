#include "function/process_log.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace orla::function {

LineLog::LineLog(LogSink* sink, std::string instance, std::string_view stream, const FunctionOptions& options,
                 std::string_view call_id)
    : sink_(sink), instance_(std::move(instance)) {
  if (options.prefix_logs) prefix_ = fmt::format("{}: ", stream);
  if (options.log_call_id && !call_id.empty()) prefix_ += fmt::format("[{}] ", call_id);
  most_ = options.log_buffer_bytes < 0
              ? static_cast<std::size_t>(kMaxLogLineBytes)
              : static_cast<std::size_t>(std::min<std::int64_t>(options.log_buffer_bytes, kMaxLogLineBytes));
}

void LineLog::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    const std::size_t room = most_ - std::min(most_, line_.size());
    line_.append(piece.substr(0, room));
    cut_ += piece.size() - std::min(piece.size(), room);
    if (end == std::string_view::npos) return;
    emit();
    bytes.remove_prefix(end + 1);
  }
}

void LineLog::finish() {
  if (!line_.empty() || cut_ > 0) emit();
}

void LineLog::emit() {
  if (cut_ == 0 && !line_.empty() && line_.back() == '\r') line_.pop_back();
  if (sink_ != nullptr) {
    sink_->line(instance_, cut_ == 0
                               ? prefix_ + line_
                               : fmt::format("{}{} [{} bytes more were cut: log_buffer_size]", prefix_, line_, cut_));
  }
  line_.clear();
  if (line_.capacity() > 64 * 1024) line_.shrink_to_fit();
  cut_ = 0;
}

LogReader::LogReader() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  thread_ = std::thread([this] { run(); });
}

LogReader::~LogReader() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

std::uint64_t LogReader::add(base::FileDescriptor fd, LineLog log) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = next_++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event);
  sources_.emplace(number, Source{std::move(fd), std::move(log)});
  return number;
}

void LogReader::remove(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = sources_.find(number);
  if (found == sources_.end()) return;
  for (int rounds = 0; rounds < 16 && read_some(found->second); ++rounds) {
    if (errno == EAGAIN) break;
  }
  found->second.log.finish();
  sources_.erase(found);  // closing it takes it out of the epoll set: we had the only copy
}

bool LogReader::read_some(Source& source) {
  std::array<char, 64 * 1024> block;
  errno = 0;
  const ssize_t n = ::read(source.fd.get(), block.data(), block.size());
  if (n > 0) source.log.feed({block.data(), static_cast<std::size_t>(n)});
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void LogReader::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
      if (number == 0) return;
      const std::lock_guard lock(mutex_);
      const auto found = sources_.find(number);
      if (found == sources_.end()) continue;  // removed since
      if (read_some(found->second)) continue;
      found->second.log.finish();
      sources_.erase(found);
    }
  }
}

}  // namespace orla::function
