#include "bench_functions_load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/absl_view.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/url.h"

namespace orla::apps {

namespace {

constexpr std::size_t kNumberDigits = 16;  // at the end of each body
constexpr std::size_t kMaxHeadBytes = 64 * 1024;
// An answer that takes longer ends the run.
constexpr std::chrono::seconds kPatience{60};

// The value of a header of the head, whose lines end in CR LF.
std::optional<std::string_view> header_of(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    const bool same = std::equal(name.begin(), name.end(), line.begin(),
                                 [](char a, char b) { return absl::ascii_tolower(a) == absl::ascii_tolower(b); });
    if (!same) continue;
    std::string_view value = line.substr(name.size() + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    return value;
  }
  return std::nullopt;
}

}  // namespace

double percentile_us(std::vector<std::chrono::nanoseconds>& times, double share) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size())));
  return static_cast<double>(times[std::clamp<std::size_t>(rank, 1, times.size()) - 1].count()) / 1e3;
}

struct EchoLoad::Connection {
  base::FileDescriptor socket;
  std::string out;
  std::size_t sent = 0;
  std::string in;
  std::size_t head = 0;  // its length, once it is whole
  std::size_t body = 0;
  bool busy = false;
  bool writes = false;  // waits for room
  base::SteadyTime began{};
};

EchoLoad::EchoLoad(const std::string& function, std::size_t body_bytes)
    : function_(function), body_bytes_(std::max(body_bytes, kNumberDigits)) {}

EchoLoad::~EchoLoad() {
  connections_.clear();
  if (poller_ >= 0) ::close(poller_);
}

absl::StatusOr<std::unique_ptr<EchoLoad>> EchoLoad::connect(const std::string& gateway, const std::string& function,
                                                            std::size_t connections, std::size_t body_bytes) {
  const absl::StatusOr<base::HttpUrl> where = base::parse_http_url("http://" + gateway);
  if (!where.ok()) return where.status();
  auto load = std::unique_ptr<EchoLoad>(new EchoLoad(function, body_bytes));
  load->host_ = gateway;
  load->address(function);
  load->poller_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (load->poller_ < 0) return base::errno_status(errno, "epoll_create1");
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  for (std::size_t i = 0; i < connections; ++i) {
    if (absl::Status opened = load->open(where->host, where->port); !opened.ok()) return opened;
  }
  return load;
}

