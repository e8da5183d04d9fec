#include "tests/push_client.h"

#include <zlib.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <stdexcept>

#include "absl/strings/match.h"
#include "model/address.h"

namespace orla::behaviour {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

std::string PushReply::header(const std::string& name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) return value;
  }
  return "";
}

struct PushClient::Connection {
  asio::io_context io{1};
  beast::tcp_stream stream{io};
  beast::flat_buffer buffer;
  std::string address;

  // Runs one step to its end; false when it failed.
  template <typename Start>
  bool step(std::chrono::milliseconds patience, Start start) {
    beast::error_code result = asio::error::would_block;
    stream.expires_after(patience);
    start([&result](beast::error_code error, auto&&...) { result = error; });
    io.restart();
    io.run();
    return !result;
  }
};

PushClient::PushClient() = default;
PushClient::~PushClient() = default;

std::optional<PushReply> PushClient::push(const std::string& body, const Headers& headers, const std::string& path,
                                          std::chrono::milliseconds patience) {
  const auto broken = [this]() -> std::optional<PushReply> {
    connection_.reset();
    return std::nullopt;
  };
  if (connection_ != nullptr && connection_->address != address_) connection_.reset();
  if (connection_ == nullptr) {
    connection_ = std::make_unique<Connection>();
    connection_->address = address_;
    const auto where = model::parse_address(address_);
    if (!where.ok()) return broken();
    const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(where->host), where->port);
    if (!connection_->step(patience, [&](auto done) { connection_->stream.async_connect(endpoint, done); })) {
      return broken();
    }
  }
  http::request<http::string_body> request(http::verb::post, path, 11);
  request.set(http::field::host, address_);
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = body;
  request.prepare_payload();
  http::response<http::string_body> response;
  Connection& c = *connection_;
  if (!c.step(patience, [&](auto done) { http::async_write(c.stream, request, done); })) return broken();
  if (!c.step(patience, [&](auto done) { http::async_read(c.stream, c.buffer, response, done); })) return broken();
  PushReply reply;
  reply.status = static_cast<int>(response.result_int());
  for (const auto& field : response) {
    reply.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  reply.body = response.body();
  if (!response.keep_alive()) connection_.reset();
  return reply;
}

std::string gzip(const std::string& plain) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(deflateBound(&stream, plain.size()), '\0');
  std::string in = plain;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

}  // namespace orla::behaviour
