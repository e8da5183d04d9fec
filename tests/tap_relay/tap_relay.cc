// A bad link between two network namespaces, for tests: makes both, a TAP device in each, and carries the frames
// between the two with a delay, jitter, loss and a rate, or not at all.
//
//   tap_relay CONTROL PORT...
//
// Each PORT of 127.0.0.1 in namespace B leads over the link to the same port of 127.0.0.1 in namespace A. CONTROL is a
// file that is read again whenever it changes: words "delay_ms=20 jitter_ms=5 loss=0.01 rate=6250 queue=65536 down=0
// flap_ms=300"; rate in bytes a second each way (0: unlimited), queue in bytes before the link (more is dropped),
// down=1 drops every frame, flap_ms does so every other time of that length. The first line on standard output is
// {"event":"ready","a":"/proc/.../ns/net","b":"..."}, or {"event":"refused","why":"..."} where this is not permitted
// (then the exit code is 77). Runs until it is told to end; the namespaces go with it.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/random.h"
#include "link/relay_for_tests.h"

namespace orla {
namespace {

using base::FileDescriptor;
using link::RelayForTests;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr char kAddressA[] = "10.77.0.1";
constexpr char kAddressB[] = "10.77.0.2";
constexpr int kNotPermitted = 77;

struct Settings {
  double delay_ms = 0;
  double jitter_ms = 0;
  double loss = 0;
  double rate = 0;
  double queue = 64 << 10;
  double down = 0;
  double flap_ms = 0;
};

Settings parse(const std::string& text) {
  Settings settings;
  const std::map<std::string, double*> known = {{"delay_ms", &settings.delay_ms}, {"jitter_ms", &settings.jitter_ms},
                                                {"loss", &settings.loss},         {"rate", &settings.rate},
                                                {"queue", &settings.queue},       {"down", &settings.down},
                                                {"flap_ms", &settings.flap_ms}};
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  for (const std::string& word : words) {
    const std::vector<std::string> pair = absl::StrSplit(word, '=');
    const auto found = known.find(pair[0]);
    double value = 0;
    if (found == known.end() || pair.size() != 2 || !absl::SimpleAtod(pair[1], &value)) {
      fmt::print(stderr, "tap_relay: \"{}\" is no setting\n", word);
      continue;
    }
    *found->second = value;
  }
  return settings;
}

std::string failed(const char* what) { return fmt::format("{}: {}", what, ::strerror(errno)); }

// Gives the interface an address in /24, if one is given, and brings it up.
std::string bring_up(const char* name, const char* address) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  ::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (address != nullptr) {
    const sockaddr_in mine = RelayForTests::at(address, 0);
    ::memcpy(&request.ifr_addr, &mine, sizeof mine);
    if (::ioctl(socket.get(), SIOCSIFADDR, &request) != 0) return failed("setting an address");
    const sockaddr_in mask = RelayForTests::at("255.255.255.0", 0);
    ::memcpy(&request.ifr_netmask, &mask, sizeof mask);
    if (::ioctl(socket.get(), SIOCSIFNETMASK, &request) != 0) return failed("setting a netmask");
  }
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return failed("asking for flags");
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return failed("bringing an interface up");
  return "";
}

// One namespace: of a thread that lives as long.
struct End {
  std::string why_not;
  std::string path;
  FileDescriptor tap;
  std::vector<std::unique_ptr<RelayForTests>> relays;

  // On a thread of its own.
  void make(const char* address, const std::vector<std::uint16_t>& ports, bool is_a) {
    if (::unshare(CLONE_NEWNET) != 0) {
      why_not = failed("making a network namespace");
      return;
    }
    path = fmt::format("/proc/{}/task/{}/ns/net", ::getpid(), ::syscall(SYS_gettid));
    if (why_not = bring_up("lo", nullptr); !why_not.empty()) return;
    tap = FileDescriptor(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!tap.valid()) {
      why_not = failed("opening /dev/net/tun");
      return;
    }
    ifreq request{};
    ::strncpy(request.ifr_name, "link0", IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) {
      why_not = failed("making a TAP device");
      return;
    }
    if (why_not = bring_up("link0", address); !why_not.empty()) return;
    for (const std::uint16_t port : ports) {
      relays.push_back(is_a ? std::make_unique<RelayForTests>(RelayForTests::at(kAddressA, port),
                                                              RelayForTests::at("127.0.0.1", port))
                            : std::make_unique<RelayForTests>(RelayForTests::at("127.0.0.1", port),
                                                              RelayForTests::at(kAddressA, port)));
    }
  }
};

// One direction of the link.
class Lane {
 public:
  Lane(int from, int to) : from_(from), to_(to) {}