absl::Status EchoLoad::open(const std::string& host, std::uint16_t port) {
  auto connection = std::make_unique<Connection>();
  connection->socket = base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  const int on = 1;
  if (::inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1 ||
      ::connect(connection->socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::setsockopt(connection->socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return base::errno_status(errno, fmt::format("cannot connect to {}", host_));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = connection.get();
  if (::epoll_ctl(poller_, EPOLL_CTL_ADD, connection->socket.get(), &event) != 0) {
    return base::errno_status(errno, "epoll_ctl");
  }
  connections_.push_back(std::move(connection));
  return absl::OkStatus();
}

void EchoLoad::address(const std::string& function) {
  function_ = function;
  request_ =
      fmt::format("POST /function/{} HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{}",
                  function, host_, body_bytes_, std::string(body_bytes_, 'b'));
}

absl::Status EchoLoad::begin(Connection& connection) {
  connection.out = request_;
  char* digit = connection.out.data() + connection.out.size();
  for (std::uint64_t rest = number_++, i = 0; i < kNumberDigits; ++i, rest >>= 4)
    *--digit = "0123456789abcdef"[rest & 15];
  connection.sent = connection.head = connection.body = 0;
  connection.in.clear();
  connection.busy = true;
  connection.began = clock_.steady_now();
  return push(connection);
}

absl::Status EchoLoad::push(Connection& connection) {
  while (connection.sent < connection.out.size()) {
    const ssize_t n = ::send(connection.socket.get(), connection.out.data() + connection.sent,
                             connection.out.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      connection.sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return base::errno_status(errno, fmt::format("cannot write to {}", host_));
    }
  }
  const bool writes = connection.sent < connection.out.size();
  if (writes == connection.writes) return absl::OkStatus();
  connection.writes = writes;
  epoll_event event{};
  event.events = EPOLLIN | (writes ? EPOLLOUT : 0U);
  event.data.ptr = &connection;
  if (::epoll_ctl(poller_, EPOLL_CTL_MOD, connection.socket.get(), &event) != 0) {
    return base::errno_status(errno, "epoll_ctl");
  }
  return absl::OkStatus();
}

absl::Status EchoLoad::wrong(const Connection& connection, std::string_view what) const {
  std::string shown = connection.in.substr(0, 300);
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return absl::DataLossError(fmt::format("function {}: {}; it answered: {}", function_, what, shown));
}

absl::Status EchoLoad::check_head(Connection& connection, std::size_t end) {
  const std::string_view head = std::string_view(connection.in).substr(0, end + 2);
  if (!head.starts_with("HTTP/1.1 200 ")) return wrong(connection, "an answer that is no 200");
  const std::optional<std::string_view> length = header_of(head, "Content-Length");
  if (!length || !absl::SimpleAtoi(base::absl_view(*length), &connection.body)) {
    return wrong(connection, "an answer without Content-Length");
  }
  if (connection.body != body_bytes_) {
    return wrong(connection, fmt::format("a body of {} bytes; {} were sent", connection.body, body_bytes_));
  }
  connection.head = end + 4;
  return absl::OkStatus();
}

absl::StatusOr<bool> EchoLoad::pull(Connection& connection) {
  std::array<char, 16 * 1024> room;
  while (true) {
    const ssize_t n = ::recv(connection.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (n < 0) return base::errno_status(errno, fmt::format("cannot read from {}", host_));
    if (n == 0) return wrong(connection, "the connection was ended");
    if (!connection.busy) return wrong(connection, "an answer that nobody asked for");
    connection.in.append(room.data(), static_cast<std::size_t>(n));
    if (connection.head == 0) {
      const std::size_t end = connection.in.find("\r\n\r\n");
      if (end == std::string::npos) {
        if (connection.in.size() > kMaxHeadBytes) return wrong(connection, "a head without an end");
        continue;
      }
      if (absl::Status right = check_head(connection, end); !right.ok()) return right;
    }
    if (connection.in.size() < connection.head + connection.body) continue;
    const std::string_view sent = std::string_view(connection.out).substr(connection.out.size() - body_bytes_);
    if (std::string_view(connection.in).substr(connection.head) != sent) {
      return wrong(connection, fmt::format("another body than \"{:.100}\"", sent));
    }
    connection.busy = false;
    return true;
  }
}

absl::StatusOr<EchoRun> EchoLoad::run(std::chrono::nanoseconds time, std::optional<double> rate) {
  EchoRun run;
  std::vector<Connection*> free;
  for (const auto& connection : connections_) free.push_back(connection.get());
  const base::SteadyTime begin_time = clock_.steady_now();
  const base::SteadyTime end = begin_time + time;
  const std::chrono::nanoseconds step(rate ? static_cast<std::int64_t>(1e9 / std::max(*rate, 1e-3)) : 0);
  base::SteadyTime due = begin_time;
  base::SteadyTime heard = begin_time;
  std::array<epoll_event, 64> events;
  while (true) {
    base::SteadyTime now = clock_.steady_now();
    const bool over = now >= end;
    if (over && free.size() == connections_.size()) break;
    if (now - heard > kPatience) return absl::DeadlineExceededError(fmt::format("no answer of {}", function_));
    while (!over && !free.empty() && due <= now) {
      Connection& next = *free.back();
      free.pop_back();
      if (absl::Status begun = begin(next); !begun.ok()) return begun;
      // What could not be sent in time, since all connections waited, is not made up for.
      if (rate) due = std::max(due + step, now - 10 * step);
    }
    int wait_ms = 1000;
    if (rate && !over && !free.empty()) {
      wait_ms = 0;
      const std::chrono::nanoseconds pause = due - clock_.steady_now();
      if (pause.count() > 0) {
        pollfd look{poller_, POLLIN, 0};
        const timespec slept{pause.count() / 1'000'000'000, pause.count() % 1'000'000'000};
        ::ppoll(&look, 1, &slept, nullptr);
      }
    }
    const int count = ::epoll_wait(poller_, events.data(), static_cast<int>(events.size()), wait_ms);
    for (int i = 0; i < count; ++i) {
      Connection& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (connection.writes) {
        if (absl::Status pushed = push(connection); !pushed.ok()) return pushed;
      }
      const absl::StatusOr<bool> whole = pull(connection);
      if (!whole.ok()) return whole.status();
      if (!*whole) continue;
      heard = clock_.steady_now();
      run.times.push_back(heard - connection.began);
      free.push_back(&connection);
    }
  }
  run.calls = run.times.size();
  run.seconds = std::chrono::duration<double>(clock_.steady_now() - begin_time).count();
  return run;
}

absl::StatusOr<std::chrono::nanoseconds> EchoLoad::call() {
  Connection& connection = *connections_.front();
  if (absl::Status begun = begin(connection); !begun.ok()) return begun;
  while (true) {
    pollfd look{connection.socket.get(), static_cast<short>(POLLIN | (connection.writes ? POLLOUT : 0)), 0};
    if (::poll(&look, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) == 0) {
      return absl::DeadlineExceededError(fmt::format("no answer of {}", function_));
    }
    if (connection.writes) {
      if (absl::Status pushed = push(connection); !pushed.ok()) return pushed;
    }
    const absl::StatusOr<bool> whole = pull(connection);
    if (!whole.ok()) return whole.status();
    if (*whole) return clock_.steady_now() - connection.began;
  }
}

absl::StatusOr<std::chrono::nanoseconds> EchoLoad::call(const std::string& function) {
  if (function != function_) address(function);
  return call();
}

}  // namespace orla::apps
