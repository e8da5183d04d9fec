// Answers that come later, bodies that are announced, and the end of a server.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "model/address.h"
#include "node/http_client.h"
#include "node/http_server.h"

namespace orla::node {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

// A server whose /later answers when it is told to.
class LaterTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        HttpServer::start("127.0.0.1:0", limits, [this](const HttpRequest& request) {
          HttpResponse response;
          response.body = request.path + " " + std::to_string(request.body.size());
          if (request.path != "/later") return response;
          response.later = [this](std::function<void(HttpResponse)> answer) {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(answer));
            came_.notify_all();
          };
          return response;
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void wait_for(std::size_t requests) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(came_.wait_for(lock, 10s, [&] { return waiting_.size() >= requests; }));
  }
  static HttpResponse created() {
    HttpResponse response;
    response.status = 201;
    response.body = "done";
    return response;
  }
  asio::ip::tcp::socket connect() {
    asio::ip::tcp::socket socket(io_);
    const model::Address where = *model::parse_address(server_->address());
    socket.connect({asio::ip::make_address(where.host), where.port});
    return socket;
  }
  static std::string all_of(asio::ip::tcp::socket& socket) {
    std::string got;
    boost::system::error_code error;
    asio::read(socket, asio::dynamic_buffer(got), error);
    return got;
  }

  asio::io_context io_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::function<void(HttpResponse)>> waiting_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(LaterTest, WaitingAnswersHoldNoWorker) {
  HttpLimits limits;
  limits.workers = 1;
  start(limits);
  constexpr std::size_t kMany = 20;
  std::vector<std::thread> senders;
  std::vector<int> statuses(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    senders.emplace_back([&, i] {
      const auto reply = http_request("POST", server_->address() + "/later", "x", 20s);
      statuses[i] = reply.ok() ? reply->status : -1;
    });
  }
  wait_for(kMany);
  const auto reply = http_request("GET", server_->address() + "/now", "", 10s);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->body, "/now 0");
  for (const auto& answer : waiting_) answer(created());
  for (const auto& answer : waiting_) answer(created());  // a second time nothing happens
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(statuses, std::vector<int>(kMany, 201));
}

TEST_F(LaterTest, TheConnectionGoesOnAfterIt) {
  start();
  auto socket = connect();
  asio::write(socket, asio::buffer(std::string("POST /later HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"
                                               "GET /b HTTP/1.1\r\nConnection: close\r\n\r\n")));
  wait_for(1);
  waiting_[0](created());
  const std::string got = all_of(socket);
  EXPECT_NE(got.find("201 Created"), std::string::npos) << got;
  EXPECT_NE(got.find("/b 0"), std::string::npos) << got;
}

TEST_F(LaterTest, AServerThatEndsWritesTheAnswersItHasAndForgetsTheOthers) {
  start();
  auto answered = connect();
  auto forgotten = connect();
  const std::string request = "POST /later HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
  asio::write(answered, asio::buffer(request));
  wait_for(1);
  asio::write(forgotten, asio::buffer(request));
  wait_for(2);
  waiting_[0](created());
  server_.reset();
  waiting_[1](created());  // after its server
  EXPECT_NE(all_of(answered).find("201 Created"), std::string::npos);
  EXPECT_EQ(all_of(forgotten), "");
}

TEST_F(LaterTest, ABodyIsAskedFor) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  start(limits);
  auto socket = connect();
  asio::write(socket, asio::buffer(std::string("POST /a HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
                                               "Connection: close\r\n\r\n")));
  std::string got;
  asio::read_until(socket, asio::dynamic_buffer(got), "\r\n\r\n");
  EXPECT_EQ(got, "HTTP/1.1 100 Continue\r\n\r\n");
  asio::write(socket, asio::buffer(std::string("abc")));
  EXPECT_NE(all_of(socket).find("/a 3"), std::string::npos);

  // One that is too large is not, and a sender that sends all the same sees the answer.
  auto large = connect();
  asio::write(large,
              asio::buffer(std::string("POST /a HTTP/1.1\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")));
  EXPECT_EQ(all_of(large).substr(0, 12), "HTTP/1.1 413");
  auto other = connect();
  asio::write(other, asio::buffer(std::string("POST /a HTTP/1.1\r\nContent-Length: 3\r\nExpect: tea\r\n\r\n")));
  EXPECT_EQ(all_of(other).substr(0, 12), "HTTP/1.1 417");
}

TEST_F(LaterTest, BodiesTogetherAreBounded) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  limits.all_bodies_bytes = 1500;
  start(limits);
  auto first = connect();
  asio::write(first,
              asio::buffer(std::string("POST /a HTTP/1.1\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n")));
  std::string got;
  asio::read_until(first, asio::dynamic_buffer(got), "\r\n\r\n");
  auto second = connect();
  asio::write(second, asio::buffer("POST /a HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x')));
  const std::string busy = all_of(second);
  EXPECT_EQ(busy.substr(0, 12), "HTTP/1.1 503") << busy;
  EXPECT_NE(busy.find("Retry-After: 1"), std::string::npos);
  asio::write(first, asio::buffer(std::string(1000, 'x')));
  got.clear();
  asio::read_until(first, asio::dynamic_buffer(got), "/a 1000");
  // With the first one answered there is room again.
  const auto again = http_request("POST", server_->address() + "/a", std::string(1000, 'x'), 10s);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->body, "/a 1000");
}

TEST_F(LaterTest, NoContentHasNone) {
  start();
  auto socket = connect();
  asio::write(socket,
              asio::buffer(std::string("POST /later HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")));
  wait_for(1);
  HttpResponse nothing;
  nothing.status = 204;
  waiting_[0](nothing);
  const std::string got = all_of(socket);
  EXPECT_EQ(got.substr(0, 12), "HTTP/1.1 204");
  EXPECT_EQ(got.find("Content-"), got.find("Content-Type-Options")) << got;  // X-Content-Type-Options alone
}

}  // namespace
}  // namespace orla::node
