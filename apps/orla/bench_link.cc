// orla bench link: what the gRPC carrier moves from a child to a parent over loopback, both ends in this process.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/logger.h"
#include "base/thread_loop.h"
#include "bench.h"
#include "link/grpc_downlink.h"
#include "link/grpc_uplink.h"

namespace orla::apps {

namespace {

constexpr std::size_t kAhead = 16 << 20;  // the sender's queue is kept this full
constexpr std::size_t kBurst = 1 << 20;
constexpr std::uint64_t kBytesPerRun = std::uint64_t{512} << 20;
constexpr std::uint64_t kFramesPerRun = 200'000;  // of small frames
constexpr std::chrono::seconds kPatience{60};
constexpr char kCounted[] =
    "bytes of frames' contents that the parent has decoded, one child to one parent over loopback, both ends in one "
    "process";

struct Options {
  std::size_t frame_bytes = 1 << 20;
};

template <typename Task>
void on(base::ThreadLoop& loop, Task task) {
  std::promise<void> done;
  loop.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

// What the parent has got. Its loop adds, the sender waits.
class Arrived {
 public:
  explicit Arrived(const std::string& expected) : expected_(expected) {}
  void add(const link::FrameMessage& frame) {
    {
      const std::lock_guard lock(mutex_);
      const bool same = frame.rows.size() == expected_.size() && frame.id == frames_ + 1 &&
                        std::memcmp(frame.rows.data(), expected_.data(), expected_.size()) == 0;
      if (!same) ++different_;
      ++frames_;
    }
    changed_.notify_one();
  }
  bool wait_for(std::uint64_t frames) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return frames_ >= frames; });
  }
  std::uint64_t different() {
    const std::lock_guard lock(mutex_);
    return different_;
  }

 private:
  const std::string& expected_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t frames_ = 0;
  std::uint64_t different_ = 0;
};

absl::StatusOr<BenchReport> run(const Options& own, const BenchOptions& options) {
  std::string content(own.frame_bytes, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 131 + (i >> 8) * 17);
  const std::uint64_t frames =
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(kFramesPerRun, kBytesPerRun / own.frame_bytes));
  std::uint64_t different = 0;
  const absl::StatusOr<std::vector<BenchRun>> runs = measure(options, [&](const Timed& timed) -> absl::Status {
    base::SilentLogger logger;
    base::ThreadLoop up_loop;
    base::ThreadLoop down_loop;
    Arrived arrived(content);
    std::promise<void> connected;
    std::unique_ptr<link::DownlinkCarrier> parent;
    std::unique_ptr<link::UplinkCarrier> child;
    link::ConnectionId id{};
    absl::StatusOr<std::string> address;
    on(down_loop, [&] {
      parent = link::make_grpc_downlink(down_loop, logger);
      parent->set_events({{},
                          [&](link::ConnectionId, const link::UpMessage& message) {
                            if (const auto* frame = std::get_if<link::FrameMessage>(&message)) arrived.add(*frame);
                          },
                          {}});
      address = parent->listen("127.0.0.1:0");
    });
    absl::Status status = address.status();
    if (status.ok()) {
      on(up_loop, [&] {
        child = link::make_grpc_uplink(up_loop, logger);
        child->set_events({[&](link::ConnectionId) { connected.set_value(); }, {}, {}});
        id = child->connect(*address, "parent");
      });
      if (connected.get_future().wait_for(kPatience) != std::future_status::ready)
        status = absl::DeadlineExceededError("the child does not reach its parent");
    }
    if (status.ok()) {
      status = timed([&]() -> absl::Status {
        const std::uint64_t ahead = std::max<std::uint64_t>(2, kAhead / own.frame_bytes);
        const std::uint64_t burst = std::max<std::uint64_t>(1, kBurst / own.frame_bytes);
        for (std::uint64_t sent = 0; sent < frames;) {
          if (sent > ahead && !arrived.wait_for(sent - ahead))
            return absl::DeadlineExceededError("frames do not arrive");
          on(up_loop, [&] {
            for (std::uint64_t b = 0; b < burst && sent < frames; ++b)
              child->send(id, link::FrameMessage{++sent, {}, content});
          });
        }
        if (!arrived.wait_for(frames)) return absl::DeadlineExceededError("frames do not arrive");
        return absl::OkStatus();
      });
    }
    different += arrived.different();
    on(up_loop, [&] { child.reset(); });
    on(down_loop, [&] { parent.reset(); });
    return status;
  });
  if (!runs.ok()) return runs.status();
  const BenchRun middle = median_run(*runs);
  BenchReport report;
  report["frames"] = frames;
  report["frame_bytes"] = own.frame_bytes;
  report["bytes"] = frames * own.frame_bytes;
  report["runs"] = runs->size();
  report["seconds"] = middle.seconds;
  report["cpu_seconds"] = middle.cpu_seconds;
  report["rate_per_s"] = static_cast<double>(frames) / middle.seconds;
  report["bytes_per_s"] = static_cast<double>(frames * own.frame_bytes) / middle.seconds;
  report["verified"] = different == 0;
  if (different > 0) report["problem"] = fmt::format("{} frames arrived different or out of order", different);
  report["counted"] = kCounted;
  return report;
}

}  // namespace

RunBench add_link_bench(CLI::App& command) {
  auto own = std::make_shared<Options>();  // with the runner
  command.add_option("--frame", own->frame_bytes, "Bytes of a frame's content")
      ->check(CLI::Range(1, 16 << 20))
      ->capture_default_str();
  return [own](const BenchOptions& options) { return run(*own, options); };
}

}  // namespace orla::apps
