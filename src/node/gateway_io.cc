#include "node/gateway_io.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "node/gateway_connection.h"

namespace orla::node {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr std::chrono::milliseconds kTick{200};

struct IoThread {
  IoThread(std::shared_ptr<GatewayCore> core, std::uint64_t seed) : core(std::move(core)), random(seed), ticker(io) {}

  // After something was posted, and once the thread has ended: what waits in `io` holds its connection, which holds
  // this; nobody else would ever let go of it.
  void sweep() {
    if (!ended) return;
    const std::lock_guard lock(sweeping);
    io.restart();
    io.poll();
  }

  std::atomic<bool> ended{false};  // set after the thread was joined
  std::mutex sweeping;
  const std::shared_ptr<GatewayCore> core;
  base::SeededRandom random;
  asio::io_context io{1};
  asio::steady_timer ticker;
  std::unordered_set<std::shared_ptr<Connection>> connections;  // open ones; on the thread
};

Gone gone(const Error& error) {
  if (!error) return Gone::kNo;
  return error == asio::error::eof ? Gone::kEnded : Gone::kBroken;
}

class AsioSocket final : public ConnectionSocket {
 public:
  // Null when the descriptor is no use; it is closed then.
  static std::unique_ptr<AsioSocket> take(std::shared_ptr<IoThread> thread, int descriptor) {
    auto socket = std::make_unique<AsioSocket>(std::move(thread));
    Error error;
    socket->socket_.assign(tcp::v4(), descriptor, error);
    if (error) {
      ::close(descriptor);
      return nullptr;
    }
    socket->socket_.non_blocking(true, error);
    socket->socket_.set_option(tcp::no_delay(true), error);
    return socket;
  }
  explicit AsioSocket(std::shared_ptr<IoThread> thread) : thread_(std::move(thread)), socket_(thread_->io) {}

  int descriptor() const override { return const_cast<tcp::socket&>(socket_).native_handle(); }
  void read(std::shared_ptr<Connection> self, std::span<char> to) override {
    socket_.async_read_some(
        asio::buffer(to.data(), to.size()),
        [self = std::move(self)](const Error& error, std::size_t n) { self->on_read(n, gone(error)); });
  }
  void write(std::shared_ptr<Connection> self, std::string_view bytes) override {
    asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()),
                      [self = std::move(self)](const Error& error, std::size_t) { self->on_written(gone(error)); });
  }
  void step_later(std::shared_ptr<Connection> self) override {
    const std::shared_ptr<IoThread> thread = thread_;
    asio::post(thread->io, [self = std::move(self)] { self->step(); });
    thread->sweep();
  }
  void run(std::function<void()> task) override {
    const std::shared_ptr<IoThread> thread = thread_;
    asio::dispatch(thread->io, std::move(task));
    thread->sweep();
  }
  void end_sending() override {
    Error ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void end(const std::shared_ptr<Connection>& self) override {
    Error ignored;
    socket_.cancel(ignored);
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    thread_->connections.erase(self);
  }

 private:
  const std::shared_ptr<IoThread> thread_;  // outlives its thread where a call still runs
  tcp::socket socket_;
};

class IoConnections final : public ConnectionSet {
 public:
  IoConnections(std::shared_ptr<GatewayCore> core, std::uint64_t seed)
      : shared_(std::make_shared<IoThread>(std::move(core), seed)), work_(shared_->io.get_executor()) {
    tick();
    thread_ = std::thread([shared = shared_] { shared->io.run(); });
  }
  ~IoConnections() override {
    asio::post(shared_->io, [shared = shared_] {
      const auto open = shared->connections;
      for (const auto& connection : open) connection->end();
      shared->ticker.cancel();
    });
    work_.reset();
    // What was cancelled still runs its handlers; nothing is waited for beside them.
    asio::post(shared_->io, [shared = shared_] { asio::post(shared->io, [shared] { shared->io.stop(); }); });
    thread_.join();
    shared_->ended = true;
    shared_->sweep();
  }

  void add(int descriptor, std::string peer) override {
    asio::post(shared_->io, [shared = shared_, descriptor, peer = std::move(peer)]() mutable {
      const bool full = shared->core->connections >= shared->core->settings.limits.connections;
      std::unique_ptr<AsioSocket> socket = AsioSocket::take(shared, descriptor);
      if (socket == nullptr) return;
      auto connection = std::make_shared<Connection>(shared->core, std::move(socket), std::move(peer), shared->random);
      shared->connections.insert(connection);
      connection->start(full ? Connection::Take::kRefuse : Connection::Take::kServe);
    });
  }

 private:
  void tick() { arm(shared_); }
  static void arm(const std::shared_ptr<IoThread>& shared) {
    shared->ticker.expires_after(kTick);
    shared->ticker.async_wait([weak = std::weak_ptr<IoThread>(shared)](const Error& error) {
      const std::shared_ptr<IoThread> shared = weak.lock();
      if (error || shared == nullptr) return;
      const base::SteadyTime now = shared->core->clock.steady_now();
      const std::vector<std::shared_ptr<Connection>> open(shared->connections.begin(), shared->connections.end());
      for (const std::shared_ptr<Connection>& connection : open) connection->tick(now);
      arm(shared);
    });
  }

  std::shared_ptr<IoThread> shared_;  // with its connections
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ConnectionSet> ConnectionSet::start(std::shared_ptr<GatewayCore> core, std::uint64_t seed) {
  return std::make_unique<IoConnections>(std::move(core), seed);
}

}  // namespace orla::node
