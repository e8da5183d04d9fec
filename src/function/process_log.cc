#include "function/process_log.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace orla::function {

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

std::uint64_t LogReader::add(base::FileDescriptor fd, LogLines log) {
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
  found->second.log.end();
  sources_.erase(found);  // closing it takes it out of the epoll set: we had the only copy
}

bool LogReader::read_some(Source& source) {
  std::array<char, 64 * 1024> block;
  errno = 0;
  const ssize_t n = ::read(source.fd.get(), block.data(), block.size());
  if (n > 0) source.log.write({block.data(), static_cast<std::size_t>(n)});
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
      found->second.log.end();
      sources_.erase(found);
    }
  }
}

}  // namespace orla::function
