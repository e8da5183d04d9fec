// What the gRPC carrier moves over loopback: frames of one size from a child to a parent, as fast as the parent takes
// them.
#include <benchmark/benchmark.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "base/logger.h"
#include "base/thread_loop.h"
#include "link/grpc_downlink.h"
#include "link/grpc_uplink.h"

namespace orla::link {
namespace {

constexpr std::size_t kAhead = 16 << 20;  // the sender's queue is kept this full
constexpr std::size_t kBytesPerRound = 256 << 20;

template <typename Task>
void on(base::ThreadLoop& loop, Task task) {
  std::promise<void> done;
  loop.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

// The bytes of frames that the parent has got.
class Progress {
 public:
  void add(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      bytes_ += bytes;
    }
    changed_.notify_one();
  }
  void wait_for(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return bytes_ >= bytes; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t bytes_ = 0;
};

void frames_over_loopback(benchmark::State& state) {
  const auto frame_bytes = static_cast<std::size_t>(state.range(0));
  base::SilentLogger logger;
  base::ThreadLoop up_loop;
  base::ThreadLoop down_loop;
  Progress progress;
  std::promise<void> connected;
  std::unique_ptr<DownlinkCarrier> parent;
  std::unique_ptr<UplinkCarrier> child;
  ConnectionId id{};
  std::string address;
  on(down_loop, [&] {
    parent = make_grpc_downlink(down_loop, logger);
    parent->set_events({{},
                        [&](ConnectionId, const UpMessage& message) {
                          if (const auto* frame = std::get_if<FrameMessage>(&message)) progress.add(frame->rows.size());
                        },
                        {}});
    address = parent->listen("127.0.0.1:0").value();
  });
  on(up_loop, [&] {
    child = make_grpc_uplink(up_loop, logger);
    child->set_events({[&](ConnectionId) { connected.set_value(); }, {}, {}});
    id = child->connect(address, "parent");
  });
  connected.get_future().wait();

  const std::string rows(frame_bytes, 'r');
  std::size_t sent = 0;
  std::uint64_t frame = 0;
  for ([[maybe_unused]] auto round : state) {
    for (const std::size_t until = sent + kBytesPerRound; sent < until;) {
      if (sent > kAhead) progress.wait_for(sent - kAhead);
      on(up_loop, [&] {
        for (std::size_t burst = 0; burst < (1 << 20); burst += frame_bytes, sent += frame_bytes) {
          child->send(id, FrameMessage{++frame, {}, rows});
        }
      });
    }
    progress.wait_for(sent);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(sent));
  on(up_loop, [&] { child.reset(); });
  on(down_loop, [&] { parent.reset(); });
}
BENCHMARK(frames_over_loopback)
    ->Arg(1 << 20)
    ->Arg(64 << 10)
    ->Arg(1 << 10)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orla::link
