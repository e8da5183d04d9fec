// For tests: a TCP relay on loopback that is a bad link. Passes bytes on at a rate and with a delay, cuts connections,
// and freezes, which no end is told of.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_descriptor.h"

namespace orla::link {

// Settings may be changed at any time, from any thread. Ends, with all its connections, with its life.
class RelayForTests {
 public:
  // Relays 127.0.0.1:<a port of its own> to 127.0.0.1:target.
  explicit RelayForTests(std::uint16_t target) : RelayForTests(at("127.0.0.1", 0), at("127.0.0.1", target)) {}
  // Sockets are of the network namespace of the thread that creates the relay.
  RelayForTests(const sockaddr_in& listen, const sockaddr_in& target) : target_(target) {
    listener_ = base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address = listen;
    socklen_t size = sizeof address;
    const int on = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size);
    ::listen(listener_.get(), 64);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~RelayForTests() {
    stop_ = true;
    thread_.join();
  }
  RelayForTests(const RelayForTests&) = delete;
  RelayForTests& operator=(const RelayForTests&) = delete;

  static sockaddr_in at(const char* host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, host, &address.sin_addr);
    address.sin_port = htons(port);
    return address;
  }

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Of each direction, of all connections together; 0: as fast as it goes.
  void set_rate(std::size_t bytes_per_second) { rate_ = bytes_per_second; }
  void set_delay(std::chrono::milliseconds delay) { delay_ms_ = delay.count(); }
  // Nothing passes, connections stay open, new ones are not answered.
  void freeze() { frozen_ = true; }
  void thaw() { frozen_ = false; }
  // Resets what is connected, and while down refuses what connects.
  void down() { down_ = true; }
  void up() { down_ = false; }
  // Up for so long, then down for so long, and so on; zero ends it.
  void flap(std::chrono::milliseconds period) { flap_ms_ = period.count(); }

  std::uint64_t connections() const { return connections_; }
  std::uint64_t bytes_up() const { return bytes_[0]; }
  std::uint64_t bytes_down() const { return bytes_[1]; }

 private:
  using Time = base::SteadyTime;
  struct Chunk {
    Time due;
    std::string bytes;
  };
  // One direction of a connection.
  struct Way {
    std::deque<Chunk> held;
    bool ended = false;  // nothing more comes in
    bool shut = false;   // and the other end has been told
  };
  struct Pair {
    base::FileDescriptor child;
    base::FileDescriptor parent;
    Way ways[2];
    bool dead = false;
  };

  static void set_up(int socket) {
    const int small = 16 << 10;  // what the link's own buffers hold
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
  }
  static void reset(Pair& pair) {
    const linger now{1, 0};
    for (const base::FileDescriptor* one : {&pair.child, &pair.parent}) {
      ::setsockopt(one->get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    pair.dead = true;
  }

  void serve() {
    Time before = clock_.steady_now();
    while (!stop_) {
      std::vector<pollfd> wanted{{listener_.get(), POLLIN, 0}};
      ::poll(wanted.data(), wanted.size(), 2);
      const Time now = clock_.steady_now();
      const std::size_t rate = rate_;
      for (std::size_t& budget : budget_) {
        if (rate == 0) {
          budget = std::numeric_limits<std::size_t>::max();
          continue;
        }
        if (budget > rate) budget = 0;
        // At most 20 ms of it in one burst.
        const double more = static_cast<double>(rate) * std::chrono::duration<double>(now - before).count();
        budget = std::min(budget + static_cast<std::size_t>(more + 0.5), std::max<std::size_t>(rate / 50, 1));
      }
      before = now;
      const std::int64_t flap_ms = flap_ms_;
      if (flap_ms > 0) {
        down_ = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() / flap_ms % 2;
      }
      if (down_) {
        for (Pair& pair : pairs_) reset(pair);
        pairs_.remove_if([](const Pair& pair) { return pair.dead; });
      }
      if (frozen_) continue;
      accept_all();
      for (Pair& pair : pairs_) {
        if (!move(pair, 0, now) || !move(pair, 1, now)) reset(pair);
        if (pair.ways[0].shut && pair.ways[1].shut) pair.dead = true;
      }
      pairs_.remove_if([](const Pair& pair) { return pair.dead; });
    }
  }

  void accept_all() {
    while (true) {
      base::FileDescriptor child(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (child.get() < 0) return;
      set_up(child.get());
      base::FileDescriptor parent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      set_up(parent.get());
      const bool connected =
          !down_ && (::connect(parent.get(), reinterpret_cast<const sockaddr*>(&target_), sizeof target_) == 0 ||
                     errno == EINPROGRESS);
      Pair& pair = pairs_.emplace_back();
      pair.child = std::move(child);
      pair.parent = std::move(parent);
      ++connections_;
      if (!connected) reset(pair);
    }
  }

  // False: the connection is over.
  bool move(Pair& pair, int direction, Time now) {
    Way& way = pair.ways[direction];
    const int from = direction == 0 ? pair.child.get() : pair.parent.get();
    const int to = direction == 0 ? pair.parent.get() : pair.child.get();
    std::size_t& budget = budget_[direction];
    char buffer[64 << 10];
    while (!way.ended && budget > 0 && way.held.size() < 1'024) {
      const ssize_t got = ::recv(from, buffer, std::min(sizeof buffer, budget), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (got < 0) return false;
      if (got == 0) {
        way.ended = true;
      } else {
        if (rate_ != 0) budget -= static_cast<std::size_t>(got);
        bytes_[direction] += static_cast<std::uint64_t>(got);
        const Time due = now + std::chrono::milliseconds(delay_ms_);
        way.held.push_back({due, std::string(buffer, static_cast<std::size_t>(got))});
      }
    }
    while (!way.held.empty() && way.held.front().due <= now) {
      std::string& bytes = way.held.front().bytes;
      const ssize_t put = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (put < 0) return false;
      bytes.erase(0, static_cast<std::size_t>(put));
      if (!bytes.empty()) return true;
      way.held.pop_front();
    }
    if (way.ended && way.held.empty() && !way.shut) {
      ::shutdown(to, SHUT_WR);
      way.shut = true;
    }
    return true;
  }

  const base::SystemClock clock_;
  const sockaddr_in target_;
  base::FileDescriptor listener_;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> rate_ = 0;
  std::atomic<std::int64_t> delay_ms_ = 0;
  std::atomic<std::int64_t> flap_ms_ = 0;
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> down_ = false;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> connections_ = 0;
  std::atomic<std::uint64_t> bytes_[2] = {0, 0};
  std::size_t budget_[2] = {0, 0};  // of the relay's thread, as the next
  std::list<Pair> pairs_;
  std::thread thread_;  // last: it uses all above
};

}  // namespace orla::link