  void run(base::SteadyTime now, const Settings& settings, bool down, base::Random& random) {
    char frame[64 << 10];
    while (true) {
      const ssize_t got = ::read(from_, frame, sizeof frame);
      if (got <= 0) break;
      if (down || random.unit() < settings.loss) continue;
      if (static_cast<double>(queued_) + static_cast<double>(got) > settings.queue) continue;
      free_ = std::max(free_, now);
      if (settings.rate > 0) {
        free_ += nanoseconds(static_cast<std::int64_t>(1e9 * static_cast<double>(got) / settings.rate));
      }
      const double delay_ms = settings.delay_ms + settings.jitter_ms * random.unit();
      last_due_ = std::max(last_due_, free_ + nanoseconds(static_cast<std::int64_t>(1e6 * delay_ms)));
      held_.push_back({last_due_, std::string(frame, static_cast<std::size_t>(got))});
      queued_ += static_cast<std::size_t>(got);
    }
    while (!held_.empty() && (down || held_.front().due <= now)) {
      const std::string& bytes = held_.front().bytes;
      queued_ -= bytes.size();
      if (!down && ::write(to_, bytes.data(), bytes.size()) < 0 && errno != EAGAIN && errno != EIO) {
        fmt::print(stderr, "tap_relay: {}\n", failed("writing a frame"));
      }
      held_.pop_front();
    }
  }

 private:
  struct Held {
    base::SteadyTime due;
    std::string bytes;
  };
  const int from_;
  const int to_;
  std::deque<Held> held_;
  std::size_t queued_ = 0;
  base::SteadyTime free_{};
  base::SteadyTime last_due_{};
};

int run(const std::string& control, const std::vector<std::uint16_t>& ports) {
  End a;
  End b;
  std::promise<void> made[2];
  std::promise<void> never;
  const std::shared_future<void> end = never.get_future().share();
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    a.make(kAddressA, ports, true);
    made[0].set_value();
    end.wait();
  });
  threads.emplace_back([&] {
    b.make(kAddressB, ports, false);
    made[1].set_value();
    end.wait();
  });
  for (std::promise<void>& one : made) one.get_future().wait();
  const std::string why_not = a.why_not.empty() ? b.why_not : a.why_not;
  int code = 0;
  if (!why_not.empty()) {
    fmt::print("{{\"event\":\"refused\",\"why\":\"{}\"}}\n", why_not);
    code = kNotPermitted;
  } else {
    fmt::print("{{\"event\":\"ready\",\"a\":\"{}\",\"b\":\"{}\"}}\n", a.path, b.path);
    std::fflush(stdout);
    const base::SystemClock clock;
    base::SeededRandom random(1);
    Lane up(b.tap.get(), a.tap.get());
    Lane down(a.tap.get(), b.tap.get());
    Settings settings;
    base::SteadyTime read_again{};
    while (true) {
      pollfd wanted[2] = {{a.tap.get(), POLLIN, 0}, {b.tap.get(), POLLIN, 0}};
      ::poll(wanted, 2, 1);
      const base::SteadyTime now = clock.steady_now();
      if (now >= read_again) {
        read_again = now + milliseconds(20);
        if (const auto text = base::read_file(control, 4'096); text.ok()) settings = parse(*text);
      }
      const auto flap_ns = static_cast<std::int64_t>(settings.flap_ms * 1e6);
      const bool off = settings.down > 0 || (flap_ns > 0 && now.time_since_epoch().count() / flap_ns % 2 == 1);
      up.run(now, settings, off, random);
      down.run(now, settings, off, random);
    }
  }
  std::fflush(stdout);
  never.set_value();
  for (std::thread& thread : threads) thread.join();
  return code;
}

}  // namespace
}  // namespace orla

int main(int argc, char** argv) {
  std::vector<std::uint16_t> ports;
  for (int i = 2; i < argc; ++i) {
    std::uint32_t port = 0;
    if (!absl::SimpleAtoi(argv[i], &port) || port == 0 || port > 65'535) {
      fmt::print(stderr, "tap_relay: \"{}\" is no port\n", argv[i]);
      return 2;
    }
    ports.push_back(static_cast<std::uint16_t>(port));
  }
  if (ports.empty()) {
    fmt::print(stderr, "usage: tap_relay CONTROL PORT...\n");
    return 2;
  }
  return orla::run(argv[1], ports);
}
