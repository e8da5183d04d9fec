#include "node/http_server.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "model/address.h"
#include "node/http_client.h"

namespace orla::node {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

HttpResponse echo(const HttpRequest& request) {
  HttpResponse response;
  if (request.path == "/stream") {
    auto left = std::make_shared<int>(3);  // with the copies of the std::function
    response.stream = [left](std::string& piece) -> absl::StatusOr<bool> {
      piece = std::string(100000, static_cast<char>('a' + *left));
      return --*left > 0;
    };
    return response;
  }
  if (request.path == "/broken") {
    response.stream = [](std::string&) -> absl::StatusOr<bool> { return absl::DataLossError("gone"); };
    return response;
  }
  response.body = request.method + " " + request.path + " " + request.parameter("x").value_or("-") + " " + request.body;
  return response;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::start("127.0.0.1:0", limits, echo);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // Sends raw bytes and returns everything until the server closes.
  std::string raw(const std::string& bytes) {
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    const model::Address where = *model::parse_address(server_->address());
    socket.connect({asio::ip::make_address(where.host), where.port});
    asio::write(socket, asio::buffer(bytes));
    std::string got;
    boost::system::error_code error;
    asio::read(socket, asio::dynamic_buffer(got), error);
    return got;
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersWithMethodPathQueryAndBody) {
  start();
  const auto reply = http_request("POST", server_->address() + "/a%20b?x=1%2B1&y=2", "body", 2s);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "POST /a b 1+1 body");
}

TEST_F(HttpServerTest, StreamsInChunks) {
  start();
  std::string got;
  const absl::Status status = http_stream("http://" + server_->address() + "/stream", 2s, [&](std::string_view piece) {
    got.append(piece);
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(got, std::string(100000, 'd') + std::string(100000, 'c') + std::string(100000, 'b'));
}

TEST_F(HttpServerTest, AStreamThatFailsIsSeenAsIncomplete) {
  start();
  const absl::Status status =
      http_stream(server_->address() + "/broken", 2s, [](std::string_view) { return absl::OkStatus(); });
  EXPECT_FALSE(status.ok());
}

TEST_F(HttpServerTest, RefusesLargeBodiesHeadersAndNoise) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  limits.header_bytes = 2000;
  start(limits);
  const auto reply = http_request("POST", server_->address() + "/", std::string(1001, 'x'), 2s);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 413);
  EXPECT_NE(raw("GET / HTTP/1.1\r\nA: " + std::string(3000, 'x') + "\r\n\r\n").find("431"), std::string::npos);
  EXPECT_NE(raw("hello\r\n\r\n").find("400"), std::string::npos);
}

TEST_F(HttpServerTest, KeepsAConnectionAlive) {
  start();
  const std::string got =
      raw("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n"
          "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(got.find("GET /1 - "), std::string::npos);
  EXPECT_EQ(got.find("HEAD /2"), std::string::npos);  // HEAD has no body
  EXPECT_NE(got.find("GET /3 - "), std::string::npos);
}

TEST_F(HttpServerTest, TheHeadOfAStreamIsTheStreamsHead) {
  start();
  const std::string got =
      raw("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(got.find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_EQ(got.find("dddd"), std::string::npos);
  EXPECT_NE(got.find("GET /3 - "), std::string::npos);
}

TEST_F(HttpServerTest, RefusesConnectionsOverTheLimit) {
  HttpLimits limits;
  limits.connections = 1;
  start(limits);
  asio::io_context io;
  asio::ip::tcp::socket first(io);
  const model::Address where = *model::parse_address(server_->address());
  first.connect({asio::ip::make_address(where.host), where.port});
  asio::write(first, asio::buffer(std::string("GET /1 HTTP/1.1\r\n\r\n")));
  std::string got(12, '\0');
  asio::read(first, asio::buffer(got));
  EXPECT_EQ(got, "HTTP/1.1 200");
  EXPECT_NE(raw("GET /2 HTTP/1.1\r\n\r\n").find("503"), std::string::npos);
}

TEST_F(HttpServerTest, AnAddressInUseNamesIt) {
  start();
  const auto second = HttpServer::start(server_->address(), {}, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(server_->address()), std::string::npos);
}

TEST(HttpServer, RefusesOtherAddressesThanLoopback) {
  EXPECT_EQ(HttpServer::start("0.0.0.0:0", {}, echo).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HttpClient, NamesWhomItCannotReach) {
  const auto reply = http_request("GET", "127.0.0.1:1/", "", 2s);
  ASSERT_FALSE(reply.ok());
  EXPECT_NE(reply.status().message().find("127.0.0.1:1"), std::string::npos);
}

}  // namespace
}  // namespace orla::node
