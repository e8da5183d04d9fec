#include "node/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <thread>
#include <utility>

#include "base/absl_view.h"
#include "base/random.h"
#include "model/address.h"
#include "node/gateway_core.h"
#include "node/gateway_io.h"

namespace orla::node {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr std::size_t kWorkers = 2;
// Where the machine has no descriptor left for a connection, the next try.
constexpr std::chrono::milliseconds kAcceptAgain{50};
// For what is written at the end: the answers of calls that were cancelled.
constexpr std::chrono::seconds kLastAnswers{1};

class RealGateway final : public Gateway {
 public:
  RealGateway(GatewaySettings settings, function::Host& host, AsyncCalls* async, const base::Clock& clock,
              base::Logger& log)
      : core_(std::make_shared<GatewayCore>(std::move(settings), host, async, clock, log)), workers_(kWorkers) {}

  ~RealGateway() override {
    accept_io_.stop();
    if (accept_thread_.joinable()) accept_thread_.join();
    core_->phase = Phase::kRefusing;
    workers_.join();
    sets_.clear();
    core_->follower_threads.join();  // they end by themselves, and use the host
  }

  absl::Status open() {
    const GatewaySettings& settings = core_->settings;
    if (!settings.auth.empty()) {
      absl::StatusOr<std::unique_ptr<GatewayAuth>> auth = GatewayAuth::open(settings.auth, core_->clock);
      if (!auth.ok()) return auth.status();
      core_->auth = *std::move(auth);
    }
    core_->work = [this](std::function<void()> task) { asio::post(workers_, std::move(task)); };
    const absl::StatusOr<model::Address> where = model::parse_address(settings.address);
    if (!where.ok()) return where.status();
    Error error;
    const tcp::endpoint endpoint(asio::ip::make_address(where->host, error), where->port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use) {
      return absl::AlreadyExistsError(
          fmt::format("gateway address {} is in use: stop the other program, or give the node another `gateway`",
                      settings.address));
    }
    if (error) {
      return absl::UnavailableError(
          fmt::format("cannot listen on gateway address {}: {}", settings.address, error.message()));
    }
    address_ = model::to_string(model::Address{where->host, acceptor_.local_endpoint().port()});
    base::SystemRandom random;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, settings.io_threads); ++i) {
      sets_.push_back(ConnectionSet::start(core_, random.next()));
    }
    accept();
    accept_thread_ = std::thread([this] { accept_io_.run(); });
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void drain() override {
    const GatewaySettings& settings = core_->settings;
    core_->phase = Phase::kNotice;
    core_->log.info("gateway: tells balancers that it goes down");
    pause(settings.drain_notice);
    core_->phase = Phase::kRefusing;
    const base::SteadyTime until = core_->clock.steady_now() + settings.drain_timeout;
    core_->follower_threads.join();
    if (!core_->running.wait_for_none(settings.drain_timeout)) {
      core_->log.warn("gateway: {} calls still run after drain_timeout and are ended", core_->running.count());
    }
    core_->host.drain(std::max<std::chrono::nanoseconds>(until - core_->clock.steady_now(), {}));
    core_->running.wait_for_none(kLastAnswers);
  }

 private:
  void pause(std::chrono::nanoseconds time) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, time, [] { return false; });
  }

  void accept() {
    acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {
        again_.expires_after(kAcceptAgain);
        return again_.async_wait([this](const Error& stopped) {
          if (!stopped) accept();
        });
      }
      Error no_peer;
      const tcp::endpoint peer = socket.remote_endpoint(no_peer);
      if (!no_peer) {
        const std::string text = model::to_string(model::Address{peer.address().to_string(), peer.port()});
        const int descriptor = socket.release(no_peer);
        if (!no_peer) sets_[next_++ % sets_.size()]->add(descriptor, text);
      }
      accept();
    });
  }

  const std::shared_ptr<GatewayCore> core_;  // with the connections
  asio::thread_pool workers_;
  std::vector<std::unique_ptr<ConnectionSet>> sets_;
  std::size_t next_ = 0;
  asio::io_context accept_io_{1};
  tcp::acceptor acceptor_{accept_io_};
  asio::steady_timer again_{accept_io_};
  std::string address_;
  std::thread accept_thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::start(GatewaySettings settings, function::Host& host,
                                                        AsyncCalls* async, const base::Clock& clock,
                                                        base::Logger& log) {
  auto gateway = std::make_unique<RealGateway>(std::move(settings), host, async, clock, log);
  if (absl::Status status = gateway->open(); !status.ok()) return status;
  return gateway;
}

}  // namespace orla::node
