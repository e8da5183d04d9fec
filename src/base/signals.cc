#include "base/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/file_descriptor.h"
#include "base/files.h"

namespace orla::base {

namespace {

// A signal handler has no argument for an object: the pipe's writing end of the one watcher, -1 without one.
std::atomic<int> watcher_pipe = -1;
static_assert(std::atomic<int>::is_always_lock_free, "the handler may use it");

void on_signal(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe holds thousands of signals nobody has looked at; one more says nothing new.
  [[maybe_unused]] const ssize_t n = ::write(watcher_pipe.load(), &byte, 1);
  errno = error;
}

class PipeWatcher final : public SignalWatcher {
 public:
  PipeWatcher(Loop& loop, std::function<void(int)> handler, FileDescriptor read_end, FileDescriptor write_end)
      : handler_(std::make_shared<const std::function<void(int)>>(std::move(handler))),
        read_end_(std::move(read_end)),
        write_end_(std::move(write_end)),
        thread_([this, &loop] { forward(loop); }) {}

  ~PipeWatcher() override {
    for (const auto& [signal, before] : before_) ::sigaction(signal, &before, nullptr);
    watcher_pipe = -1;
    const unsigned char stop = 0;  // no signal has this number
    while (::write(write_end_.get(), &stop, 1) < 0 && (errno == EINTR || errno == EAGAIN)) {
    }
    thread_.join();
  }

  absl::Status install(const std::vector<int>& signals) {
    for (const int signal : signals) {
      struct sigaction action {};
      action.sa_handler = on_signal;
      action.sa_flags = SA_RESTART;
      sigemptyset(&action.sa_mask);
      struct sigaction before {};
      if (::sigaction(signal, &action, &before) != 0) return errno_status(errno, "cannot watch a signal");
      before_.emplace_back(signal, before);
    }
    return absl::OkStatus();
  }

 private:
  void forward(Loop& loop) {
    while (true) {
      unsigned char signal = 0;
      const ssize_t n = ::read(read_end_.get(), &signal, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || signal == 0) return;
      loop.post([handler = handler_, signal] { (*handler)(signal); });
    }
  }

  // Shared with tasks that wait on the loop when the watcher goes.
  const std::shared_ptr<const std::function<void(int)>> handler_;
  const FileDescriptor read_end_;
  const FileDescriptor write_end_;
  std::vector<std::pair<int, struct sigaction>> before_;
  std::thread thread_;
};

}  // namespace

void ignore_sigpipe() { ::signal(SIGPIPE, SIG_IGN); }

absl::StatusOr<std::unique_ptr<SignalWatcher>> SignalWatcher::create(Loop& loop, std::vector<int> signals,
                                                                     std::function<void(int)> handler) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno_status(errno, "cannot make a pipe for signals");
  FileDescriptor read_end(fds[0]), write_end(fds[1]);
  ::fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
  int none = -1;
  if (!watcher_pipe.compare_exchange_strong(none, write_end.get())) {
    return absl::FailedPreconditionError("another SignalWatcher is alive; a process has one at a time");
  }
  auto watcher = std::make_unique<PipeWatcher>(loop, std::move(handler), std::move(read_end), std::move(write_end));
  if (const absl::Status installed = watcher->install(signals); !installed.ok()) return installed;
  return watcher;
}

}  // namespace orla::base
